"""What a conversation has established, as one block finds it: each name is looked up when it is asked for.

A fact stands under the question for it (`contexts.make_question`), so that whether a message still stands as it was
told is answered by looking up what its telling asked. Who asks for all of a kind asks for everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from dialects import Entry

from ..telling.contexts import ALL, KNOWN, POSITION, SIZE, TrackedContext, make_question
from .view import View

_MODULUS: Final = 1 << 128
_Name = tuple[str, str]


class Established(TrackedContext):
    """The context of the messages of a block.

    Args:
        view: of the block.
        count: how many messages come before the block; asked for only where a telling says a number.
    """

    def __init__(self, view: View, count: Callable[[], int]) -> None:
        self._view = view
        self._count = count
        self._before: int | None = None
        self._looked_up: set[str] = set()
        self._forgotten_here: set[str] = set()
        # The names whose meaning the block has changed.
        self._changed: set[_Name] = set()
        super().__init__()

    # What dialects ask.

    def find(self, kind: str, name: str, *, speaker: str | None = None) -> Entry | None:
        """The entry now in force, or None; with `speaker`, the latest that this speaker made."""
        self._look_up(make_question(kind, name))
        return super().find(kind, name, speaker=speaker)

    def knows(self, kind: str) -> bool:
        """Whether anything of a kind was ever established."""
        question = make_question(kind, None, KNOWN)
        if kind not in self._forgotten:
            self._note(question)
        return bool(self._find_answer(question))

    def all_of(self, kind: str) -> dict[str, Entry]:
        """Every entry in force of a kind, by name; those that were established first come first."""
        self._note(ALL)
        blocks: list[list[str]] = []
        for written in self._view.walk(("kind", kind)):
            blocks.insert(0, written["names"])
            if written["forgets"]:
                break
        for name in (name for names in blocks for name in names):
            self._look_up(make_question(kind, name))
        held = self._kinds.get(kind, {})
        order = dict.fromkeys([*(name for names in blocks for name in names), *held])
        return {name: held[name] for name in order if name in held}

    @property
    def size(self) -> int:
        """One where any name is established."""
        self._note(SIZE)
        return self._answer(SIZE)

    @property
    def position(self) -> int:
        """The one-based place of the message being told, in its conversation."""
        self._note(POSITION)
        return self._answer(POSITION)

    @position.setter
    def position(self, value: int) -> None:
        self._position = value

    def remove(self, kind: str) -> None:
        """Forget a kind: the dialect's own reset."""
        self._changed = {each for each in self._changed if each[0] != kind}
        self._forgotten_here.add(kind)
        self._counts.setdefault(kind, 0)
        super().remove(kind)

    def expect(self, questions: Iterable[str]) -> None:
        """Look up together what is about to be asked."""
        self._view.expect(("question", each) for each in questions if each not in (ALL, POSITION, SIZE))

    # How it is answered.

    def _answer(self, question: str) -> int:
        if question == POSITION:
            return self._offset() + self._position
        if question == SIZE:
            return int(bool(self._counts) or bool(self._view.get(("any",))))
        if question == ALL:
            written = sum(int(each, 16) for each in self._view.walk(("all",)))
            return (written + self._sum_changed()) % _MODULUS
        return self._find_answer(question)

    def _offset(self) -> int:
        """How many messages come before the block."""
        if self._before is None:
            self._view.note(("count",))
            self._before = self._count()
        return self._before

    def _sum_changed(self) -> int:
        """A number for what the block has changed."""
        changed = sum(_name_number(*each) ^ self._answers[make_question(*each)] for each in self._changed)
        return changed + sum(_name_number(kind) for kind in self._forgotten_here)

    def _find_answer(self, question: str) -> int:
        self._look_up(question)
        return self._answers.get(question, 0)

    def _find_held(self, kind: str, name: str) -> dict[str | None, Entry] | None:
        self._look_up(make_question(kind, name))
        return super()._find_held(kind, name)

    def _weigh(self, kind: str, name: str) -> None:
        known = make_question(kind, None, KNOWN)
        self._changed.add((kind, name))
        self._counts[kind] = 1
        self._ranks[kind, name] = 0
        self._answers[known] = 1
        self._looked_up.add(known)
        self._weigh_name(kind, name)

    def _look_up(self, question: str) -> None:
        """Take what earlier blocks say of a question, once."""
        if question in self._looked_up:
            return
        self._looked_up.add(question)
        if self._view.is_first:
            return
        written = self._view.get(("question", question))
        if written is None:
            return
        kind, *said = written
        if kind in self._forgotten_here:
            return
        forgotten = self._view.get(("forgotten", kind))
        if forgotten is not None and forgotten > self._view.find_border(("question", question)).hex():
            return
        if said:
            self._restore(kind, *said)
        else:
            self._answers[question] = 1

    def _restore(self, kind: str, name: str, entries: list[list[Any]]) -> None:
        held: dict[str | None, Entry] = {}
        for value, speaker, *more in entries:
            position, record, part, identity = more or (None, None, 0, "")
            if record is not None:
                self.identities[record] = identity
            source = None if record is None else (record, part)
            held[speaker] = Entry(kind=kind, name=name, value=value, speaker=speaker, source=source, position=position)
        self._latest[kind, name] = held
        self._kinds.setdefault(kind, {})[name] = next(reversed(held.values()))
        self._ranks[kind, name] = 0
        self._weigh_name(kind, name)

    # What changes it, and what the block leaves.

    def go_through(self, established: str, *, position: int) -> None:
        """Let hold again what a record established when it was told, in the place of telling it anew."""
        # A number is looked up only where one of the entries says where it was made.
        is_numbered = any(rest and rest[-1] == "here" for _, *rest in json.loads(established))
        self._position = position
        super().go_through(established, position=self._offset() + position if is_numbered else position)
        self._position = position

    def _write_change(self, entry: Entry) -> list[Any]:
        record, part = entry.source or (None, 0)
        identity = self.identities.get(str(record), "") if record is not None else ""
        at = entry.position
        return [entry.kind, entry.name, entry.value, entry.speaker, record, part, identity, self._write_place(at)]

    def _write_place(self, position: int | None) -> int | str | None:
        if position is None:
            return None
        return "here" if position == self._offset() + self._position else position

    def note(self) -> None:
        """Say what the block has established."""
        if self._view.is_only or not (self._changed or self._forgotten_here):
            return
        view = self._view
        kinds: dict[str, list[str]] = {kind: [] for kind in self._forgotten_here}
        for kind, name in sorted(self._changed):
            kinds.setdefault(kind, []).append(name)
            entries = [self._write_entry(each) for each in self._latest[kind, name].values()]
            view.put(("question", make_question(kind, name)), [kind, name, entries])
        for kind, names in kinds.items():
            is_forgotten = kind in self._forgotten_here
            view.put(("kind", kind), {"forgets": is_forgotten, "names": names})
            view.put(("question", make_question(kind, None, KNOWN)), [kind] if names else None)
            if is_forgotten:
                view.put(("forgotten", kind), view.border.hex())
        view.put(("any",), True)
        view.put(("all",), f"{self._sum_changed() % _MODULUS:x}")

    def _write_entry(self, entry: Entry) -> list[Any]:
        if entry.source is None and entry.position is None:
            return [entry.value, entry.speaker]
        record, part = entry.source or (None, 0)
        identity = self.identities.get(str(record), "") if record is not None else ""
        return [entry.value, entry.speaker, entry.position, record, part, identity]


def _name_number(*name: str) -> int:
    """A number that a name is known by, the same in every process."""
    return int(make_question(*name), 16)
