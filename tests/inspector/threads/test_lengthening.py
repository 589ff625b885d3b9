"""Lengthening: a trace takes in what is appended to it, and stands as if all of it had been drawn at once."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inspector import pipeline
from inspector.accounts.models import Channel
from inspector.intake.models import Job
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads.models import Message, MessageQuerySet, Outline, Trace, TraceCarry
from inspector.threads.trees import lengthening, points, strands, tracing
from inspector.threads.trees.blocks import read_directory
from inspector.threads.trees.outline import draw_lines
from inspector.threads.trees.windows import StoredTree, load_tree
from tests.lanes import begin_with

from ..conftest import Cast, deliver, settle_all
from .test_growing import read
from .test_traces import RANDOM, clowl, find, prose

pytestmark = pytest.mark.django_db

# Of random stories; more of them with the variable.
SEEDS = int(os.environ.get("SEEDS", "2"))
STORIES = begin_with(1, [(0, 16), *((seed, 60) for seed in range(SEEDS))], seconds=40)
ACTS = ("REQ", "INF", "ACK", "DONE", "FAIL", "QRY")


def nothing() -> None:
    """A fence and an end for work that nobody else does."""


class Lengthened(list[str]):
    """The traces that were lengthened, in their order; `back` are those of which something was late or had changed."""

    def __init__(self) -> None:
        super().__init__()
        self.back: list[str] = []


@pytest.fixture
def lengthened(monkeypatch: pytest.MonkeyPatch) -> Lengthened:
    """The traces that are lengthened, however small they are."""
    found = Lengthened()
    lengthen = lengthening._lengthen

    def note(trace: Trace, *rest: Any) -> None:
        lengthen(trace, *rest)
        found.append(trace.native_id)
        if trace.fresh_at is not None and trace.last_at is not None and trace.fresh_at <= trace.last_at:
            found.back.append(trace.native_id)

    monkeypatch.setattr(tracing, "SMALL", 0)
    monkeypatch.setattr(lengthening, "_lengthen", note)
    return found


def picture() -> dict[Any, Any]:
    told = ("id", "generation", "settled_generation", "whole_generation", "fresh_at", "settled_at", "digest")
    columns = [column.attname for column in Trace._meta.fields if column.name not in told]
    return {
        trace.pk: (
            {name: getattr(trace, name) for name in columns},
            bytes(trace.digest or b"").hex(),
            read(trace) if Outline.objects.filter(trace=trace).exists() else [],
            Outline.objects.filter(trace=trace).values_list("count", "latest").first(),
        )
        for trace in Trace.objects.filter(last_at__isnull=False)
    }


def draw_whole() -> None:
    """Draw every trace as if none had ever been drawn."""
    TraceCarry.objects.all().delete()
    Outline.objects.filter(trace__isnull=False).delete()
    for trace in Trace.objects.all():
        tracing.draw_traces(trace=trace, fence=nothing, finish=nothing)


def agree() -> None:
    """What stands is what is drawn of everything, and so is what is carried; every point tells what stands up to it."""
    standing, ends = picture(), list_ends()
    for row in TraceCarry.objects.all():
        check_point(row)
    with transaction.atomic():
        draw_whole()
        assert standing == picture()
        anew = list_ends()
        assert ends == {pk: anew[pk] for pk in ends}
        transaction.set_rollback(True)


def list_ends() -> dict[Any, bytes]:
    """What is carried over the end of each trace."""
    return {row.trace_id: bytes(row.data) for row in TraceCarry.objects.order_by("last_at")}


def check_point(row: TraceCarry) -> None:
    trace, point = row.trace, points.read_point(row)
    strand = strands.load_strands([trace], until=row.last_at)[trace.pk]
    said = tracing._sum_up({trace.pk: strand})[trace.pk]
    assert (row.generation, row.message_count) == (trace.settled_generation, said.message_count)
    assert point.said._replace(agents=(), dialects=()) == said._replace(agents=(), dialects=())
    assert [list(point.said.agents), list(point.said.dialects)] == [list(said.agents), list(said.dialects)]
    entries = read_directory(point.base.directory)
    tree = StoredTree(Outline.objects.get(trace=trace).pk, row.message_count, point.base.latest, entries)
    drawn = list(draw_lines(strand.knots))
    assert [(line.id, line.kind, depth, *line[2:]) for depth, line in tree.read_all()] == [line[:-1] for line in drawn]
    assert drawn[point.base.latest].id == strand.knots[-1].id == point.carried.last


def write_story(chance: random.Random, count: int) -> list[bytes]:
    """Messages in the order of their times: in several conversations and traces, with ghosts and answers all over."""
    story = []
    for at in range(count):
        way = chance.random()
        parent = f"m{chance.randrange(at)}" if at and way < 0.6 else None
        if 0.6 <= way < 0.75:
            parent = f"lost{chance.randrange(3)}"
        elif 0.75 <= way < 0.78:
            # It answers one that is yet to come.
            parent = f"m{at + chance.randrange(1, 4)}"
        trace = chance.choice([RANDOM, RANDOM, RANDOM, "t001"])
        act, talk = chance.choice(ACTS), f"c{chance.randrange(1 + at // 4)}"
        # Some ids are borne by messages of several conversations: none of them is taken for the parent.
        name = f"m{chance.randrange(at)}" if at and chance.random() < 0.06 else f"m{at}"
        if chance.random() < 0.15:
            said = {"id": name, "conversation": talk, "trace": trace, "at": 1763715600 + at * 3}
            story.append(prose(f"Words {at}.", **said | ({"parent": parent} if parent else {})))
        else:
            story.append(clowl(name, talk, trace=trace, parent=parent, act=act, at=at * 3))
    return story


@pytest.mark.parametrize("seed", begin_with(1, range(SEEDS), seconds=12))
def test_what_is_appended_piece_by_piece_stands_as_if_drawn_at_once(
    cast: Cast, lengthened: Lengthened, seed: int
) -> None:
    chance = random.Random(seed)
    story = write_story(chance, 36)
    at = 0
    while at < len(story):
        size = chance.randint(1, 6)
        deliver(cast, *story[at : at + size], name=f"{at}.log")
        settle_all(is_examined=False)
        at += size
        if chance.random() < 0.5:
            agree()
    settle_all()
    agree()
    assert lengthened, "some of them were lengthened"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points after few messages already."""
    monkeypatch.setattr(points, "NEAREST", 2)
    monkeypatch.setattr(points, "FARTHEST", 40)
    monkeypatch.setattr(tracing, "FARTHEST", 40)
    monkeypatch.setattr(lengthening, "SLACK", 2)


