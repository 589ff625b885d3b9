"""The columns of a sequence diagram: an agent each, in the order of first appearance, so that they stand still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from inspector.threads.sequence import Step

from ..agents.marks import AgentMark, Cast

# With so few, also those that are silent in this window keep their column.
FEW_LANES: Final = 6
# More columns than this cannot be told apart; what is beyond stands in one column together.
MOST_LANES: Final = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """A column: an agent (`mark`), the one for messages that name no sender, or the one for all that are too many."""

    kind: str
    mark: AgentMark | None
    sent_count: int
    agent_count: int = 1


@dataclass(frozen=True, slots=True)
class Lanes:
    """The columns of a window; `folded_count` agents of the conversation have none in it."""

    lanes: Sequence[Lane]
    folded_count: int
    _places: dict[str, int]

    def find(self, name: str) -> int:
        """The number of the column of an agent; an empty name is a sender whom nothing names."""
        return self._places.get(name, len(self.lanes) - 1)

    def place(self, number: float) -> str:
        """The middle of a column across the width; a half lies between two columns."""
        return write_share((number + 0.5) / len(self.lanes) * 100)


def choose_lanes(*, steps: Sequence[Step], agents: Sequence[str], cast: Cast, is_everyone_shown: bool = False) -> Lanes:
    """The columns of these messages.

    Args:
        steps: the messages of a window.
        agents: all of the conversation, in the order of first appearance.
        cast: their colours.
        is_everyone_shown: whether those that neither send nor receive in the window have a column too.
    """
    sent = Counter(step.sender for step in steps)
    present = dict.fromkeys(name for step in steps for name in (step.sender, *step.receivers) if name)
    is_whole = is_everyone_shown or len(agents) <= FEW_LANES
    named = sorted({*present, *(agents if is_whole else ())}, key=cast.find_place)
    # The last column is kept for the others where there are too many.
    shown = named if len(named) <= MOST_LANES else named[: MOST_LANES - 1]
    others = named[len(shown) :]
    lanes = [Lane(kind="agent", mark=cast.find(name), sent_count=sent[name]) for name in shown]
    if sent[""] or not lanes:
        lanes.insert(0, Lane(kind="nobody", mark=None, sent_count=sent[""]))
    places = {name: place for place, name in enumerate(shown, start=len(lanes) - len(shown))} | {"": 0}
    if others:
        count = sum(sent[name] for name in others)
        lanes.append(Lane(kind="others", mark=None, sent_count=count, agent_count=len(others)))
    return Lanes(lanes, 0 if is_whole else len(set(agents) - present.keys()), places)


def write_share(share: float) -> str:
    """Hundredths of the width as an attribute: `12.5%`."""
    return f"{share:.2f}".rstrip("0").rstrip(".") + "%"
