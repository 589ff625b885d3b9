"""Trees: drawn without recursion, stored in blocks that a change leaves alone, read in windows folded as one likes."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inspector.threads.models import Conversation, OutlineBlock
from inspector.threads.trees.blocks import cut_blocks, read_lines
from inspector.threads.trees.outline import Kind, Knot, Line, Outcome, cut_circles, draw_lines
from inspector.threads.trees.stored import Tree, write_trees
from inspector.threads.trees.windows import Fold, StoredTree, load_tree

from ..conftest import Cast

COUNT = 5000
Parents = Callable[[int], int | None]


def chain(at: int) -> int | None:
    return at - 1 if at else None


def star(at: int) -> int | None:
    return 0 if at else None


def scattered(at: int) -> int | None:
    # Some hundred trees, deep and shallow ones, their rows far apart.
    chance = random.Random(at)
    return None if chance.random() < 0.05 else chance.randrange(max(0, at - 400), at) if at else None


SHAPES: dict[str, Parents] = {"chain": chain, "star": star, "random": scattered}


def make_knots(parent_of: Parents, count: int = COUNT) -> list[Knot]:
    return [
        Knot(
            id=uuid.UUID(int=at + 1).bytes,
            mark=crc32(at.to_bytes(4)),
            at=at * 1_000_000,
            performative=random.Random(at).choice(["request", "inform", "done", "failure"]),
            severity=at % 5,
            parent=parent_of(at),
        )
        for at in range(count)
    ]


def store(cast: Cast, knots: Sequence[Knot]) -> StoredTree:
    conversation = Conversation.objects.create(workspace=cast.workspace, channel=cast.channel, key=uuid.uuid4().bytes)
    write_trees(trees=[Tree(conversation.pk, knots)], owner="conversation", workspace_id=cast.workspace.pk)
    tree = load_tree(conversation)
    assert tree is not None
    return tree


def fold_plainly(lines: Sequence[Line], fold: Fold) -> list[tuple[int, int]]:
    """What is shown, worked out the slow way: (place, how much below it is hidden) of every row."""
    shown: list[tuple[int, int]] = []
    closed: int | None = None
    for place, line in enumerate(lines):
        if closed is not None and line.depth > closed:
            shown[-1] = (shown[-1][0], shown[-1][1] + 1)
            continue
        closed = None if fold.is_open(place, line.depth) else line.depth
        shown.append((place, 0))
    return shown


def read_windows(tree: StoredTree, fold: Fold, *, limit: int) -> Iterator[tuple[int, int]]:
    at: int | None = 0
    while at is not None:
        window = tree.read_window(at=at, limit=limit, fold=fold)
        assert window.rows, "a window must get on"
        yield from ((row.place, row.hidden) for row in window.rows)
        at = window.next


FOLDS = [
    Fold(),
    Fold(level=0),
    Fold(level=1),
    Fold(level=3, toggled=frozenset({0, 7, 1300})),
    Fold(toggled=frozenset({3, 900, 2500})),
    Fold(level=0, toggled=frozenset(range(12))),
]


@pytest.mark.django_db
@pytest.mark.parametrize("shape", SHAPES)
def test_windows_put_together_are_the_whole_tree(cast: Cast, shape: str) -> None:
    knots = make_knots(SHAPES[shape])
    tree = store(cast, knots)
    lines = list(draw_lines(knots))
    assert sorted(line.id for line in lines) == sorted(knot.id for knot in knots)
    for fold in FOLDS:
        plain = fold_plainly(lines, fold)
        assert list(read_windows(tree, fold, limit=170)) == plain
        for place, _ in plain[170 :: max(170, len(plain) // 20)]:
            window = tree.read_window(at=place, limit=170, fold=fold)
            assert window.previous is not None
            assert window.previous < place
            assert window.previous in dict(plain), "the window before begins at a row that is shown"
        for place in range(0, COUNT, 701):
            assert tree.find_shown(place, fold) == max(shown for shown, _ in plain if shown <= place)
    assert [(depth, line.id) for depth, line in tree.read_all()] == [(line.depth, line.id) for line in lines]


@pytest.mark.django_db
@pytest.mark.parametrize("shape", SHAPES)
def test_the_critical_path_is_what_the_latest_message_answers(cast: Cast, shape: str) -> None:
    knots = make_knots(SHAPES[shape], 1500)
    tree = store(cast, knots)
    expected, at = set(), 1499 if knots else None
    while at is not None:
        expected.add(knots[at].id)
        at = knots[at].parent
    found, start = set(), 0
    while start is not None:
        window = tree.read_window(at=start, limit=100)
        found |= {row.line.id for row in window.rows if row.is_critical}
        start = window.next  # type: ignore[assignment]
    assert found == expected
    tops = tree.read_window(fold=Fold(level=0), limit=2000).rows
    assert [row.line.id for row in tops if row.is_critical] == [knot.id for knot in knots if knot.id in expected][:1]


@pytest.mark.django_db
def test_a_window_costs_the_same_statements_whatever_the_size(cast: Cast) -> None:
    counts = set()
    for count in (300, 5000):
        tree = store(cast, make_knots(scattered, count))
        for fold in (Fold(), Fold(level=0)):
            tree = StoredTree(tree.outline_id, tree.count, tree.latest, tree.entries)
            with CaptureQueriesContext(
                connection,
            ) as caught:
                tree.read_window(limit=200, fold=fold)
            counts.add(len(caught))
    assert max(counts) <= 3


@pytest.mark.django_db
@pytest.mark.parametrize("where", ["front", "end"])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_late_message_writes_the_blocks_around_it_alone(cast: Cast, shape: str, where: str) -> None:
    knots = make_knots(SHAPES[shape], 20_000)
    tree = store(cast, knots)
    conversation = Conversation.objects.get(tree__pk=tree.outline_id)
    late = Knot(uuid.UUID(int=1 << 100).bytes, 12345, 5, "inform", 0, 5)
    at = 6 if where == "front" else len(knots)
    moved = [
        knot._replace(parent=knot.parent + 1 if knot.parent is not None and knot.parent >= at else knot.parent)
        for knot in knots
    ]
    moved.insert(at, late._replace(parent=at - 1 if shape == "chain" else 0))
    blocks = OutlineBlock.objects.filter(outline=tree.outline_id)
    before = {bytes(digest) for digest in blocks.values_list("digest", flat=True)}
    written = write_trees(
        trees=[Tree(conversation.pk, moved)], owner="conversation", workspace_id=conversation.workspace_id
    )
    after = {bytes(digest) for digest in blocks.values_list("digest", flat=True)}
    assert 1 <= written <= 4 < len(before), "only the blocks around it"
    assert len(after - before) == written
    tree = StoredTree(tree.outline_id, tree.count, tree.latest, tree.entries)
    assert len(list(tree.read_all())) == len(knots), "who read the directory before still finds its blocks"
    write_trees(trees=[Tree(conversation.pk, knots)], owner="conversation", workspace_id=conversation.workspace_id)
    write_trees(trees=[Tree(conversation.pk, moved)], owner="conversation", workspace_id=conversation.workspace_id)
    assert blocks.count() == len(before | after), "of earlier trees the last one is kept"
    again = load_tree(conversation)
    assert again is not None
    assert [line.id for _, line in again.read_all()] == [line.id for line in draw_lines(moved)]


def test_circles_of_parents_are_cut_at_their_first_and_nothing_is_lost() -> None:
    assert cut_circles([2, 0, 1, 3, None, 3]) == [None, 0, 1, None, None, 3]
    knots = [knot._replace(parent=parent) for knot, parent in zip(make_knots(star, 4), [1, 2, 0, 3], strict=True)]
    assert len(list(draw_lines(knots))) == 4


def test_a_request_lasts_until_what_ends_it() -> None:
    acts = ["request", "acknowledge", "progress", "done", "inform"]
    knots = [knot._replace(performative=act) for knot, act in zip(make_knots(star, 5), acts, strict=True)]
    first = next(draw_lines(knots))
    assert (first.start, first.end, first.outcome) == (0, 3_000_000, Outcome.DONE)
    assert next(draw_lines(knots[:3])).outcome is Outcome.ANSWERED
    assert next(draw_lines(knots[:1])).outcome is Outcome.OPEN


def test_a_block_gives_back_what_was_put_in() -> None:
    lines = [*draw_lines(make_knots(scattered, 3000)), Line(b"g" * 16, Kind.GHOST, 7, -5, 2**60, Outcome.NONE, 4, 1)]
    found = [line for block in cut_blocks(lines) for line in read_lines(block.lines)]
    assert [(line.id, line.kind, line.start, line.end, line.outcome, line.severity) for line in lines] == [
        tuple(line) for line in found
    ]
