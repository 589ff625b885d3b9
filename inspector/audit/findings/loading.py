"""Loading scenes: the messages and tasks that show something, and what it takes several messages to see.

Whom to suspect is among a message's sights; whether it is so is asked here, for a sight may outlast what it said.

The messages of a scene are those whose row shows something: its sights say so, which are kept with it, or placing made
a remark. One index holds them, so that examining costs in proportion to what there is to look at, and not to what a
conversation holds. One statement asks for all that a message's own row can say, and each body is read once.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import (
    BooleanField,
    Case,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)

from dialects import all_dialects
from inspector.accounts.models import ApiKey
from inspector.browsing.directory import KEYED, find_changed_keys
from inspector.browsing.withdrawn import Cited, find_withdrawn
from inspector.characters import LOOKALIKES, UNSEEN
from inspector.database import HasAnyBit, IsAny
from inspector.intake.models import Sighting
from inspector.threads import terms
from inspector.threads.keys import key_of_id
from inspector.threads.models import Conversation, Message, Task
from inspector.threads.models.packed_text import PackedTextField
from inspector.threads.models.tasks import ALONE, HANDED_ON, REMARKABLE
from inspector.threads.nodes import count_bearers, find_reuse
from inspector.threads.summaries import read_tally
from inspector.threads.tasks import read_steps
from inspector.threads.terms import CLOCK_SKEW, FLAGGED, ODD, OF_SESSIONS, RuleFlag, mark_workspace

from .scene import (
    MAX_RESULTS,
    TOOL_FAILURES,
    Body,
    Noted,
    Said,
    Scene,
    Seen,
    SeenTask,
    Skewed,
    load_after_results,
    read_body,
    read_value,
)

COLUMNS: Final = (
    *("id", "conversation_id", "record_id", "part", "dialect", "performative", "sender", "receivers", "native_id"),
    *("order_time", "parent", "parent_key", "parent_basis", "parent_why"),
)
# As resolving orders them: of one order key by the identity of the record.
ORDER: Final = ("conversation_id", "order_time", "order_source", "order_index", "record__identity", "part")
# What somebody did, found or proposes: these can be judged.
JUDGED: Final = ("done", "inform", "observe", "propose", "commit")
# The events of a task that give its result.
RESULTS: Final = frozenset({"done", "gave-result", "answered"})
_IS_SEALED: Final = HasAnyBit("sights", RuleFlag.SEALED.value)
# What says which number a message bears, and of how many it is looked up.
_OF_NUMBER: Final = ("run", "turn", "body")
MAX_REUSED: Final = 100
# The level at which a session is agreed to be encrypted.
_ENCRYPTED: Final = "E"


def see(row: Sequence[Any]) -> Seen:
    """A message of a row that begins with `COLUMNS`."""
    seen = Seen._make(row[: len(COLUMNS)])
    return seen if seen.cited is None else seen._replace(cited=bytes(seen.cited))


def see_all(messages: QuerySet[Message]) -> Iterator[Seen]:
    """These messages, in the order given."""
    return map(see, messages.values_list(*COLUMNS))


def _load_doubles(scenes: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message], id_keys: set[bytes]) -> None:
    channels = {scene.conversation.channel_id for scene in scenes.values()}
    workspaces = {scene.conversation.workspace_id for scene in scenes.values()}
    bearers = ordered.filter(workspace_id__in=workspaces, channel_id__in=channels, id_key__in=list(id_keys))
    found: dict[tuple[uuid.UUID, bytes], list[Seen]] = defaultdict(list)
    told: dict[tuple[uuid.UUID, bytes], set[str]] = defaultdict(set)
    carried: set[tuple[uuid.UUID, bytes]] = set()
    for row in bearers.values_list(*COLUMNS, "id_key", "carrier", "english"):
        message, (id_key, carrier, english) = see(row), row[len(COLUMNS) :]
        name = (message.conversation, bytes(id_key))
        found[name].append(message)
        told[name].add(english)
        carried |= {name} if carrier else set()
    for name, several in found.items():
        # The parts of one record may share its id, and conflict with nothing; nor do texts around which others stand
        # each time, as the spans of a trace around what they pass on.
        is_same = name in carried and len(told[name]) == 1
        if len({message.record for message in several}) > 1 and not is_same:
            scenes[name[0]].doubles.append(several)


def _load_reused(scenes: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message], suspects: Sequence[uuid.UUID]) -> None:
    """Messages whose number or turn their sender had used before, each with those that bear it too."""
    asked = [_see_number(row) for row in ordered.filter(IsAny("id", suspects)).values_list(*COLUMNS, *_OF_NUMBER)]
    wanted = Q()
    for message, run, name, value in asked:
        mark = mark_workspace(scenes[message.conversation].conversation.workspace_id)
        same = Q(conversation=message.conversation, sender=message.sender, run=run)
        wanted |= same & Q(atoms__contains=[mark + terms.term(name, value)])
    bearers: dict[tuple[Any, ...], list[Seen]] = defaultdict(list)
    for row in ordered.filter(wanted).values_list(*COLUMNS, *_OF_NUMBER) if asked else ():
        message, *number = _see_number(row)
        bearers[message.conversation, message.sender, *number].append(message)
    for message, *number in asked:
        same_number = bearers[message.conversation, message.sender, *number]
        scenes[message.conversation].reused.append([*(each for each in same_number if each != message), message])


def _see_number(row: Sequence[Any]) -> tuple[Seen, int, str, Any]:
    """A message, its run, and the name and the value of what it bears as a number of its sender's."""
    run, turn, body = row[len(COLUMNS) :]
    return (
        (see(row), run, "turn", turn)
        if turn is not None
        else (see(row), run, "object_id", read_body(body).message.object_id)
    )