def shuffle(chance: random.Random, story: list[bytes]) -> list[bytes]:
    """A story as it comes: most of it in its order, some by a little late, and a few by much."""
    late = [chance.choice([0, 0, 0, chance.randrange(8), chance.randrange(8), chance.randrange(30)]) for _ in story]
    return [story[at] for at in sorted(range(len(story)), key=lambda at: (at + late[at], at))]


@pytest.mark.parametrize(("seed", "count"), STORIES)
def test_what_is_late_by_a_little_or_by_much_stands_as_if_drawn_at_once(
    cast: Cast, lengthened: Lengthened, few: None, seed: int, count: int
) -> None:
    chance = random.Random(f"late {seed}")
    story = shuffle(chance, write_story(chance, count))
    at = 0
    while at < len(story):
        size = chance.choice([1, 1, 2, 5])
        deliver(cast, *story[at : at + size], name=f"{at}.log")
        settle_all(is_examined=False)
        at += size
        agree()
    settle_all()
    agree()
    assert len(lengthened.back) > count // 12, "many of them were gone back in"
    assert len(lengthened) > len(lengthened.back)


@pytest.mark.parametrize("seed", begin_with(1, range(SEEDS), seconds=12))
def test_what_comes_late_or_is_withdrawn_draws_a_trace_whole(cast: Cast, lengthened: Lengthened, seed: int) -> None:
    chance = random.Random(seed)
    other = Channel.objects.create(workspace=cast.workspace, name="other")
    story = write_story(chance, 30)
    pieces = [story[at : at + 3] for at in range(0, len(story), 3)]
    # The second half comes out of order, and some of it in another channel.
    pieces[5:] = chance.sample(pieces[5:], 5)
    deliveries = []
    for at, piece in enumerate(pieces):
        channel = other if at % 4 == 3 else None
        deliveries.append(deliver(cast, *piece, name=f"{at}.log", channel=channel))
        if at == 6:
            withdraw_delivery(membership=cast.owner, delivery=deliveries[2], reason="a test")
        if at == 8:
            take_back(membership=cast.owner, delivery=deliveries[2], reason="a test")
        settle_all()
    agree()
    assert lengthened, "the first half was lengthened"


