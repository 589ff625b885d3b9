"""What is appended is settled from what its conversation carries, and comes out as settling all of it at once does."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from inspector.intake.models import Door
from inspector.threads.models import (
    AgentTotal,
    Appearance,
    Carry,
    Conversation,
    Declaration,
    Exchange,
    Outline,
    PairTotal,
    ShelvedName,
)
from inspector.threads.placing import earlier, nodes, runs
from inspector.threads.settling import carries, hindsight, milestones, settler, writing
from inspector.threads.tasks import asked, ledger, standing
from inspector.threads.telling import carried
from tests.lanes import begin_with

from ..conftest import Cast, deliver, settle_all
from .babble import Babbler
from .test_purity import forget, picture, settle_from_scratch
from .wholes import assert_whole

pytestmark = pytest.mark.django_db

# SEEDS=100 BABBLED=400 babbles as much. (LINES is the size of a terminal, which the workers of a run have set.)
SEEDS, BABBLED, FEW = int(os.environ.get("SEEDS", "3")), int(os.environ.get("BABBLED", "60")), 20
BABBLINGS = begin_with(1, [(0, FEW), *((seed, BABBLED) for seed in range(SEEDS))], seconds=20)
COUNTS = (Appearance, Exchange, Declaration, AgentTotal, PairTotal)


class Courses(Counter[str]):
    """How often conversations were gone on with, and how often what they carried did not tell."""


@pytest.fixture
def courses(monkeypatch: pytest.MonkeyPatch) -> Courses:
    """Every conversation carries something, however short it is."""
    counted = Courses()
    monkeypatch.setattr(carries, "LEAST_MESSAGES", 1)
    monkeypatch.setattr(hindsight, "LEAST_BACK", 5)

    class Counting(settler._Settling):
        def write(self, *given: Any) -> None:
            counted["resumed"] += len(self.resumed)
            starts = [course.resumed for course in self._courses.values() if course.resumed is not None]
            counted.update(["gone back"] * sum(start.tree is not None for start in starts))
            counted["from the beginning"] += len(self._courses) - len(self.resumed)
            super().write(*given)

    monkeypatch.setattr(settler, "_Settling", Counting)
    return counted


def bound(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let no more than so much be carried of anything, and so many changes of a task be kept from either end."""
    monkeypatch.setattr(ledger, "MOST_STEPS", most)
    for module in (earlier, runs, asked, standing):
        monkeypatch.setattr(module, "MOST_CARRIED", most)
    monkeypatch.setattr(carries, "MOST_UNMET", most)
    monkeypatch.setattr(carried, "MOST_NAMES", most)


@pytest.mark.parametrize("most", [400, 3])
@pytest.mark.parametrize(("seed", "babbled"), BABBLINGS)
def test_what_is_appended_bit_by_bit_is_what_is_settled_at_once(
    cast: Cast, courses: Courses, monkeypatch: pytest.MonkeyPatch, seed: int, babbled: int, most: int
) -> None:
    bound(monkeypatch, most)
    assert_bit_by_bit(cast, list(Babbler(seed).babble(babbled)), random.Random(seed))
    assert courses["resumed"] >= (5 if most > 100 and babbled > FEW else 1), courses


@pytest.mark.parametrize(("seed", "babbled"), BABBLINGS)
def test_what_requests_without_end_have_established_is_found_on_the_shelf(
    cast: Cast, courses: Courses, monkeypatch: pytest.MonkeyPatch, seed: int, babbled: int
) -> None:
    monkeypatch.setattr(carried, "MOST_NAMES", 3)
    assert_bit_by_bit(cast, list(Babbler(seed, is_clowl=True).babble(babbled)), random.Random(seed))
    assert courses["resumed"] >= (5 if babbled > FEW else 1), courses
    assert ShelvedName.objects.count() >= babbled // 9


def assert_bit_by_bit(cast: Cast, lines: list[bytes], chance: random.Random) -> None:
    """Deliver these lines by and by, each settling looked at: it comes out as all of them at once do."""
    left = list(lines)
    while left:
        size = chance.randint(1, 9)
        deliver(cast, *left[:size], door=Door.API)
        del left[:size]
        settle_all()
        assert_whole(*Conversation.objects.all())
    found, counted = picture(), picture_counts()
    settle_from_scratch()
    assert_same(found, picture())
    assert_same(counted, picture_counts())
    forget()
    deliver(cast, *lines, door=Door.API)
    settle_all()
    assert_same(found, picture())


