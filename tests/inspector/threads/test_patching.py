"""Patching: a trace takes in what is late or has changed anywhere, and stands as if all had been drawn at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inspector.accounts.models import Channel
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.arriving import marking, noting
from inspector.threads.arriving.noting import Noted
from inspector.threads.models import Trace, TraceCarry, TraceChange
from inspector.threads.trees import patching, strands, tracing

from ..conftest import Cast, deliver, settle_all
from .test_lengthening import ACTS, STORIES, agree, nothing, read_in
from .test_traces import RANDOM, clowl, find, prose

pytestmark = pytest.mark.django_db


class Patched(list[str]):
    """The traces that were patched, in their order; `refused` are those that could not be, each with the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> Patched:
    """The traces that are patched, however small they are, and rather than lengthened."""
    found = Patched()
    patch = patching._patch

    def note(trace: Trace, end: TraceCarry, rows: Sequence[TraceCarry], noted: Sequence[Noted]) -> None:
        try:
            patch(trace, end, rows, noted)
        except Exception as error:
            # Where nothing is noted it is drawn only to be compared.
            found.refused += [str(error)] if noted else []
            raise
        found.append(trace.native_id)

    for room in (tracing, marking):
        monkeypatch.setattr(room, "SMALL", 0)
    monkeypatch.setattr(tracing, "NEAR", -1)
    monkeypatch.setattr(patching, "_patch", note)
    return found


