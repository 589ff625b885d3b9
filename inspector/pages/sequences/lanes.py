"""The columns of a sequence diagram: an agent each, in the order of first appearance, so that they stand still."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from inspector.browsing.sequence import Step

from ..agents.marks import AgentMark, Cast
from ..shown.budgets import shorten_name

# With so few, also those that are silent in this window keep their column.
FEW_LANES: Final = 6
# So many of its names on the wire stand at the head of an agent that is known by several.
MAX_NAMES: Final = 4
# More columns than this cannot be told apart; what is beyond stands in one column together.
MAX_LANES: Final = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """A column: an agent (`mark`), the one for messages that name no sender, or the one for all that are too many.

    `names` are the first of those that the agent bears on the wire, where it bears several, and `more_names` counts the
    others.
    """

    kind: str
    mark: AgentMark | None
    sent_count: int
    agent_count: int = 1
    names: Sequence[str] = ()
    more_names: int = 0


@dataclass(frozen=True, slots=True)
class Lanes:
    """The columns of a window; `folded_count` agents of the conversation have none in it."""

    lanes: Sequence[Lane]
    folded_count: int
    cast: Cast
    _places: dict[str, int]

    def find(self, name: str) -> int:
        """The number of the column of whoever bears a name; an empty one is a sender whom nothing names."""
        return self._places.get(name, len(self.lanes) - 1)

    def place(self, number: float) -> str:
        """The middle of a column across the width; a half lies between two columns."""
        return write_share((number + 0.5) / len(self.lanes) * 100)


def choose_lanes(*, steps: Sequence[Step], agents: Sequence[str], cast: Cast, is_everyone_shown: bool = False) -> Lanes:
    """The columns of these messages; those whom an auditor joined are one agent and have one column.

    Args:
        steps: the messages of a window.
        agents: all of the conversation, in the order of first appearance.
        cast: who they are, and their colours.
        is_everyone_shown: whether those that neither send nor receive in the window have a column too.
    """
    sent = Counter(step.sender for step in steps)
    everyone = {cast.find_place(name) for name in agents}
    is_whole = is_everyone_shown or len(everyone) <= FEW_LANES
    present = (name for step in steps for name in (step.sender, *step.receivers) if name)
    named = gather_names((*present, *(agents if is_whole else ())), cast)
    # The last column is kept for the others where there are too many.
    shown = named if len(named) <= MAX_LANES else named[: MAX_LANES - 1]
    others = named[len(shown) :]
    lanes = [_make_lane(names, sent, cast) for names in shown]
    if sent[""] or not lanes:
        lanes.insert(0, Lane(kind="nobody", mark=None, sent_count=sent[""]))
    first = len(lanes) - len(shown)
    places = {name: place for place, names in enumerate(shown, start=first) for name in names} | {"": 0}
    if others:
        count = sum(sent[name] for names in others for name in names)
        lanes.append(Lane(kind="others", mark=None, sent_count=count, agent_count=len(others)))
    return Lanes(lanes, 0 if is_whole else len(everyone) - len(named), cast, places)


def gather_names(names: Iterable[str], cast: Cast) -> list[list[str]]:
    """The names of each agent together, those that appear first in front."""
    found: dict[int, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        found[cast.find_place(name)].append(name)
    return [found[place] for place in sorted(found)]


def _make_lane(names: Sequence[str], sent: Counter[str], cast: Cast) -> Lane:
    mark = cast.find(names[0])
    count = sum(sent[name] for name in names)
    if len(names) == 1:
        return Lane(kind="agent", mark=mark, sent_count=count)
    # At its head it is called what it is known by; what it is called on the wire stands below.
    known = replace(mark, name=mark.shown, label="")
    more = max(0, len(names) - MAX_NAMES)
    shown = [shorten_name(name) for name in names[:MAX_NAMES]]
    return Lane(kind="agent", mark=known, sent_count=count, names=shown, more_names=more)


def write_share(share: float) -> str:
    """Hundredths of the width as an attribute: `12.5%`."""
    return f"{share:.2f}".rstrip("0").rstrip(".") + "%"
