"""Resolving block by block is one function of the set: in any order and batches, with blocks of any size."""

from __future__ import annotations

import json
import os
import random
from contextlib import suppress
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from inspector import pipeline
from inspector.intake.models import Delivery, Door, Job
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads.models import Block, Conversation, Fact, Message, Read
from inspector.threads.models.blocks import BROKEN_OFF
from inspector.threads.resolving import resolver, writing
from inspector.threads.resolving.linking import LATE
from inspector.threads.resolving.passes import Pass
from tests.lanes import begin_with

from ..conftest import Cast, ask_to_resolve, deliver, resolve_all, take_in
from .babble import Babbler
from .pictures import differences, forget, picture

pytestmark = pytest.mark.django_db

WHOSE = ("conversation", "workspace", "channel")
SEEDS, BABBLED = int(os.environ.get("SEEDS", "3")), int(os.environ.get("BABBLED", "60"))


def resolve_anew() -> None:
    for model in (Block, Fact, Read):
        model.objects.all().delete()
    Conversation.objects.update(generation=F("generation") + 1)
    Conversation.objects.update(whole_generation=F("generation"))
    ask_to_resolve()
    resolve_all()


def check(expected: Any, what: str) -> None:
    """Hold what is stored against what it has to be."""
    found = differences(expected, picture())
    assert not found, f"{what}\n" + "\n".join(found[:12])


def shrink(monkeypatch: pytest.MonkeyPatch, spacing: int) -> None:
    monkeypatch.setattr(resolver, "SPACING", spacing)
    monkeypatch.setattr(resolver, "MAX_MESSAGES", 4 * spacing)
    monkeypatch.setattr(resolver, "CHUNK", 8 * spacing)


@pytest.mark.parametrize("spacing", [256, 4])
@pytest.mark.parametrize("seed", begin_with(1, range(SEEDS), seconds=15))
def test_any_order(cast: Cast, monkeypatch: pytest.MonkeyPatch, seed: int, spacing: int) -> None:
    shrink(monkeypatch, spacing)
    lines = list(Babbler(seed, has_calls=True).babble(BABBLED))
    take_in(cast, *lines, door=Door.API)
    expected = picture()
    for shuffle in range(2):
        forget()
        chance = random.Random(seed * 100 + shuffle)
        left = chance.sample(lines, len(lines)) if shuffle else list(lines)
        while left:
            size = chance.randint(1, 9)
            deliver(cast, *left[:size], door=Door.API)
            del left[:size]
            if chance.random() < 0.7:
                resolve_all(is_examined=False)
        resolve_all()
        check(expected, f"shuffle {shuffle}")
        resolve_anew()
        check(expected, f"anew {shuffle}")


@pytest.mark.parametrize("seed", begin_with(1, range(4 * SEEDS), seconds=10))
def test_what_is_withdrawn_and_restored(cast: Cast, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Only the blocks that it stands in, and those that have read of it, are gone through again."""
    shrink(monkeypatch, 4)
    chance = random.Random(seed)
    lines = list(Babbler(seed, has_calls=True).babble(BABBLED))
    deliveries = []
    while lines:
        size = chance.randint(1, 9)
        deliveries.append(deliver(cast, *lines[:size], door=Door.API))
        lines = lines[size:]
    resolve_all()
    expected = picture()
    for delivery in chance.sample(deliveries, 3):
        act = {"membership": cast.owner, "delivery": Delivery.objects.get(pk=delivery.pk), "reason": "a mistake"}
        withdraw_delivery(**act)
        resolve_all()
        withdrawn = picture()
        resolve_anew()
        check(withdrawn, "withdrawn")
        take_back(**act)
        resolve_all()
        check(expected, "restored")


def test_what_a_killed_worker_has_written_of_a_block_is_gone_on_with(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large block messages are written before the facts that it gives are known."""
    shrink(monkeypatch, 4)
    lines = list(Babbler(2).babble(BABBLED))
    chance = random.Random(2)
    take_in(cast, *chance.sample(lines, BABBLED // 2), door=Door.API)
    deliver(cast, *lines, door=Door.API)
    Job.objects.filter(kind=Job.Kind.INGEST).update(due_at=timezone.now())
    pipeline.run_due(only=(Job.Kind.INGEST,))

    def kill(*given: Any) -> None:
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(writing, "WINDOW", 1)
        patch.setattr(resolver, "write_facts", kill)
        for conversation in Conversation.objects.all():
            with suppress(InterruptedError):
                resolver.resolve(conversation=conversation, fence=lambda: None, finish=lambda others: None)
    assert Block.objects.filter(generation=BROKEN_OFF).exists()
    resolve_all()
    assert not Block.objects.filter(generation=BROKEN_OFF).exists()
    expected = picture()
    resolve_anew()
    check(expected, "anew")


def test_a_withdrawal_goes_through_its_block_alone(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, 4)
    said = [
        json.dumps({"raw": f"Step {at}.", "at": f"2026-11-01T08:{at:02}:00Z", "conversation": "c"}).encode() + b"\n"
        for at in range(60)
    ]
    deliver(cast, *said[:30], *said[31:])
    mistake = take_in(cast, said[30])
    assert Block.objects.count() > 6
    passed: list[int] = []
    go_through = resolver.go_through

    def count(passes: list[Pass], *given: Any) -> None:
        passed.extend(len(each.nodes) for each in passes)
        go_through(passes, *given)

    monkeypatch.setattr(resolver, "go_through", count)
    delivery = Delivery.objects.get(pk=mistake.pk)
    withdraw_delivery(membership=cast.owner, delivery=delivery, reason="a mistake")
    resolve_all()
    assert Conversation.objects.get().message_count == 59
    assert 1 <= len(passed) <= 3


def test_a_turn_that_comes_long_after_later_ones_says_so(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, 4)

    def say(second: int, turn: str, sender: int) -> bytes:
        wire = f"@a3|f0|c1|S{sender}|d{1 - sender % 2}|T{turn}|k1#"
        return json.dumps({"raw": wire, "at": f"2026-11-01T08:00:{second:02}Z"}).encode() + b"\n"

    turns = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    take_in(cast, *(say(at, turn, at % 2) for at, turn in enumerate(turns)), say(50, "5", 4))
    assert Block.objects.count() > 1
    (late,) = Message.objects.filter(sender="4")
    assert late.run == 1
    assert late.parent_why.endswith(LATE)
    assert not Message.objects.exclude(pk=late.pk).filter(parent_why__contains=LATE).exists()
