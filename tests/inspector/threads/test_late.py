"""What comes late into a long conversation is settled with its stretch alone, and comes out as settling all at once."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pytest

from inspector.intake.models import Door
from inspector.threads.models import Conversation
from inspector.threads.placing import places
from inspector.threads.settling import carries, late, settler, stretches

from ..conftest import Cast, deliver, settle_all
from .babble import Babbler
from .wholes import assert_whole

pytestmark = pytest.mark.django_db

SEEDS, BABBLED = int(os.environ.get("SEEDS", "3")), int(os.environ.get("BABBLED", "60"))


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
    """However short a conversation is, it has stretches of a few messages; how often what was late was settled so."""
    counted: Counter[bool] = Counter()
    monkeypatch.setattr(carries, "LEAST_MESSAGES", 1)
    monkeypatch.setattr(places, "_SPACING", 3)
    monkeypatch.setattr(stretches, "SPACING", 4)
    monkeypatch.setattr(stretches, "LEAST_LONG", 8)
    monkeypatch.setattr(settler, "LEAST_LONG", 8)
    monkeypatch.setattr(late, "LEAST_LONG", 8)
    monkeypatch.setattr(late, "_NEAR", 0)
    real = late.settle_late

    def settle_late(*given: Any, **named: Any) -> bool:
        is_done = real(*given, **named)
        counted[is_done] += 1
        return is_done

    monkeypatch.setattr(settler, "settle_late", settle_late)
    return counted


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.long(seconds=20)
def test_what_comes_late_is_what_is_settled_at_once(cast: Cast, tried: Counter[bool], seed: int) -> None:
    chance = random.Random(seed)
    lines = list(Babbler(seed, ids=chance.choice([6, 30, 200])).babble(BABBLED))
    after = [lines.pop() for _ in range(len(lines) // 6)]
    held = [lines.pop(at) for at in sorted(chance.sample(range(len(lines)), len(lines) // 5), reverse=True)]
    chance.shuffle(held)
    deliver(cast, b"".join(lines), door=Door.API)
    settle_all()
    while held:
        some = [held.pop() for _ in range(min(len(held), chance.choice([1, 1, 1, 2, 3])))]
        # Now and then something comes after the end together with what is late.
        some += [after.pop() for _ in range(min(len(after), chance.choice([0, 0, 1, 3])))]
        deliver(cast, b"".join(some), door=Door.API)
        settle_all()
        for conversation in Conversation.objects.all():
            assert_whole(conversation)
    assert tried[True]
