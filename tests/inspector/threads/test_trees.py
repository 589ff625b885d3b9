"""Trees: walked in windows from any row, folded as one likes, equal to what is worked out plainly."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inspector.intake.models import Record
from inspector.threads import lines as threads_lines
from inspector.threads import trees
from inspector.threads.keys import count_microseconds
from inspector.threads.lines import Fold, Outcome
from inspector.threads.models import Conversation, Message
from inspector.threads.trees import Place, Tree, read_place
from tests.lanes import begin_with

from ..conftest import Cast, take_in
from .plain_trees import Knot, cut_circles, draw, find_outcome, fold, read_lines

pytestmark = pytest.mark.django_db

COUNT = 1200
START = datetime(2026, 11, 21, 9, tzinfo=UTC)
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
            id=uuid.UUID(int=at + 1),
            at=count_microseconds(START + timedelta(seconds=at)),
            performative=random.Random(at).choice(["request", "inform", "done", "failure"]),
            severity=at % 5,
            parent=parent_of(at),
        )
        for at in range(count)
    ]


def store(cast: Cast, knots: Sequence[Knot]) -> Tree:
    """A conversation of copies of one message, placed and hung as the knots say."""
    Record.objects.all().delete()
    take_in(cast, b"Hello.\n")
    model = Message.objects.get()
    conversation = Conversation.objects.get(pk=model.conversation_id)
    for at, knot in enumerate(knots):
        model.pk, model.part, model.order_index = knot.id, at + 2, at
        model.order_time, model.place = START + timedelta(seconds=at), at.to_bytes(40)
        model.performative, model.severity = knot.performative, knot.severity
        model.above = conversation.pk if knot.parent is None else knots[knot.parent].id
        knots_made.append(Message(**{field.attname: getattr(model, field.attname) for field in Message._meta.fields}))
    Message.objects.all().delete()
    Message.objects.bulk_create(knots_made)
    knots_made.clear()
    Conversation.objects.update(message_count=len(knots), first_at=START, last_at=START + timedelta(seconds=len(knots)))
    conversation.refresh_from_db()
    return Tree(conversation)


knots_made: list[Message] = []


def read_windows(tree: Tree, by: Fold, *, limit: int) -> Iterator[tuple[uuid.UUID, int]]:
    at: Place | None = None
    while True:
        window = tree.read_window(at=at, limit=limit, fold=by)
        assert window.rows or window.next or at, "a window must get on"
        yield from ((row.line.id, row.hidden) for row in window.rows)
        if window.next is None:
            return
        at = read_place(window.next.write())
        assert at == window.next


def name(at: int) -> uuid.UUID:
    return uuid.UUID(int=at + 1)


FOLDS = [
    Fold(),
    Fold(level=0),
    Fold(level=1),
    Fold(level=3, toggled=frozenset(map(name, (0, 7, 1100)))),
    Fold(toggled=frozenset(map(name, (3, 500, 900)))),
    Fold(level=0, toggled=frozenset(map(name, range(12)))),
]


@pytest.mark.parametrize("shape", begin_with(1, ["random", "chain", "star"], seconds=7))
def test_windows_put_together_are_the_whole_tree(cast: Cast, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    monkeypatch.setattr(trees, "MIN_BELOW", COUNT)
    monkeypatch.setattr(trees, "MAX_BELOW", COUNT)
    knots = make_knots(SHAPES[shape])
    tree = store(cast, knots)
    lines = draw(knots)
    assert list(read_lines(tree)) == lines
    for by in FOLDS:
        plain = list(fold(lines, by.is_open))
        assert list(read_windows(tree, by, limit=170)) == plain
        ids = [line for line, _ in plain]
        for at in range(1, len(plain), max(100, len(plain) // 7)):
            window = tree.read_window(at=Place(ids[at]), limit=30, fold=by)
            assert [row.line.id for row in window.rows] == ids[at : at + 30]
            assert window.previous is not None
            assert window.previous.line == ids[max(0, at - 30)]
        for _, line in lines[::97]:
            shown = tree.read_window(at=Place(line.id), limit=1, fold=by).rows[0].line.id
            path = [step.id for step in tree.read_path(line.id)]
            assert shown == next(
                step for step in path if step in ids and (step == line.id or not _goes_on(step, path, ids))
            )


def _goes_on(step: uuid.UUID, path: list[uuid.UUID], shown: list[uuid.UUID]) -> bool:
    """Whether what follows on the way to a line is shown too."""
    return path[path.index(step) + 1] in shown


@pytest.mark.parametrize("shape", SHAPES)
def test_a_climb_that_is_stopped_is_gone_on_with(cast: Cast, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    monkeypatch.setattr(threads_lines, "MAX_CLIMB", 2)
    knots = make_knots(SHAPES[shape], 300)
    tree = store(cast, knots)
    found = list(read_windows(tree, Fold(), limit=40))
    assert [line for line, _ in found] == [line.id for _, line in draw(knots)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_critical_path_is_what_the_latest_message_answers(cast: Cast, shape: str) -> None:
    knots = make_knots(SHAPES[shape], 700)
    tree = store(cast, knots)
    expected, at = set(), 699 if knots else None
    while at is not None:
        expected.add(knots[at].id)
        at = knots[at].parent
    assert {row.line.id for row in tree.read_window(limit=1000).rows if row.is_critical} == expected
    tops = tree.read_window(fold=Fold(level=0), limit=1000).rows
    assert [row.line.id for row in tops if row.is_critical] == [knot.id for knot in knots if knot.id in expected][:1]


def test_a_window_costs_the_same_statements_whatever_the_size(cast: Cast) -> None:
    counts = set()
    for count in (300, COUNT):
        tree = store(cast, make_knots(scattered, count))
        for by in (Fold(), Fold(level=0)):
            with CaptureQueriesContext(connection) as caught:
                tree.read_window(limit=200, fold=by)
            counts.add(len(caught) - bool(by.level is not None))
    assert len(counts) == 1
    assert max(counts) <= 4


def test_of_very_many_rows_below_it_is_said_that_there_are_more(cast: Cast) -> None:
    tree = store(cast, make_knots(star))
    row = tree.read_window(fold=Fold(level=0)).rows[0]
    assert (row.hidden, row.is_more) == (trees.MAX_BELOW, True)
    assert sum(band.messages for band in tree.list_bands()) == COUNT


@pytest.mark.parametrize("text", ["", "x", "after.", "0", f"{'0' * 32}.x", f"{'0' * 32}.-1", f"{'0' * 31}"])
def test_what_is_no_place_is_none(text: str) -> None:
    assert read_place(text) is None


def test_circles_of_parents_are_cut_at_their_first_and_nothing_is_lost() -> None:
    assert cut_circles([2, 0, 1, 3, None, 3]) == [None, 0, 1, None, None, 3]
    knots = [knot._replace(parent=parent) for knot, parent in zip(make_knots(star, 4), [1, 2, 0, 3], strict=True)]
    assert len(draw(knots)) == 4


def test_a_request_lasts_until_what_ends_it() -> None:
    acts = ["request", "acknowledge", "progress", "done", "inform"]
    first, *answers = [knot._replace(performative=act) for knot, act in zip(make_knots(star, 5), acts, strict=True)]
    assert find_outcome(first, answers) == (Outcome.DONE, first.at + 3_000_000)
    assert find_outcome(first, answers[:2]) == (Outcome.ANSWERED, first.at + 2_000_000)
    assert find_outcome(first, ()) == (Outcome.OPEN, first.at)
