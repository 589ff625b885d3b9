"""Grafting: appended messages put into a stored tree, of which those blocks alone are opened that they touch. Pure.

What is appended comes after everything else in the timeline. So an answer is the last child of what it answers and a
top the last of its conversation: each stands right behind the last line below the one it hangs on. Beside the new lines
those change that have new answers (their outcome and end), and the headings of conversations (their times and
severity). The lines that come out are those that drawing the tree from all its messages gives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import NamedTuple

from .blocks import Block, Entry, find_line
from .opened import BOUNDS, Bounds, OpenedBlocks, Packed, Where
from .outline import Kind, Knot, Line, Outcome, cut_circles, draw_branch, prolong, sum_groups

# A tree of so few blocks is opened at once, and so few of a larger one are opened without searching them first.
_FEW = 3
# The line that a new one hangs on; None for the tree itself.
Anchor = tuple[bytes, Kind]
# A message by its place among the shoots, or a missing one by its key.
Branch = int | bytes


class Shoot(NamedTuple):
    """An appended message as its outline sees it: a `Knot` that names the message answered by its id.

    `parent` is 16 bytes: of a message of the tree, or of a shoot of the same growth, be it earlier or later.
    """

    id: bytes
    mark: int
    at: int
    performative: str | None
    severity: int
    parent: bytes | None
    ghost: bytes | None = None
    group: bytes = b""


class Wanted(NamedTuple):
    """The numbers of the blocks that a graft asks for; where ids are named, of those alone that hold one of them."""

    numbers: Sequence[int]
    names: frozenset[bytes] = frozenset()


class Grafted(NamedTuple):
    """The directory as it is now, the blocks that are new in it, and the place of the last message of the timeline.

    `answered` counts the requests of the tree that were open and are no more.
    """

    entries: Sequence[Entry]
    blocks: Sequence[Block]
    latest: int
    answered: int


class GraftError(Exception):
    """The tree does not hold what the shoots hang on, or what they change cannot be known from it."""


def graft(
    *,
    entries: Sequence[Entry],
    latest: int,
    shoots: Sequence[Shoot],
    new_groups: frozenset[bytes] = frozenset(),
    after: bytes | None = None,
    bounds: Bounds = BOUNDS,
) -> Generator[Wanted, Mapping[int, Packed], Grafted]:
    """Put shoots into a tree: yields which blocks it needs, is sent them by their numbers, and returns what changes.

    Args:
        entries: the directory of the tree.
        latest: the place of its last message.
        shoots: at least one, in the order of the timeline, and later in it than everything in the tree.
        new_groups: those groups of the shoots of which no message is in the tree.
        after: the id of its last message, where the caller knows it.
        bounds: how large a block may become.

    Raises:
        GraftError: it cannot be done; nothing is lost.
    """
    bunch = _gather(shoots)
    sought = {name for name, _ in bunch.list_sought(new_groups)}
    tree = OpenedBlocks(entries, sought | bunch.places.keys())
    ends = range(len(entries)) if len(entries) <= _FEW else sorted({tree.number_of(latest), len(entries) - 1})
    tree.open((yield Wanted(ends)))
    if after is not None and not tree.is_message(latest, after):
        raise GraftError("the tree ends with another message")
    yield from _locate(tree, bunch.list_sought(new_groups), is_grouped=bool(shoots[0].group))
    if any(tree.find(name, Kind.MESSAGE) for name in bunch.places):
        raise GraftError("a message stands in the tree already")
    growth = _attach(tree, bunch, new_groups)
    yield from _reach_ends(tree, growth)
    answered = _change_lines(tree, bunch.knots, growth)
    _add_lines(tree, bunch.knots, growth)
    cut = list(tree.cut(bounds))
    blocks = [block for _, block in cut if block is not None]
    latest = _find_latest(cut, shoots[-1].id)
    return Grafted([entry for entry, _ in cut], blocks, latest, answered)


class _Bunch(NamedTuple):
    """The shoots as knots, each with the place of its parent if that is one of them, and what they hang on else."""

    knots: Sequence[Knot]
    places: Mapping[bytes, int]
    # Of a shoot that answers a message of the tree: the id of that.
    outside: Mapping[int, bytes]

    def list_sought(self, new_groups: frozenset[bytes]) -> list[Anchor]:
        """The lines of the tree that these shoots hang on or change, if it has them."""
        found: dict[Anchor, None] = {}
        for at, knot in enumerate(self.knots):
            if knot.ghost is not None:
                found[knot.ghost[:16], Kind.GHOST] = None
            elif at in self.outside:
                found[self.outside[at], Kind.MESSAGE] = None
            if knot.group and knot.group not in new_groups:
                found[knot.group, Kind.CONVERSATION] = None
        return list(found)


def _gather(shoots: Sequence[Shoot]) -> _Bunch:
    places = {shoot.id: at for at, shoot in enumerate(shoots)}
    if len(places) < len(shoots):
        raise GraftError("a message is appended twice")
    if len({bool(shoot.group) for shoot in shoots}) > 1:
        raise GraftError("some messages name their conversation and others do not")
    # What stands in the tree answers nothing that is appended: circles are of shoots alone.
    parents = cut_circles([None if shoot.parent is None else places.get(shoot.parent) for shoot in shoots])
    knots = [
        Knot(shoot.id, shoot.mark, shoot.at, shoot.performative, shoot.severity, parent, shoot.ghost, shoot.group)
        for shoot, parent in zip(shoots, parents, strict=True)
    ]
    outside = {at: shoot.parent for at, shoot in enumerate(shoots) if shoot.parent and shoot.parent not in places}
    return _Bunch(knots, places, outside)


class _Growth(NamedTuple):
    """What hangs on what: on shoots, on missing messages that are new, on lines of the tree, and on nothing."""

    children: Mapping[int, Sequence[int]]
    below_ghosts: Mapping[bytes, Sequence[int]]
    hanging: Mapping[Anchor, Sequence[Branch]]
    # By group.
    tops: Mapping[bytes, Sequence[Branch]]

    def draw(self, branches: Sequence[Branch], depth: int, knots: Sequence[Knot]) -> list[Line]:
        """The lines of these branches, the first of them at this depth."""
        return [
            line for branch in branches for line in draw_branch(branch, depth, knots, self.children, self.below_ghosts)
        ]


def _locate(
    tree: OpenedBlocks, sought: Sequence[Anchor], *, is_grouped: bool
) -> Generator[Wanted, Mapping[int, Packed], None]:
    """Open the blocks in which these lines stand; where messages stand in groups, the tops are one deeper."""
    missing = frozenset(name for name, kind in sought if kind is Kind.MESSAGE and not tree.find(name, kind))
    if missing:
        tree.open((yield _search(tree.list_closed(), missing)))
    # Headings and missing messages stand at the top: most blocks are too deep for them.
    shallow = [(name, kind) for name, kind in sought if kind is not Kind.MESSAGE and not tree.find(name, kind)]
    if shallow:
        closed = tree.list_closed(int(is_grouped))
        tree.open((yield _search(closed, frozenset(name for name, _ in shallow))))


def _search(numbers: Sequence[int], names: frozenset[bytes]) -> Wanted:
    return Wanted(numbers, names if len(numbers) > _FEW else frozenset())


def _attach(tree: OpenedBlocks, bunch: _Bunch, new_groups: frozenset[bytes]) -> _Growth:
    children: dict[int, list[int]] = defaultdict(list)
    below_ghosts: dict[bytes, list[int]] = defaultdict(list)
    hanging: dict[Anchor, list[Branch]] = defaultdict(list)
    tops: dict[bytes, list[Branch]] = defaultdict(list)
    for at, knot in enumerate(bunch.knots):
        if knot.ghost is not None:
            ghost = (knot.ghost[:16], Kind.GHOST)
            if tree.find(*ghost):
                hanging[ghost].append(at)
                continue
            if knot.ghost not in below_ghosts:
                tops[knot.group].append(knot.ghost)
            below_ghosts[knot.ghost].append(at)
        elif at in bunch.outside:
            if not tree.find(bunch.outside[at], Kind.MESSAGE):
                raise GraftError("a message answers one that is not in the tree")
            hanging[bunch.outside[at], Kind.MESSAGE].append(at)
        elif knot.parent is not None:
            children[knot.parent].append(at)
        else:
            tops[knot.group].append(at)
    new_tops = {}
    for group, branches in tops.items():
        heading = (group, Kind.CONVERSATION)
        if group and group not in new_groups:
            # Where its messages hang below others it has no heading, and what they add up to is not in the tree.
            if not tree.find(*heading):
                raise GraftError("a conversation has no heading in the tree")
            hanging[heading].extend(branches)
        else:
            new_tops[group] = branches
    return _Growth(children, below_ghosts, hanging, new_tops)


def _reach_ends(tree: OpenedBlocks, growth: _Growth) -> Generator[Wanted, Mapping[int, Packed], None]:
    """Open the blocks to which something is added."""
    numbers = {tree.find_end(where, tree.read(where)[0])[1] for where in _list_places(tree, growth.hanging)}
    closed = sorted(number for number in numbers if not tree.is_open(number))
    if closed:
        tree.open((yield Wanted(closed)))


def _list_places(tree: OpenedBlocks, anchors: Iterable[Anchor]) -> list[Where]:
    return [where for where in (tree.find(*anchor) for anchor in anchors) if where is not None]


def _change_lines(tree: OpenedBlocks, knots: Sequence[Knot], growth: _Growth) -> int:
    """Say of what has new answers how it was answered, and of the conversations from when to when they go.

    Returns:
        how many requests were open and are no more.
    """
    answered = 0
    for anchor, branches in growth.hanging.items():
        where = tree.find(*anchor)
        if where is None or anchor[1] is not Kind.MESSAGE:
            continue
        _, line = tree.read(where)
        answers = [knots[at] for at in branches if isinstance(at, int)]
        outcome, end = prolong(line.outcome, line.start, line.end, answers)
        if (outcome, end) != (line.outcome, line.end):
            tree.change(where, line._replace(outcome=outcome, end=end))
            answered += line.outcome is Outcome.OPEN
    for group, heading in sum_groups(knots).items():
        where = tree.find(group, Kind.CONVERSATION)
        if where is None:
            continue
        _, line = tree.read(where)
        prolonged = line._replace(
            start=min(line.start, heading.start),
            end=max(line.end, heading.end),
            severity=max(line.severity, heading.severity),
        )
        if prolonged != line:
            tree.change(where, prolonged)
    return answered


def _add_lines(tree: OpenedBlocks, knots: Sequence[Knot], growth: _Growth) -> None:
    added: list[tuple[int, int, list[Line]]] = []
    for anchor, branches in growth.hanging.items():
        where = tree.find(*anchor)
        if where is not None:
            depth = tree.read(where)[0]
            added.append((tree.find_end(where, depth)[0], depth + 1, growth.draw(branches, depth + 1, knots)))
    headings = sum_groups(knots)
    for group, branches in growth.tops.items():
        lines = [headings[group], *growth.draw(branches, 1, knots)] if group else growth.draw(branches, 0, knots)
        added.append((tree.count, 0, lines))
    # Several lines may end at the same place: what hangs on the deepest of them comes first.
    for place, _, lines in sorted(added, key=lambda each: (each[0], -each[1])):
        tree.add(place, lines)


def _find_latest(cut: Sequence[tuple[Entry, Block | None]], name: bytes) -> int:
    """The place of this message, which stands in one of the new blocks."""
    start = 0
    for entry, block in cut:
        if block is not None:
            within = find_line(block.lines, name, Kind.MESSAGE)
            if within is not None:
                return start + within
        start += entry.size
    raise GraftError("the last message was not put in")
