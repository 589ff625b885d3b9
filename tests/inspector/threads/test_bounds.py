"""Bounds of resolving: many speakers stay linear, and what is held until it is written stays small."""

from __future__ import annotations

import json
import random
import time
import uuid
from typing import Any

import pytest

from inspector.intake.models import Job
from inspector.threads.keys import Way
from inspector.threads.models import Conversation, Message
from inspector.threads.nodes import StoredNode
from inspector.threads.resolving import resolver, writing

from ..conftest import Cast, deliver, resolve_all, take_in
from .test_placing import place

pytestmark = pytest.mark.django_db


def test_a_record_of_many_words_and_many_receivers_is_settled(cast: Cast) -> None:
    chance = random.Random(4)
    words = " ".join("".join(chance.choices("abcdefghijklmnop", k=5)) for _ in range(60_000))
    names = ["".join(chance.choices("abcdefghijklmnop", k=200)) for _ in range(3000)]
    take_in(cast, json.dumps({"raw": words, "to": names, "from": words, "conversation": words}).encode())
    assert not Job.objects.filter(state=Job.State.DEAD).exists()
    assert Message.objects.get().told_digest is not None


WAYS = ["latest-unanswered-of-other", "latest-of-other"]


def make_nodes(whom: str, count: int) -> list[StoredNode]:
    """Every second message asks, every other one answers, and each is of a speaker of its own."""
    answers = (Way(whom, "turn", ""),)
    return [
        StoredNode(
            id=uuid.UUID(int=number),
            record=uuid.UUID(int=number),
            part=1,
            dialect="agent_lingua",
            sender=f"agent {number}",
            receivers=(),
            key=None,
            correlation=(),
            task=None,
            turn=None,
            ways=answers if number % 2 else (),
        )
        for number in range(count)
    ]


@pytest.mark.long(seconds=5)
@pytest.mark.parametrize("whom", WAYS)
def test_many_speakers_are_placed_in_linear_time(whom: str) -> None:
    def measure(count: int) -> float:
        nodes = make_nodes(whom, count)
        started = time.process_time()
        placed = place(*nodes)
        spent = time.process_time() - started
        assert [node.parent for node in placed[1::2]] == [node.id for node in placed[::2]]
        return spent

    small = min(measure(2000) for _ in range(3))
    assert min(measure(32_000) for _ in range(2)) < small * 16 * 5


@pytest.mark.parametrize("whom", WAYS)
def test_who_answers_whom_is_what_a_plain_search_finds(whom: str) -> None:
    chance = random.Random(11)
    for _ in range(60):
        nodes = make_nodes(whom, 30)
        for node in nodes:
            node.sender = chance.choice(["ada", "bob", "cid", None])
            if chance.random() < 0.4:
                node.ways = () if node.ways else nodes[1].ways
        answered: set[uuid.UUID] = set()
        for node, placed in zip(nodes, place(*nodes), strict=True):
            earlier = [one for one in nodes[: placed.position] if one.sender != node.sender]
            if whom == "latest-unanswered-of-other":
                earlier = [one for one in earlier if not one.ways and one.id not in answered]
            expected = earlier[-1].id if node.ways and node.sender and earlier else None
            assert placed.parent == expected
            answered.update({expected} if expected else ())


@pytest.mark.usefixtures("resolved_apart")
@pytest.mark.parametrize("is_long", [False, True])
def test_what_is_held_until_it_is_written_is_bounded(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, is_long: bool
) -> None:
    """Of one block as of several conversations that are resolved together."""
    raw, names = '{{def:w{at}="{word}"}}!ta', {"dialect": "lambda_lang"}
    said = [
        {"raw": raw.format(at=at, word="word " * 200), "conversation": f"c{at % (1 if is_long else 5)}"}
        for at in range(60)
    ]
    deliver(cast, *(json.dumps(names | each).encode() + b"\n" for each in said))
    if is_long:
        monkeypatch.setattr(resolver, "MAX_MESSAGES", 50)
    held: list[int] = []
    write = resolver.write_changes

    def note(changes: list[writing.Changes], **names: Any) -> None:
        held.extend(each.size_bytes for each in changes)
        write(changes, **names)

    monkeypatch.setattr(resolver, "write_changes", note)
    monkeypatch.setattr(writing, "WINDOW_BYTES", 10_000)
    resolve_all()
    assert sum(held) > 100_000
    assert max(held) < 20_000
    assert not Message.objects.filter(place=None).exists()
    assert all(each.is_settled for each in Conversation.objects.all())
