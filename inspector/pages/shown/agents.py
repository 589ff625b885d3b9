"""How agents are shown: a colour by the name on the wire and two letters beside it.

What a page says of a conversation has the colours of its transcript; what is of no conversation has that of the name.
"""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.characters import HIDDEN
from inspector.threads.agents import Label, Labels, load_labels
from inspector.threads.models import Conversation, Trace
from inspector.threads.terms import fold

COLOURS = 8

# How many agents a line names before it says how many more there are.
MAX_NAMED = 6


def list_first(names: Sequence[str]) -> Sequence[str]:
    """The names that a line has room for; one more takes no more of it than saying that there is one."""
    return names[: MAX_NAMED + (len(names) == MAX_NAMED + 1)]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentMark:
    """An agent as a page shows it: its name as the wire has it, its colour (1 to 8) and its monogram.

    `label` is what people call it, empty where that is its name; `why` says who does.
    """

    name: str
    number: int
    monogram: str
    label: str = ""
    why: str = ""

    @property
    def shown(self) -> str:
        """What it is called where there is room for one name."""
        return self.label or self.name


class Cast:
    """The agents of a conversation, a trace or a page, with what people call them.

    The first eight that appear have a colour each: that of their name, else the next one that none of those before them
    has. Further ones have that of their name, and their letters tell them apart.

    Args:
        names: in the order of their first appearance, where it is known.
        labels: what people call them; none where the page knows no workspace.
        channel_id, dialects: where those are found that are asked for by their name alone, and what is spoken there.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        *,
        labels: Labels | None = None,
        channel_id: uuid.UUID | None = None,
        dialects: Iterable[str] = (),
    ) -> None:
        self._labels = labels
        self._channel_id = channel_id
        self._dialects = tuple(dialects)
        # Only those that are shown are drawn: a conversation may have a hundred thousand.
        self._places: dict[object, int] = {}
        self._marks: dict[tuple[uuid.UUID | None, tuple[str, ...], str], AgentMark] = {}
        self._colours: dict[str, int] = {}
        for at, name in enumerate(names):
            self.find_place(name)
            if at < COLOURS:
                self._take_colour(self._find_principal(name, channel_id))

    def find(
        self, name: str, *, channel_id: uuid.UUID | None = None, dialects: tuple[str, ...] | None = None
    ) -> AgentMark:
        """The mark of this agent.

        Args:
            channel_id, dialects: where it is named, and in which dialects, if not everywhere on the page alike.
        """
        channel_id = channel_id or self._channel_id
        dialects = self._dialects if dialects is None else dialects
        key = (channel_id, dialects, name)
        if key not in self._marks:
            label = self._labels.find(channel_id, name, dialects) if self._labels and channel_id else None
            self._marks[key] = make_mark(name, label, self._find_colour(self._find_principal(name, channel_id)))
        return self._marks[key]

    def find_all(
        self, names: Iterable[str], *, channel_id: uuid.UUID | None = None, dialects: tuple[str, ...] | None = None
    ) -> list[AgentMark]:
        """The marks of these agents, in their order."""
        return [self.find(name, channel_id=channel_id, dialects=dialects) for name in names]

    def find_place(self, name: str, *, channel_id: uuid.UUID | None = None) -> int:
        """Its place in the order of first appearance, shared by those that are one; a new one gets the next."""
        channel_id = channel_id or self._channel_id
        key: object = (channel_id, name)
        if self._labels and channel_id and name in self._labels.names:
            key = self._labels.who(channel_id, name)
        if key not in self._places:
            self._places[key] = len(self._places)
        return self._places[key]

    def _take_colour(self, principal: str) -> None:
        if principal not in self._colours:
            own = find_colour(principal)
            free = ((own + step - 1) % COLOURS + 1 for step in range(COLOURS))
            taken = set(self._colours.values())
            self._colours[principal] = next(number for number in free if number not in taken)

    def _find_colour(self, principal: str) -> int:
        return self._colours.get(principal) or find_colour(principal)

    def _find_principal(self, name: str, channel_id: uuid.UUID | None) -> str:
        """The name of the agent that this one is known by: those that are one have one colour."""
        agent_id = self._labels.identify(channel_id, name) if self._labels and channel_id else None
        agent = self._labels.agents.get(agent_id) if self._labels and agent_id else None
        return agent.same_as.name if agent and agent.same_as else name


def find_colour(name: str) -> int:
    """The colour of an agent outside of conversations, 1 to 8, by its name on the wire in any case."""
    return zlib.crc32(fold(name).encode("utf-8", "surrogatepass")) % COLOURS + 1


def cast_conversation(conversation: Conversation | Trace) -> Cast:
    """The agents of a conversation or a trace, in order of first appearance, with their labels; one statement."""
    return _cast(conversation, conversation.agents, load_labels(workspace_id=conversation.workspace_id))


class Casts:
    """The agents of the conversations of a list, each coloured as in its own transcript."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._casts: dict[uuid.UUID, Cast] = {}

    def find(self, conversation: Conversation | Trace) -> Cast:
        """The agents of this one. Those that appear late have no place: only their colour is asked for."""
        if conversation.pk not in self._casts:
            self._casts[conversation.pk] = _cast(conversation, conversation.agents[:COLOURS], self._labels)
        return self._casts[conversation.pk]


def _cast(owner: Conversation | Trace, names: Iterable[str], labels: Labels) -> Cast:
    return Cast(names, labels=labels, channel_id=owner.channel_id, dialects=owner.dialects)


def make_mark(name: str, label: Label | None, number: int) -> AgentMark:
    """The mark of an agent, by its name on the wire, what people call it, and the number of its colour."""
    text = label.text if label and label.text != name else ""
    why = BASES[label.basis] if label else ""
    return AgentMark(name=name, number=number, monogram=make_monogram(text or name), label=text, why=why)


# Who says that an agent is called so.
BASES = {
    "given": "an auditor calls it so",
    "joined": "an auditor says that they are one agent",
    "convention": "by the convention of its dialect",
}


def make_monogram(name: str) -> str:
    """Two letters for a name: `oscar` Os, `agent-b` aB, `pump-3` p3, `agent-17` 17, `A` A; without any it is `?`."""
    words = [word for word in re.split(r"[\W_]+", HIDDEN.sub("", name)) if word]
    if not words:
        return "?"
    if len(words) > 1 and words[-1].isdecimal():
        # Of many of a kind only the number tells them apart.
        return (words[0][0] + words[-1])[-2:]
    if len(words) > 1:
        return words[0][0] + words[-1][0].upper()
    return words[0][0].upper() + words[0][1:2]
