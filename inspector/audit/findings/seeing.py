"""Seeing: which messages of conversations their scenes are made of.

They are those with a note, those that were placed oddly, and what a few conditions of SQL pick out; so examining costs
in proportion to what there is to look at.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery

from inspector.accounts.models import ApiKey
from inspector.intake.models import Sighting
from inspector.threads.models import Conversation, Message, Task
from inspector.threads.placing.keys import key_of_id
from inspector.threads.telling import terms

from .scene import LOOKALIKES, Noted, Scene, Seen, Skewed

# A clock may be off by so much before an auditor wants to know.
CLOCK_SKEW: Final = timedelta(minutes=5)

_COLUMNS: Final = (
    *("id", "conversation_id", "record_id", "part", "dialect", "performative", "sender", "receivers", "native_id"),
    *("order_time", "parent", "parent_key", "parent_basis", "parent_why"),
)
# Under which names a message cites another.
_CITED: Final = ("parent_id", "correlation_id", "task_id", "object_id")
_BODIES_AT_ONCE: Final = 50
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


def load_scenes(conversations: Sequence[Conversation]) -> list[Scene]:
    """The scenes of these conversations of one workspace, in a constant number of statements."""
    scenes = {each.pk: Scene(each) for each in conversations}
    shown = Message.objects.shown().filter(conversation__in=list(scenes))
    ordered = shown.order_by(*_ORDER)
    for message, said, record in _see_bodies(ordered.filter(severity__gte=Message.Severity.NOTICE)):
        # A record's own notes are told once, with its first message.
        notes = [*said.get("notes", ()), *(record.get("notes", ()) if message.part == 1 else ())]
        scenes[message.conversation].noted.append(Noted(message, notes))
    for message, said, _ in _see_bodies(ordered.filter(_is_odd())):
        scenes[message.conversation].odd.append(message)
        cited = (said[name] for name in _CITED if said.get(name) and key_of_id(said[name]) == message.cited)
        scenes[message.conversation].cited_ids[message.id] = next(cited, "")
    leans = Q(atoms__contains=[terms.term("has", "references")]) | Q(atoms__contains=[terms.term("has", "condition")])
    for message, said, _ in _see_bodies(ordered.filter(leans)):
        kept = {name: said.get(name) for name in ("references", "condition")}
        scenes[message.conversation].leaning.append((message, kept))
    _load_doubles(scenes, shown)
    for message, said, _ in _see_bodies(ordered.filter(performative="failure")):
        scenes[message.conversation].failures.append((message, said.get("error") or {}))
    for task in Task.objects.filter(conversation__in=list(scenes)).order_by("conversation_id", "first_at", "key"):
        scenes[task.conversation_id].tasks.append(task)
    _load_words_after_end(scenes, ordered)
    _load_skewed(scenes, ordered)
    _load_sealed(scenes, ordered)
    _load_texts(scenes, ordered)
    _load_strangers(scenes, ordered)
    for message in _see_all(shown.order_by(*_ORDER).distinct("conversation_id")):
        scenes[message.conversation].first = message
    return list(scenes.values())


def _see(row: Sequence[Any]) -> Seen:
    seen = Seen._make(row[: len(_COLUMNS)])
    return seen if seen.cited is None else seen._replace(cited=bytes(seen.cited))


def _see_all(messages: QuerySet[Message]) -> Iterator[Seen]:
    return map(_see, messages.values_list(*_COLUMNS))


def _see_bodies(messages: QuerySet[Message]) -> Iterator[tuple[Seen, Mapping[str, Any], Mapping[str, Any]]]:
    """Messages, each with what its body says of it and of its record; empty where it has not been told.

    The bodies are read some at a time, for together they may be a hundred times as much as what is kept of them. The
    database cannot pick it out: its JSON refuses escapes that ours has.
    """
    for row in messages.values_list(*_COLUMNS, "body").iterator(chunk_size=_BODIES_AT_ONCE):
        body = json.loads(row[-1]) if row[-1] else {}
        yield _see(row), body.get("message", {}), body.get("record", {})


def _is_odd() -> Q:
    """Placed with a remark, or citing what was not received."""
    is_ghost = Q(parent_key__isnull=False, parent__isnull=True)
    return is_ghost | Q(parent_why__contains="circle") | Q(parent_why__startswith="it names itself")


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
    ended: dict[uuid.UUID | None, Task] = {
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


def _load_skewed(scenes: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message]) -> None:
    timed = ordered.exclude(order_basis="receipt")
    parent = Message.objects.filter(pk=OuterRef("parent")).exclude(order_basis="receipt")
    answers = timed.filter(parent__isnull=False, parent_basis__in=("explicit", "correlation"))
    early = answers.annotate(asked_at=Subquery(parent.values("order_time")[:1])).filter(
        asked_at__gt=F("order_time") + CLOCK_SKEW
    )
    for row in early.values_list(*_COLUMNS, "asked_at"):
        message = _see(row)
        scenes[message.conversation].skewed.append(
            Skewed(message, message.parent, (row[-1] - message.at).total_seconds())
        )
    future = timed.filter(order_time__gt=F("record__created_at") + CLOCK_SKEW)
    for row in future.values_list(*_COLUMNS, "record__created_at"):
        message = _see(row)
        scenes[message.conversation].skewed.append(Skewed(message, None, (message.at - row[-1]).total_seconds()))


def _load_sealed(scenes: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message]) -> None:
    is_encrypted = Q(atoms__contains=[terms.term("security.encrypted", "true")])
    for message in _see_all(ordered.filter(is_encrypted)):
        scenes[message.conversation].sealed.append(message)
    agreeing = Q(*(("established__contains", f'["{kind}",') for kind in _OF_SESSIONS), _connector=Q.OR)
    for row in ordered.filter(agreeing).values_list(*_COLUMNS, "established"):
        message = _see(row)
        entries = [entry for entry in json.loads(row[-1]) if entry[0] in _OF_SESSIONS]
        scenes[message.conversation].pacts.append((message, entries))
    for message in _see_all(ordered.filter(conversation__in=_pick(scenes, "sealed"), trial__is_refused=True)):
        scenes[message.conversation].refused.append(message)
    has_content = Q(atoms__contains=[terms.term("has", "content")])
    in_clear = ordered.filter(has_content & ~is_encrypted, conversation__in=_pick(scenes, "sealed", "pacts"))
    for message in _see_all(in_clear):
        scenes[message.conversation].open.append(message)


def _pick(scenes: Mapping[uuid.UUID, Scene], *names: str) -> list[uuid.UUID]:
    """The conversations that have something under one of these names; without any the database is not asked."""
    return [pk for pk, scene in scenes.items() if any(getattr(scene, name) for name in names)]


def _load_texts(scenes: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message]) -> None:
    said = Q(english__regex=f"[{HIDDEN}]|{_MIXED}") | Q(sender__regex=f"[{HIDDEN}]")
    for row in ordered.filter(said).values_list(*_COLUMNS, "english"):
        message, english = _see(row), row[-1]
        scene = scenes[message.conversation]
        signs = sorted(set(_HIDDEN.findall(_WRITTEN.sub("", f"{message.sender} {english}"))))
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
