"""What placing needs of a message beyond its columns, stored beside it; ids as digests, so that it is small however
long they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from dialects import Context, Dialect, Entry, Message, Reading, Reply, choose_dialect, get_dialect, write_content
from inspector.intake.identity import digest_texts
from inspector.intake.text import make_storable

from .keys import ASKED, key_of_id

MAX_DECLARED, MAX_DECLARED_LENGTH = 100, 300
# What a message may say of its work: its names, and how much of a text is kept here; the message has it in full.
_OF_WORK = frozenset({"deadline", "delegation", "parent_task_id", "result_id", "progress"})
MAX_SAID_LENGTH = 300
# Domains of agent-lingua in which a request puts something up for everyone.
_PLATFORMS = frozenset({"MBK", "SOC"})


class Way(NamedTuple):
    """One way to the message that a message answers: a dialect's `Reply`, its id as a digest."""

    whom: str
    basis: str
    why: str
    key: bytes | None = None


class Declared(NamedTuple):
    """One thing that a sender says of itself: an ability, or a key it shows under a name. See `find_declared`."""

    kind: str
    value: str
    name: str = ""


class Work(NamedTuple):
    """What a message says of the work it is about. `deadline` is as written, with its instant (ISO 8601) or its seconds
    from then on; `mode` is that of a delegation; `within` the id of the task that it is part of; `is_public` whether it
    is put up in a place, and so asks nobody; `is_retry` whether it says that it asks again."""

    deadline: str = ""
    instant: str | None = None
    seconds: float | None = None
    mode: str = ""
    within: str = ""
    has_result: bool = False
    has_progress: bool = False
    is_public: bool = False
    is_retry: bool = False


NO_WORK = Work()


class Guess(NamedTuple):
    """A record whose dialect may be decided otherwise: what it was read as, and how likely each dialect is."""

    dialect: str
    scores: Mapping[str, float]


class Links(NamedTuple):
    """What a message says of its place among others. `key` is the digest of its id, `correlation` those of the ids by
    which an answer may name it, `declared` what its sender says of itself. `said` is a digest of its bytes where its
    dialect counts turns, and of what it says where it bears a number of its own: each may be repeated, or used again.
    """

    key: bytes | None = None
    correlation: tuple[bytes, ...] = ()
    ways: tuple[Way, ...] = ()
    is_retryable: bool | None = None
    guess: Guess | None = None
    size_bytes: int = 0
    declared: tuple[Declared, ...] = ()
    said: bytes = b""
    work: Work = NO_WORK


def links_of(
    message: Message,
    *,
    dialect: str,
    wire: str = "",
    guess: Guess | None = None,
    size_bytes: int = 0,
    call_key: bytes | None = None,
) -> Links:
    """The links of a message as read, its envelope applied; `guess` is its record's, where the dialect may be decided
    otherwise, `call_key` as `key_of_call` gives it."""
    spoken = get_dialect(dialect)
    said = (message.correlation_id, message.object_id, message.message_id)
    return Links(
        key=key_of_id(message.message_id) if message.message_id else None,
        correlation=tuple(dict.fromkeys(key_of_id(name) for name in said if name)),
        ways=tuple(
            Way(each.whom, each.basis, make_storable(each.why), _find_key(each, call_key))
            for each in spoken.replies(message)
        ),
        is_retryable=message.error.retryable if message.error else None,
        guess=guess,
        size_bytes=size_bytes,
        declared=find_declared(message, dialect=dialect),
        said=_digest_said(message, spoken, wire),
        work=_read_work(message),
    )


def _find_key(reply: Reply, call_key: bytes | None) -> bytes | None:
    if reply.whom == "request-elsewhere":
        return ASKED + call_key[1:] if call_key else None
    return key_of_id(reply.value) if reply.value else None


def _digest_said(message: Message, spoken: Dialect, wire: str) -> bytes:
    if spoken.orders_by_turn and wire:
        return digest_texts(str(message.part), wire)[:16]
    return digest_texts(write_content(message))[:16] if spoken.numbers(message) else b""


