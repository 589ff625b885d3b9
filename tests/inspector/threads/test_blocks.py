"""Resolving block by block is one function of the set: in any order and batches, with blocks of any size."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest
from django.db.models import F

from inspector.intake.models import Door
from inspector.threads.models import Appearance, Block, Conversation, Declaration, Exchange, Fact, Message, Read, Task
from inspector.threads.resolving import blocks, resolver
from inspector.threads.resolving.runs import LATE
from inspector.threads.tasks.rows import read_steps
from tests.lanes import begin_with

from ..conftest import Cast, ask_to_resolve, deliver, settle_all
from .babble import Babbler
from .test_purity import forget, list_findings

pytestmark = pytest.mark.django_db

WHOSE = ("conversation", "workspace", "channel")
SEEDS, BABBLED = int(os.environ.get("SEEDS", "3")), int(os.environ.get("BABBLED", "60"))


def picture() -> dict[str, Any]:
    from inspector.intake.models import Record

    records = {str(record.pk): bytes(record.identity).hex() for record in Record.objects.all()}
    names = {message.pk: f"{records[str(message.record_id)][:8]}/{message.part}" for message in Message.objects.all()}
    shown: dict[str, Any] = {}
    for each in Conversation.objects.select_related("channel"):
        assert each.is_settled
        number = {}
        rows = []
        for message in Message.objects.shown().filter(conversation=each).order_by("place"):
            assert message.place is not None
            number[bytes(message.place)] = len(number)
            body = message.body
            for pk, identity in records.items():
                body = body.replace(pk, identity)
            rows.append(
                {
                    "name": names[message.pk],
                    "dialect": message.dialect,
                    "run": message.run,
                    "parent": names.get(message.parent) if message.parent else None,
                    "link": (bytes(message.parent_key or b"").hex(), message.parent_basis, message.parent_why),
                    "english": message.english,
                    "body": body,
                    "words": (message.words, message.atoms, message.severity),
                    "digest": bytes(message.told_digest or b"").hex(),
                    "task": message.task and str(message.task) and True,
                }
            )
        tasks = list(each.tasks.order_by("place", "native_id"))
        by_key = {bytes(task.key): task.native_id or names.get(task.request, "") for task in tasks if task.request}
        told = (
            "id",
            "key",
            "within_key",
            "request",
            "steps",
            "digest",
            "place",
            "conversation",
            "workspace",
            "channel",
        )
        shown[bytes(each.key).hex()] = {
            "rows": rows,
            "tasks": [
                {
                    "request": names.get(task.request) if task.request else None,
                    "at": number.get(bytes(task.place)),
                    "within": by_key.get(bytes(task.within_key)) if task.within_key else None,
                    "steps": [(names[s.message_id], s.event, s.state, s.link) for s in read_steps(task.steps)],
                    **{f.name: getattr(task, f.name) for f in Task._meta.fields if f.name not in told},
                }
                for task in tasks
            ],
            "sum": (
                bytes(each.settled_digest or b"").hex(),
                (each.state, each.subject, each.agents, each.dialects),
                (each.message_count, each.missing_count, each.severity, each.first_at, each.last_at),
            ),
            "counted": {
                model.__name__: sorted(
                    str(row)
                    for row in model.objects.filter(conversation=each).values_list(
                        *(
                            f.name
                            for f in model._meta.fields
                            if f.name not in ("id", "workspace", "channel", "message", "conversation")
                        )
                    )
                )
                for model in (Appearance, Exchange, Declaration)
            },
            "findings": list_findings(each, records),
        }
    return shown


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Where two pictures differ."""
    if type(one) is not type(other):
        return [f"{at}: {one!r} != {other!r}"]
    if isinstance(one, dict):
        return [
            d for key in one.keys() | other.keys() for d in differences(one.get(key), other.get(key), f"{at}.{key}")
        ]
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return [f"{at}: {len(one)} != {len(other)}: {one!r:.300} {other!r:.300}"]
        return [d for n, (a, b) in enumerate(zip(one, other, strict=True)) for d in differences(a, b, f"{at}[{n}]")]
    return [] if one == other else [f"{at}: {one!r:.400} != {other!r:.400}"]


def resolve_anew() -> None:
    for model in (Block, Fact, Read):
        model.objects.all().delete()
    Conversation.objects.update(generation=F("generation") + 1)
    Conversation.objects.update(whole_generation=F("generation"))
    ask_to_resolve()
    settle_all()


def shrink(monkeypatch: pytest.MonkeyPatch, spacing: int) -> None:
    monkeypatch.setattr(blocks, "SPACING", spacing)
    monkeypatch.setattr(blocks, "MAX_MESSAGES", 4 * spacing)
    monkeypatch.setattr(blocks, "CHUNK", 8 * spacing)
    monkeypatch.setattr(resolver, "CHUNK", 8 * spacing)


@pytest.mark.parametrize("spacing", [256, 4])
@pytest.mark.parametrize("seed", begin_with(1, range(SEEDS), seconds=15))
def test_any_order(cast: Cast, monkeypatch: pytest.MonkeyPatch, seed: int, spacing: int) -> None:
    shrink(monkeypatch, spacing)
    lines = list(Babbler(seed).babble(BABBLED))
    deliver(cast, *lines, door=Door.API)
    settle_all()
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
                settle_all()
        settle_all()
        found = differences(expected, picture())
        assert not found, f"shuffle {shuffle}\n" + "\n".join(found[:12])
        resolve_anew()
        found = differences(expected, picture())
        assert not found, f"anew {shuffle}\n" + "\n".join(found[:12])


def test_a_turn_that_comes_long_after_later_ones_says_so(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, 4)

    def say(second: int, turn: str, sender: int) -> bytes:
        wire = f"@a3|f0|c1|S{sender}|d{1 - sender % 2}|T{turn}|k1#"
        return json.dumps({"raw": wire, "at": f"2026-11-01T08:00:{second:02}Z"}).encode() + b"\n"

    turns = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    deliver(cast, *(say(at, turn, at % 2) for at, turn in enumerate(turns)), say(50, "5", 4))
    settle_all()
    assert Block.objects.count() > 1
    (late,) = Message.objects.filter(sender="4")
    assert late.run == 1
    assert late.parent_why.endswith(LATE)
    assert not Message.objects.exclude(pk=late.pk).filter(parent_why__contains=LATE).exists()