def _load_withdrawn(scenes: Mapping[uuid.UUID, Scene]) -> None:
    """Which ids that are cited stand for nothing here since what bears them is withdrawn."""
    cited = {
        pk: {
            Cited(scene.conversation.channel_id, message.cited)
            for message in scene.odd
            if message.cited is not None and message.parent is None and not count_bearers(message.why)
        }
        for pk, scene in scenes.items()
    }
    workspace_id = next(scene.conversation.workspace_id for scene in scenes.values())
    found = find_withdrawn(workspace_id=workspace_id, cited=chain.from_iterable(cited.values()))
    for pk, scene in scenes.items():
        scene.withdrawn |= {each.key for each in cited[pk] if each in found}


def _load_early(scenes: Mapping[uuid.UUID, Scene], suspects: QuerySet[Message]) -> None:
    """Answers that are earlier than what they answer, by clocks that wire or envelope carry."""
    parent = Message.objects.filter(pk=OuterRef("parent")).exclude(order_basis="receipt")
    answers = suspects.exclude(order_basis="receipt").filter(
        parent__isnull=False, parent_basis__in=("explicit", "correlation")
    )
    early = answers.annotate(asked_at=Subquery(parent.values("order_time")[:1])).filter(
        asked_at__gt=F("order_time") + CLOCK_SKEW
    )
    for row in early.values_list(*COLUMNS, "asked_at"):
        message = see(row)
        seconds = (row[-1] - message.at).total_seconds()
        scenes[message.conversation].skewed.append(Skewed(message, message.parent, seconds))


def _load_judged(scenes: Mapping[uuid.UUID, Scene], suspects: QuerySet[Message]) -> None:
    """Judgements of one's own: of the message that the wire says, else of the last result of the task."""
    judging: list[Seen] = []
    works: dict[uuid.UUID, uuid.UUID | None] = {}
    for row in suspects.exclude(sender="").values_list(*COLUMNS, "task"):
        judging.append(message := see(row))
        works[message.id] = row[-1]
    results: dict[uuid.UUID | None, list[uuid.UUID]] = {
        pk: [step.message_id for step in read_steps(steps) if step.event in RESULTS]
        for pk, steps in Task.objects.filter(IsAny("id", set(works.values()) - {None})).values_list("pk", "steps")
    }
    said = {message.parent for message in judging if message.parent}.union(*results.values())
    judged = {message.id: message for message in see_all(Message.objects.shown().filter(IsAny("id", said)))}
    for message in judging:
        is_said = message.parent is not None and message.basis in ("explicit", "correlation")
        named = [message.parent] if is_said else results.get(works[message.id], [])
        own = [judged[pk] for pk in named if pk in judged]
        own = [one for one in own if one.sender == message.sender and one.at <= message.at]
        if own and own[-1].id != message.id and own[-1].performative in JUDGED:
            scenes[message.conversation].judged.append((message, own[-1]))


def _read_said(messages: QuerySet[Message], ids: Collection[uuid.UUID]) -> dict[uuid.UUID, Said]:
    """The messages of these ids with the texts of their sentences."""
    rows = messages.filter(IsAny("id", ids)).values_list(*COLUMNS, "body").iterator(chunk_size=_BODIES_AT_ONCE)
    bodies = ((see(row), read_body(row[-1])) for row in rows)
    return {message.id: Said.read_said(message, body) for message, body in bodies}