def _read_work(message: Message) -> Work:
    given = message.given()
    is_public, is_retry = _is_public(message), "retry" in message.modifiers
    if not (is_public or is_retry) and given.keys().isdisjoint(_OF_WORK):
        return NO_WORK
    due = message.deadline
    when = (make_storable(due.raw)[:MAX_SAID_LENGTH], due.instant, due.seconds) if due else ("", None, None)
    mode, within = (
        make_storable(message.delegation or "")[:MAX_SAID_LENGTH],
        make_storable(message.parent_task_id or ""),
    )
    has_result, has_progress = message.result_id is not None, message.progress is not None
    return Work(*when, mode, within, has_result, has_progress, is_public, is_retry)


def _is_public(message: Message) -> bool:
    """Whether a request is a post, a comment or a vote: at a place or on a platform, and to nobody by name."""
    if message.performative != "request" or message.receivers or message.broadcast:
        return False
    is_at_place = message.target is not None and message.target.kind == "place"
    return is_at_place or message.attributes.get("domain") in _PLATFORMS


def find_declared(message: Message, *, dialect: str) -> tuple[Declared, ...]:
    """What the sender of a message says it can do, and the keys it shows. Values are cut; of more than `MAX_DECLARED`
    things a last one of the kind "more" says how many are not kept. The message has them in full."""
    if not message.sender:
        return ()
    found = [Declared("ability", make_storable(value)[:MAX_DECLARED_LENGTH]) for value in message.capabilities if value]
    if isinstance(message.content, Mapping):
        for name in get_dialect(dialect).key_names:
            value = message.content.get(name)
            if isinstance(value, str) and value:
                found.insert(0, Declared("key", make_storable(value)[:MAX_DECLARED_LENGTH], name))
    kept = list(dict.fromkeys(found))
    if len(kept) > MAX_DECLARED:
        kept[MAX_DECLARED:] = [Declared("more", str(len(kept) - MAX_DECLARED))]
    return tuple(kept)


def guess_of(reading: Reading) -> Guess | None:
    """The guess that a record's dialect is, or None where no conversation can decide it otherwise."""
    others = [candidate for candidate in reading.candidates if candidate.dialect not in (reading.dialect, "prose")]
    for other in others:
        spoken = Context([Entry(kind="dialect", name=other.dialect, value=other.dialect)])
        if choose_dialect(reading, spoken).dialect != reading.dialect:
            return Guess(reading.dialect, {each.dialect: each.score for each in reading.candidates})
    return None


def write_links(links: Links) -> str:
    """The links as JSON text, without the key, which has a column of its own."""
    said: dict[str, Any] = {"size": links.size_bytes}
    # Its own id is nearly always the only name by which an answer knows a message.
    if links.correlation != ((links.key,) if links.key else ()):
        said["names"] = [key.hex() for key in links.correlation]
    if links.ways:
        said["ways"] = [[*way[:3], way.key.hex()] if way.key else list(way[:3]) for way in links.ways]
    if links.is_retryable is not None:
        said["again"] = links.is_retryable
    if links.declared:
        said["declared"] = [list(each) for each in links.declared]
    if links.said:
        said["said"] = links.said.hex()
    if links.work != NO_WORK:
        said["work"] = list(links.work)
    if links.guess is not None:
        said["guess"] = [links.guess.dialect, dict(links.guess.scores)]
    return msgspec.json.encode(said).decode()


def read_links(text: str, key: bytes | memoryview | None = None) -> Links:
    """The links that `write_links` wrote of a message with this key."""
    said = msgspec.json.decode(text)
    key = None if key is None else bytes(key)
    names = said.get("names")
    return Links(
        key=key,
        correlation=tuple(map(bytes.fromhex, names)) if names is not None else ((key,) if key else ()),
        ways=tuple(
            [
                Way(whom, basis, why, bytes.fromhex(cited[0]) if cited else None)
                for whom, basis, why, *cited in said.get("ways", ())
            ]
        ),
        is_retryable=said.get("again"),
        guess=Guess(said["guess"][0], said["guess"][1]) if "guess" in said else None,
        size_bytes=said["size"],
        declared=tuple(Declared(*each) for each in said.get("declared", ())),
        said=bytes.fromhex(said.get("said", "")),
        work=Work(*said["work"]) if "work" in said else NO_WORK,
    )


def name_cited(told: Mapping[str, Any]) -> str:
    """What a told message calls the one that it answers, where it names one: its parent's id, else what correlates."""
    return str(told.get("parent_id") or told.get("correlation_id") or "")
