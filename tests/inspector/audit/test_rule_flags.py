"""Examining looks at what shows something, and finds what it would find by looking at everything."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.models import F, QuerySet

from inspector.accounts.models import Channel
from inspector.accounts.services import create_api_key
from inspector.audit.findings.examining import find, load_settings
from inspector.audit.findings.loading import load_scenes
from inspector.audit.models import Examination, Finding
from inspector.audit.rules import RULES
from inspector.intake.framing import take_stream
from inspector.intake.models import Delivery, Door, Record
from inspector.intake.services import open_delivery
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads.models import Conversation, Message, Task
from inspector.threads.models.tasks import REMARKABLE
from inspector.threads.terms import FLAGGED, RuleFlag
from inspector.worker import sweep
from tests.lanes import begin_with

from ..conftest import Cast, deliver, resolve_all
from .rule_logs import LOGS
from .rule_logs.writing import clowl
from .whole_scenes import CONDITIONS, load_whole_scenes, sum_sights

pytestmark = pytest.mark.django_db

SEEDS = begin_with(1, (3, 0), seconds=20)
# What takes several messages to see, or a key of the API or of the keyring.
ACROSS = {"conflicting-duplicate", "reused-number", "skewed-time", "sender-not-of-key"}
NEED_KEYS = {"sender-not-of-key", "not-authentic"}
BY_ITSELF = sum(sight.value for sight in (RuleFlag.DECIDED, *CONDITIONS))


def list_logs(*, is_apart: bool = True) -> Iterator[list[bytes]]:
    """The lines of every log that a rule shows; each in a conversation of its own, or most of them in one."""
    for code, (triggers, passes) in LOGS.items():
        for number, log in enumerate((*triggers, *passes)):
            if is_apart:
                for name in ("cid", "conversation"):
                    log = log.replace(f'"{name}": "c"', f'"{name}": "{code}-{number}"')
            yield [line.encode() for line in log.splitlines(keepends=True)]


def prove(cast: Cast) -> Counter[str]:
    """What is stored of each message is what its row shows, and what is found is what all rows show: by which rules."""
    shown = Message.objects.annotate(own=F("sights").bitand(BY_ITSELF), decided=sum_sights())
    assert list(shown.exclude(own=F("decided")).values_list("own", "decided", "english")) == []
    conversations = list(Conversation.objects.order_by("pk"))
    settings = load_settings(workspace_id=cast.workspace.pk)
    whole = find(load_whole_scenes(conversations), settings)
    assert find(load_scenes(conversations), settings) == whole
    for each in conversations[:10]:
        assert find(load_scenes([each]), settings) == {each.pk: whole[each.pk]}
    kept = Finding.objects.filter(holds=True).values_list("conversation", "key")
    assert {(pk, bytes(key)) for pk, key in kept} == {(pk, one.key) for pk, found in whole.items() for one in found}
    return Counter(one.rule for found in whole.values() for one in found)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_looked_at_is_enough_whatever_came_first(cast: Cast, seed: int) -> None:
    """The logs of all rules, each apart or as one, in any order, some lines twice, some withdrawn a while."""
    chance = random.Random(seed)
    channels = [cast.channel, Channel.objects.create(workspace=cast.workspace, name="second")]
    logs = list_logs(is_apart=seed % 2 == 0)
    keys = [
        create_api_key(workspace=cast.workspace, name=f"k{number}", scopes=["ingest"], agents=agents)[0]
        for number, agents in enumerate((["ada", "oscar"], []))
    ]
    left = [(channel, line) for lines in logs for channel in [chance.choice(channels)] for line in lines]
    left += chance.sample(left, 20)
    chance.shuffle(left)
    deliveries: list[Delivery] = []
    while left:
        size = chance.randint(20, 120)
        batch: dict[Channel, list[bytes]] = {}
        for channel, line in left[:size]:
            batch.setdefault(channel, []).append(line)
        del left[:size]
        for channel, lines in batch.items():
            door = chance.choice((Door.API, Door.IMPORT))
            key = chance.choice(keys) if door == Door.API else None
            delivery = open_delivery(
                workspace=cast.workspace, channel=channel, door=door, key=key, file_name="" if key else "a.log"
            )
            deliveries.append(take_stream(delivery=delivery, chunks=[b"".join(lines)]))
        if chance.random() < 0.5:
            resolve_all()
    resolve_all()
    assert prove(cast).keys() >= (ACROSS if seed % 2 == 0 else {"conflicting-duplicate", "sender-not-of-key"})
    withdrawn = chance.sample(deliveries, len(deliveries) // 3)
    for delivery in withdrawn:
        withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="not ours")
    resolve_all()
    prove(cast)
    for delivery in withdrawn[::2]:
        take_back(membership=cast.auditor, delivery=delivery, reason="ours")
    resolve_all()
    prove(cast)


@pytest.mark.long(seconds=25)
def test_what_an_earlier_decoder_read_is_decided_when_it_is_read_anew(cast: Cast) -> None:
    """Every rule finds what it looks for, and what is read anew shows what it says then."""
    deliver(cast, *(line for lines in list_logs() for line in lines))
    resolve_all()
    expected = prove(cast)
    assert expected.keys() >= RULES.keys() - NEED_KEYS
    Message.objects.update(told_in="1.1 clowl =", sights=0)
    Examination.objects.update(version="1.1/2")
    sweep()
    resolve_all()
    assert prove(cast) == expected


def write(raw: str, conversation: str, at: str, **said: str) -> bytes:
    envelope = {"raw": raw, "conversation": conversation, "from": "ada", "at": f"2026-11-16T{at}:00Z", **said}
    return json.dumps(envelope).encode() + b"\n"


@pytest.mark.parametrize("is_turned", [False, True])
def test_of_two_that_show_one_key_at_one_time_the_same_is_named_whichever_came_first(
    cast: Cast, is_turned: bool
) -> None:
    """One that comes after the finding, as well."""
    (shown, other) = LOGS["key-changed"].triggers[1].splitlines(keepends=True)
    one, two = (json.dumps(json.loads(shown) | {"note": note}).encode() + b"\n" for note in ("one", "two"))
    for line in (two, other.encode(), one) if is_turned else (one, other.encode(), two):
        deliver(cast, line)
        resolve_all()
    prove(cast)
    finding = Finding.objects.get(rule="key-changed", holds=True)
    named = min(Record.objects.exclude(pk=finding.record_id), key=lambda record: bytes(record.identity))
    assert list(finding.list_related()) == [(named.pk, 1)]


def test_an_answer_is_early_where_what_it_answers_is_moved(cast: Cast) -> None:
    """What was seen at nine and at ten counts at nine, unless that is withdrawn: then answers to it came before it."""
    at_nine = deliver(cast, write("Shall we?", "c", "09:00", id="m1"), name="nine.log")
    deliver(cast, write("Shall we?", "c", "10:00", id="m1"), name="ten.log")
    beside = write("Yes.", "c", "09:30", id="m2", parent="m1")
    elsewhere = write("Yes, both of us.", "d", "09:40", id="m3", parent="m1")
    deliver(cast, beside, elsewhere, name="answers.log")
    resolve_all()
    prove(cast)
    skewed = Finding.objects.filter(rule="skewed-time", holds=True).order_by("at")
    assert not skewed.exists()
    withdraw_delivery(membership=cast.auditor, delivery=at_nine, reason="not ours")
    resolve_all()
    prove(cast)
    assert [finding.text for finding in skewed.all()] == [
        f"Its time is {minutes} minutes before that of the message it answers." for minutes in (30, 20)
    ]
    take_back(membership=cast.auditor, delivery=at_nine, reason="ours")
    resolve_all()
    prove(cast)
    assert not skewed.exists()


def plain(count: int, *, first: int = 0) -> bytes:
    """Requests that are answered, each in its time."""
    lines = [
        clowl(f"q{number}", "REQ", "oscar", "radar", minute=number)
        + clowl(f"a{number}", "DONE", "radar", "oscar", minute=number + 0.5, pid=f"q{number}")
        for number in range(first, first + count)
    ]
    return "".join(lines).encode()


def test_a_plain_conversation_is_examined_without_reading_it(cast: Cast) -> None:
    """Of three hundred messages and their tasks no row is fetched but the first; of what is odd among them, that is."""
    deliver(cast, plain(150))
    resolve_all()
    conversation = Conversation.objects.get()
    assert (conversation.message_count, conversation.tasks.count()) == (300, 150)
    (scene,) = load_scenes([conversation])
    held = {name: getattr(scene, name) for name in scene.__slots__ if name != "conversation"}
    assert {name for name, value in held.items() if value} == {"first"}
    assert not Message.objects.filter(FLAGGED).exists()
    assert not Task.objects.filter(REMARKABLE).exists()
    deliver(cast, clowl("b1", "REQ", "oscar", "radar", minute=9, pid="gone").encode(), name="b.log")
    resolve_all()
    (scene,) = load_scenes([conversation])
    assert (len(scene.odd), len(scene.tasks)) == (1, 1)


def test_what_is_to_be_looked_at_is_found_by_index(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL sees that the indexes of what is remarkable hold all that is asked for."""
    deliver(cast, plain(150))
    resolve_all()
    plans = []
    iterate = QuerySet.iterator

    def explain(rows: QuerySet[Any], chunk_size: int) -> Iterator[Any]:
        plans.append(rows.explain())
        return iterate(rows, chunk_size=chunk_size)

    monkeypatch.setattr(QuerySet, "iterator", explain)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE threads_message, threads_task, threads_conversation, intake_hiddenrecord")
    load_scenes(list(Conversation.objects.all()))
    messages, tasks = plans
    assert "message_in_sight" in messages
    assert "task_remarkable" in tasks
