"""What is late is settled from a milestone and comes out as all of it does: stories that are aimed at its border."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from inspector.intake.models import Delivery, Door, Withdrawal
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads.models import Carry, Conversation
from inspector.threads.placing import earlier, places, runs
from inspector.threads.settling import carries, hindsight, milestones, settler, writing
from inspector.threads.settling.past import write_stood
from inspector.threads.tasks import asked, ledger, standing
from inspector.threads.telling import carried
from inspector.threads.trees import blocks
from tests.lanes import begin_with

from ..conftest import Cast, deliver, settle_all
from .babble import Babbler
from .test_purity import picture, settle_from_scratch
from .test_resuming import assert_same, picture_counts
from .wholes import assert_whole

pytestmark = pytest.mark.django_db

# SEEDS=100 BABBLED=400 babbles as much.
SEEDS, BABBLED = int(os.environ.get("SEEDS", "2")), int(os.environ.get("BABBLED", "60"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))


@pytest.fixture(autouse=True)
def carrying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every conversation carries something, however short it is."""
    monkeypatch.setattr(carries, "LEAST_MESSAGES", 1)
    monkeypatch.setattr(hindsight, "LEAST_BACK", 2)


def assert_all_whole() -> None:
    conversations = list(Conversation.objects.all())
    assert all(conversation.is_settled for conversation in conversations)
    assert_whole(*conversations)


class Courses(Counter[str]):
    """How often conversations were gone on with."""


@pytest.fixture
def courses(monkeypatch: pytest.MonkeyPatch) -> Courses:
    counted = Courses()

    class Counting(settler._Settling):
        def write(self, *given: Any) -> None:
            starts = [course.resumed for course in self._courses.values() if course.resumed is not None]
            counted["gone back"] += sum(start.tree is not None for start in starts)
            counted["appended"] += sum(start.tree is None for start in starts)
            counted["whole"] += len(self._courses) - len(starts)
            super().write(*given)

    monkeypatch.setattr(settler, "_Settling", Counting)
    return counted


