"""Grafting: what is appended to a tree gives the lines that drawing it whole gives, from the blocks that it touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.threads.trees.blocks import Entry, read_depths, read_lines, seal_block, write_depths, write_lines
from inspector.threads.trees.grafting import Grafted, GraftError, Shoot, Wanted, graft
from inspector.threads.trees.opened import Bounds, Packed
from inspector.threads.trees.outline import Knot, Line, draw_lines

ACTS = ("request", "query", "inform", "acknowledge", "done", "failure", "cancel", None)
Plain = tuple[bytes, int, int, int, int, int, int]


def write_plainly(lines: Sequence[Line]) -> list[Plain]:
    return [(line.id, line.kind, line.depth, line.start, line.end, line.outcome, line.severity) for line in lines]


class Memory:
    """A tree whose blocks are held in memory, and how many of them were read and written."""

    def __init__(self, lines: Sequence[Line], size: int) -> None:
        stretches = [lines[at : at + size] for at in range(0, len(lines), size)]
        blocks = [seal_block(write_depths([line.depth for line in each]), write_lines(each)) for each in stretches]
        self.entries: Sequence[Entry] = [block.entry for block in blocks]
        self._packed = {block.entry.digest: Packed(block.depths, block.lines) for block in blocks}
        self.latest = -1
        self.read: set[int] = set()
        self.written = 0

    def grow(self, shoots: Sequence[Shoot], new_groups: frozenset[bytes], bounds: Bounds) -> None:
        self.read, self.written = set(), 0
        steps = graft(entries=self.entries, latest=self.latest, shoots=shoots, new_groups=new_groups, bounds=bounds)
        wanted = next(steps)
        while True:
            try:
                wanted = steps.send(self._open(wanted))
            except StopIteration as ended:
                return self._keep(ended.value, bounds)

    def _open(self, wanted: Wanted) -> Mapping[int, Packed]:
        assert not self.read & set(wanted.numbers), "no block is asked for twice"
        found = {number: self._packed[self.entries[number].digest] for number in wanted.numbers}
        if wanted.names:
            names = wanted.names
            found = {number: each for number, each in found.items() if any(name in each.lines for name in names)}
        self.read |= found.keys()
        return found

    def _keep(self, grafted: Grafted, bounds: Bounds) -> None:
        self.written = len(grafted.blocks)
        self._packed |= {block.entry.digest: Packed(block.depths, block.lines) for block in grafted.blocks}
        assert all(block.entry.size <= bounds.most for block in grafted.blocks)
        self.entries, self.latest = grafted.entries, grafted.latest

    def read_plainly(self) -> list[Plain]:
        found: list[Plain] = []
        for entry in self.entries:
            depths, lines = self._packed[entry.digest]
            assert seal_block(depths, lines).entry == entry
            for depth, line in zip(read_depths(depths), read_lines(lines), strict=True):
                found.append((line.id, line.kind, depth, line.start, line.end, line.outcome, line.severity))
        return found


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[Knot], list[int]]:
    """The knots of a forest, of one conversation or of several, and after how many of them it is stored each time."""
    count = draw(st.integers(1, 60))
    chance = draw(st.randoms(use_true_random=False))
    is_grouped, reach = draw(st.booleans()), draw(st.sampled_from([1, 3, 100]))
    cuts = sorted(draw(st.sets(st.integers(0, count - 1), max_size=4)))
    knots = []
    for at in range(count):
        # Of what is stored together some answers stand before what they answer.
        last = next((cut for cut in cuts if cut > at), count)
        way = chance.random()
        parent = ghost = None
        if way < 0.7 and at:
            parent = chance.randrange(max(0, at - reach), at)
        elif way < 0.8:
            parent = chance.randrange(last)
        elif way < 0.9:
            ghost = bytes([chance.randrange(4)]) * 32
        if chance.random() < 0.03:
            ghost = b"both" * 8
        group = bytes([200 + chance.randrange(1 + at // 8)]) * 16 if is_grouped else b""
        knots.append(
            Knot(
                id=at.to_bytes(2) * 8,
                mark=at,
                at=at * 10 + chance.randrange(-30, 30),
                performative=chance.choice(ACTS),
                severity=chance.randrange(5),
                parent=parent,
                ghost=ghost,
                group=group,
            )
        )
    return knots, cuts


def make_shoots(knots: Sequence[Knot], start: int) -> list[Shoot]:
    return [
        Shoot(
            knot.id,
            knot.mark,
            knot.at,
            knot.performative,
            knot.severity,
            None if knot.parent is None else knots[knot.parent].id,
            knot.ghost,
            knot.group,
        )
        for knot in knots[start:]
    ]


def find_new_groups(knots: Sequence[Knot], start: int) -> frozenset[bytes]:
    return frozenset({knot.group for knot in knots[start:]} - {knot.group for knot in knots[:start]} - {b""})


@settings(max_examples=400, deadline=None)
@given(forest=forests(), size=st.integers(1, 9), most=st.integers(2, 9))
def test_what_grows_piece_by_piece_is_what_is_drawn_whole(
    forest: tuple[list[Knot], list[int]], size: int, most: int
) -> None:
    knots, cuts = forest
    bounds = Bounds(max(1, most // 4), most)
    start = cuts[0] if cuts else 0
    memory = Memory(list(draw_lines(knots[:start])), min(size, most))
    places = [line[0] for line in memory.read_plainly()]
    memory.latest = places.index(knots[start - 1].id) if start else -1
    for low, high in zip(cuts or [0], [*cuts[1:], len(knots)], strict=True):
        held = knots[:high]
        expected = write_plainly(list(draw_lines(held)))
        try:
            memory.grow(make_shoots(held, low), find_new_groups(held, low), bounds)
        except GraftError:
            drawn = {line[0] for line in write_plainly(list(draw_lines(knots[:low])))}
            lacking = {knot.group for knot in knots[:low]} - drawn
            assert lacking & {line[0] for line in expected}, "only what had no heading and has one now is refused"
            return
        assert memory.read_plainly() == expected
        assert expected[memory.latest][0] == held[-1].id


def test_what_a_new_conversation_misses_is_found_below_the_heading_of_another() -> None:
    """No heading is sought then, and the missing message stands in a block that holds none."""
    knots = [
        Knot(at.to_bytes(2) * 8, at, at, "request", 0, None, b"both" * 8, bytes([200 + (at == 9)]) * 16)
        for at in range(10)
    ]
    memory = Memory(list(draw_lines(knots[:9])), 1)
    memory.latest = 10
    memory.grow(make_shoots(knots, 9), find_new_groups(knots, 9), Bounds(1, 2))
    assert memory.read_plainly() == write_plainly(list(draw_lines(knots)))
