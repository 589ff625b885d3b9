"""What a telling asked of the context of its conversation: questions and answers as digests.

A told message says in one line of text what its telling asked and was answered (`told_in`), and in JSON what it
established (`established`). It is told again only where an answer would be another one now: re-telling stops where
contexts agree, and passes over what has nothing to do with what changed.

    2.3 clowl 5d1c0b7f,90aa41e2=<digest>+

After the version of the decoders and the dialect: what was asked, each name as a short digest, and a digest of all
answers. A line ends in `+` where the record established something: then that is kept with it, and is gone through
again in the place of telling.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Set
from functools import cache, lru_cache
from typing import Any

from django.conf import settings

from dialects import SHAPE_VERSION

# Raised when a decoder reads or tells what is stored otherwise than before: the sweep then has every record read anew.
DECODER_VERSION = f"10.{SHAPE_VERSION}"

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
    for kind, *rest in json.loads(established):
        if rest:
            yield make_question(kind, rest[0])


def questions_of(told_in: str) -> frozenset[str]:
    """The digests of what a telling asked of its context, as `asks_for` takes them."""
    asked = told_in.rpartition(" ")[2].rstrip("+").partition("=")[0].split(",")
    return frozenset(asked) - {POSITION, SIZE, ""}


def asks_for(asked: Set[str], kind: str, name: str) -> bool:
    """Whether a telling asked for an entry: for itself, or for everything."""
    return ALL in asked or make_question(kind, name) in asked


def has_established(told_in: str) -> bool:
    """Whether a record that was told so established something."""
    return told_in.endswith("+")
