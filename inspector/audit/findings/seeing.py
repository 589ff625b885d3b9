"""Seeing: which messages of conversations their scenes are made of.

They are those with a note, those that were placed oddly, and what a few conditions of SQL pick out; so examining costs
in proportion to what there is to look at. One statement asks for all that a message's own row can say, and each body
is read once.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

from django.db.models import (
    BooleanField,
    Case,
    Count,
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

from inspector.accounts.models import ApiKey
from inspector.intake.models import Sighting
from inspector.lookups import IsAny
from inspector.threads.models import Conversation, Message, Task
from inspector.threads.placing.keys import key_of_id
from inspector.threads.telling import terms

from .bodies import Body, read_body, read_value
from .scene import LOOKALIKES, Noted, Scene, Seen, SeenTask, Skewed

# A clock may be off by so much before an auditor wants to know.
CLOCK_SKEW: Final = timedelta(minutes=5)

_COLUMNS: Final = (
    *("id", "conversation_id", "record_id", "part", "dialect", "performative", "sender", "receivers", "native_id"),
    *("order_time", "parent", "parent_key", "parent_basis", "parent_why"),
)
# Bodies may be a hundred times as long as what is kept of them.
_BODIES_AT_ONCE, _TASKS_AT_ONCE = 50, 2000
_ORDER: Final = ("conversation_id", "order_time", "order_source", "order_index", "part")
# Characters that change how a text is seen without being seen: marks of direction, of no width, and tags.
HIDDEN: Final = "\u200b-\u200f\u202a-\u202e\u2060-\u2069\u00ad\ufeff\U000e0000-\U000e007f"
_HIDDEN: Final = re.compile(f"[{HIDDEN}]")
# What belongs to the writing: a joiner within an emoji, the tags of a flag, joiners after letters of the Arabic and the
# Indian scripts, marks of direction beside Hebrew and Arabic.
_WRITTEN: Final = re.compile(
    "(?<=[\u2600-\u27ff\ufe0f\U0001f000-\U0001ffff])\u200d(?=[\u2600-\u27ff\U0001f000-\U0001ffff])"
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]+\U000e007f"
    "|(?<=[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\ufb50-\ufdff\ufe70-\ufefc])[\u200c\u200d]"
    "|(?<=[\u0590-\u08ff])[\u200e\u200f]|[\u200e\u200f](?=[\u0590-\u08ff])"
)
_MIXED: Final = f"[A-Za-z][{''.join(LOOKALIKES)}]|[{''.join(LOOKALIKES)}][A-Za-z]"
_WORD: Final = re.compile(r"\w+")
# Under which kinds a decoder says what was offered and agreed of sessions, as its entries are stored.
_OF_SESSIONS: Final = ("handshake", "session")


# By what its row shows that a message is to be looked at; of the first four its body says what there is to see.
_SIGHTS: Final[Mapping[str, Q]] = {
    "noted": Q(severity__gte=Message.Severity.NOTICE),
    # Placed with a remark, or citing what was not received.
    "odd": Q(parent_key__isnull=False, parent__isnull=True)
    | Q(parent_why__contains="circle")
    | Q(parent_why__startswith="it names itself"),
    "leaning": Q(atoms__contains=[terms.term("has", "references")])
    | Q(atoms__contains=[terms.term("has", "condition")]),
    "failed": Q(performative="failure"),
    "sealed": Q(atoms__contains=[terms.term("security.encrypted", "true")]),
    "agreeing": Q(*(("established__contains", f'["{kind}",') for kind in _OF_SESSIONS), _connector=Q.OR),
    "written": Q(english__regex=f"[{HIDDEN}]|{_MIXED}") | Q(sender__regex=f"[{HIDDEN}]"),
    "future": ~Q(order_basis="receipt") & Q(order_time__gt=F("record__created_at") + CLOCK_SKEW),
}
_IN_BODY: Final = reduce(or_, (_SIGHTS[name] for name in ("noted", "odd", "leaning", "failed")))


class _Sight(NamedTuple):
    """What a row shows, each under its name in `_SIGHTS`, and the texts that are needed to say more."""

    noted: bool
    odd: bool
    leaning: bool
    failed: bool
    sealed: bool
    agreeing: bool
    written: bool
    future: bool
    received_at: datetime
    established: str
    english: str
    body: str


def load_scenes(conversations: Sequence[Conversation]) -> list[Scene]:
    """The scenes of these conversations of one workspace, in a constant number of statements."""
    scenes = {each.pk: Scene(each) for each in conversations}
    shown = Message.objects.shown().filter(IsAny("conversation_id", scenes))
    ordered = shown.order_by(*_ORDER)
    for message, sight in _look(ordered):
        _take(scenes[message.conversation], message, sight)
    _load_doubles(scenes, shown)
    tasks = Task.objects.filter(IsAny("conversation_id", scenes)).order_by("conversation_id", "first_at", "key")
    for row in tasks.values_list(*SeenTask._fields).iterator(chunk_size=_TASKS_AT_ONCE):
        task = SeenTask._make(row)
        scenes[task.conversation_id].tasks.append(task)
    _load_words_after_end(scenes, ordered)
    _load_early(scenes, ordered)
    _load_sealed(scenes, ordered)
    _load_strangers(scenes, ordered)
    _load_first(scenes)
    return list(scenes.values())


def _look(ordered: QuerySet[Message]) -> Iterator[tuple[Seen, _Sight]]:
    """The messages whose rows show something, in the order given."""
    shows = {
        f"shows_{name}": ExpressionWrapper(condition, output_field=BooleanField())
        for name, condition in _SIGHTS.items()
    }
    texts = {
        f"its_{name}": Case(When(condition, then=F(name)), default=Value(""), output_field=TextField())
        for name, condition in (
            ("established", _SIGHTS["agreeing"]),
            ("english", _SIGHTS["written"]),
            ("body", _IN_BODY),
        )
    }
    rows = ordered.annotate(**shows, **texts).filter(reduce(or_, _SIGHTS.values()))
    columns = (*_COLUMNS, *shows, "record__created_at", *texts)
    names = (*_SIGHTS, "received_at", *(name.removeprefix("its_") for name in texts))
    for row in rows.values_list(*columns).iterator(chunk_size=_BODIES_AT_ONCE):
        yield _see(row), _Sight(**dict(zip(names, row[len(_COLUMNS) :], strict=True)))


def _take(scene: Scene, message: Seen, sight: _Sight) -> None:
    """Put a message where its row shows that it belongs; it may be to several."""
    body = read_body(sight.body)
    if sight.noted:
        scene.noted.append(Noted(message, body.list_notes(part=message.part)))
    if sight.odd:
        scene.odd.append(message)
        scene.cited_ids[message.id] = _find_cited(message, body)
    if sight.leaning:
        said = {"references": read_value(body.message.references), "condition": read_value(body.message.condition)}
        scene.leaning.append((message, said))
    if sight.failed:
        scene.failures.append((message, read_value(body.message.error) or {}))
    if sight.sealed:
        scene.sealed.append(message)
    if sight.agreeing:
        entries = [entry for entry in json.loads(sight.established) if entry[0] in _OF_SESSIONS]
        scene.pacts.append((message, entries))
    if sight.written:
        _take_text(scene, message, sight.english)
    if sight.future:
        scene.skewed.append(Skewed(message, None, (message.at - sight.received_at).total_seconds()))


def _find_cited(message: Seen, body: Body) -> str:
    """The id that a message cites and that was not received, as it says; empty where no name of it is that id."""
    return next((name for name in body.names() if key_of_id(name) == message.cited), "")


def _take_text(scene: Scene, message: Seen, english: str) -> None:
    signs = sorted(set(_HIDDEN.findall(_WRITTEN.sub("", f"{message.sender} {english}"))))
    if signs:
        scene.hidden.append((message, "".join(signs)))
    if words := _find_mixed(english, names=scene.conversation.agents):
        scene.mixed.append((message, words))


def _see(row: Sequence[Any]) -> Seen:
    seen = Seen._make(row[: len(_COLUMNS)])
    return seen if seen.cited is None else seen._replace(cited=bytes(seen.cited))


def _see_all(messages: QuerySet[Message]) -> Iterator[Seen]:
    return map(_see, messages.values_list(*_COLUMNS))


def _load_doubles(scenes: Mapping[uuid.UUID, Scene], shown: QuerySet[Message]) -> None:
    named = shown.filter(id_key__isnull=False)
    groups = named.values("conversation_id", "id_key").annotate(records=Count("record_id", distinct=True))
    keys = [bytes(row["id_key"] or b"") for row in groups.filter(records__gt=1).order_by()]
    if not keys:
        return
    found: dict[tuple[uuid.UUID, bytes], list[Seen]] = defaultdict(list)
    rows = named.filter(id_key__in=keys).order_by(*_ORDER)
    for row in rows.values_list(*_COLUMNS, "id_key"):
        message = _see(row)
        found[message.conversation, bytes(row[-1])].append(message)
    for (conversation, _), messages in found.items():
        # The parts of one record may share its id, and conflict with nothing.
        if len({message.record for message in messages}) > 1:
            scenes[conversation].doubles.append(messages)


def _load_words_after_end(scenes: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message]) -> None:
    """What whoever was asked reports on a task after it was cancelled."""
    ended: dict[uuid.UUID | None, SeenTask] = {
        task.request: task
        for scene in scenes.values()
        for task in scene.tasks
        if task.request and task.state == Task.State.CANCELLED and task.finished_at and task.last_at > task.finished_at
    }
    if not ended:
        return
    works = ordered.filter(parent__in=list(ended), performative__in=("done", "progress", "failure"))
    for message in _see_all(works):
        task = ended.get(message.parent)
        if task and task.finished_at and message.at > task.finished_at:
            scenes[message.conversation].after_end.append((task, message))


def _load_early(scenes: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message]) -> None:
    """Answers that are earlier than what they answer, by clocks that wire or envelope carry."""
    parent = Message.objects.filter(pk=OuterRef("parent")).exclude(order_basis="receipt")
    answers = ordered.exclude(order_basis="receipt").filter(
        parent__isnull=False, parent_basis__in=("explicit", "correlation")
    )
    early = answers.annotate(asked_at=Subquery(parent.values("order_time")[:1])).filter(
        asked_at__gt=F("order_time") + CLOCK_SKEW
    )
    for row in early.values_list(*_COLUMNS, "asked_at"):
        message = _see(row)
        seconds = (row[-1] - message.at).total_seconds()
        scenes[message.conversation].skewed.append(Skewed(message, message.parent, seconds))


def _load_sealed(scenes: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message]) -> None:
    """What no key opened though its session is known, and what stands open where others are sealed."""
    sealed, agreed = _pick(scenes, "sealed"), _pick(scenes, "sealed", "pacts")
    for message in _see_all(ordered.filter(IsAny("conversation_id", sealed), trial__is_refused=True)) if sealed else ():
        scenes[message.conversation].refused.append(message)
    has_content = Q(atoms__contains=[terms.term("has", "content")])
    in_clear = ordered.filter(has_content & ~_SIGHTS["sealed"], IsAny("conversation_id", agreed))
    for message in _see_all(in_clear) if agreed else ():
        scenes[message.conversation].open.append(message)


def _pick(scenes: Mapping[uuid.UUID, Scene], *names: str) -> list[uuid.UUID]:
    """The conversations that have something under one of these names."""
    return [pk for pk, scene in scenes.items() if any(getattr(scene, name) for name in names)]


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


def _load_strangers(scenes: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message]) -> None:
    """What was brought in by a key that names its agents, under a name that is none of them."""
    keys = {
        key.pk: key
        for key in ApiKey.objects.filter(workspace_id=next(iter(scenes.values())).conversation.workspace_id)
        if key.agents
    }
    if not keys:
        return
    # Who delivers again what was here before said nothing under that name.
    brought = Sighting.objects.filter(
        record=OuterRef("record"), outcome=Sighting.Outcome.STORED, delivery__sent_by_key__in=list(keys)
    )
    rows = ordered.exclude(sender="").annotate(key=Subquery(brought.values("delivery__sent_by_key")[:1]))
    for row in rows.filter(key__isnull=False).values_list(*_COLUMNS, "key"):
        message, key = _see(row), keys[row[-1]]
        if message.sender not in key.agents:
            scenes[message.conversation].strangers.append((message, key.name))


def _load_first(scenes: Mapping[uuid.UUID, Scene]) -> None:
    first = Message.objects.shown().filter(conversation=OuterRef("pk")).order_by(*_ORDER[1:]).values("pk")[:1]
    openings = Conversation.objects.filter(IsAny("id", scenes)).values_list(Subquery(first), flat=True)
    for message in _see_all(Message.objects.filter(IsAny("id", [pk for pk in openings if pk]))):
        scenes[message.conversation].first = message