def test_a_milestone_since_which_too_much_has_changed_is_dropped_with_all_before_it(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(cast, b'{"raw": "Hello.", "conversation": "c"}\n', door=Door.API)
    settle_all()
    conversation = Conversation.objects.get()
    end = Carry.objects.get()
    for at in range(80, 100):
        Carry.objects.create(
            conversation=conversation,
            workspace_id=conversation.workspace_id,
            generation=end.generation - 100 + at,
            reached=end.reached,
            count=at,
            border=bytes(end.border),
            data=bytes(end.data),
            stood=write_stood(conversation, {}),
        )
    monkeypatch.setattr(milestones, "MOST_BYTES", 10)
    milestones.thin_out(conversation, 101)
    left = Carry.objects.order_by("-generation").values_list("count", flat=True)
    assert list(left) == [1, 99]


@pytest.mark.long(seconds=6)
def test_where_one_clock_is_ahead_milestones_keep_up_with_what_is_late(
    cast: Cast, courses: Courses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message is late by the one whose clock is ahead: what is settled again does not grow with each."""
    deliver(cast, *(say(at) for at in range(20)), say(1000), door=Door.API)
    settle_all()
    for at in range(20, 44):
        deliver(cast, say(at), door=Door.API)
        settle_all(is_examined=False)
        assert_all_whole()
        assert at + 2 - Carry.objects.filter(stood__isnull=False).latest("count").count <= 18
    assert +courses == {"whole": 2, "gone back": 23}


def say(at: int) -> bytes:
    """A line of the one conversation, at this second."""
    said = {"raw": f"Line {at}.", "id": f"m{at}", "conversation": "c", "at": 1_763_715_600 + at, "from": f"a{at % 3}"}
    return json.dumps(said).encode() + b"\n"


def shrink(monkeypatch: pytest.MonkeyPatch, chance: random.Random) -> None:
    """Bounds by chance, so small that few messages reach each of them."""
    bounds: dict[str, tuple[tuple[Any, ...], tuple[int, ...]]] = {
        "MOST_CARRIED": ((earlier, runs, asked, standing), (3, 8, 400)),
        "MOST_STEPS": ((ledger,), (1, 3, 100)),
        "MOST_UNMET": ((carries,), (3, 400)),
        "MOST_AWAITED": ((carries,), (3, 200, 200)),
        "LEAST_BACK": ((hindsight,), (1, 2, 5)),
        "MOST_BACK": ((milestones,), (10, 4000)),
        "MOST_BYTES": ((milestones,), (2000, 1 << 21, 1 << 21)),
        "WINDOW": ((writing,), (3, 500, 500)),
        "MOST_NAMES": ((carried,), (2, 400)),
        "LEAST_LINES": ((blocks,), (3, 500)),
        "MOST_LINES": ((blocks,), (9, 2000)),
        "_SPACING": ((blocks, places), (4, 128)),
        "_MOST": ((places,), (7, 512)),
    }
    for name, (modules, values) in bounds.items():
        value = chance.choice(values)
        for module in modules:
            monkeypatch.setattr(module, name, value)


def change(line: bytes, chance: random.Random, coarse: int, *, is_one: bool) -> bytes:
    """A line whose time is given in so many seconds, now and then in none; all in one conversation if it is to be."""
    said = json.loads(line)
    if is_one:
        said["conversation"] = "mixed"
    at = datetime.fromisoformat(said["at"]).timestamp()
    said["at"] = at - at % coarse
    if chance.random() < 0.005:
        del said["at"]
    return json.dumps(said).encode() + b"\n"


def disturb(cast: Cast, chance: random.Random) -> None:
    """Withdraw a delivery, or take that back."""
    deliveries = list(Delivery.objects.order_by("received_at"))
    delivery = chance.choice(deliveries[-6:])
    if Withdrawal.objects.filter(delivery=delivery, taken_back_at=None).exists():
        take_back(membership=cast.auditor, delivery=delivery, reason="It was none.")
    else:
        withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="It was sent by mistake.")


@pytest.mark.parametrize(
    ("seed", "babbled"),
    begin_with(1, [(0, 20), *((FIRST_SEED + seed, BABBLED) for seed in range(SEEDS))], seconds=20),
)
def test_what_is_late_within_small_bounds_is_what_is_settled_at_once(
    cast: Cast, courses: Courses, monkeypatch: pytest.MonkeyPatch, seed: int, babbled: int
) -> None:
    chance = random.Random(seed)
    shrink(monkeypatch, chance)
    coarse, is_one = chance.choice((1, 1, 1, 4)), chance.random() < 0.7
    lines = [
        change(line, chance, coarse, is_one=is_one)
        for line in Babbler(seed, ids=chance.choice((12, 60, 200))).babble(babbled)
    ]
    first = len(lines) // 4
    delays = chance.choice(((0, 0, 0, 1), (0, 0, 1, 2, 5), (0, 3, 12)))
    late = sorted(range(first, len(lines)), key=lambda at: at + chance.choice(delays))
    # One whose clock is ahead of all others: whatever comes after it is late.
    for ahead in chance.sample(range(first, len(lines)), chance.choice((0, 1, 3))):
        late.remove(ahead)
        late.insert(chance.randrange(len(late) // 2), ahead)
    deliver(cast, *lines[:first], door=Door.API)
    settle_all()
    while late:
        size = chance.choice((1, 1, 2, 6))
        deliver(cast, *(lines[at] for at in late[:size]), door=Door.API)
        del late[:size]
        if chance.random() < 0.015:
            disturb(cast, chance)
        settle_all()
        assert_all_whole()
    found, counted = picture(), picture_counts()
    settle_from_scratch()
    assert_same(found, picture())
    assert_same(counted, picture_counts())
    print(dict(courses))
