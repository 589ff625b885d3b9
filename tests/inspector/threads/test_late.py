"""What comes late into a long conversation is settled with its stretch alone, and comes out as settling all at once."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from inspector.intake.models import Door
from inspector.threads.models import Conversation, Message, Stretch
from inspector.threads.placing import places
from inspector.threads.settling import carries, fitting, late, settler, stretches
from inspector.threads.telling import carried
from tests.lanes import begin_with

from ..conftest import Cast, deliver, settle_all
from .babble import Babbler
from .wholes import assert_whole

pytestmark = pytest.mark.django_db

SEEDS, BABBLED = int(os.environ.get("SEEDS", "3")), int(os.environ.get("BABBLED", "60"))
BABBLINGS = begin_with(1, [(0, 20), *((seed, BABBLED) for seed in range(SEEDS))], seconds=20)


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

    def note(conversation: Conversation, *given: Any) -> None:
        fitting.fit(conversation, *given)
        settled.append(conversation.native_id)

    monkeypatch.setattr("inspector.threads.settling.late.fit", note)
    return settled


def say(second: int, **said: Any) -> bytes:
    """A line of the conversation c."""
    return json.dumps({"at": 1_763_715_600 + second, "conversation": "c", **said}).encode() + b"\n"


def say_clowl(second: int, name: str, answered: str = "", act: str = "DONE") -> bytes:
    """A request in CLowl, or an answer to one."""
    pair = {"from": "b", "to": "a", "p": act, "pid": answered} if answered else {"from": "a", "to": "b", "p": "REQ"}
    body = {"body": {"t": "work", "status": "completed"}}
    return say(second, raw=json.dumps({"clowl": "0.2", "mid": name, "cid": "c", **pair, **body}))


def settle_more(cast: Cast, *lines: bytes) -> None:
    """Let these lines come and settle them; all that is stored then is what settling the whole comes to."""
    deliver(cast, b"".join(lines), door=Door.API)
    settle_all()
    for conversation in Conversation.objects.all():
        assert_whole(conversation)


@pytest.mark.long(seconds=2)
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


@pytest.mark.long(seconds=2)
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


@pytest.mark.long(seconds=2)
def test_a_request_is_settled_with_those_who_missed_it_far_behind(
    cast: Cast, windows: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # How each task stands is on the shelf, but for the last ones.
    monkeypatch.setattr(carried, "MOST_NAMES", 2)
    lines = [
        line for at in range(30) for line in (say_clowl(20 * at, f"m{at}"), say_clowl(20 * at + 5, f"d{at}", f"m{at}"))
    ]
    asked, *_ = lines.pop(8), lines.pop(8)
    settle_more(cast, *lines, say_clowl(313, "a4", "m4", "ACK"), say_clowl(512, "d4", "m4"), say_clowl(700, "end"))
    assert Conversation.objects.get().missing_count == 1
    settle_more(cast, asked)
    # One window for what is late, and one for each of them.
    assert windows == ["c", "c", "c"]
    assert Conversation.objects.get().missing_count == 0
    answers = Message.objects.filter(native_id__in=["a4", "d4"])
    assert {answer.parent for answer in answers} == {Message.objects.get(native_id="m4").pk}


@pytest.mark.long(seconds=2)
def test_a_parent_in_text_is_found_by_those_far_behind(cast: Cast, windows: list[str]) -> None:
    pair = {"from": "a", "to": ["b"]}
    lines = [say(10 * at, raw=f"Line {at}.", id=f"m{at}", **pair) for at in range(60)]
    late = lines.pop(3)
    lines[40] = say(405, raw="As you said.", id="x", parent="m3", **pair)
    settle_more(cast, *lines)
    # What comes after the end with it is settled behind it.
    settle_more(cast, late, say(900, raw="New.", **pair))
    assert windows == ["c", "c"]
    assert Message.objects.get(native_id="x").parent == Message.objects.get(native_id="m3").pk


@pytest.mark.long(seconds=15)
def test_a_conversation_that_grew_is_cut_into_stretches(cast: Cast, windows: list[str]) -> None:
    pair = {"from": "a", "to": ["b"]}
    for at in range(40):
        deliver(cast, say(10 * at, raw=f"Line {at}.", id=f"m{at}", **pair), door=Door.API)
        settle_all()
    assert_whole(Conversation.objects.get())
    assert Stretch.objects.count() > 5
    settle_more(cast, say(35, raw="Late.", id="late", **pair))
    settle_more(cast, say(315, raw="Late too.", id="too", **pair))
    assert windows == ["c", "c"]


@pytest.mark.parametrize(("seed", "babbled"), BABBLINGS)
def test_what_comes_late_is_what_is_settled_at_once(
    cast: Cast, windows: list[str], monkeypatch: pytest.MonkeyPatch, seed: int, babbled: int
) -> None:
    chance = random.Random(seed)
    lines = list(Babbler(seed, ids=chance.choice([6, 30, 200])).babble(babbled))
    after = [lines.pop() for _ in range(len(lines) // 6)]
    held = [lines.pop(at) for at in sorted(chance.sample(range(len(lines)), len(lines) // 5), reverse=True)]
    chance.shuffle(held)
    if chance.random() < 0.5:
        monkeypatch.setattr(carried, "MOST_NAMES", 3)
    # Some have come at once, others grow.
    size = chance.choice([len(lines), len(lines), 1, 5])
    for at in range(0, len(lines), size):
        deliver(cast, b"".join(lines[at : at + size]), door=Door.API)
        settle_all()
    while held:
        some = [held.pop() for _ in range(min(len(held), chance.choice([1, 1, 1, 2, 3])))]
        # Now and then something comes after the end together with what is late.
        some += [after.pop() for _ in range(min(len(after), chance.choice([0, 0, 1, 3])))]
        settle_more(cast, *some)
