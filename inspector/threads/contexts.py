"""The context that a conversation is told in, with a digest of what holds, and a note of what each telling leaned on.

A told message says in one line of text what its telling leaned on (`told_in`), and in JSON what it established
(`established`). A message is told again only where that line no longer holds: re-telling stops where contexts agree.

    1.3 none|def,domain         told without an entry of these kinds: holds wherever none of them is in force
    1.3 held|<digest>           told in exactly this context
    1.3 held-at|<digest>        the same, and its own position was looked at

A line ends in `+` where the record established something: then that is kept with it and is gone through again in the
place of telling.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from django.conf import settings

from dialects import SHAPE_VERSION, Context, Entry, to_json_type

DECODER_VERSION = f"1.{SHAPE_VERSION}"

_MODULUS = 1 << 128


@cache
def _key() -> bytes:
    return hashlib.sha256(b"threads.contexts" + settings.SECRET_KEY.encode()).digest()


class TrackedContext(Context):
    """A context that knows what was asked of it while one record was told, and what that record changed.

    Its digest is a sum over all that holds, so that keeping it up to date costs as much as what changes. The terms of
    the sum are hashed under a secret, so that nobody can write a log in which two contexts add up alike.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._digest = 0
        self._terms: dict[tuple[str, str], int] = {}
        self._ranks: dict[tuple[str, str], int] = {}
        self._before = 0
        self._changes: list[list[Any]] = []
        self._empty_kinds: set[str] = set()
        self._sizes: set[bool] = set()
        self._has_found = self._has_looked_at_position = False
        self._position = 1
        # By record id: what stands for a record wherever it is stored.
        self.identities: dict[str, str] = {}
        super().__init__(entries)

    # What dialects ask, each answer noted.

    def find(self, kind: str, name: str, *, speaker: str | None = None) -> Entry | None:
        """The entry now in force, or None; with `speaker`, the latest that this speaker made."""
        if kind not in self._kinds:
            self._empty_kinds.add(kind)
            return None
        self._has_found = True
        return super().find(kind, name, speaker=speaker)

    def all_of(self, kind: str) -> dict[str, Entry]:
        """Every entry in force of a kind, by name, in the order in which the names were first established."""
        if kind not in self._kinds:
            self._empty_kinds.add(kind)
            return {}
        self._has_found = True
        return super().all_of(kind)

    @property
    def size(self) -> int:
        """How many names are established."""
        self._sizes.add(bool(self._latest))
        return len(self._latest)

    @property
    def position(self) -> int:
        """The one-based place of the message being told."""
        self._has_looked_at_position = True
        return self._position

    @position.setter
    def position(self, value: int) -> None:
        self._position = value

    # What changes it, each change kept.

    def add(self, entries: Iterable[Entry]) -> None:
        """Let these hold from here on; a later entry of the same kind and name replaces an earlier one."""
        for entry in entries:
            plain = _make_plain(entry)
            held = self._latest.get((plain.kind, plain.name))
            if held and next(reversed(held.values())) == plain:
                continue
            super().add((plain,))
            self._weigh(plain.kind, plain.name)
            # That its dialect is spoken follows from every message; it need not be kept with the first.
            if plain.source is not None or plain.kind != "dialect":
                self._changes.append(self._write_change(plain))

    def remove(self, kind: str) -> None:
        """Forget a kind: the dialect's own reset."""
        if kind not in self._kinds:
            return
        for name in self._kinds[kind]:
            self._digest = (self._digest - self._terms.pop((kind, name))) % _MODULUS
            del self._ranks[kind, name]
        super().remove(kind)
        # A kind without entries is a kind that was never spoken of.
        self._kinds.pop(kind, None)
        self._changes.append([kind])

    def _weigh(self, kind: str, name: str) -> None:
        held = self._latest[kind, name]
        # The order in which speakers and names were established can decide what a dialect finds.
        said = [[each.speaker, each.value, each.source, each.position] for each in held.values()]
        term = self._terms.get((kind, name))
        rank = len(self._kinds[kind]) if term is None else self._ranks[kind, name]
        self._ranks[kind, name] = rank
        text = json.dumps([kind, name, rank, said], sort_keys=True, separators=(",", ":"))
        weight = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16, key=_key()).digest())
        self._digest = (self._digest - (term or 0) + weight) % _MODULUS
        self._terms[kind, name] = weight

    def _write_change(self, entry: Entry) -> list[Any]:
        record, part = entry.source or (None, 0)
        identity = self.identities.get(str(record), "") if record is not None else ""
        at = None if entry.position is None else "here" if entry.position == self._position else entry.position
        return [entry.kind, entry.name, entry.value, entry.speaker, record, part, identity, at]

    # One record at a time.

    def begin(self, *, record: str, identity: str, position: int) -> None:
        """Begin to tell a record: nothing has been asked and nothing changed.

        Args:
            record: its id.
            identity: what stands for it by content.
            position: the one-based place of its first message.
        """
        self.record, self._position = record, position
        self.identities[record] = identity
        self._changes, self._empty_kinds, self._sizes = [], set(), set()
        self._has_found = self._has_looked_at_position = False
        self._before = self._digest

    def end(self, dialect: str) -> tuple[str, str]:
        """What the telling since `begin` leaned on, and what it established; as they are stored with the message."""
        established = ""
        if self._changes:
            established = json.dumps(self._changes, separators=(",", ":"))
        if not any(self.record == change[4] for change in self._changes if len(change) > 1):
            self.identities.pop(self.record, None)
        mark = "+" if self._changes else ""
        if self._has_found or self._has_looked_at_position:
            kind = "held-at" if self._has_looked_at_position else "held"
            position = self._position if self._has_looked_at_position else 0
            return f"{DECODER_VERSION} {dialect} {kind}|{self._seal(self._before, position)}{mark}", established
        asked = ",".join([*sorted(self._empty_kinds), *(("~" if is_filled else "!") for is_filled in self._sizes)])
        return f"{DECODER_VERSION} {dialect} none|{asked}{mark}", established

    @staticmethod
    def _seal(digest: int, position: int) -> str:
        return hashlib.blake2b(f"{digest} {position}".encode(), digest_size=16).hexdigest()

    def allows(self, told_in: str, *, dialect: str, position: int) -> bool:
        """Whether what was told then would be told alike now.

        Args:
            told_in: what the telling leaned on.
            dialect: the dialect that the record is placed in now.
            position: the one-based place of its first message now.
        """
        start = f"{DECODER_VERSION} {dialect} "
        if not told_in.startswith(start):
            return False
        kind, _, leaned = told_in[len(start) :].removesuffix("+").partition("|")
        if kind == "none":
            return all(self._is_so(name) for name in leaned.split(",") if name)
        return leaned == self._seal(self._digest, position if kind == "held-at" else 0)

    def _is_so(self, name: str) -> bool:
        if name in ("~", "!"):
            return bool(self._latest) is (name == "~")
        return name not in self._kinds

    def go_through(self, established: str, *, position: int) -> None:
        """Let hold again what a record established when it was told, in the place of telling it anew."""
        self._position = position
        for kind, *rest in json.loads(established):
            if not rest:
                self.remove(kind)
                continue
            name, value, speaker, record, part, identity, at = rest
            if record is not None:
                self.identities[record] = identity
            source = None if record is None else (record, part)
            place = position if at == "here" else at
            self.add([Entry(kind=kind, name=name, value=value, speaker=speaker, source=source, position=place)])
        self._changes = []


def stands_alone(told_in: str) -> bool:
    """Whether what was told so leaned on nothing that a conversation may hold, and established nothing."""
    return " none|" in told_in and not told_in.endswith("+")


def has_established(told_in: str) -> bool:
    """Whether a record that was told so established something."""
    return told_in.endswith("+")


def _make_plain(entry: Entry) -> Entry:
    """The entry as it is when it has been stored and read again: containers as JSON has them."""
    plain = to_json_type(entry.value)
    source = (str(entry.source[0]), entry.source[1]) if entry.source is not None else None
    return Entry(
        kind=entry.kind,
        name=entry.name,
        value=plain,
        speaker=entry.speaker,
        source=source,
        position=entry.position,
    )
