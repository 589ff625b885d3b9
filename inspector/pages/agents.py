"""How agents are shown: a colour by order of first appearance, and two letters that stand without it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .hidden_characters import HIDDEN

COLOURS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentMark:
    """An agent as a page shows it: its name as the wire has it, its colour (1 to 8) and its monogram."""

    name: str
    number: int
    monogram: str


class Cast:
    """The agents of a page. Each keeps its colour; a ninth shares the first's, and its letters tell them apart."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        # Only those that are shown are drawn: a conversation may have a hundred thousand.
        self._places = {name: place for place, name in enumerate(dict.fromkeys(names))}
        self._marks: dict[str, AgentMark] = {}

    def find(self, name: str) -> AgentMark:
        """The mark of this agent; one not seen before gets the next colour."""
        if name not in self._marks:
            number = self.find_place(name) % COLOURS + 1
            self._marks[name] = AgentMark(name=name, number=number, monogram=make_monogram(name))
        return self._marks[name]

    def find_all(self, names: Iterable[str]) -> list[AgentMark]:
        """The marks of these agents, in their order."""
        return [self.find(name) for name in names]

    def find_place(self, name: str) -> int:
        """Its place in the order of first appearance; one not seen before gets the next."""
        return self._places.setdefault(name, len(self._places))


def make_monogram(name: str) -> str:
    """Two letters for a name: `oscar` Os, `agent-b` aB, `A` A; a name without letters or digits is `?`."""
    words = [word for word in re.split(r"[\W_]+", HIDDEN.sub("", name)) if word]
    if not words:
        return "?"
    if len(words) > 1:
        return words[0][0] + words[-1][0].upper()
    return words[0][0].upper() + words[0][1:2]