def write_late_story(chance: random.Random, count: int) -> list[bytes]:
    """Messages in the order of their times: many at one instant, in few conversations, and answers go in no circle."""
    story = []
    for at in range(count):
        way = chance.random()
        parent = f"m{chance.randrange(at)}" if at and way < 0.6 else None
        if 0.6 <= way < 0.75:
            parent = f"lost{chance.randrange(3)}"
        elif 0.75 <= way < 0.82:
            # It answers one that is yet to come, and that answers none.
            parent = f"m{7 + at // 7 * 7}"
        if at % 7 == 0:
            parent = None
        act, talk, trace = (
            chance.choice(ACTS),
            f"c{chance.randrange(1 + at // 6)}",
            chance.choice([RANDOM, RANDOM, "t001"]),
        )
        name = f"lost{at}" if at in (0, 1, 2) and chance.random() < 0.7 else f"m{at}"
        if chance.random() < 0.2:
            said = {"conversation": talk, "trace": trace, "at": 1763715600 + at // 3}
            said |= {"id": name} if chance.random() < 0.5 else {}
            said |= {"from": chance.choice("abcdef")} if chance.random() < 0.8 else {}
            story.append(prose(f"Words {at // 9}.", **said | ({"parent": parent} if parent else {})))
        else:
            story.append(clowl(name, talk, trace=trace, parent=parent, act=act, at=at // 3))
    return story


def disorder(chance: random.Random, story: list[bytes]) -> list[bytes]:
    """A story as it comes: most of it in its order, and a few by so much late that they are near the front."""
    late = [0 if chance.random() < 0.7 else chance.randrange(len(story)) for _ in story]
    return [story[at] for at in sorted(range(len(story)), key=lambda at: (at + late[at], at))]


@pytest.mark.parametrize(("seed", "count"), STORIES)
def test_what_is_late_by_anything_stands_as_if_drawn_at_once(
    cast: Cast, patched: Patched, seed: int, count: int
) -> None:
    chance = random.Random(f"patched {seed}")
    story = disorder(chance, write_late_story(chance, count))
    at = 0
    while at < len(story):
        size = chance.choice([1, 1, 2, 5])
        deliver(cast, *story[at : at + size], name=f"{at}.log")
        settle_all(is_examined=False)
        at += size
        agree()
    settle_all()
    agree()
    assert len(patched) > count // 3 + 2 * len(patched.refused)


@pytest.mark.parametrize(("seed", "count"), STORIES)
def test_what_is_late_in_two_channels_or_withdrawn_stands_so_too(
    cast: Cast, patched: Patched, seed: int, count: int
) -> None:
    chance = random.Random(f"withdrawn {seed}")
    other = Channel.objects.create(workspace=cast.workspace, name="other")
    story = disorder(chance, write_late_story(chance, count))
    deliveries, at = [], 0
    while at < len(story):
        size = chance.choice([1, 2, 5])
        channel = other if chance.random() < 0.3 else None
        deliveries.append(deliver(cast, *story[at : at + size], name=f"{at}.log", channel=channel))
        if chance.random() < 0.1:
            withdrawn = deliveries.pop(chance.randrange(len(deliveries)))
            withdraw_delivery(membership=cast.owner, delivery=withdrawn, reason="a test")
        at += size
        settle_all(is_examined=False)
        agree()
    settle_all()
    agree()
    assert len(patched) > count // 6


def begin(cast: Cast, count: int = 12) -> None:
    deliver(cast, *(clowl(f"m{at}", f"c{at % 3}", trace=RANDOM, act="REQ", at=at * 10) for at in range(count)))
    settle_all()


def come(cast: Cast, *names: str, at: int = 15, parent: str | None = None) -> None:
    deliver(cast, *(clowl(name, "c1", trace=RANDOM, at=at, parent=parent) for name in names), name=f"{names[0]}.log")
    settle_all()


def test_what_is_late_near_the_front_is_patched_in(cast: Cast, patched: Patched) -> None:
    begin(cast)
    come(cast, "late", parent="m0")
    assert patched == [RANDOM]
    assert (find(RANDOM).message_count, find(RANDOM).open_count) == (13, 11)
    agree()


@pytest.mark.long(seconds=2)
def test_what_fills_a_ghost_takes_what_cites_it_along(cast: Cast, patched: Patched) -> None:
    begin(cast)
    come(cast, "n1", "n2", "n3", parent="lost", at=85)
    come(cast, "o1", parent="n2", at=95)
    assert find(RANDOM).missing_count == 1
    del patched[:]
    come(cast, "lost", at=5)
    assert patched == [RANDOM]
    assert find(RANDOM).missing_count == 0
    agree()


def test_what_came_before_everything_is_what_the_trace_is_about(cast: Cast, patched: Patched) -> None:
    begin(cast)
    assert find(RANDOM).subject == "m0"
    deliver(cast, clowl("first", "c9", trace=RANDOM, act="REQ", at=-10), name="first.log")
    settle_all()
    assert patched == [RANDOM]
    assert (find(RANDOM).subject, find(RANDOM).conversation_count) == ("first", 4)
    agree()


@pytest.mark.long(seconds=2)
def test_more_than_can_be_named_is_not_patched(cast: Cast, patched: Patched, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (noting, marking):
        monkeypatch.setattr(room, "MOST_NOTED", 4)
    begin(cast)
    come(cast, *(f"many{at}" for at in range(5)))
    assert (patched, patched.refused) == ([], [])
    agree()
    come(cast, "few1", "few2")
    assert patched == [RANDOM]
    agree()
    assert not TraceChange.objects.exists()


@pytest.mark.long(seconds=2)
def test_what_is_noted_time_and_again_comes_to_an_end(
    cast: Cast, patched: Patched, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in (noting, marking):
        monkeypatch.setattr(room, "MOST_NOTED", 4)
    begin(cast)
    for at in range(6):
        read_in(*(clowl(f"l{at}{part}", "c1", trace=RANDOM, at=15) for part in "ab"), cast=cast, name=f"l{at}.log")
    assert 4 < TraceChange.objects.filter(trace=find(RANDOM)).count() <= 8
    settle_all()
    assert (patched, patched.refused) == ([], [])
    assert find(RANDOM).message_count == 24
    agree()


@pytest.mark.long(seconds=2)
def test_nothing_is_patched_into_what_was_drawn_while_something_came(
    cast: Cast, patched: Patched, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(cast)
    TraceCarry.objects.all().delete()
    load = strands.load_strands

    def be_slow(traces: list[Trace]) -> dict[Any, strands.Strand]:
        found = load(traces)
        monkeypatch.setattr(tracing, "load_strands", load)
        read_in(clowl("between", "c1", trace=RANDOM, parent="m1", at=15), cast=cast, name="between.log")
        return found

    monkeypatch.setattr(tracing, "load_strands", be_slow)
    tracing.draw_traces(trace=find(RANDOM), fence=nothing, finish=nothing)
    settle_all()
    assert patched == []
    assert find(RANDOM).message_count == 13
    agree()
    come(cast, "late")
    assert patched == [RANDOM]
    agree()


def test_who_dies_while_drawing_leaves_nothing_to_be_patched(
    cast: Cast, patched: Patched, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(cast)
    read_in(clowl("early", "c1", trace=RANDOM, at=5), cast=cast, name="early.log")

    def die(*_: object) -> None:
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(tracing, "patch_trace", lambda *_: False)
        patch.setattr(tracing, "load_strands", die)
        with pytest.raises(InterruptedError):
            tracing.draw_traces(trace=find(RANDOM), fence=nothing, finish=nothing)
    read_in(clowl("late", "c1", trace=RANDOM, at=15), cast=cast, name="late.log")
    tracing.draw_traces(trace=find(RANDOM), fence=nothing, finish=nothing)
    assert (patched, patched.refused) == ([], [])
    settle_all()
    assert find(RANDOM).message_count == 14
    agree()


@pytest.mark.long(seconds=14)
def test_patching_takes_as_many_statements_whatever_was_drawn(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, before = [], 0
    for count in (600, 3000):
        deliver(cast, *(clowl(f"m{at}", "c", trace=RANDOM, at=at) for at in range(before, count)), name=f"{count}.log")
        settle_all()
        before = count
        read_in(clowl(f"late{count}", "c", trace=RANDOM, parent="m2", at=10), cast=cast, name=f"late{count}.log")
        with CaptureQueriesContext(connection) as caught:
            tracing.draw_traces(trace=find(RANDOM), fence=nothing, finish=nothing)
        counts.append(len(caught))
    assert counts[1] <= counts[0] + 4 <= 32, "the larger tree has more blocks"
    assert find(RANDOM).message_count == 3002
    agree()
