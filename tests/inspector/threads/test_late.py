"""What comes late into a long conversation is settled with its stretch alone, and comes out as settling all at once."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from inspector.intake.models import Door
from inspector.threads.models import Conversation, Stretch
from inspector.threads.placing import places
from inspector.threads.settling import carries, late, settler, stretches

from ..conftest import Cast, deliver, settle_all
from .babble import Babbler
from .wholes import assert_whole

pytestmark = pytest.mark.django_db

SEEDS, BABBLED = int(os.environ.get("SEEDS", "3")), int(os.environ.get("BABBLED", "60"))


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """However short a conversation is, it has stretches of a few messages; which were settled by a window of theirs."""
    settled: list[str] = []
    monkeypatch.setattr(carries, "LEAST_MESSAGES", 1)
    monkeypatch.setattr(places, "_SPACING", 3)
    monkeypatch.setattr(stretches, "SPACING", 4)
    monkeypatch.setattr(stretches, "LEAST_LONG", 8)
    monkeypatch.setattr(settler, "LEAST_LONG", 8)
    monkeypatch.setattr(late, "LEAST_LONG", 8)
    monkeypatch.setattr(late, "_NEAR", 0)
    write = late._write

    def note(conversation: Conversation, *given: Any) -> None:
        write(conversation, *given)
        settled.append(conversation.native_id)

    monkeypatch.setattr(late, "_write", note)
    return settled


def say(second: int, **said: Any) -> bytes:
    """A line of the conversation c."""
    return json.dumps({"at": 1_763_715_600 + second, "conversation": "c", **said}).encode() + b"\n"


def say_clowl(second: int, name: str, answered: str = "") -> bytes:
    """A request in CLowl, or an answer to one."""
    pair = {"from": "b", "to": "a", "p": "DONE", "pid": answered} if answered else {"from": "a", "to": "b", "p": "REQ"}
    body = {"body": {"t": "work", "status": "completed"}}
    return say(second, raw=json.dumps({"clowl": "0.2", "mid": name, "cid": "c", **pair, **body}))


def settle_more(cast: Cast, *lines: bytes) -> None:
    """Let these lines come and settle them; all that is stored then is what settling the whole comes to."""
    deliver(cast, b"".join(lines), door=Door.API)
    settle_all()
    for conversation in Conversation.objects.all():
        assert_whole(conversation)


def test_text_near_the_front_is_settled_with_its_stretch(cast: Cast, windows: list[str]) -> None:
    pair = {"from": "a", "to": ["b"]}
    settle_more(cast, *(say(10 * at, raw=f"Line {at}.", id=f"m{at}", **pair) for at in range(60)))
    assert Stretch.objects.count() > 5
    assert not windows
    settle_more(cast, say(35, raw="Late.", id="late", **pair))
    assert windows == ["c"]
    # What comes after the end together with what is late is settled behind it.
    settle_more(cast, say(55, raw="Late too.", **pair), say(900, raw="New.", **pair))
    assert windows == ["c", "c"]
    assert Conversation.objects.get().message_count == 63


def test_a_request_near_the_front_is_settled_with_the_answer_that_missed_it(cast: Cast, windows: list[str]) -> None:
    lines = [
        line for at in range(30) for line in (say_clowl(20 * at, f"m{at}"), say_clowl(20 * at + 5, f"d{at}", f"m{at}"))
    ]
    asked = lines.pop(8)
    settle_more(cast, *lines)
    assert Conversation.objects.get().missing_count == 1
    settle_more(cast, asked)
    assert windows == ["c"]
    assert Conversation.objects.get().missing_count == 0


def test_a_request_whose_answer_stands_far_behind_is_settled_with_all(cast: Cast, windows: list[str]) -> None:
    lines = [say(10 * at, raw=f"Line {at}.", id=f"m{at}", **{"from": "a", "to": ["b"]}) for at in range(60)]
    settle_more(cast, *lines, say_clowl(700, "d", "asked"))
    settle_more(cast, say_clowl(25, "asked"))
    assert not windows
    assert Conversation.objects.get().missing_count == 0


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.long(seconds=20)
def test_what_comes_late_is_what_is_settled_at_once(cast: Cast, windows: list[str], seed: int) -> None:
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
        settle_more(cast, *some)
