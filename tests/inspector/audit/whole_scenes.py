"""Scenes of everything that conversations hold, row by row: what those that examining loads are held against.

Nothing here goes by a sight or by an index of what is remarkable: each message and each task is looked at.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

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
    load_elsewhere,
    load_words_after_end,
    see,
    see_all,
)
from inspector.audit.findings.scene import AfterResult, Said, Scene, Seen, SeenTask, Skewed, read_body
from inspector.browsing.directory import ChangedKey
from inspector.characters import MIXED, UNSEEN
from inspector.intake.models import Record, Sighting
from inspector.threads import terms
from inspector.threads.models import Conversation, Declaration, Message, Task
from inspector.threads.nodes import count_bearers, find_reuse
from inspector.threads.tasks import read_steps
from inspector.threads.terms import CLOCK_SKEW, JUDGEMENTS, MIN_SEVERITY, OF_KEYS, OF_SESSIONS, RuleFlag
from inspector.tokens import PIECE, VALUE, is_result


class Marked(Func):
    """An array of one term with the mark of the row's workspace, as `mark_workspace` makes it."""

    template = "ARRAY[ENCODE(SUBSTRING(UUID_SEND(%(expressions)s]"
    arg_joiner = ") FROM 14), 'base64') || "
    output_field = ArrayField(TextField())


def has_term(wanted: str) -> Q:
    """Messages that have this exact term, of whichever workspace; no index serves it."""
    return Q(atoms__contains=Marked(F("workspace_id"), Value(wanted)))


