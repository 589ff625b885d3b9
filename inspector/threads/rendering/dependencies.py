"""Dependencies: what a telling asked of its conversation, as questions and answers, and what messages established.

    2.3 clowl 5d1c0b7f,90aa41e2=<digest>+

So a message says it in one line (`told_in`): the version of the decoders, the dialect, what was asked, each name as a
short digest, and a digest of all answers; `+` where its record established something, in JSON beside it. It is told
again where an answer would be another now. An entry holds until a later one of its name, or a reset of its kind.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db.models.functions import Length

from dialects import SHAPE_VERSION, digest_installed

from ..models import Message
from ..timeline import load_places

# Raised when a decoder reads or tells what is stored otherwise than before, and another one when a package brings a
# dialect or another version of it: the sweep then has every record read anew.
DECODER_VERSION = f"23.{SHAPE_VERSION}{digest_installed('dialects')}"

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
