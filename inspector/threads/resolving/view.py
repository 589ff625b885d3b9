"""What holds where a block begins, as it is asked for; and what the block makes of it.

A conversation is resolved block by block (`resolver`). Going through a block asks for keys: the latest message to an
agent, the run of a dialect, the meaning of a word. A key is answered by what the block itself has said of it, else by
the latest earlier block that did, found by one look-up. What was asked is noted with how far back its answer came
from, so that a change of an earlier block marks those later ones that would be answered otherwise now, and no others.
Nothing is copied from block to block, so nothing can go stale.

    view.get(("to", "bob"))            the value that holds now
    view.put(("to", "bob"), value)     from here on it is this one
    view.walk(("asked", "bob"))        the values of one key, the latest first: of this block, then of earlier ones
    view.list_everywhere([("asks", …)])  the values of keys in all other blocks, earlier and later, in order

Of a key that is read everywhere, a value depends on nothing that comes later, so that resolving comes to an end.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from django.db import connection

from ..models.blocks import FACT_BYTES, FIRST
from ..rendering.contexts import DECODER_VERSION, name_secret

# What is asked for: its kind, and by what.
Key = tuple[Any, ...]
# Raised when what is stored of blocks means something else than before: all of them are resolved anew.
_FORM: Final = 1
NOWHERE: Final = b""
# So many values of a key are read at once where they are gone through.
WALKED: Final = 20
# The kinds of keys that are read everywhere.
EVERYWHERE: Final = frozenset({"asks", "named", "id"})


def name_form() -> str:
    """Under which rules, decoders and secret a block is resolved."""
    return f"{_FORM} {DECODER_VERSION} {name_secret()}"


def digest_key(key: Key) -> bytes:
    """What stands for a key in the tables; that of a question of a context is the question itself (`contexts`)."""
    if key[0] == "question":
        return bytes.fromhex(key[1])
    return blake2b(repr(key).encode("utf-8", "backslashreplace"), digest_size=FACT_BYTES).digest()


def digest_everywhere(digest: bytes) -> bytes:
    """What stands for having read a key in all blocks."""
    return blake2b(b"everywhere" + digest, digest_size=FACT_BYTES).digest()


_encode: Final = json.JSONEncoder(separators=(",", ":"), default=lambda value: value.write()).encode


@dataclass(slots=True)
class Found:
    """A value of a key, the border of the block that gave it, and whether it is as JSON has it."""

    border: bytes
    value: Any
    extra: Any = None


class Given(NamedTuple):
    """What a block says of a key: value and what is kept with it as JSON text, and whether it is read everywhere."""

    key: bytes
    value: str
    extra: str | None
    is_everywhere: bool


class Facts:
    """The facts of one conversation: those that are stored, and those of blocks that have just been gone through.

    Args:
        is_empty: whether nothing is stored of it.
    """

    def __init__(self, conversation_id: uuid.UUID, *, is_empty: bool = False) -> None:
        self._conversation_id = conversation_id
        self._is_empty = is_empty
        # Of the blocks that were gone through one after the other, not written yet: by key, the latest last.
        self._fresh: dict[bytes, list[Found]] = {}
        # The borders of what these stand in the place of.
        self._replaced: set[bytes] = set()

    def replace(self, borders: Iterable[bytes]) -> None:
        """What is stored of these blocks is not so any more."""
        self._replaced |= set(borders)

    def take(self, border: bytes, given: Iterable[Given]) -> None:
        """Let a block that was gone through be known, until `written`."""
        for each in given:
            self._fresh.setdefault(each.key, []).append(
                Found(border, json.loads(each.value), None if each.extra is None else json.loads(each.extra))
            )

    def written(self) -> None:
        """All that is known is stored now."""
        self._fresh.clear()
        self._replaced.clear()
        self._is_empty = False

    def find_latest(self, keys: Sequence[bytes], border: bytes) -> dict[bytes, Found]:
        """The latest value of each key before a border; one statement at most."""
        found: dict[bytes, Found] = {}
        wanted = []
        for key in keys:
            fresh = self._fresh.get(key)
            if fresh:
                latest = next((each for each in reversed(fresh) if each.border < border), None)
                if latest is not None:
                    found[key] = latest
                    continue
            wanted.append(key)
        if wanted and not self._is_empty:
            with connection.cursor() as cursor:
                cursor.execute(
                    """
                    SELECT asked.key, fact.border, fact.value FROM unnest(%s::bytea[]) AS asked (key)
                     CROSS JOIN LATERAL (
                        SELECT border, value FROM threads_fact AS fact
                         WHERE fact.conversation_id = %s AND fact.key = asked.key AND fact.border < %s
                           AND fact.border <> ALL(%s::bytea[])
                         ORDER BY fact.border DESC LIMIT 1
                     ) AS fact
                    """,
                    [wanted, self._conversation_id, border, list(self._replaced)],
                )
                for key, at, value in cursor.fetchall():
                    found[bytes(key)] = Found(bytes(at), json.loads(bytes(value)))
        return found

    def walk_back(self, key: bytes, border: bytes) -> Iterator[Found]:
        """The values of a key before a border, the latest first."""
        for each in reversed(self._fresh.get(key, [])):
            if each.border < border:
                yield each
                border = each.border
        while not self._is_empty:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT border, value, extra FROM threads_fact WHERE conversation_id = %s AND key = %s"
                    " AND border < %s AND border <> ALL(%s::bytea[]) ORDER BY border DESC LIMIT %s",
                    [self._conversation_id, key, border, list(self._replaced), WALKED],
                )
                rows = [_load(*row) for row in cursor.fetchall()]
            yield from rows
            if len(rows) < WALKED:
                return
            border = rows[-1].border

    def list_everywhere(self, keys: Sequence[bytes]) -> dict[bytes, list[Found]]:
        """All values of each key, in the order of the blocks; one statement at most."""
        found: dict[bytes, list[Found]] = {key: list(self._fresh.get(key, ())) for key in keys}
        if keys and not self._is_empty:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT key, border, value, extra FROM threads_fact WHERE conversation_id = %s AND key = ANY(%s)"
                    " AND border <> ALL(%s::bytea[])",
                    [self._conversation_id, list(keys), list(self._replaced)],
                )
                for key, border, value, extra in cursor.fetchall():
                    found[bytes(key)].append(_load(border, value, extra))
        for values in found.values():
            values.sort(key=lambda each: each.border)
        return found


def _load(border: Any, value: Any, extra: Any) -> Found:
    return Found(bytes(border), json.loads(bytes(value)), None if extra is None else json.loads(bytes(extra)))


def _keep(value: Any) -> Any:
    return value


@dataclass(slots=True)
class View:
    """What one block asks and says.

    Args:
        is_first: whether no block comes before it, so that nothing earlier has to be asked.
        is_only: whether it is the only block, so that nothing has to be noted.
    """

    facts: Facts
    border: bytes
    is_first: bool = False
    is_only: bool = False
    own: dict[Key, Any] = field(default_factory=dict)
    extras: dict[Key, Any] = field(default_factory=dict)
    # By digest, the border that the answer came from.
    reads: dict[bytes, bytes] = field(default_factory=dict)
    _seen: dict[Key, Any] = field(default_factory=dict)
    _expected: dict[bytes, Found | None] = field(default_factory=dict)

    @classmethod
    def of_nothing(cls) -> View:
        """Of the only block of a conversation of which nothing is stored."""
        return cls(Facts(uuid.UUID(int=0), is_empty=True), FIRST, is_first=True, is_only=True)

    def get(self, key: Key, read: Callable[[Any], Any] = _keep) -> Any:
        """The value that holds for a key; None where there is none.

        Args:
            read: makes a value of what is stored of one.
        """
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
            self._expected |= self.facts.find_latest(wanted, self.border)

    def walk(self, key: Key) -> Iterator[Any]:
        """The values of a key, as they are stored: of this block, then of the earlier ones, the latest first."""
        if key in self.own:
            yield self.own[key]
        if self.is_first:
            return
        digest = digest_key(key)
        for found in self.facts.walk_back(digest, self.border):
            self._note(digest, found.border)
            yield found.value
        self._note(digest, NOWHERE)

    def list_everywhere(self, keys: Sequence[Key]) -> dict[Key, list[Found]]:
        """The values of each key in all other blocks, in order; one statement at most."""
        if self.is_only or not keys:
            return {key: [] for key in keys}
        digests = {key: digest_key(key) for key in keys}
        self.reads |= dict.fromkeys(map(digest_everywhere, digests.values()), NOWHERE)
        found = self.facts.list_everywhere(list(digests.values()))
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
            found = self._expected[digest] = self.facts.find_latest([digest], self.border).get(digest)
        self._note(digest, NOWHERE if found is None else found.border)
        return found

    def _note(self, digest: bytes, reached: bytes) -> None:
        self.reads[digest] = min(self.reads.get(digest, reached), reached)

    def list_given(self) -> list[Given]:
        """What it says of each key, as it is stored."""
        extras = self.extras
        return [
            Given(
                digest_key(key),
                _encode(value),
                _encode(extras[key]) if key in extras else None,
                key[0] in EVERYWHERE,
            )
            for key, value in self.own.items()
        ]
