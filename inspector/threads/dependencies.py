"""Dependencies: what a block asks of those before it, and what a telling asks of its conversation.

A key is answered by what the block itself has said of it, else by the latest earlier block that did. What was asked is
noted with how far back its answer came from, so that a change of an earlier block marks those later ones that would be
answered otherwise now. Of a key that is read everywhere, a value depends on nothing that comes later, so that resolving
comes to an end.

What a telling asked, and what its message established, it says in one line (`told_in`):

    2.3 clowl 5d1c0b7f,90aa41e2=<digest>+

The version of the decoders, the dialect, what was asked, each name as a short digest, and a digest of all answers; `+`
where its record established something, in JSON beside it. It is told again where an answer would be another now. An
entry holds until a later one of its name, or a reset of its kind.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db import connection
from django.db.models.functions import Length

from dialects import SHAPE_VERSION, digest_installed

from .models import Message
from .models.blocks import FACT_BYTES, FIRST, Fact
from .timeline import load_places

# Raised when a decoder reads or tells what is stored otherwise than before, and another one when a package brings a
# dialect or another version of it: the sweep then has every record read anew.
DECODER_VERSION = f"25.{SHAPE_VERSION}{digest_installed('dialects')}"

# What is asked beside entries: where the message stands, and whether anything is established.
POSITION, SIZE = "position", "size"
# Who asks for too much asks for everything.
ALL = "all"
# Added to a question, it asks whether there are any of a kind.
KNOWN = "known"

# Made once: `json.dumps` makes a writer for each call.
_write_sorted = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


@cache
def _key() -> bytes:
    return hashlib.sha256(b"threads.contexts" + settings.SECRET_KEY.encode()).digest()


def _digest(text: str, size_bytes: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size_bytes, key=_key()).digest()


# Every message of a dialect asks much the same.
@lru_cache(maxsize=1024)
def make_question(kind: str, name: str | None = None, *more: str) -> str:
    """A short name for what can be asked: an entry of a kind, all of them, or whether there are any."""
    return _digest(json.dumps([kind, name, *more]), 12).hex()


def name_secret() -> str:
    """What tells digests that were made under this secret from those of another one."""
    return _digest("secret", 12).hex()


def weigh(said: list[Any]) -> int:
    """A number that stands for what was said."""
    return int.from_bytes(_digest(_write_sorted(said), 16))


@lru_cache(maxsize=1024)
def seal(answers: tuple[int, ...]) -> str:
    """A digest of answers."""
    return _digest(repr(answers), 12).hex()


def list_established(established: str) -> Iterator[str]:
    """The questions for the entries that a record established."""
    for kind, *rest in json.loads(established or "[]"):
        if rest:
            yield make_question(kind, rest[0])


def questions_of(told_in: str) -> frozenset[str]:
    """The digests of what a telling asked of its context; `ALL` asks for everything."""
    asked = told_in.rpartition(" ")[2].rstrip("+").partition("=")[0].split(",")
    return frozenset(asked) - {POSITION, SIZE, ""}


# So many messages that establish something are looked back over, none with more text than this.
MAX_LOOKED_AT: Final = 300
MAX_ESTABLISHED_LENGTH: Final = 20_000
MAX_DEPENDENCIES: Final = 20
MAX_VALUE_LENGTH: Final = 300


class Dependency(NamedTuple):
    """An entry that was asked for: what it says, who said it in which message (`number` in its conversation), and
    whether a piece of the English itself comes from it (`is_told`)."""

    kind: str
    name: str
    value: str
    speaker: str
    message_id: uuid.UUID
    number: int
    is_told: bool


class Dependencies(NamedTuple):
    """What a message leans on, the nearest first; `is_whole` is False where more may stand further back."""

    entries: Sequence[Dependency]
    is_whole: bool = True


def list_dependencies(*, message: Message, body: Mapping[str, Any]) -> Dependencies:
    """The entries of earlier messages that were in force and were asked for when it was told: two queries."""
    asked = questions_of(message.told_in)
    if not asked or message.place is None:
        return Dependencies(())
    places = load_places(message.conversation)
    rows = (
        Message.objects.shown()
        .filter(conversation_id=message.conversation_id, place__lt=message.place)
        .exclude(established="")
        .annotate(size=Length("established"))
        .filter(size__lte=MAX_ESTABLISHED_LENGTH)
        .order_by("-place")
        .values_list("id", "record_id", "part", "sender", "place", "established")[:MAX_LOOKED_AT]
    )
    told = _find_told(body)
    found: list[Dependency] = []
    seen: set[tuple[str, str]] = set()
    forgotten: set[str] = set()
    looked_at = 0
    for message_id, record_id, _, sender, place, established in rows:
        looked_at += 1
        for kind, *rest in reversed(json.loads(established)):
            if not rest:
                forgotten.add(kind)
                continue
            name, value, speaker, record, part, *_ = rest
            if kind in forgotten or (kind, name) in seen or asked.isdisjoint((ALL, make_question(kind, name))):
                continue
            seen.add((kind, name))
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            number, is_told = places.find_position(place) + 1, (record or str(record_id), part) in told
            value = text[:MAX_VALUE_LENGTH]
            found.append(Dependency(kind, name, value, speaker or sender, message_id, number, is_told))
            if len(found) == MAX_DEPENDENCIES:
                return Dependencies(found, is_whole=False)
    return Dependencies(found, is_whole=looked_at < MAX_LOOKED_AT)


def _find_told(body: Mapping[str, Any]) -> set[tuple[str, int]]:
    """The record and part of each message that a piece of the English comes from."""
    told = body["message"]
    pieces = (piece for name in ("english", "also", "gloss") for piece in told.get(name) or ())
    return {(str(piece["source"][0]), piece["source"][1]) for piece in pieces if piece.get("source")}


# What is asked for: its kind, and by what.
Key = tuple[Any, ...]
# Raised when what is stored of blocks means something else than before: all of them are resolved anew.
_FORM: Final = 3
NOWHERE: Final = b""
# So many values of a key are read at once where they are gone through.
WALKED: Final = 20
# The kinds of keys that are read everywhere.
EVERYWHERE: Final = frozenset({"asks", "named", "id"})


def name_form() -> str:
    """Under which rules, decoders and secret a block is resolved."""
    return f"{_FORM} {DECODER_VERSION} {name_secret()}"


def digest_key(key: Key) -> bytes:
    """What stands for a key in the tables; that of a question of a context is the question itself."""
    if key[0] == "question":
        return bytes.fromhex(key[1])
    return blake2b(repr(key).encode("utf-8", "backslashreplace"), digest_size=FACT_BYTES).digest()


def digest_everywhere(digest: bytes) -> bytes:
    """What stands for having read a key in all blocks."""
    return blake2b(b"everywhere" + digest, digest_size=FACT_BYTES).digest()


def make_plain(value: Any) -> Any:
    """What JSON has no form for: ids and bytes in hexadecimal, times in ISO 8601, and what writes itself."""
    if isinstance(value, bytes | uuid.UUID):
        return (value if isinstance(value, bytes) else value.bytes).hex()
    return value.isoformat() if isinstance(value, datetime) else value.write()


_encode: Final = json.JSONEncoder(separators=(",", ":"), default=make_plain).encode


class Found(NamedTuple):
    """A value of a key as it is stored, the border of the block that gave it, and what is kept with it."""

    border: bytes
    value: Any
    extra: Any = None


def find_latest(conversation_id: uuid.UUID | None, keys: Sequence[bytes], border: bytes) -> dict[bytes, Found]:
    """The latest value of each key before a border; one statement at most."""
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT asked.key, fact.border, fact.value FROM unnest(%s::bytea[]) AS asked (key)
             CROSS JOIN LATERAL (
                SELECT border, value FROM threads_fact AS fact
                 WHERE fact.conversation_id = %s AND fact.key = asked.key AND fact.border < %s
                 ORDER BY fact.border DESC LIMIT 1
             ) AS fact
            """,
            [list(keys), conversation_id, border],
        )
        return {bytes(key): _load(at, value) for key, at, value in cursor.fetchall()}


