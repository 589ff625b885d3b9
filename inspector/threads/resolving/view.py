"""What holds where a block begins, as it is asked for; and what the block makes of it.

A key is answered by what the block itself has said of it, else by the latest earlier block that did. What was asked is
noted with how far back its answer came from, so that a change of an earlier block marks those later ones that would be
answered otherwise now. Of a key that is read everywhere, a value depends on nothing that comes later, so that resolving
comes to an end.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from django.db import connection

from ..models.blocks import FACT_BYTES, FIRST, Fact
from ..rendering.dependencies import DECODER_VERSION, name_secret

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
    """What stands for a key in the tables; that of a question of a context is the question itself (`dependencies`)."""
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