def _load_strangers(scenes: Mapping[uuid.UUID, Scene], suspects: QuerySet[Message]) -> None:
    """What was brought in by a key that names its agents, under a name that is none of them."""
    keys = {
        key.pk: key
        for key in ApiKey.objects.filter(workspace_id=next(iter(scenes.values())).conversation.workspace_id)
        if key.agents
    }
    # Who delivers again what was here before said nothing under that name.
    brought = Sighting.objects.filter(
        record=OuterRef("record"), outcome=Sighting.Outcome.STORED, delivery__sent_by_key__in=list(keys)
    )
    rows = suspects.exclude(sender="").annotate(key=Subquery(brought.values("delivery__sent_by_key")[:1]))
    for row in rows.filter(key__isnull=False).values_list(*COLUMNS, "key"):
        message, key = see(row), keys[row[-1]]
        if message.sender not in key.agents:
            scenes[message.conversation].strangers.append((message, key.name))


def _load_sealed(scenes: Mapping[uuid.UUID, Scene], messages: QuerySet[Message]) -> None:
    """What is sealed, what no key opened though its session is known, and what stands open where others are sealed."""
    ordered = messages.order_by(*ORDER)
    tallies = {pk: scene.conversation.tally for pk, scene in scenes.items()}
    may_be = [pk for pk, tally in tallies.items() if not tally or read_tally(tally).is_sealed]
    sealed = messages.filter(FLAGGED, _IS_SEALED, IsAny("conversation_id", may_be))
    firsts = sealed.order_by("conversation_id", "sender", "receivers", *ORDER[1:])
    firsts = firsts.distinct("conversation_id", "sender", "receivers")
    # As an array they are found once; joined, once for each message where the table's statistics are old.
    for message in see_all(ordered.filter(IsAny("id", ArraySubquery(firsts.values("pk"))))) if may_be else ():
        scenes[message.conversation].sealed.append(message)
    if where := [pk for pk, scene in scenes.items() if scene.sealed]:
        refused = ordered.filter(FLAGGED, _IS_SEALED, IsAny("conversation_id", where), trial__is_refused=True)
        for message in see_all(refused):
            scenes[message.conversation].refused.append(message)
    agreed = {pk: scene for pk, scene in scenes.items() if scene.sealed or _is_agreed(scene)}
    for message in see_all(_find_open(agreed, ordered)) if agreed else ():
        scenes[message.conversation].open.append(message)


def _is_agreed(scene: Scene) -> bool:
    entries = (entry for _, said in scene.pacts for entry in said)
    return any(isinstance(value, dict) and value.get("level") == _ENCRYPTED for _, _, value, *_ in entries)


def _find_open(agreed: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message]) -> QuerySet[Message]:
    """What can be in clear against what was agreed: what is said after that, in its dialect. Handshakes are open."""
    before = [
        message for scene in agreed.values() for message in (*scene.sealed, *(shaking for shaking, _ in scene.pacts))
    ]
    since = min(message.at for message in before)
    after = Q(order_time__gt=since, dialect__in={message.dialect for message in before})
    workspace_id = next(iter(agreed.values())).conversation.workspace_id
    has_content = Q(atoms__contains=[mark_workspace(workspace_id) + terms.term("has", "content")])
    return ordered.filter(
        IsAny("conversation_id", agreed), after | Q(performative="handshake"), has_content, ~Q(_IS_SEALED)
    )


# Bodies may be a hundred times as long as what is kept of them.
_BODIES_AT_ONCE: Final = 50
_UNSEEN: Final = re.compile(UNSEEN)
# What belongs to the writing: a joiner within an emoji, the tags of a flag, joiners after letters of the Arabic and the
# Indian scripts, marks of direction beside Hebrew and Arabic.
_WRITTEN: Final = re.compile(
    "(?<=[\u2600-\u27ff\ufe0f\U0001f000-\U0001ffff])\u200d(?=[\u2600-\u27ff\U0001f000-\U0001ffff])"
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]+\U000e007f"
    "|(?<=[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\ufb50-\ufdff\ufe70-\ufefc])[\u200c\u200d]"
    "|(?<=[\u0590-\u08ff])[\u200e\u200f]|[\u200e\u200f](?=[\u0590-\u08ff])"
)
_WORD: Final = re.compile(r"\w+")
# Of these the body says what there is to see, as it does of those that are placed oddly.
_IN_BODY: Final = RuleFlag.NOTED | RuleFlag.LEANING | RuleFlag.FAILED | RuleFlag.ORDERING | RuleFlag.STATING


