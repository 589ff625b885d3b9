"""What a conversation has established so far, and the keys its sealed messages may open with.

A context holds public facts only (definitions, namespaces, sessions, names). Keys come by a resolver and never
live in it. Messages are told in order, and what each establishes is added before the next is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ._record import Entry, Message
from ._value import Value


class Key(Value):
    """A key an auditor holds: an X25519 private key with its peer's public key, or a pre-shared key (bytes).

    `session` is None where the key serves any session.
    """

    session: str | None = None
    private: bytes | None = None
    peer: bytes | None = None
    psk: bytes | None = None
    label: str | None = None

    def __repr__(self) -> str:
        """The key without what is secret of it: what stands in a traceback or a log is read by others."""
        kind = "psk" if self.psk is not None else "private"
        return f"Key(session={self.session!r}, label={self.label!r}, {kind}=…)"


class Keys(Protocol):
    """A resolver of keys."""

    def find(self, session: str | None) -> Iterable[Key]:
        """The keys that may open a message of this session, likeliest first."""
        ...


class NoKeys:
    """The resolver that knows none: sealed stays sealed."""

    def find(self, session: str | None) -> Iterable[Key]:
        """No key for any session."""
        return ()


class KeyList:
    """A resolver over a plain list: keys of that very session first, then those for any session."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = tuple(keys)

    def find(self, session: str | None) -> Iterable[Key]:
        """The keys of that session, then those bound to none."""
        return (
            *(key for key in self._keys if key.session is not None and key.session == session),
            *(key for key in self._keys if key.session is None),
        )


class Context:
    """The entries of one conversation, newest first to look up; it grows as messages are told.

    `record` is the id of the record being told and `position` its one-based place in the conversation, for
    wordings such as "in message 3": the entries a dialect makes carry both as their source. `parent` is the
    message that the one being told answers, where it was placed.
    """

    def __init__(self, entries: Iterable[Entry] = (), *, position: int = 1) -> None:
        # The latest entry of each speaker, in the order in which they were made; nothing asks for older ones.
        self._latest: dict[tuple[str, str], dict[str | None, Entry]] = {}
        self._kinds: dict[str, dict[str, Entry]] = {}
        self.record: Any = None
        self.position = position
        self.parent: Message | None = None
        self.add(entries)

    def add(self, entries: Iterable[Entry]) -> None:
        """Let these hold from here on; a later entry of the same kind and name replaces an earlier one."""
        for entry in entries:
            held = self._latest.setdefault((entry.kind, entry.name), {})
            held.pop(entry.speaker, None)
            held[entry.speaker] = entry
            self._kinds.setdefault(entry.kind, {})[entry.name] = entry

    def find(self, kind: str, name: str, *, speaker: str | None = None) -> Entry | None:
        """The entry now in force, or None; with `speaker`, the latest that this speaker made."""
        held = self._latest.get((kind, name), {})
        if speaker is None:
            return next(reversed(held.values()), None)
        return held.get(speaker)

    def find_each(self, kind: str, name: str) -> tuple[Entry, ...]:
        """The latest entry of each speaker, the oldest first: they may contradict each other."""
        return tuple(self._latest.get((kind, name), {}).values())

    def knows(self, kind: str) -> bool:
        """Whether anything of a kind was ever established."""
        return kind in self._kinds

    @property
    def size(self) -> int:
        """How many names are established."""
        return len(self._latest)

    def all_of(self, kind: str) -> dict[str, Entry]:
        """Every entry in force of a kind, by name, in the order in which the names were first established."""
        return dict(self._kinds.get(kind, {}))

    def remove(self, kind: str) -> None:
        """Forget a kind: the dialect's own reset."""
        for name in self._kinds.pop(kind, {}):
            del self._latest[(kind, name)]


class Within(Context):
    """A context and what the record that is being told has established beside it; that is asked first.

    What the record establishes is added to the context when all of it is told.
    """

    def __init__(self, around: Context, own: Sequence[Entry]) -> None:
        self._around, self._own = around, own
        self.record, self.position, self.parent = around.record, around.position, around.parent

    def add(self, entries: Iterable[Entry]) -> None:
        """Add to the context around."""
        self._around.add(entries)

    def find(self, kind: str, name: str, *, speaker: str | None = None) -> Entry | None:
        """The entry now in force, or None."""
        for each in reversed(self._own):
            if (each.kind, each.name) == (kind, name) and speaker in (None, each.speaker):
                return each
        return self._around.find(kind, name, speaker=speaker)

    def find_each(self, kind: str, name: str) -> tuple[Entry, ...]:
        """The latest entry of each speaker, the oldest first."""
        own = {each.speaker: each for each in self._own if (each.kind, each.name) == (kind, name)}
        return (*(each for each in self._around.find_each(kind, name) if each.speaker not in own), *own.values())

    def knows(self, kind: str) -> bool:
        """Whether anything of a kind was ever established."""
        return any(each.kind == kind for each in self._own) or self._around.knows(kind)

    @property
    def size(self) -> int:
        """How many names are established around it."""
        return self._around.size

    def all_of(self, kind: str) -> dict[str, Entry]:
        """Every entry in force of a kind, by name."""
        return self._around.all_of(kind) | {each.name: each for each in self._own if each.kind == kind}

    def remove(self, kind: str) -> None:
        """Forget a kind around it."""
        self._around.remove(kind)