def list_everywhere(conversation_id: uuid.UUID | None, keys: Collection[bytes]) -> dict[bytes, list[Found]]:
    """All values of each key, in the order of the blocks; one statement at most."""
    found: dict[bytes, list[Found]] = {key: [] for key in keys}
    if keys:
        rows = Fact.objects.filter(conversation=conversation_id, key__in=keys).order_by("border")
        for key, *row in rows.values_list("key", "border", "value", "extra"):
            found[bytes(key)].append(_load(*row))
    return found


def _load(border: Any, value: Any, extra: Any = None) -> Found:
    return Found(bytes(border), json.loads(bytes(value)), None if extra is None else json.loads(bytes(extra)))


class View:
    """What one block asks and says. `conversation_id` is None where it is the only block, so that nothing has to be
    noted; no block comes before the first border, so that nothing earlier has to be asked."""

    def __init__(self, conversation_id: uuid.UUID | None = None, border: bytes = FIRST) -> None:
        self.conversation_id, self.border = conversation_id, border
        self.is_first, self.is_only = border == FIRST, conversation_id is None
        self.own: dict[Key, Any] = {}
        self.extras: dict[Key, Any] = {}
        # By digest, the border that the answer came from.
        self.reads: dict[bytes, bytes] = {}
        self._seen: dict[Key, Any] = {}
        self._expected: dict[bytes, Found | None] = {}

    def get(self, key: Key, read: Callable[[Any], Any] = lambda value: value) -> Any:
        """The value that holds for a key, which `read` makes of what is stored; None where there is none."""
        if key in self.own:
            return self.own[key]
        if self.is_first:
            return None
        if key in self._seen:
            return self._seen[key]
        found = self._find(digest_key(key))
        value = self._seen[key] = None if found is None or found.value is None else read(found.value)
        return value

    def put(self, key: Key, value: Any, extra: Any = None) -> None:
        """From here on a key has this value; `extra` is kept with it, and no later block reads that."""
        self.own[key] = value
        if extra is not None:
            self.extras[key] = extra

    def expect(self, keys: Iterable[Key]) -> None:
        """Look these up together: they are about to be asked for."""
        if self.is_first:
            return
        digests = {digest_key(key) for key in keys if key not in self.own and key not in self._seen}
        wanted = [each for each in digests if each not in self._expected]
        if wanted:
            self._expected |= dict.fromkeys(wanted)
            self._expected |= find_latest(self.conversation_id, wanted, self.border)

    def walk(self, key: Key) -> Iterator[Any]:
        """The values of a key, as they are stored: of this block, then of the earlier ones, the latest first."""
        if key in self.own:
            yield self.own[key]
        if self.is_first:
            return
        digest, border, found = digest_key(key), self.border, None
        facts = Fact.objects.filter(conversation=self.conversation_id, key=digest).order_by("-border")
        while found is None or len(found) == WALKED:
            found = list(facts.filter(border__lt=border).values_list("border", "value")[:WALKED])
            for at, value in found:
                border = bytes(at)
                self._note(digest, border)
                yield json.loads(bytes(value))
        self._note(digest, NOWHERE)

    def list_everywhere(self, keys: Sequence[Key]) -> dict[Key, list[Found]]:
        """The values of each key in all other blocks, in order; one statement at most."""
        if self.is_only or not keys:
            return {key: [] for key in keys}
        digests = {key: digest_key(key) for key in keys}
        self.reads |= dict.fromkeys(map(digest_everywhere, digests.values()), NOWHERE)
        found = list_everywhere(self.conversation_id, digests.values())
        return {key: [each for each in found[digest] if each.border != self.border] for key, digest in digests.items()}

    def note(self, key: Key) -> None:
        """Something is read that whatever comes before may change."""
        if not self.is_only:
            self._note(digest_key(key), NOWHERE)

    def note_everywhere(self, key: Key) -> None:
        """Something is read that any other block may change."""
        if not self.is_only:
            self.reads[digest_everywhere(digest_key(key))] = NOWHERE

    def find_border(self, key: Key) -> bytes:
        """The border of the block that answered a key which was asked for."""
        found = self._expected.get(digest_key(key))
        return NOWHERE if found is None else found.border

    def _find(self, digest: bytes) -> Found | None:
        if digest in self._expected:
            found = self._expected[digest]
        else:
            held = find_latest(self.conversation_id, [digest], self.border)
            found = self._expected[digest] = held.get(digest)
        self._note(digest, NOWHERE if found is None else found.border)
        return found

    def _note(self, digest: bytes, reached: bytes) -> None:
        self.reads[digest] = min(self.reads.get(digest, reached), reached)

    def list_given(self) -> Iterator[tuple[bytes, bytes, bytes | None, bool]]:
        """What it says, as it is stored: keys, values, what is kept with them, whether they are read everywhere."""
        for key, value in self.own.items():
            extra = _encode(self.extras[key]).encode() if key in self.extras else None
            yield digest_key(key), _encode(value).encode(), extra, key[0] in EVERYWHERE
