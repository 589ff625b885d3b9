"""Scenes of everything that conversations hold, row by row: what those that examining loads are held against.

Nothing here goes by a sight or by an index of what is remarkable: each message and each task is looked at.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Case,
    Exists,
    Expression,
    F,
    Func,
    OuterRef,
    Q,
    SmallIntegerField,
    Subquery,
    TextField,
    Value,
    When,
)

from inspector.accounts.models import ApiKey
from inspector.audit.findings.loading import (
    COLUMNS,
    JUDGED,
    ORDER,
    RESULTS,
    _Shown,
    _take,
    load_words_after_end,
    see,
    see_all,
)
from inspector.audit.findings.scene import Scene, Seen, SeenTask, Skewed
from inspector.hidden_characters import MIXED, UNSEEN
from inspector.intake.models import Record, Sighting
from inspector.threads.models import Conversation, Message, Task
from inspector.threads.rendering import terms
from inspector.threads.rendering.rule_flags import CLOCK_SKEW, JUDGEMENTS, MIN_SEVERITY, OF_SESSIONS, RuleFlag
from inspector.threads.tasks.rows import read_steps


class Marked(Func):
    """An array of one term with the mark of the row's workspace, as `mark_workspace` makes it."""

    template = "ARRAY[ENCODE(SUBSTRING(UUID_SEND(%(expressions)s]"
    arg_joiner = ") FROM 14), 'base64') || "
    output_field = ArrayField(TextField())


def has_term(wanted: str) -> Q:
    """Messages that have this exact term, of whichever workspace; no index serves it."""
    return Q(atoms__contains=Marked(F("workspace_id"), Value(wanted)))


# What a row shows by itself, as PostgreSQL reads it: held against what was decided when it was told.
_received_earlier = Record.objects.filter(pk=OuterRef("record_id"), created_at__lt=OuterRef("order_time") - CLOCK_SKEW)
CONDITIONS: Mapping[RuleFlag, Q] = {
    RuleFlag.NOTED: Q(severity__gte=MIN_SEVERITY),
    RuleFlag.LEANING: has_term(terms.term("has", "references")) | has_term(terms.term("has", "condition")),
    RuleFlag.FAILED: Q(performative="failure"),
    RuleFlag.JUDGING: Q(performative__in=JUDGEMENTS),
    RuleFlag.SEALED: has_term(terms.term("security.encrypted", "true")),
    RuleFlag.AGREEING: Q(*(("established__contains", f'["{kind}",') for kind in OF_SESSIONS), _connector=Q.OR),
    RuleFlag.WRITTEN: Q(english__regex=f"{UNSEEN}|{MIXED}") | Q(sender__regex=UNSEEN),
    RuleFlag.FUTURE: ~Q(order_basis="receipt") & Q(Exists(_received_earlier)),
}


def sum_sights() -> Expression:
    """What a stored row shows by itself, as a number."""
    total: Expression = Value(RuleFlag.DECIDED.value, output_field=SmallIntegerField())
    for sight, condition in CONDITIONS.items():
        total = total + Case(When(condition, then=Value(sight.value)), default=0, output_field=SmallIntegerField())
    return total


ROW = ("decided", "id_key", "record__created_at", "established", "english", "body")


def load_whole_scenes(conversations: Sequence[Conversation]) -> list[Scene]:
    """The scenes of these conversations, each alone."""
    return [_load(each) for each in conversations]


def _load(conversation: Conversation) -> Scene:
    scene = Scene(conversation)
    shown = Message.objects.shown().filter(conversation=conversation)
    ordered = shown.order_by(*ORDER)
    for row in ordered.annotate(decided=sum_sights()).values_list(*COLUMNS, *ROW):
        message, (sights, id_key, received_at, *texts) = see(row), row[len(COLUMNS) :]
        is_odd = message.cited is not None and message.parent is None
        is_odd |= "circle" in message.why or message.why.startswith("it names itself")
        _take(scene, message, _Shown(sights, is_odd, id_key, received_at, *texts))
        if sights & RuleFlag.SEALED:
            scene.sealed.append(message)
        scene.first = scene.first or message
    tasks = Task.objects.filter(conversation=conversation).order_by("first_at", "key")
    scene.tasks = [SeenTask._make(row) for row in tasks.values_list(*SeenTask._fields)]
    load_words_after_end({conversation.pk: scene}, shown)
    _load_doubles(scene)
    _load_early(scene)
    _load_judged(scene)
    _load_after_errors(scene)
    _load_strangers(scene)
    scene.refused = list(see_all(ordered.filter(trial__is_refused=True))) if scene.sealed else []
    if scene.sealed or scene.pacts:
        has_content = has_term(terms.term("has", "content"))
        scene.open = list(see_all(ordered.filter(has_content & ~CONDITIONS[RuleFlag.SEALED])))
    return scene