@pytest.mark.parametrize("most", [400, 3])
@pytest.mark.parametrize(("seed", "babbled"), BABBLINGS)
def test_what_comes_late_bit_by_bit_is_what_is_settled_at_once(
    cast: Cast, courses: Courses, monkeypatch: pytest.MonkeyPatch, seed: int, babbled: int, most: int
) -> None:
    """After a third of them every line comes up to some lines too late, and most of them by less."""
    bound(monkeypatch, most)
    chance = random.Random(seed)
    lines = list(Babbler(seed, ids=60).babble(babbled))
    first = len(lines) // 3
    late = sorted(range(first, len(lines)), key=lambda at: at + chance.choice((0, 0, 0, 1, 2, 5)))
    deliver(cast, *lines[:first], door=Door.API)
    settle_all()
    while late:
        size = chance.randint(1, 6)
        deliver(cast, *(lines[at] for at in late[:size]), door=Door.API)
        del late[:size]
        settle_all()
        assert_whole(*Conversation.objects.all())
    found, counted = picture(), picture_counts()
    assert courses["gone back"] or most < 100 or babbled <= FEW, courses
    settle_from_scratch()
    assert_same(found, picture())
    assert_same(counted, picture_counts())


def assert_appending_tells_all(cast: Cast, courses: Courses, *lines: dict[str, Any]) -> None:
    """Deliver these lines one by one, a second apart: each but the first is gone on with, and nothing is otherwise."""
    for at, line in enumerate(lines):
        text = json.dumps({"conversation": "story", "at": 1_763_715_600 + at, **line})
        deliver(cast, text.encode() + b"\n", door=Door.API)
        settle_all()
    assert courses["resumed"] >= len(lines) - 1, courses
    found, counted = picture(), picture_counts()
    settle_from_scratch()
    assert_same(found, picture())
    assert_same(counted, picture_counts())


def coordinate(name: str, act: str, task: str, parent: str = "", *, mode: str = "") -> dict[str, Any]:
    """A message of CLowl's v0.3 coordination envelope about a task that is part of another."""
    pair = {"from": "ada", "to": "bob"} if act in ("REQ", "DLGT") else {"from": "bob", "to": "ada"}
    trace = {"trace_id": "t", "parent_task_id": parent} if parent else {"trace_id": "t"}
    inner = {"p": act, **pair, "task": "ship", "data": {"delegation_mode": mode} if mode else {}, "ctx": None}
    envelope = {"clowl": "0.3.0", "mid": name, "task_id": task, "state": "RUNNING", "semantic": inner}
    return {"raw": json.dumps(envelope | {"routing": {**pair, "broadcast": False}, "trace": trace})}


@pytest.mark.long(seconds=2)
def test_a_task_that_only_others_name_stands_as_those_have_brought_it(cast: Cast, courses: Courses) -> None:
    """What was transferred is done, and with it the whole: what is asked in its name after that is no part of it."""
    assert_appending_tells_all(
        cast,
        courses,
        coordinate("a", "DLGT", "part", "whole", mode="transfer"),
        coordinate("b", "DONE", "part", "whole"),
        coordinate("c", "REQ", "late", "whole"),
        coordinate("d", "REQ", "later", "whole"),
    )


@pytest.mark.long(seconds=2)
def test_what_json_refuses_to_write_is_carried_as_it_is(cast: Cast, courses: Courses) -> None:
    assert_appending_tells_all(
        cast,
        courses,
        {"raw": '{def:fp="half \ud83d of\u0000it"}!ta', "from": "a\ud800", "to": ["b\udfff"]},
        {"raw": "?ufp", "from": "b\udfff", "to": ["a\ud800"], "id": "m\ud800"},
        {"raw": '{def:fp="less"}!ta', "from": "b\udfff", "to": ["a\ud800"], "parent": "m\ud800"},
        {"raw": "?ufp", "from": "a\ud800", "to": ["b\udfff"], "parent": "lost\udfff"},
    )


PLAIN = [
    json.dumps({"raw": f"Line {n}.", "id": f"m{n}", "conversation": "c", "at": 1_763_715_600 + n, "from": f"a{n % 3}"})
    for n in range(400)
]


def write_plain(start: int, end: int) -> list[bytes]:
    return [line.encode() + b"\n" for line in PLAIN[start:end]]


