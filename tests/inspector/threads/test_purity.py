"""Settling is a function of the set: whatever came first, and whatever random ids were given, the outcome is one."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import pytest

from inspector.accounts.models import Channel
from inspector.intake.models import Door, Record
from inspector.threads.models import Conversation, Message, Task, TreeGroup
from inspector.threads.nodes import load_timelines
from tests.inspector.audit.rule_logs import LOGS
from tests.lanes import begin_with

from ..conftest import Cast, ask_to_resolve, deliver, resolve_all, take_in
from .pictures import forget, list_findings, picture

pytestmark = pytest.mark.django_db


def line(raw: str, **names: object) -> bytes:
    return json.dumps({"raw": raw, **names}).encode() + b"\n"


CITING = line("As you said.", id="q", parent="p", conversation="side", at="2026-11-21T09:00:09Z")
FIRST = line("Do it.", id="p", conversation="one", at="2026-11-21T09:00:00Z")
SECOND = line("Do it.", id="p", conversation="two", at="2026-11-21T09:00:01Z")


def name_of(one: bytes) -> str:
    said = json.loads(one)
    return str(said["conversation"])


@pytest.mark.parametrize(
    "order", list(permutations([CITING, FIRST, SECOND])), ids=lambda order: "-".join(map(name_of, order))
)
def test_an_id_that_two_conversations_bear_is_no_parent_whatever_came_first(
    cast: Cast, order: tuple[bytes, ...]
) -> None:
    for one in order:
        take_in(cast, one, door=Door.API)
    citing = Message.objects.get(native_id="q")
    assert citing.parent is None
    assert citing.parent_why == "it names its parent; 2 messages bear that id"
    assert citing.conversation.missing_count == 0


def test_a_parent_elsewhere_that_moves_is_still_the_parent(cast: Cast) -> None:
    take_in(cast, line("Do it.", id="p", conversation="one", at="2026-11-21T09:00:05Z"), CITING)
    # The same record with an earlier time is read anew in its new place, as a row of its own.
    take_in(cast, FIRST)
    assert Message.objects.get(native_id="q").parent == Message.objects.get(native_id="p").pk


def test_records_of_equal_order_keys_are_gone_through_by_identity(cast: Cast) -> None:
    """The dialect that a conversation speaks must not depend on which record was given the smaller random id."""
    conversations = []
    for reverse in (False, True):
        Record.objects.all().delete()
        raws = sorted(["We go on.", "Then we rest."], reverse=reverse)
        for raw in raws:
            deliver(cast, b"same first line\n" + line(raw, conversation="c", at="2026-11-21T09:00:00Z"))
        resolve_all()
        conversation = Conversation.objects.get(native_id="c")
        nodes = load_timelines([conversation.pk])[conversation.pk]
        identities = {record.pk: bytes(record.identity) for record in Record.objects.all()}
        conversations.append([identities[node.record] for node in nodes])
    assert conversations[0] == conversations[1]


# A story in five dialects: definitions and resets, tasks, sessions and nonces, runs of turns, a guess, ghosts that are
# filled, a circle, ids that several bear. Telling in it depends on what was said before, and on where that stands.
STORY: list[dict[str, Any]] = [
    {"raw": '{def:fp="flash point"}!ta', "id": "l1", "from": "ada", "to": ["bob"], "conversation": "lab"},
    {"raw": "?ufp", "id": "l2", "from": "bob", "to": ["ada"], "conversation": "lab"},
    {"raw": '{def:fp="front page"}!ta', "id": "l3", "from": "bob", "to": ["ada"], "conversation": "lab"},
    {"raw": "?ufp", "id": "l4", "from": "ada", "to": ["bob"], "conversation": "lab"},
    {"raw": "@*\n!ta", "id": "l5", "from": "ada", "to": ["bob"], "conversation": "lab"},
    {"raw": "?Uk/co", "id": "l6", "from": "ada", "to": ["bob"], "conversation": "lab"},
    {"raw": "Plain words.", "id": "l7", "parent": "l4", "from": "cid", "conversation": "lab"},
    {"raw": '@a3|f0|c1|S0|d1|T1|g1|k1|q2|t"rollback"#'},
    {"raw": '@a4|f1|c1|S1|d0|T2|g1|k1|t"plan_b"#'},
    {"raw": '@a6|f1|c1|S0|d1|T3|g1|k1|t"plan_b"#'},
    {"raw": '@a3|f0|c1|S0|d1|T1|g1|k2|t"again"#'},
    {"raw": {"clowl": "0.2", "mid": "k1", "cid": "ops", "p": "REQ", "from": "ada", "to": "bob", "body": {"t": "ship"}}},
    {"raw": {"clowl": "0.2", "mid": "k2", "cid": "ops", "pid": "k1", "p": "ACK", "from": "bob", "to": "ada"}},
    {"raw": {"clowl": "0.2", "mid": "k3", "cid": "ops", "pid": "k1", "p": "DONE", "from": "bob", "to": "ada"}},
    {"raw": {"clowl": "0.2", "mid": "k4", "cid": "ops", "pid": "k1", "p": "ACK", "from": "bob", "to": "ada"}},
    {"raw": {"clowl": "0.2", "mid": "k5", "cid": "ops", "pid": "l4", "p": "INF", "from": "cid", "to": "ada"}},
    {"raw": "Round we go.", "id": "r1", "parent": "r2", "from": "ada", "conversation": "ring"},
    {"raw": "And round.", "id": "r2", "parent": "r3", "from": "bob", "conversation": "ring"},
    {"raw": "And round again.", "id": "r3", "parent": "r1", "from": "cid", "conversation": "ring"},
    {"raw": "Whose?", "id": "r4", "parent": "lost", "from": "ada", "conversation": "ring"},
    {"raw": "Mine.", "id": "r5", "parent": "k3", "from": "ada", "conversation": "ring"},
    {"raw": "Also k3, said elsewhere.", "id": "k3", "from": "ada", "conversation": "side"},
]


def write_story() -> list[bytes]:
    return [
        json.dumps(
            each
            | {
                "raw": each["raw"] if isinstance(each["raw"], str) else json.dumps(each["raw"]),
                "at": f"2026-11-21T09:00:{at:02d}Z",
            }
        ).encode()
        + b"\n"
        for at, each in enumerate(STORY)
    ]


def settle_from_scratch() -> None:
    """Tell everything anew, as if nothing had ever been settled."""
    TreeGroup.objects.all().delete()
    Task.objects.all().delete()
    Message.objects.update(
        told_in="", told_digest=None, established="", english="", body="", words=None, atoms=[], place=None, run=1
    )
    Message.objects.update(parent=None, parent_basis="", parent_why="", above=None, trace_above=None)
    Conversation.objects.update(generation=10**6)
    ask_to_resolve()
    resolve_all()


# A thousand are gone through with PURITY_PERMUTATIONS=1000. Each block is a transaction of its own, because whatever is
# locked in one stays so until its end.
PERMUTATIONS, BLOCK = int(os.environ.get("PURITY_PERMUTATIONS", "40")), 10
# The logs of all rules are ten times as much.
RULE_PERMUTATIONS = max(1, PERMUTATIONS // 40)
FOUND_IN_STORY = {"circle", "missing-message"}


@pytest.mark.parametrize("block", begin_with(4, range(PERMUTATIONS // BLOCK), seconds=35))
def test_what_is_resumed_is_what_is_settled_from_scratch(
    cast: Cast, block: int, record_property: Callable[[str, object], None]
) -> None:
    """Any order, any batches, settled in between or not: one outcome, which telling everything anew gives as well."""
    lines = write_story()
    take_in(cast, *lines, door=Door.API)
    settle_from_scratch()
    expected = picture()
    assert len(expected) == 5
    assert {rule for each in expected.values() for (rule, *_), *_ in each["findings"]} >= FOUND_IN_STORY
    differing: dict[str, dict[str, Any]] = {}
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        forget()
        chance = random.Random(seed)
        left = chance.sample(lines, len(lines))
        while left:
            size = chance.randint(1, 9)
            deliver(cast, *left[:size], door=Door.API)
            del left[:size]
            if chance.random() < 0.5:
                # Examined on the way too in every other one.
                resolve_all(is_examined=seed % 2 == 0)
        resolve_all()
        compare(f"permutation {seed}", picture(), expected, differing)
    settle_from_scratch()
    compare(f"permutation {seed}, from scratch", picture(), expected, differing)
    record_property("permutations", BLOCK)
    record_property("failures", len(differing))
    for name, outcome in differing.items():
        assert outcome == expected, name


def compare(name: str, outcome: dict[str, Any], expected: dict[str, Any], differing: dict[str, dict[str, Any]]) -> None:
    if outcome != expected:
        differing[name] = outcome


def read_rule_logs() -> Iterator[tuple[str, list[bytes]]]:
    """A channel's name and the lines of a log, of the logs that rules show and whose lines tell their order.

    Of two lines of one moment, or of none that can be, that counts first which came in first.
    """
    for code, rule in LOGS.items():
        if code == "impossible-time":
            continue
        # Those in which a rule finds nothing are as much again: they are gone through where many permutations are.
        for kind, logs in (("on", rule.triggers), ("off", rule.passes if RULE_PERMUTATIONS > 1 else ())):
            for number, log in enumerate(logs):
                lines = log.splitlines(keepends=True)
                try:
                    said = [json.loads(text) for text in lines]
                except ValueError:
                    continue
                times = [str(each.get("at") or each.get("ts") or "") for each in said]
                is_one = kind == "off" and len(lines) == 1
                if all(times) and len(set(times)) == len(times) and not is_one:
                    yield f"{kind}-{code}-{number}", [text.encode() for text in lines]


def deliver_and_settle(cast: Cast, channels: dict[str, Channel], logs: dict[str, list[bytes]]) -> None:
    for name, lines in logs.items():
        deliver(cast, *lines, door=Door.API, channel=channels[name])
    resolve_all()


def picture_findings() -> dict[str, Any]:
    """What was found in each conversation."""
    records = {str(record.pk): bytes(record.identity).hex() for record in Record.objects.all()}
    return {
        f"{each.channel.name} {bytes(each.key).hex()}": found
        for each in Conversation.objects.select_related("channel")
        if (found := list_findings(each, records))
    }


# Committed as the product commits: what is locked in one transaction stays so until its end.
@pytest.mark.django_db(transaction=True)
def test_findings_are_the_same_in_any_order_and_any_batches(
    cast: Cast, record_property: Callable[[str, object], None]
) -> None:
    """The logs of all rules at once, their lines shuffled together: what is found does not depend on it (R6)."""
    logs = dict(read_rule_logs())
    channels = {name: Channel.objects.create(workspace=cast.workspace, name=name[:64]) for name in logs}
    deliver_and_settle(cast, channels, logs)
    expected = picture_findings()
    rules = {rule for found in expected.values() for (rule, *_), *_ in found}
    shown = {name.removeprefix("on-").rpartition("-")[0] for name in logs if name.startswith("on-")}
    # No more than these few show no log whose lines tell their order.
    assert shown <= rules
    assert len(shown) >= len(LOGS) - 4, set(LOGS) - shown
    differing: dict[str, dict[str, Any]] = {}
    for seed in range(RULE_PERMUTATIONS):
        forget()
        chance = random.Random(seed)
        left = [(name, text) for name, lines in logs.items() for text in lines]
        chance.shuffle(left)
        while left:
            size = chance.randint(1, len(logs))
            batches: dict[str, list[bytes]] = {}
            for name, text in left[:size]:
                batches.setdefault(name, []).append(text)
            del left[:size]
            deliver_and_settle(cast, channels, batches)
        compare(f"permutation {seed}", picture_findings(), expected, differing)
    record_property("permutations", RULE_PERMUTATIONS)
    record_property("logs", len(logs))
    record_property("rules that found something", len(rules))
    record_property("failures", len(differing))
    for name, outcome in differing.items():
        assert outcome == expected, name
