"""The outline: a tree in display order, parents before children, siblings by time. Pure; without recursion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

ADJACENCY: Final = "adjacency"
# The acts that ask somebody for something: their bar lasts until the answer.
ASKING: Final = frozenset({"request", "query", "delegate", "propose", "subscribe"})


class Kind(IntEnum):
    """What a line of an outline stands for."""

    MESSAGE = 0
    GHOST = 1
    CONVERSATION = 2


class Outcome(IntEnum):
    """What came of a message: nothing was asked, it is still open, or how it was answered."""

    NONE = 0
    OPEN = 1
    ANSWERED = 2
    DONE = 3
    FAILED = 4
    CANCELLED = 5


# The answers that end a request; any other prolongs it.
ENDS: Final = {
    "done": Outcome.DONE,
    "failure": Outcome.FAILED,
    "reject": Outcome.FAILED,
    "not-understood": Outcome.FAILED,
    "cancel": Outcome.CANCELLED,
}


class Knot(NamedTuple):
    """A placed message as its outline sees it. Small: those of a trace are all held at once.

    `id` is 16 bytes, `mark` a number that its order key gives, `at` its time in microseconds since 1970. `parent` is
    the place of the message answered among these knots, `ghost` stands for one that was not received, `group` for its
    conversation where several are drawn together.
    """

    id: bytes
    mark: int
    at: int
    performative: str | None
    severity: int
    parent: int | None
    ghost: bytes | None = None
    group: bytes = b""


class Line(NamedTuple):
    """One line of the tree: a message, the ghost of one that was cited, or the heading of a conversation.

    `id` is 16 bytes: of the message or conversation, or the beginning of the ghost's key. `start` and `end` are
    microseconds since 1970: of what was asked until it was answered, of anything else twice the same.
    """

    id: bytes
    kind: Kind
    depth: int
    start: int
    end: int
    outcome: Outcome
    severity: int
    mark: int


def draw_lines(knots: Sequence[Knot]) -> Iterator[Line]:
    """The lines of the tree of these knots, which stand in the order of the timeline.

    Where the knots name groups, the tops of each stand below its heading. A circle of parents is cut at its first.
    """
    parents = cut_circles([knot.parent for knot in knots])
    children: dict[int, list[int]] = defaultdict(list)
    below_ghosts: dict[bytes, list[int]] = defaultdict(list)
    tops: dict[bytes, list[int | bytes]] = defaultdict(list)
    for at, knot in enumerate(knots):
        parent = parents[at]
        if knot.ghost is not None:
            if knot.ghost not in below_ghosts:
                tops[knot.group].append(knot.ghost)
            below_ghosts[knot.ghost].append(at)
        elif parent is not None:
            children[parent].append(at)
        else:
            tops[knot.group].append(at)
    headings = sum_groups(knots)
    for group, entries in tops.items():
        depth = 0
        if group:
            yield headings[group]
            depth = 1
        for entry in entries:
            yield from draw_branch(entry, depth, knots, children, below_ghosts)


def draw_branch(
    entry: int | bytes,
    depth: int,
    knots: Sequence[Knot],
    children: Mapping[int, Sequence[int]],
    below_ghosts: Mapping[bytes, Sequence[int]],
) -> Iterator[Line]:
    """A message (its place among the knots) or a ghost (its key) at this depth, with everything that hangs on it."""
    if isinstance(entry, bytes):
        first = knots[below_ghosts[entry][0]]
        yield Line(entry[:16], Kind.GHOST, depth, first.at, first.at, Outcome.NONE, 0, first.mark)
        stack = [(at, depth + 1) for at in reversed(below_ghosts[entry])]
    else:
        stack = [(entry, depth)]
    while stack:
        at, depth = stack.pop()
        knot = knots[at]
        below = children.get(at, ())
        outcome, end = find_outcome(knot, [knots[child] for child in below])
        yield Line(knot.id, Kind.MESSAGE, depth, knot.at, end, outcome, knot.severity, knot.mark)
        stack.extend((child, depth + 1) for child in reversed(below))


def find_outcome(knot: Knot, answers: Sequence[Knot]) -> tuple[Outcome, int]:
    """How a message was answered, and until when it lasted: to the first answer that ends it, else to the latest."""
    if knot.performative not in ASKING:
        return Outcome.NONE, knot.at
    return prolong(Outcome.OPEN, knot.at, knot.at, answers)


def prolong(outcome: Outcome, start: int, end: int, answers: Sequence[Knot]) -> tuple[Outcome, int]:
    """What becomes of a message, so answered and until then, by answers that come later than all before."""
    if outcome not in (Outcome.OPEN, Outcome.ANSWERED) or not answers:
        return outcome, end
    for answer in answers:
        if answer.performative in ENDS:
            return ENDS[answer.performative], max(start, answer.at)
    return Outcome.ANSWERED, max(end, *(answer.at for answer in answers))


def sum_groups(knots: Iterable[Knot]) -> dict[bytes, Line]:
    """The heading of each group: from its first message to its last, with its gravest note."""
    sums: dict[bytes, list[int]] = {}
    for knot in knots:
        if not knot.group:
            continue
        held = sums.get(knot.group)
        if held is None:
            sums[knot.group] = [knot.at, knot.at, knot.severity, knot.mark]
        else:
            held[0], held[1], held[2] = min(held[0], knot.at), max(held[1], knot.at), max(held[2], knot.severity)
    return {
        group: Line(group, Kind.CONVERSATION, 0, first, last, Outcome.NONE, severity, mark)
        for group, (first, last, severity, mark) in sums.items()
    }


def cut_circles(parents: Sequence[int | None]) -> list[int | None]:
    """The parents of a forest, each circle of them cut at its smallest place: every tree is finite."""
    found = list(parents)
    # Only a parent that stands later can close a circle.
    if not any(parent is not None and parent >= at for at, parent in enumerate(found)):
        return found
    is_clear = bytearray(len(found))
    for start in range(len(found)):
        path: dict[int, None] = {}
        at: int | None = start
        while at is not None and not is_clear[at]:
            if at in path:
                walked = list(path)
                found[min(walked[walked.index(at) :])] = None
                break
            path[at] = None
            at = found[at]
        for walked_at in path:
            is_clear[walked_at] = 1
    return found
