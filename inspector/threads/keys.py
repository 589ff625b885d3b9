"""Keys: of conversations and ids, of places in a timeline, and of what a message cites beyond its columns. Pure.

Ids are kept as digests, so that names of any length can be looked up and all of them are small. A place is the key of
the block that a message stands in, which the order key of its first message gives, and the rank within it: places sort
as the timeline does, and a message that comes in late moves its neighbours alone. Times are in microseconds since 1970.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final, NamedTuple

import msgspec

from dialects import Context, Dialect, Entry, Message, Reading, Reply, choose_dialect, get_dialect, write_content
from inspector.database import make_storable
from inspector.intake.identity import digest_parts, digest_texts

_LONG_ID: Final = 200


def key_of_id(native_id: str) -> bytes:
    """The look-up key of a message id within its channel; 32 bytes."""
    return _digest_id(native_id) if len(native_id) < _LONG_ID else digest_texts("message", native_id)


# An id is asked for several times with its message, and again with each that names it.
@lru_cache(maxsize=1024)
def _digest_id(native_id: str) -> bytes:
    return digest_texts("message", native_id)


# What the key of a call begins with where a request bears it, and where the answer does.
ASKED, ANSWERED = b"?", b"!"


def key_of_call(message: Message, home: bytes) -> bytes | None:
    """By what a request that names no conversation, and an answer that is the first to name theirs, find each other:
    the correlation id of the request within `home`, the conversation of what names none; 33 bytes."""
    name, begin = (message.parent_id, ANSWERED) if message.conversation_id else (message.correlation_id, ASKED)
    return begin + digest_parts(home, key_of_id(name)) if name else None


# How far a trace id joins: what only the wire says stays within its channel; what the envelope says, or what is random
# by form, is one trace across channels (architecture, decision 10).
WIRE: Final = "wire"
ENVELOPE: Final = "envelope"
RANDOM: Final = "random"

_HEXADECIMAL: Final = "[0-9a-f]"
_RANDOM_FORMS: Final = re.compile(
    # A UUID, a trace id or a traceparent of W3C Trace Context (all zeros are none), and `t-` with 12 digits.
    rf"{_HEXADECIMAL}{{8}}-{_HEXADECIMAL}{{4}}-[1-8]{_HEXADECIMAL}{{3}}-[89ab]{_HEXADECIMAL}{{3}}-{_HEXADECIMAL}{{12}}"
    rf"|(?!0{{32}}){_HEXADECIMAL}{{32}}"
    rf"|{_HEXADECIMAL}{{2}}-(?!0{{32}}){_HEXADECIMAL}{{32}}-(?!0{{16}}){_HEXADECIMAL}{{16}}-{_HEXADECIMAL}{{2}}"
    rf"|t-{_HEXADECIMAL}{{12}}",
    re.IGNORECASE,
)


def key_of_trace(native_id: str) -> bytes:
    """The look-up key of a trace id, of whatever channel; 32 bytes."""
    return digest_texts("trace", native_id)


def find_trace_basis(message: Message, reading: Reading) -> str:
    """How far the trace id of a message joins: one of the three, empty where it has none."""
    if not message.trace_id:
        return ""
    if _RANDOM_FORMS.fullmatch(message.trace_id):
        return RANDOM
    said_outside = reading.envelope.trace if reading.envelope else None
    return ENVELOPE if "trace_id" in reading.from_envelope and said_outside == message.trace_id else WIRE


def key_of_conversation(message: Message, *, source: bytes, is_from_file: bool) -> tuple[bytes, str]:
    """The key of a message's conversation within its channel, and its id as said ("" where none is). Where neither wire
    nor envelope names one, a file is one conversation by `source`, the digest of its first record, and what was posted
    belongs to the channel; either is split by the parties where a message names both."""
    if message.conversation_id:
        return digest_texts("conversation", message.conversation_id), message.conversation_id
    place = digest_parts(b"file", source) if is_from_file else digest_parts(b"posts")
    parties = sorted({message.sender, *message.receivers}) if message.sender and message.receivers else []
    return digest_parts(place, digest_texts(*parties) if parties else b""), ""


# Time, source and index of an order key, and four bytes that are zero.
_SLOT: Final = struct.Struct(">Q16sQI")
_RANK: Final = struct.Struct(">I")
KEY_BYTES: Final = _SLOT.size
PLACE_BYTES: Final = KEY_BYTES + _RANK.size
_HALF: Final = 1 << 63
# Sorts behind every place.
BEYOND: Final = b"\xff" * PLACE_BYTES


class BlockSize(NamedTuple):
    """A block: its key, and how many messages it holds."""

    key: bytes
    size: int


def name_slot(instant: int, source: bytes, line: int) -> bytes:
    """The place of a message of this order key where it begins a block; it sorts as its timeline does."""
    return _SLOT.pack(instant + _HALF, source[:16], line + _HALF, 0) + _RANK.pack(0)


def slot_of(at: datetime, source: bytes, index: int) -> bytes:
    """The border of a block that would begin with a message of this order key."""
    return name_slot(count_microseconds(at), source, index)[:KEY_BYTES]


def make_place(border: bytes, rank: int) -> bytes:
    """The place of the message of a rank, counted from zero, in the block that begins at a border."""
    return border + _RANK.pack(rank)


class Places:
    """The blocks of a timeline as they are asked: positions count its messages from zero."""

    def __init__(self, blocks: Sequence[BlockSize] = ()) -> None:
        self.blocks = blocks
        self._keys = [block.key for block in blocks]
        self._starts = [0, *accumulate(block.size for block in blocks)]
        self.count = self._starts[-1]

    def find_position(self, place: bytes | memoryview | None) -> int:
        """The position of a place; -1 of a message that is not placed."""
        if place is None:
            return -1
        said = bytes(place)
        at = bisect_right(self._keys, said[:KEY_BYTES]) - 1
        return (self._starts[at] if at >= 0 else 0) + int(_RANK.unpack(said[KEY_BYTES:])[0])

    def find_place(self, position: int) -> bytes:
        """The place of a position; beyond the end one behind every place."""
        if not 0 <= position < self.count:
            return b"" if position < 0 else BEYOND
        at = bisect_right(self._starts, position) - 1
        return self._keys[at] + _RANK.pack(position - self._starts[at])


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def count_microseconds(at: datetime) -> int:
    """The microseconds from 1970 to a time."""
    return (at - _EPOCH) // _MICROSECOND


def read_instant(microseconds: int) -> datetime:
    """The time that so many microseconds after 1970 is."""
    return _EPOCH + timedelta(microseconds=microseconds)


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