class _Shown(NamedTuple):
    """What a row shows, and the texts that are needed to say more."""

    sights: int
    is_odd: bool
    id_key: bytes | None
    received_at: datetime
    established: str
    english: str
    body: str


def load_scenes(conversations: Sequence[Conversation]) -> list[Scene]:
    """The scenes of these conversations of one workspace, in a number of statements that no message adds to."""
    scenes = {each.pk: Scene(each) for each in conversations}
    messages = Message.objects.shown().filter(IsAny("conversation_id", scenes))
    # Whom to look at beside others: by the ids that several may bear, and by the sight that says so.
    id_keys: set[bytes] = set()
    suspects: dict[RuleFlag, list[uuid.UUID]] = defaultdict(list)
    ordered = messages.order_by(*ORDER)
    for message, row in _look(ordered):
        _take(scenes[message.conversation], message, row)
        if row.sights & RuleFlag.DOUBLE and row.id_key is not None:
            id_keys.add(bytes(row.id_key))
        if row.sights & RuleFlag.REUSED and find_reuse(message.why):
            suspects[RuleFlag.REUSED].append(message.id)
        for flag in _LOADED_BY:
            if row.sights & flag:
                suspects[flag].append(message.id)
    if id_keys:
        _load_doubles(scenes, ordered, id_keys)
    for flag, load in _LOADED_BY.items():
        if flag in suspects:
            load(scenes, ordered.filter(IsAny("id", suspects[flag])))
    if RuleFlag.REUSED in suspects:
        _load_reused(scenes, ordered, suspects[RuleFlag.REUSED][:MAX_REUSED])
    load_after_results(scenes, messages, partial(_read_said, messages))
    _load_withdrawn(scenes)
    _load_sealed(scenes, messages)
    load_tasks(scenes)
    load_words_after_end(scenes, messages)
    _load_rekeyed(scenes)
    _load_first(scenes)
    return list(scenes.values())


# Answers that are earlier than what they answer, judgements of one's own work, and senders that a key does not name.
_LOADED_BY: Final[Mapping[RuleFlag, Callable[[Mapping[uuid.UUID, Scene], QuerySet[Message]], None]]] = {
    RuleFlag.EARLY: _load_early,
    RuleFlag.JUDGING: _load_judged,
    RuleFlag.STRANGE: _load_strangers,
}


def _look(ordered: QuerySet[Message]) -> Iterator[tuple[Seen, _Shown]]:
    """The messages whose rows show something, in the order given; of what is sealed and no more see `_load_sealed`."""
    beside = HasAnyBit("sights", ~(RuleFlag.DECIDED | RuleFlag.SEALED).value)
    texts = {
        f"its_{name}": Case(When(condition, then=F(name)), default=Value("", kind()), output_field=kind())
        for name, kind, condition in (
            ("established", TextField, HasAnyBit("sights", RuleFlag.AGREEING.value)),
            ("english", TextField, HasAnyBit("sights", RuleFlag.WRITTEN.value)),
            ("body", PackedTextField, Q(HasAnyBit("sights", _IN_BODY.value)) | ODD),
        )
    }
    is_odd = ExpressionWrapper(ODD, output_field=BooleanField())
    rows = ordered.annotate(is_odd=is_odd, **texts).filter(FLAGGED, Q(beside) | ODD)
    columns = (*COLUMNS, "sights", "is_odd", "id_key", "record__created_at", *texts)
    for row in rows.values_list(*columns).iterator(chunk_size=_BODIES_AT_ONCE):
        yield see(row), _Shown._make(row[len(COLUMNS) :])


def _take(scene: Scene, message: Seen, row: _Shown) -> None:
    """Put a message where its row shows that it belongs; it may be to several."""
    body = read_body(row.body)
    if row.sights & RuleFlag.NOTED:
        scene.noted.append(Noted(message, body.list_notes(part=message.part)))
    if _is_result(row.sights, body, part=message.part) and len(scene.results) < MAX_RESULTS:
        scene.results.append(Said.read_result(message, body))
    if row.is_odd:
        scene.odd.append(message)
        scene.cited_ids[message.id] = _find_cited(message, body)
    if row.sights & RuleFlag.LEANING:
        said = {"references": read_value(body.message.references), "condition": read_value(body.message.condition)}
        scene.leaning.append((message, said))
    if row.sights & RuleFlag.FAILED:
        scene.failures.append((message, read_value(body.message.error) or {}))
    if row.sights & RuleFlag.AGREEING:
        entries = [entry for entry in json.loads(row.established) if entry[0] in OF_SESSIONS]
        if entries:
            scene.pacts.append((message, entries))
    if row.sights & RuleFlag.WRITTEN:
        _take_text(scene, message, row.english)
    if row.sights & RuleFlag.FUTURE:
        scene.skewed.append(Skewed(message, None, (message.at - row.received_at).total_seconds()))


