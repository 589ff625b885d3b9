"""Traces in parts: whatever comes, is late, fills a ghost or is withdrawn, all stands as if drawn at once."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from inspector.accounts.models import Channel
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads import tracing
from inspector.threads.lines import ORDERS
from inspector.threads.models import Message, Trace, TreeGroup
from inspector.threads.tracing import draw_traces
from inspector.threads.trees import Tree
from tests.lanes import begin_with

from ..conftest import Cast, deliver, resolve_all, take_in
from .plain_trees import draw_trace, list_members, read_lines
from .test_traces import RANDOM, clowl, find, prose

pytestmark = pytest.mark.django_db

SEEDS = int(os.environ.get("SEEDS", "2"))
STORIES = begin_with(1, ((-1, 24), *((seed, 60) for seed in range(SEEDS))), seconds=30)
ACTS = ["REQ", "DLGT", "INF", "DONE", "FAIL", "ACK", "PROG", "CXL"]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of few messages, a few at a time."""
    monkeypatch.setattr(tracing, "MAX_PART", 5)
    monkeypatch.setattr(tracing, "PARTS_AT_ONCE", 2)


def write_story(chance: random.Random, count: int) -> list[bytes]:
    """A story in two traces, with answers to what was said, to what comes late or never, and to what is yet to come."""
    story = []
    for at in range(count):
        way = chance.random()
        parent = f"m{chance.randrange(at)}" if at and way < 0.6 else None
        if 0.6 <= way < 0.75:
            parent = f"lost{chance.randrange(3)}"
        elif 0.75 <= way < 0.85:
            parent = f"m{chance.randrange(count)}"
        talk, trace = f"c{chance.randrange(1 + at // 6)}", chance.choice([RANDOM, RANDOM, "t001"])
        name = f"lost{at}" if at in (0, 1, 2) and chance.random() < 0.7 else f"m{at}"
        if chance.random() < 0.2:
            said: dict[str, Any] = {"conversation": talk, "trace": trace, "at": 1763715600 + at // 3}
            said |= {"id": name} if chance.random() < 0.5 else {}
            said |= {"from": chance.choice("abcdef")} if chance.random() < 0.8 else {}
            story.append(prose(f"Words {at // 9}.", **said | ({"parent": parent} if parent else {})))
        else:
            story.append(clowl(name, talk, trace=trace, parent=parent, act=chance.choice(ACTS), at=at // 3))
    return story


def disorder(chance: random.Random, story: list[bytes]) -> list[bytes]:
    """A story as it comes: most of it in its order, and a few by so much late that they are near the front."""
    late = [0 if chance.random() < 0.7 else chance.randrange(len(story)) for _ in story]
    return [story[at] for at in sorted(range(len(story)), key=lambda at: (at + late[at], at))]


def say(trace: Trace) -> dict[str, Any]:
    """All that is stored of a trace, beside when it was drawn and in which parts."""
    trace.refresh_from_db()
    left_out = ("generation", "settled_generation", "settled_at", "channels", "message_count")
    said = {name.attname: getattr(trace, name.attname) for name in Trace._meta.fields if name.attname not in left_out}
    said |= {"digest": bytes(trace.digest or b""), "key": bytes(trace.key), "count": trace.message_count}
    groups = TreeGroup.objects.filter(trace=trace).exclude(kind=TreeGroup.Kind.PART).order_by("pk")
    names = ("id", "kind", "above", "conversation_id", "first_at", "last_at", "severity", *ORDERS["trace_above"])
    said["groups"] = [
        [bytes(value) if isinstance(value, memoryview) else value for value in row]
        for row in groups.values_list(*names)
    ]
    return said


def agree() -> None:
    """Every trace is what its messages say, plainly drawn; and drawing it whole gives the same again."""
    for trace in Trace.objects.all():
        assert trace.is_settled
        members = list_members(trace)
        assert trace.message_count == len(members)
        lines = draw_trace(trace)
        assert list(read_lines(Tree(trace))) == lines, trace.native_id
        assert {line.id for _, line in lines if line.kind == 0} == {each.pk for each in members}
        in_parts = say(trace)
        TreeGroup.objects.filter(trace=trace, kind=TreeGroup.Kind.PART).delete()
        part, tracing.MAX_PART = tracing.MAX_PART, 10_000
        Trace.objects.filter(pk=trace.pk).update(message_count=0)
        trace.refresh_from_db()
        draw_traces(trace=trace, fence=lambda: None, finish=lambda done: None)
        tracing.MAX_PART = part
        assert say(trace) == in_parts, trace.native_id


@pytest.mark.parametrize(("seed", "length"), STORIES)
def test_what_is_late_by_anything_stands_as_if_drawn_at_once(cast: Cast, seed: int, length: int) -> None:
    chance = random.Random(f"late {seed}")
    story = disorder(chance, write_story(chance, length))
    at = 0
    while at < len(story):
        size = chance.choice([1, 2, 5, 9])
        take_in(cast, *story[at : at + size], name=f"{at}.log", is_examined=False)
        at += size
        if chance.random() < 0.4:
            agree()
    agree()


@pytest.mark.parametrize(("seed", "length"), STORIES)
def test_what_is_late_in_two_channels_or_withdrawn_stands_so_too(cast: Cast, seed: int, length: int) -> None:
    chance = random.Random(f"withdrawn {seed}")
    other = Channel.objects.create(workspace=cast.workspace, name="other")
    story = disorder(chance, write_story(chance, length))
    deliveries, withdrawn, at = [], [], 0
    while at < len(story):
        size = chance.choice([2, 5, 9])
        channel = other if chance.random() < 0.3 else None
        deliveries.append(deliver(cast, *story[at : at + size], name=f"{at}.log", channel=channel))
        at += size
        if chance.random() < 0.2:
            withdrawn.append(deliveries.pop(chance.randrange(len(deliveries))))
            withdraw_delivery(membership=cast.owner, delivery=withdrawn[-1], reason="a test")
        elif withdrawn and chance.random() < 0.2:
            take_back(membership=cast.owner, delivery=withdrawn.pop(), reason="a test")
        resolve_all(is_examined=False)
        if chance.random() < 0.4:
            agree()
    agree()


def test_one_late_message_reads_its_part_alone(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    take_in(cast, *(clowl(f"m{at}", f"c{at % 3}", trace=RANDOM, act="REQ", at=at * 10) for at in range(30)))
    agree()
    trace = find(RANDOM)
    draw_traces(trace=trace, fence=lambda: None, finish=lambda done: None)
    read: list[int] = []
    load = tracing.load_members

    def count(rows: Any) -> Any:
        members = load(rows)
        read.append(len(members))
        return members

    monkeypatch.setattr(tracing, "load_members", count)
    take_in(cast, clowl("late", "c1", trace=RANDOM, parent="m0", at=155), name="late.log")
    assert 0 < sum(read) <= 2 * 6, "the part that it is in, which may be cut in two"
    assert (find(RANDOM).message_count, find(RANDOM).open_count) == (31, 29)
    agree()


def test_messages_of_one_instant_stay_in_one_part(cast: Cast) -> None:
    take_in(cast, *(clowl(f"m{at}", "c", trace=RANDOM, at=at // 12) for at in range(36)))
    agree()
    assert Message.objects.filter(trace_above__isnull=False).count() == 36