KINDS = (*OF_SESSIONS, *OF_KEYS.values())
# What a row shows by itself, as PostgreSQL reads it: held against what was decided when it was told.
_received_earlier = Record.objects.filter(pk=OuterRef("record_id"), created_at__lt=OuterRef("order_time") - CLOCK_SKEW)
CONDITIONS: Mapping[RuleFlag, Q] = {
    RuleFlag.NOTED: Q(severity__gte=MIN_SEVERITY),
    RuleFlag.LEANING: has_term(terms.term("has", "references")) | has_term(terms.term("has", "condition")),
    RuleFlag.FAILED: Q(performative="failure"),
    RuleFlag.JUDGING: Q(performative__in=JUDGEMENTS),
    RuleFlag.SEALED: has_term(terms.term("security.encrypted", "true")),
    RuleFlag.AGREEING: Q(*(("established__contains", f'["{kind}",') for kind in KINDS), _connector=Q.OR),
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


class Declared(NamedTuple):
    """A key that an agent showed, and the message that shows it."""

    key: Declaration
    message: Message

    @property
    def place(self) -> tuple[bytes, int]:
        """Where it stands among those of one time and value."""
        return bytes(self.message.record.identity), self.message.part


def load_whole_scenes(conversations: Sequence[Conversation]) -> list[Scene]:
    """The scenes of these conversations, each alone."""
    declared = _list_declared()
    return [_load(each, declared) for each in conversations]


def _load(conversation: Conversation, declared: Mapping[uuid.UUID, Sequence[Declared]]) -> Scene:
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
    load_elsewhere({conversation.pk: scene})
    _load_withdrawn(scene)
    _load_doubles(scene)
    _load_reused(scene)
    _load_early(scene)
    _load_judged(scene)
    _load_after_results(scene)
    _load_strangers(scene)
    _load_rekeyed(scene, declared[conversation.channel_id])
    scene.refused = list(see_all(ordered.filter(trial__is_refused=True))) if scene.sealed else []
    if scene.sealed or scene.pacts:
        has_content = has_term(terms.term("has", "content"))
        scene.open = list(see_all(ordered.filter(has_content & ~CONDITIONS[RuleFlag.SEALED])))
    return scene


def _load_doubles(scene: Scene) -> None:
    found: dict[bytes, list[Seen]] = defaultdict(list)
    rows = Message.objects.shown().filter(conversation=scene.conversation, id_key__isnull=False).order_by(*ORDER)
    carried, told = defaultdict(set), defaultdict(set)
    for row in rows.values_list(*COLUMNS, "carrier", "english", "id_key"):
        found[bytes(row[-1])].append(see(row))
        carried[bytes(row[-1])].add(row[-3])
        told[bytes(row[-1])].add(row[-2])
    scene.doubles = [
        several
        for name, several in found.items()
        if len({message.record for message in several}) > 1 and not (any(carried[name]) and len(told[name]) == 1)
    ]


def _load_withdrawn(scene: Scene) -> None:
    hidden = Message.objects.hidden().filter(channel=scene.conversation.channel)
    keys = {bytes(key) for pair in hidden.values_list("id_key", "call_key") for key in pair if key}
    missing = (each for each in scene.odd if each.parent is None and not count_bearers(each.why))
    scene.withdrawn |= {each.cited for each in missing if each.cited is not None} & keys


def _load_reused(scene: Scene) -> None:
    bearers: dict[tuple[object, ...], list[Seen]] = defaultdict(list)
    rows = Message.objects.shown().filter(conversation=scene.conversation).order_by(*ORDER)
    for row in rows.values_list(*COLUMNS, "run", "turn", "body"):
        message, (run, turn, body) = see(row), row[len(COLUMNS) :]
        number = read_body(body).message.object_id if turn is None else None
        bearers[message.sender, run, turn, number].append(message)
    found = [(message, same) for same in bearers.values() for message in same if find_reuse(message.why)]
    place = {pk: at for at, pk in enumerate(rows.values_list("pk", flat=True))}
    for message, same in sorted(found, key=lambda pair: place[pair[0].id]):
        scene.reused.append([*(each for each in same if each != message), message])


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


def _load_after_results(scene: Scene) -> None:
    """Row by row, of everything that a tool gave back, whatever it says."""
    shown = Message.objects.shown().filter(conversation=scene.conversation)
    rows = list(shown.order_by("place"))
    by_id = {row.pk: row for row in rows}
    seen = {row[0]: see(row) for row in shown.values_list(*COLUMNS)}
    failures = {each.message.id: note for each in scene.noted for note in each.notes if "tool-failed" in note["code"]}
    for row in rows:
        result = Said.read_result(seen[row.pk], read_body(row.body))
        call = row if result.is_call else by_id.get(row.parent)
        if call is None or not (row.pk in failures or is_result(row.performative, row.native_act)):
            continue
        behind = rows[rows.index(row) + 1 :][:500]
        is_piece = re.compile(PIECE).search
        later = [each for each in behind if not (each.performative == "progress" and is_piece(each.native_act))][:10]
        own = [each for each in later if each.sender == call.sender and (each.sender or is_caller(each))]
        texts = [Said.read_said(seen[each.pk], read_body(each.body)) for each in own[:5]]
        texts = [each for each in texts if not each.is_mute]
        calls = [each for each in texts if each.is_call]
        if len({each.tool for each in calls[:2]}) == 1 and calls[1:] and calls[1].message.performative != "request":
            # Its arguments came in pieces.
            del calls[0]
        note = failures.get(row.pk)
        scene.after_results.append(
            AfterResult(
                result=result,
                failure=tuple(note["span"]) if note and note.get("span") else None,
                has_failed=note is not None,
                call=Said.read_said(seen[call.pk], read_body(call.body)),
                next=next(iter(texts), None),
                next_call=next(iter(calls), None),
                known=frozenset(_list_known(rows, row, call, calls[0])) if calls else frozenset(),
            )
        )


def is_caller(row: Message) -> bool:
    """Whether who has no name may be one who calls tools."""
    return row.native_act not in ("user", "system", "developer", "tool", "tool_result")


def _list_known(rows: Sequence[Message], result: Message, call: Message, next_call: Said) -> Iterator[str]:
    """Of the words of a call, those that somebody else said before it."""
    words = {next_call.tool, *(word for text, _ in next_call.texts for word in VALUE.findall(text))}
    at = next(number for number, row in enumerate(rows) if row.pk == next_call.message.id)
    for number, row in enumerate(rows[:at]):
        is_own = number > rows.index(result) and row.sender == call.sender and is_caller(row)
        if not is_own and not is_result(row.performative, row.native_act):
            yield from (word for word in words if word.lower() in row.english.lower())


def _list_declared() -> Mapping[uuid.UUID, Sequence[Declared]]:
    """The keys that agents showed as their own, by channel, in the order in which they are compared."""
    messages = {row.pk: row for row in Message.objects.select_related("record")}
    shown = set(Message.objects.shown().values_list("record", flat=True))
    openings = {row.record_id: row for row in messages.values() if row.part == 1}
    found: dict[uuid.UUID, list[Declared]] = defaultdict(list)
    for row in Declaration.objects.filter(kind="key").select_related("agent", "conversation"):
        message = messages[row.message]
        established = json.loads(openings[message.record_id].established or "[]")
        if message.record_id in shown and any(entry[0] == OF_KEYS[row.name] for entry in established):
            found[row.conversation.channel_id].append(Declared(row, message))
    for several in found.values():
        several.sort(key=lambda each: (each.key.at, each.key.value, *each.place))
    return found


def _load_rekeyed(scene: Scene, declared: Sequence[Declared]) -> None:
    """Of all that was declared in the channel: what each agent showed first here, and last elsewhere."""
    by_agent: dict[tuple[uuid.UUID, str], list[Declared]] = defaultdict(list)
    for each in declared:
        by_agent[each.key.agent_id, each.key.name].append(each)
    found: list[tuple[Declared, Declared]] = []
    for several in by_agent.values():
        first = next((each for each in several if each.key.conversation == scene.conversation), None)
        elsewhere = [each for each in several if each.key.conversation != scene.conversation]
        # Of two keys shown at one time either is another one than the other.
        others = [
            each
            for each in elsewhere
            if first
            and (each.key.at < first.key.at or (each.key.at == first.key.at and each.key.value != first.key.value))
        ]
        before = next((each for each in others if each.key.at == others[-1].key.at), None)
        if first and before and before.key.value != first.key.value:
            found.append((first, before))
    for first, before in sorted(found, key=lambda pair: (pair[0].key.at, *pair[0].place, pair[0].key.name)):
        key, other = first.key, before.key
        now = (key.message, key.dialect, key.agent.name, key.name, key.value)
        rest = (other.message, before.message.record_id, other.value, other.at, other.conversation.native_id)
        scene.rekeyed.append(ChangedKey(scene.conversation.pk, *now, *rest))


def _load_strangers(scene: Scene) -> None:
    keys: dict[uuid.UUID, ApiKey] = {key.pk: key for key in ApiKey.objects.all() if key.agents}
    brought = Sighting.objects.filter(outcome=Sighting.Outcome.STORED, delivery__sent_by_key__in=list(keys))
    by_record = dict(brought.values_list("record_id", "delivery__sent_by_key"))
    rows = Message.objects.shown().filter(conversation=scene.conversation).exclude(sender="").order_by(*ORDER)
    for message in see_all(rows):
        key = keys.get(by_record.get(message.record, uuid.UUID(int=0)))
        if key and message.sender not in key.agents:
            scene.strangers.append((message, key.name))