def _is_result(sights: int, body: Body, *, part: int) -> bool:
    """Whether a message is what a tool gave back, and worth looking at."""
    is_noted = sights & RuleFlag.NOTED and any(note["code"] in TOOL_FAILURES for note in body.list_notes(part=part))
    return bool(sights & (RuleFlag.ORDERING | RuleFlag.STATING) or is_noted)


def _find_cited(message: Seen, body: Body) -> str:
    """The id that a message cites and that was not received, as it says; empty where no name of it is that id."""
    return next((name for name in body.names() if key_of_id(name) == message.cited), "")


def _take_text(scene: Scene, message: Seen, english: str) -> None:
    signs = sorted(set(_UNSEEN.findall(_WRITTEN.sub("", f"{message.sender} {english}"))))
    if signs:
        scene.hidden.append((message, "".join(signs)))
    if words := _find_mixed(english, names=scene.conversation.agents):
        scene.mixed.append((message, words))


def _find_mixed(text: str, *, names: Sequence[str]) -> Sequence[str]:
    """Words that look Latin and are not, each once; names have a rule of their own."""
    known = {word for name in names for word in _WORD.findall(name)}
    words = dict.fromkeys(word for word in _WORD.findall(text) if not word.isascii())
    return [
        word
        for word in words
        if word not in known
        and any(sign.isascii() and sign.isalpha() for sign in word)
        and any(sign in LOOKALIKES for sign in word)
        and all(sign.isascii() or sign in LOOKALIKES for sign in word)
    ]


def _load_rekeyed(scenes: Mapping[uuid.UUID, Scene]) -> None:
    """What shows another key than its sender did in another conversation of the channel."""
    keyed = [pk for pk, scene in scenes.items() if not KEYED.isdisjoint(scene.conversation.dialects)]
    for each in find_changed_keys(keyed) if keyed else ():
        scenes[each.conversation].rekeyed.append(each)


def _load_first(scenes: Mapping[uuid.UUID, Scene]) -> None:
    first = Message.objects.shown().filter(conversation=OuterRef("pk")).order_by(*ORDER[1:]).values("pk")[:1]
    openings = Conversation.objects.filter(IsAny("id", scenes)).values(opening=Subquery(first))
    for message in see_all(Message.objects.filter(IsAny("id", ArraySubquery(openings)))):
        scenes[message.conversation].first = message


_TASKS_AT_ONCE: Final = 2000
# The id of a task of its conversation and its key, as `make_task_id` makes it.
_DIGEST: Final = 'substring(sha256(uuid_send("above"."conversation_id") || "above"."key") FOR 16)'
_MARKED: Final = f"set_byte({_DIGEST}, 6, get_byte({_DIGEST}, 6) & 15 | 80)"
_ID: Final = f"encode(set_byte({_MARKED}, 8, get_byte({_DIGEST}, 8) & 63 | 128), 'hex')::uuid"
_ABOVE: Final = f"""
WITH RECURSIVE "above" AS (
    SELECT * FROM unnest(%s::uuid[], %s::bytea[]) AS "asked" ("conversation_id", "key")
    UNION
    SELECT "task"."conversation_id", "task"."within_key" FROM "above" JOIN "threads_task" "task"
        ON "task"."id" = {_ID}
     WHERE "task"."within_key" IS NOT NULL
)
SELECT "task"."id" FROM "above" JOIN "threads_task" "task" ON "task"."id" = {_ID}
"""  # noqa: S608


