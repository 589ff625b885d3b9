"""Tasks that a window touches otherwise, played again from all their messages, come out as playing everything does."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from inspector.intake.models import Door, Record
from inspector.threads.models import Conversation
from inspector.threads.placing.nodes import StoredNode
from inspector.threads.settling.courses import Course
from inspector.threads.tasks import ledger, reloading
from inspector.threads.tasks.found import make_task_id
from inspector.threads.tasks.ledger import COLUMNS, make_row
from inspector.threads.tasks.replaying import Replayed, replay_tasks
from inspector.threads.uncertainty import UncertainError
from tests.lanes import begin_with

from ..conftest import Cast, deliver, settle_all
from .babble import Babbler
from .test_purity import settle_from_scratch
from .test_resuming import coordinate
from .wholes import place_whole

pytestmark = pytest.mark.django_db

SEEDS, BABBLED = int(os.environ.get("SEEDS", "4")), int(os.environ.get("BABBLED", "120"))
TRIALS = 4
# To find what there is, its messages, what they answer and what stands around, a level; and what has only moved.
MOST_STATEMENTS = 9

Whole = tuple[Course, list[StoredNode]]


def go_through(conversation: Conversation) -> Whole:
    """A conversation placed and assigned from its beginning, in memory."""
    timeline, course = place_whole(conversation)
    return course, timeline.nodes


def picture(node: StoredNode) -> tuple[Any, ...]:
    above = node.above.id if node.above is not None else None
    task = node.of_task.key if node.of_task is not None else None
    return node.id, node.place, node.run, node.basis, above, node.cited, node.parent, task, node.link


def cut(old: list[StoredNode], new: list[StoredNode], chance: random.Random) -> tuple[slice, slice]:
    """A window outside of which both are alike, and something around it."""
    least = min(len(old), len(new))
    start = 0
    while start < least and picture(old[start]) == picture(new[start]):
        start += 1
    end = 0
    while end < least - start and picture(old[-1 - end]) == picture(new[-1 - end]):
        end += 1
    start, end = max(0, start - chance.choice((1, 1, 5, 20))), max(0, end - chance.choice((0, 0, 5, 20)))
    return slice(start, len(old) - end), slice(start, len(new) - end)


def resume(whole: Whole, window: slice) -> list[StoredNode]:
    """Its nodes in the window, whose tasks are known as those that are loaded before a window are."""
    course, nodes = whole
    stored = {node.of_task for node in nodes[: window.start] if node.of_task is not None}
    for task in stored:
        task.is_stored = True
        if course.playing.plays[task].within is None:
            task.within = None
    return nodes[window]


def list_rows(course: Course) -> dict[bytes, Any]:
    return {play.task.key: make_row(play) for play in course.playing.plays.values() if play.message_count}


def count_standings(course: Course) -> Counter[tuple[bool, str]]:
    return Counter(standing for play in course.playing.plays.values() if (standing := play.standing) is not None)


def assert_replayed(conversation: Conversation, replayed: Replayed, old: Course, new: Course) -> None:
    """What is stored, with what was played again, is what playing everything comes to."""
    rows = {bytes(row.key): (bytes(row.digest), bytes(row.place)) for row in conversation.tasks.all()}
    given = {row[0]: row for row in replayed.rows}
    assert all(rows.get(key) != row[-2:] for key, row in given.items())
    gone = {key for key in rows if make_task_id(conversation.pk, key) in replayed.gone}
    found = {key: row for key, row in rows.items() if key not in gone} | {key: row[-2:] for key, row in given.items()}
    expected = list_rows(new)
    assert found.keys() == expected.keys()
    assert found == {key: row[-2:] for key, row in expected.items()}
    assert all(row == expected[key] for key, row in given.items())
    assert replayed.standings_before <= (before := count_standings(old))
    assert before - replayed.standings_before + replayed.standings_after == count_standings(new)
    awaited = [
        {play.task.key: (play.task.native_id, play.state) for play in plays if not play.message_count}
        for plays in (old.playing.plays.values(), new.playing.plays.values())
    ]
    changed = awaited[0] | replayed.awaited
    assert {key: said for key, said in changed.items() if said is not None} == awaited[1]


@pytest.fixture
def tried() -> Counter[str]:
    return Counter()


@pytest.mark.parametrize("most", [100, 1])
@pytest.mark.parametrize(
    ("seed", "babbled"), begin_with(1, [(0, 40), *((seed, BABBLED) for seed in range(SEEDS))], seconds=20)
)
def test_tasks_of_a_window_come_out_as_playing_everything_does(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, tried: Counter[str], seed: int, babbled: int, most: int
) -> None:
    monkeypatch.setattr(ledger, "MOST_STEPS", most)
    chance = random.Random(seed)
    lines = list(Babbler(seed, ids=chance.choice((6, 20, 60))).babble(babbled))
    deliver(cast, *lines, door=Door.API)
    settle_all()
    picked = sorted(Record.objects.filter(messages__isnull=False).distinct(), key=lambda each: bytes(each.identity))
    for _ in range(TRIALS):
        conversations = list(Conversation.objects.filter(message_count__gt=10))
        all_of = {each.pk: go_through(each) for each in conversations}
        some_of, windows = {}, {}
        with transaction.atomic():
            Record.objects.filter(pk__in=[each.pk for each in chance.sample(picked, chance.choice((1, 1, 2)))]).delete()
            settle_from_scratch()
            for each in conversations:
                some_of[each.pk] = go_through(each)
                windows[each.pk] = cut(some_of[each.pk][1], all_of[each.pk][1], chance)
                assert_window(each, some_of[each.pk], all_of[each.pk], windows[each.pk], tried)
            transaction.set_rollback(True)
        for each in conversations:
            assert_window(each, all_of[each.pk], some_of[each.pk], windows[each.pk][::-1], tried)
    assert tried["certain"] > 5 * tried["uncertain"], tried


def assert_window(
    conversation: Conversation, old: Whole, new: Whole, windows: tuple[slice, slice], tried: Counter[str]
) -> None:
    """What is stored is the old: with what differs in the window played again it is the new."""
    stored = {bytes(key): bytes(digest) for key, digest in conversation.tasks.values_list("key", "digest")}
    assert stored == {key: row[-2] for key, row in list_rows(old[0]).items()}
    before, after = resume(old, windows[0]), resume(new, windows[1])
    if not before or not after:
        return
    try:
        replayed = replay_tasks(conversation, before, after)
    except UncertainError:
        tried["uncertain"] += 1
        return
    tried["certain"] += 1
    assert_replayed(conversation, replayed, old[0], new[0])


def replay_without(cast: Cast, lines: list[dict[str, Any]], late: int) -> Replayed:
    """Play what one of these lines touches again, as if that had come after all the others."""
    texts = [json.dumps({"conversation": "story", "at": 1_763_715_600 + at, **line}) for at, line in enumerate(lines)]
    deliver(cast, *(text.encode() + b"\n" for text in texts), door=Door.API)
    settle_all()
    conversation = Conversation.objects.get(native_id="story")
    new = go_through(conversation)
    Record.objects.filter(pk=new[1][late].record).delete()
    settle_from_scratch()
    old = go_through(conversation)
    window = slice(late, None)
    before, after = resume(old, window), resume(new, window)
    with CaptureQueriesContext(connection) as held:
        replayed = replay_tasks(conversation, before, after)
    assert len(held) <= MOST_STATEMENTS, [each["sql"] for each in held]
    assert_replayed(conversation, replayed, old[0], new[0])
    return replayed


def make_parts(count: int) -> list[dict[str, Any]]:
    """A whole, and so many parts of it that are asked for, get under way and are done."""
    asked = [coordinate(f"a{n}", "REQ", f"part{n}", "whole") for n in range(count)]
    going = [coordinate(f"b{n}", "PROG", f"part{n}", "whole") for n in range(count)]
    done = [coordinate(f"c{n}", "DONE", f"part{n}", "whole") for n in range(count)]
    return [coordinate("w", "REQ", "whole"), *asked, *going, *done, coordinate("z", "ACK", "whole")]


@pytest.mark.long(seconds=3)
@pytest.mark.parametrize("count", [3, 12])
def test_what_a_part_does_by_itself_leaves_the_others_unread(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(reloading, "MOST_TASKS", 1)
    monkeypatch.setattr(reloading, "MOST_MESSAGES", 3)
    replayed = replay_without(cast, make_parts(count), count + 2)
    assert len(replayed.rows) == 1


@pytest.mark.long(seconds=2)
def test_what_a_part_does_to_the_whole_is_played_there_too(cast: Cast) -> None:
    lines = [
        coordinate("a", "REQ", "whole"),
        coordinate("b", "DLGT", "part", "whole", mode="transfer"),
        coordinate("c", "DONE", "part", "whole"),
        coordinate("d", "REQ", "other"),
    ]
    replayed = replay_without(cast, lines, 2)
    states = {row[COLUMNS.index("native_id")]: row[COLUMNS.index("state")] for row in replayed.rows}
    assert states == {"whole": "done", "part": "done", "other": "open"}


@pytest.mark.long(seconds=2)
def test_more_than_shall_be_gone_through_is_uncertain(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading, "MOST_MESSAGES", 8)
    with pytest.raises(UncertainError):
        replay_without(cast, make_parts(3), 2)


@pytest.mark.long(seconds=2)
def test_what_is_asked_in_the_course_of_what_is_open_again_may_be_part_of_it(cast: Cast) -> None:
    """It was dropped, for the whole had been done: nothing that is stored says that it would be part of it now."""
    lines = [
        coordinate("a", "REQ", "whole"),
        coordinate("b", "DONE", "whole"),
        coordinate("c", "REQ", "whole"),
        coordinate("d", "ACK", "other"),
        coordinate("e", "REQ", "part", "whole"),
    ]
    with pytest.raises(UncertainError):
        replay_without(cast, lines, 2)