@pytest.mark.long(seconds=2)
@pytest.mark.parametrize("held", [60, 300])
def test_one_appended_reads_a_few_rows_however_many_there_are(
    cast: Cast, courses: Courses, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    deliver(cast, *write_plain(0, held), door=Door.API)
    settle_all()
    made = Courses()
    make_node = nodes._make_node
    monkeypatch.setattr(nodes, "_make_node", lambda *given: made.update(["nodes"]) or make_node(*given))
    deliver(cast, *write_plain(held, held + 1), door=Door.API)
    settle_all()
    assert courses["resumed"] == 1
    assert made["nodes"] <= 4
    assert Conversation.objects.get(native_id="c").message_count == held + 1


@pytest.mark.long(seconds=2)
def test_what_is_late_is_settled_from_the_beginning(cast: Cast, courses: Courses) -> None:
    deliver(cast, *write_plain(0, 10), *write_plain(11, 20), door=Door.API)
    settle_all()
    deliver(cast, *write_plain(10, 11), door=Door.API)
    settle_all()
    assert courses == {"resumed": 0, "from the beginning": 2}
    deliver(cast, *write_plain(20, 21), door=Door.API)
    settle_all()
    assert courses["resumed"] == 1
    found = picture()
    settle_from_scratch()
    assert_same(found, picture())


@pytest.mark.long(seconds=15)
@pytest.mark.parametrize("held", [60, 300])
def test_what_is_late_by_a_few_reads_a_few_rows_however_many_there_are(
    cast: Cast, courses: Courses, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    late = [held - 1, held - 3, held - 2, held - 4]
    deliver(cast, *write_plain(0, held - 4), *write_plain(held, held + 2), door=Door.API)
    settle_all()
    deliver(cast, *write_plain(late[0], late[0] + 1), door=Door.API)
    settle_all()
    assert courses == {"resumed": 0, "from the beginning": 2}
    made = Courses()
    make_node = nodes._make_node
    monkeypatch.setattr(nodes, "_make_node", lambda *given: made.update(["nodes"]) or make_node(*given))
    for number in late[1:]:
        deliver(cast, *write_plain(number, number + 1), door=Door.API)
        settle_all()
    assert courses == {"resumed": 3, "from the beginning": 2, "gone back": 3}
    assert made["nodes"] <= 60
    found = picture()
    settle_from_scratch()
    assert_same(found, picture())


@pytest.mark.long(seconds=23)
def test_milestones_are_few_and_reach_far(cast: Cast, courses: Courses, monkeypatch: pytest.MonkeyPatch) -> None:
    """However far back within half of a conversation something is late, about three times as much is settled again."""
    monkeypatch.setattr(milestones, "MOST_BACK", 4)
    for at in range(0, 160, 2):
        deliver(cast, *write_plain(at, at + 2), door=Door.API)
        settle_all(is_examined=False)
    settle_all()
    counts = list(Carry.objects.order_by("count").values_list("count", flat=True))
    assert len(counts) <= 10
    assert counts[-1] == 160
    for nearer, further in pairwise(reversed([160 - count for count in counts])):
        assert further <= max(4, 3 * nearer), counts
    assert 160 - counts[0] >= 160 // 6
    assert set(Carry.objects.filter(stood=None).values_list("count", flat=True)) == {160}


def test_a_settling_that_dies_half_way_leaves_nothing_to_go_on_with(
    cast: Cast, courses: Courses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of what was added is written by then, and would be taken for what was carried."""
    deliver(cast, *write_plain(0, 30), door=Door.API)
    settle_all()
    monkeypatch.setattr(writing, "WINDOW", 1)
    died = Courses()

    def die(*given: Any) -> None:
        died["times"] += 1
        if died["times"] == 1:
            raise OSError("the worker is gone")
        write_directories(*given)

    write_directories = settler.write_directories
    monkeypatch.setattr(settler, "write_directories", die)
    deliver(cast, *write_plain(30, 70), door=Door.API)
    settle_all()
    assert died["times"] == 2
    assert courses == {"resumed": 1, "from the beginning": 2}
    found = picture()
    settle_from_scratch()
    assert_same(found, picture())


@pytest.mark.long(seconds=3)
def test_a_tree_that_does_not_tell_is_drawn_whole(
    cast: Cast, courses: Courses, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(cast, *write_plain(0, 30), door=Door.API)
    settle_all()
    Outline.objects.all().delete()
    deliver(cast, *write_plain(30, 31), door=Door.API)
    settle_all()
    assert courses == {"resumed": 1, "from the beginning": 2}
    found = picture()
    settle_from_scratch()
    assert_same(found, picture())


def picture_counts() -> dict[str, Any]:
    """What settling counts and keeps beside what `picture` shows; within one store its ids may stand for themselves."""
    counts: dict[str, Any] = {
        model.__name__: {
            "rows": sorted(
                str([getattr(row, column.attname) for column in model._meta.fields if not column.primary_key])
                for row in model._default_manager.all()
            )
        }
        for model in COUNTS
    }
    for each in Conversation.objects.all():
        messages = each.messages.shown().order_by("order_time", "order_source", "order_index", "pk")
        columns = ("pk", "task", "place", "told_in", "established", "parent")
        counts[f"{each.native_id} {each.pk}"] = {
            "tally": each.tally,
            "messages": [str(row) for row in messages.values_list(*columns)],
            "tasks": sorted(str(row) for row in each.tasks.values_list("key", "mode", "ends", "ending", "digest")),
        }
    return counts


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, each in expected.items():
        for part, told in each.items():
            assert found[name][part] == told, f"{name}: {part}"