def _load_doubles(scene: Scene) -> None:
    found: dict[bytes, list[Seen]] = defaultdict(list)
    rows = Message.objects.shown().filter(conversation=scene.conversation, id_key__isnull=False).order_by(*ORDER)
    for row in rows.values_list(*COLUMNS, "id_key"):
        found[bytes(row[-1])].append(see(row))
    scene.doubles = [several for several in found.values() if len({message.record for message in several}) > 1]


def _load_early(scene: Scene) -> None:
    timed = Message.objects.exclude(order_basis="receipt")
    answers = timed.filter(
        pk__in=Message.objects.shown().filter(conversation=scene.conversation).values("pk"),
        parent_basis__in=("explicit", "correlation"),
    )
    asked_at = Subquery(timed.filter(pk=OuterRef("parent")).values("order_time"))
    rows = answers.annotate(asked_at=asked_at).filter(asked_at__gt=F("order_time") + CLOCK_SKEW).order_by(*ORDER)
    for row in rows.values_list(*COLUMNS, "asked_at"):
        message = see(row)
        scene.skewed.append(Skewed(message, message.parent, (row[-1] - message.at).total_seconds()))


def _load_judged(scene: Scene) -> None:
    rows = Message.objects.shown().filter(conversation=scene.conversation).order_by(*ORDER)
    messages = {row[0]: (see(row), row[-1]) for row in rows.values_list(*COLUMNS, "task")}
    steps = {task.pk: read_steps(task.steps) for task in Task.objects.filter(conversation=scene.conversation)}
    for message, task in messages.values():
        if message.performative not in ("accept", "evaluate") or not message.sender:
            continue
        names = [step.message_id for step in steps.get(task, []) if step.event in RESULTS]
        if message.parent and message.basis in ("explicit", "correlation"):
            names = [message.parent]
        own = [messages[name][0] for name in names if name in messages]
        own = [one for one in own if one.sender == message.sender and one.at <= message.at]
        if own and own[-1].id != message.id and own[-1].performative in JUDGED:
            scene.judged.append((message, own[-1]))


def _load_after_errors(scene: Scene) -> None:
    rows = list(Message.objects.shown().filter(conversation=scene.conversation).order_by("place"))
    messages = {row[0]: see(row) for row in Message.objects.shown().values_list(*COLUMNS)}
    senders = dict(Message.objects.values_list("pk", "sender"))
    failed = [each.message for each in scene.noted if any(note["code"].endswith(".tool-failed") for note in each.notes)]
    for message in failed:
        at = next(number for number, row in enumerate(rows) if row.pk == message.id)
        for row in rows[at + 1 : at + 11] if message.parent in senders else ():
            is_caller = row.sender or row.native_act not in ("user", "system", "developer", "tool", "tool_result")
            if row.sender == senders[message.parent] and is_caller:
                scene.after_errors.append((message, messages[row.pk], row.english))
                break


def _load_strangers(scene: Scene) -> None:
    keys: dict[uuid.UUID, ApiKey] = {key.pk: key for key in ApiKey.objects.all() if key.agents}
    brought = Sighting.objects.filter(outcome=Sighting.Outcome.STORED, delivery__sent_by_key__in=list(keys))
    by_record = dict(brought.values_list("record_id", "delivery__sent_by_key"))
    rows = Message.objects.shown().filter(conversation=scene.conversation).exclude(sender="").order_by(*ORDER)
    for message in see_all(rows):
        key = keys.get(by_record.get(message.record, uuid.UUID(int=0)))
        if key and message.sender not in key.agents:
            scene.strangers.append((message, key.name))