def load_tasks(scenes: Mapping[uuid.UUID, Scene]) -> None:
    """The remarkable tasks of these scenes, in order; of some also those in whose course they were asked."""
    handed = Task.objects.filter(HANDED_ON, IsAny("conversation_id", scenes))
    comes_back = Exists(handed.filter(conversation=OuterRef("conversation"), requester=OuterRef("performer")))
    may_go_round = HANDED_ON & Q(within_key__isnull=False) & ~Q(performer="") & comes_back
    tasks = Task.objects.filter(REMARKABLE, ALONE | may_go_round, IsAny("conversation_id", scenes))
    _take_task(scenes, tasks)
    if links := [task for scene in scenes.values() for task in scene.tasks if _is_link(task)]:
        known = {(pk, bytes(task.key)) for pk, scene in scenes.items() for task in scene.tasks}
        _take_task(scenes, Task.objects.filter(IsAny("id", _find_above(links))), known)
        for scene in scenes.values():
            scene.tasks.sort(key=lambda task: (task.first_at, bytes(task.key)))
    load_elsewhere(scenes)


# What a tool gave a model may stand in the tool's own span alone, or nowhere: some calls only give an answer its form.
_CALLED_IN_SPANS: Final = Q(carrier="otel", dialect="chat")
# Who asks may not know yet how the conversation will be called in which the answer stands.
_LATE: Final = frozenset(each.slug for each in all_dialects() if each.names_conversations_late)


def load_elsewhere(scenes: Mapping[uuid.UUID, Scene]) -> None:
    """What is answered in other conversations, or may be, or may have been asked for there."""
    tasks = [task for scene in scenes.values() for task in scene.tasks]
    requests = {task.request for task in tasks if task.request and not task.is_answered}
    reports = {steps[0].message_id for task in tasks if not task.request and (steps := read_steps(task.steps))}
    answers = Message.objects.shown().exclude(conversation=OuterRef("conversation"))
    answers = answers.filter(channel=OuterRef("channel"), parent_key=OuterRef("id_key"), parent=OuterRef("pk"))
    is_late = Q(dialect__in=_LATE)
    late = Case(When(is_late, then=F("body")), default=Value("", PackedTextField()), output_field=PackedTextField())
    may_be = is_late | _CALLED_IN_SPANS | Exists(answers)
    rows = Message.objects.filter(may_be, IsAny("id", requests | reports)).annotate(late=late)
    for pk, conversation_id, body in rows.values_list("pk", "conversation_id", "late") if requests | reports else ():
        scene = scenes.get(conversation_id)
        if scene is None:
            continue
        # A request of theirs that names its conversation itself is answered in that.
        is_named = scene.conversation.native_id and "conversation_id" not in read_body(body).record.from_envelope
        if not body or pk in reports or not is_named:
            scene.elsewhere.add(pk)


def _take_task(
    scenes: Mapping[uuid.UUID, Scene], tasks: QuerySet[Task], known: Set[tuple[uuid.UUID, bytes]] = frozenset()
) -> None:
    rows = tasks.order_by("conversation_id", "first_at", "key").values_list(*SeenTask._fields)
    for row in rows.iterator(chunk_size=_TASKS_AT_ONCE):
        task = SeenTask._make(row)
        if (task.conversation_id, bytes(task.key)) not in known:
            scenes[task.conversation_id].tasks.append(task)


def _is_link(task: SeenTask) -> bool:
    """Whether a rule compares it with the work above it: what was handed on, or asked back."""
    if task.request is None or task.within_key is None:
        return False
    return bool(task.performer) if task.act == "delegate" else task.act in ("query", "propose")


def _find_above(links: Sequence[SeenTask]) -> list[uuid.UUID]:
    """The tasks in the course of which these were asked, and so on up to the first."""
    asked: list[Any] = [[task.conversation_id for task in links], [bytes(task.within_key or b"") for task in links]]
    with connection.cursor() as cursor:
        cursor.execute(_ABOVE, asked)
        return [pk for (pk,) in cursor.fetchall()]


def load_words_after_end(scenes: Mapping[uuid.UUID, Scene], messages: QuerySet[Message]) -> None:
    """What whoever was asked reports on a task after it was cancelled."""
    ended: dict[uuid.UUID | None, SeenTask] = {
        task.request: task
        for scene in scenes.values()
        for task in scene.tasks
        if task.request and task.state == Task.State.CANCELLED and task.finished_at and task.last_at > task.finished_at
    }
    if not ended:
        return
    first = min(task.finished_at for task in ended.values() if task.finished_at)
    works = messages.filter(
        IsAny("conversation_id", {task.conversation_id for task in ended.values()}),
        order_time__gt=first,
        parent__in=list(ended),
        performative__in=("done", "progress", "failure"),
    )
    for message in see_all(works.order_by(*ORDER)):
        task = ended.get(message.parent)
        if task and task.finished_at and message.at > task.finished_at:
            scenes[message.conversation].after_end.append((task, message))