def read_in(*pieces: bytes, cast: Cast, name: str) -> None:
    """Take messages in and settle them, and leave their traces to be drawn."""
    deliver(cast, *pieces, name=name)
    for kind in (Job.Kind.INGEST, Job.Kind.SETTLE):
        Job.objects.filter(kind=kind).update(due_at=timezone.now())
        pipeline.run_due(seconds=60, only=(kind,))


@pytest.mark.parametrize("at", [5, 500], ids=["earlier", "later"])
def test_what_comes_while_a_trace_is_drawn_is_not_lost(
    cast: Cast, lengthened: Lengthened, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    deliver(cast, *(clowl(f"m{number}", "c", trace=RANDOM, at=number * 10) for number in range(8)))
    settle_all()
    TraceCarry.objects.all().delete()
    load = strands.load_strands

    def be_slow(traces: list[Trace]) -> dict[Any, strands.Strand]:
        found = load(traces)
        monkeypatch.setattr(tracing, "load_strands", load)
        read_in(clowl("between", "c", trace=RANDOM, parent="m2", at=at), cast=cast, name="between.log")
        return found

    monkeypatch.setattr(tracing, "load_strands", be_slow)
    tracing.draw_traces(trace=find(RANDOM), fence=nothing, finish=nothing)
    assert find(RANDOM).message_count == 8
    del lengthened[:]
    settle_all()
    assert find(RANDOM).message_count == 9
    assert lengthened == ([RANDOM] if at == 500 else [])
    agree()


def test_who_dies_while_drawing_leaves_a_trace_to_be_drawn_whole(
    cast: Cast, lengthened: Lengthened, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(cast, *(clowl(f"m{number}", "c", trace=RANDOM, at=number * 10) for number in range(8)))
    settle_all()
    read_in(clowl("early", "c", trace=RANDOM, at=5), cast=cast, name="early.log")

    def die(*_: object) -> None:
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(tracing, "load_strands", die)
        with pytest.raises(InterruptedError):
            tracing.draw_traces(trace=find(RANDOM), fence=nothing, finish=nothing)
    read_in(clowl("late", "c", trace=RANDOM, at=900), cast=cast, name="late.log")
    settle_all()
    assert find(RANDOM).message_count == 10
    assert lengthened == []
    agree()


@pytest.mark.long(seconds=3)
def test_a_channel_that_joins_others_draws_both_traces_whole(cast: Cast, lengthened: Lengthened) -> None:
    other = Channel.objects.create(workspace=cast.workspace, name="other")
    for at in range(3):
        deliver(cast, clowl(f"w{at}", "c", trace="t001", at=at), name=f"w{at}.log")
        said = {"conversation": "c", "trace": "t001", "at": 1763715600 + at}
        deliver(cast, prose(f"Words {at}.", id=f"p{at}", **said), name=f"p{at}.log", channel=other)
        settle_all()
    assert (find("t001", cast.channel).message_count, find("t001").message_count) == (3, 3)
    assert lengthened
    said = {"conversation": "c", "trace": "t001", "at": 1763715600 + 60}
    deliver(cast, prose("We join.", id="j", **said), name="j.log")
    settle_all()
    assert (find("t001", cast.channel).message_count, find("t001").message_count) == (0, 7)
    agree()


@pytest.mark.long(seconds=2)
def test_an_answer_that_came_before_what_it_answers_hangs_below_it(cast: Cast, lengthened: Lengthened) -> None:
    deliver(cast, clowl("m0", "c", trace=RANDOM, act="REQ"))
    deliver(cast, clowl("n1", "d", trace=RANDOM, parent="m9", at=10), name="n.log")
    settle_all()
    deliver(cast, clowl("m9", "c", trace=RANDOM, act="REQ", at=20), name="m.log")
    settle_all()
    assert find(RANDOM).open_count == 1
    agree()


@pytest.mark.long(seconds=2)
def test_lengthening_takes_as_many_statements_whatever_was_drawn(cast: Cast, lengthened: Lengthened) -> None:
    counts = []
    for count in (30, 120):
        story = [clowl(f"m{at}", f"c{at % 3}", trace=RANDOM, act="REQ", at=at) for at in range(count)]
        deliver(cast, *story, name=f"{count}.log")
        settle_all()
        appended = clowl(f"a{count}", "c1", trace=RANDOM, parent="m2", at=count * 10)
        read_in(appended, cast=cast, name=f"a{count}.log")
        with CaptureQueriesContext(connection) as caught:
            tracing.draw_traces(trace=find(RANDOM), fence=nothing, finish=nothing)
        counts.append(len(caught))
    assert lengthened[-1] == RANDOM
    assert counts[0] == counts[1] <= 19
    agree()


@pytest.mark.long(seconds=10)
def test_the_same_is_read_of_a_trace_whatever_its_length_if_something_is_late(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[int] = []
    read_members = strands.read_members

    def count(members: MessageQuerySet) -> Iterator[Any]:
        lines.append(0)
        for row in read_members(members):
            lines[-1] += 1
            yield row

    monkeypatch.setattr(strands, "read_members", count)
    monkeypatch.setattr(lengthening, "read_members", count)
    found = []
    before = 0
    for many in (400, 2000):
        deliver(cast, *(clowl(f"m{at}", "c", trace=RANDOM, at=at * 10) for at in range(before, many)), name=f"{many}")
        settle_all()
        before = many
        for late in range(3):
            read_in(
                clowl(f"l{many}.{late}", "c", trace=RANDOM, parent=f"m{many - 20}", at=(many - 9 + late) * 10 - 5),
                cast=cast,
                name=f"l{many}.{late}",
            )
            del lines[:]
            tracing.draw_traces(trace=find(RANDOM), fence=nothing, finish=nothing)
        found.append(sum(lines))
    assert found[0] == found[1] <= lengthening.SLACK + 16
    assert find(RANDOM).message_count == 2006
    agree()


@pytest.mark.long(seconds=2)
def test_what_is_merely_moved_up_in_its_conversation_draws_no_trace_anew(cast: Cast) -> None:
    deliver(cast, *(clowl(f"m{at}", "c", trace=RANDOM, at=at * 10) for at in range(6)))
    settle_all()
    before = find(RANDOM).generation
    deliver(cast, clowl("late", "c", trace="t001", at=25), name="late.log")
    settle_all()
    rows = Message.objects.filter(trace_key=bytes(find(RANDOM).key)).order_by("order_time")
    assert [row.place[-4:] for row in rows] == [bytes([0, 0, 0, rank]) for rank in (0, 1, 2, 4, 5, 6)]
    assert find(RANDOM).generation == before
    assert find("t001", cast.channel).message_count == 1


@pytest.mark.long(seconds=4)
def test_what_a_late_message_is_cited_by_is_drawn_anew_from_there_on(
    cast: Cast, lengthened: Lengthened, few: None
) -> None:
    for at in range(12):
        deliver(cast, clowl(f"m{at}", "c", trace=RANDOM, parent="lost" if at == 9 else None, at=at * 10), name=f"{at}")
        settle_all()
    assert find(RANDOM).missing_count == 1
    deliver(cast, clowl("lost", "c", trace=RANDOM, act="REQ", at=115), name="lost.log")
    settle_all()
    # It answers what is later by the clock, so that no point stands between the two.
    assert (find(RANDOM).missing_count, find(RANDOM).open_count) == (0, 0)
    assert lengthened.back == [RANDOM]
    agree()


@pytest.mark.long(seconds=2)
def test_who_reads_a_tree_while_it_is_drawn_from_a_point_still_finds_its_blocks(
    cast: Cast, lengthened: Lengthened, few: None
) -> None:
    deliver(cast, *(clowl(f"m{at}", "c", trace=RANDOM, at=at * 10) for at in range(30)))
    settle_all()
    for name, at in (("first", 255), ("second", 275), ("third", 285)):
        tree, said = load_tree(find(RANDOM)), read(find(RANDOM))
        assert tree is not None
        deliver(cast, clowl(name, "c", trace=RANDOM, at=at), name=name)
        settle_all()
        again = StoredTree(tree.outline_id, tree.count, tree.latest, tree.entries)
        assert [(line.id, line.kind, depth, *line[2:]) for depth, line in again.read_all()] == said
    assert lengthened.back == [RANDOM, RANDOM], "the first is drawn whole, over a point"
    agree()
