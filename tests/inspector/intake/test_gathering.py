"""Gathering: what agents post a message at a time is due together, read together, and alone where one is at fault."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inspector import pipeline, reading, steps
from inspector.intake import jobs
from inspector.intake.models import DeadLetter, Delivery, Door, Job
from inspector.threads.models import Conversation, Message

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db

TEXTS = ("one", "two", "three", "four", "five")


def post_each(cast: Cast, texts: Sequence[str]) -> list[Delivery]:
    return [
        deliver(cast, f'{{"raw": "{text}", "from": "ada", "conversation": "c{number % 3}"}}\n'.encode(), door=Door.API)
        for number, text in enumerate(texts)
    ]


def read_all() -> int:
    """How many jobs were leased to read all that waits."""
    return pipeline.run_due(seconds=60, only=(Job.Kind.INGEST,))


def reads() -> list[int]:
    return list(Delivery.objects.order_by("received_at").values_list("read", flat=True))


def test_small_deliveries_are_read_by_one_job(cast: Cast) -> None:
    post_each(cast, TEXTS)
    with CaptureQueriesContext(connection) as captured:
        assert read_all() == 1
    assert reads() == [1] * 5
    assert not Job.objects.filter(kind=Job.Kind.INGEST).exclude(state=Job.State.DONE).exists()
    # One alone takes some twenty.
    assert len(captured) < 50
    resolve_all()
    found = [message.english for message in Message.objects.order_by("record__created_at")]
    assert all(text in english for text, english in zip(TEXTS, found, strict=True))
    assert Conversation.objects.count() == 3


def test_it_comes_out_as_if_each_had_been_read_alone(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def see() -> list[Any]:
        rows = Message.objects.order_by("conversation__native_id", "place")
        return list(rows.values_list("conversation__native_id", "english", "words", "parent_basis", "run"))

    post_each(cast, ["one", "two", "one", "four", "five"])
    resolve_all()
    together = see()
    for model in (Message, Conversation):
        model.objects.all().delete()
    Job.objects.filter(kind=Job.Kind.INGEST).update(state=Job.State.QUEUED, checkpoint={}, attempts=0)
    Delivery.objects.update(read=0)
    monkeypatch.setattr(pipeline, "TOGETHER", {})
    assert read_all() == 5
    resolve_all()
    assert see() == together
    assert reads() == [1] * 5


def test_one_that_fails_is_set_aside_and_the_others_are_read(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    read_record = reading.read_record

    def fail_at_poison(record: Any) -> Any:
        if b"poison" in bytes(record.source):
            raise ValueError("cannot be read")
        return read_record(record)

    monkeypatch.setattr(reading, "read_record", fail_at_poison)
    post_each(cast, ["one", "two", "poison", "four", "five"])
    assert read_all() >= 5
    resolve_all()
    assert DeadLetter.objects.count() == 1
    assert reads() == [1, 1, 0, 1, 1]
    assert Message.objects.count() == 4


def test_after_a_worker_died_each_is_read_alone(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    post_each(cast, ["one", "two", "three"])
    job = jobs.claim(kinds=[Job.Kind.INGEST], together=pipeline.TOGETHER)
    assert job is not None
    monkeypatch.setattr(jobs, "find_alive", lambda tokens: set())
    assert jobs.take_back() == 3
    waiting = Job.objects.filter(kind=Job.Kind.INGEST, attempts=0)
    assert list(waiting.values_list("failure", flat=True)) == [jobs.APART] * 3
    assert read_all() == 3
    assert reads() == [1] * 3


def test_what_one_worker_has_another_does_not_take(cast: Cast) -> None:
    post_each(cast, TEXTS)
    first = jobs.claim(kinds=[Job.Kind.INGEST], together={Job.Kind.INGEST: 2})
    second = jobs.claim(kinds=[Job.Kind.INGEST], together={Job.Kind.INGEST: 500})
    assert first is not None
    assert second is not None
    held = [{each.pk for each in (job, *job.companions)} for job in (first, second)]
    assert [len(ids) for ids in held] == [3, 2]
    assert not held[0] & held[1]
    assert jobs.claim(kinds=[Job.Kind.INGEST]) is None
    # What is given back is due again, and begun as often as before.
    jobs.part(first, first.companions[:1])
    again = jobs.claim(kinds=[Job.Kind.INGEST])
    assert again is not None
    assert again.attempts == 1
    jobs.finish(second, subjects=[each.subject for each in second.companions])
    assert Job.objects.filter(kind=Job.Kind.INGEST, state=Job.State.DONE).count() == 2
    # A second sign of life shortly after the first writes no row.
    jobs.checkpoint(first, {})
    before = list(Job.objects.order_by("pk").values())
    jobs.checkpoint(first, {})
    assert list(Job.objects.order_by("pk").values()) == before
    # Whoever has lost one of several writes nothing.
    Job.objects.filter(pk=first.companions[0].pk).update(lease_token=None)
    with pytest.raises(jobs.LostLeaseError):
        jobs.checkpoint(first, {})
    with pytest.raises(jobs.LostLeaseError):
        jobs.finish(first)


def test_one_that_is_asked_for_again_meanwhile_is_read_once_more(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    _, second, _ = post_each(cast, ["one", "two", "three"])
    hold = reading.hold_records

    def ask_meanwhile(arrivals: Any) -> Any:
        Job.objects.filter(subject=second.pk).update(requests=5)
        return hold(arrivals)

    monkeypatch.setattr(reading, "hold_records", ask_meanwhile)
    job = jobs.claim(kinds=[Job.Kind.INGEST], together=pipeline.TOGETHER)
    assert job is not None
    steps.run_job(job)
    assert reads() == [1, 1, 1]
    waiting = Job.objects.filter(kind=Job.Kind.INGEST, state=Job.State.QUEUED)
    assert [each.subject for each in waiting] == [second.pk]
    monkeypatch.undo()
    resolve_all()
    assert not Job.objects.exclude(state=Job.State.DONE).exists()
    assert Message.objects.count() == 3
    assert reads() == [1, 1, 1]


def test_large_and_unfinished_deliveries_are_read_by_their_own_jobs(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH_RECORDS", 3)
    deliver(cast, *(f'{{"raw": "line {number}"}}\n'.encode() for number in range(7)), door=Door.API)
    post_each(cast, ["one", "two", "three", "four"])
    assert read_all() == 3
    assert sorted(reads()) == [1, 1, 1, 1, 7]


def test_the_first_after_a_pause_is_due_at_once_and_what_follows_at_one_moment(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[float] = []
    monkeypatch.setattr(jobs, "GATHER_SECONDS", 1000.0)
    monkeypatch.setattr(jobs, "wake", lambda *, delay_seconds=0.0: woken.append(delay_seconds))
    gathering = jobs.Gathering()
    assert gathering.find_due() == 0
    dues = {gathering.find_due() for _ in range(5)}
    assert len(dues) <= 2  # The moment may pass meanwhile.
    assert all(due > time.time() and due % 1000 == 0 for due in dues)
    for due in (0.0, *dues, *dues, 0.0):
        gathering.wake(due)
    assert len(woken) == 2 + len(dues)
    assert woken[0] == woken[-1] == 0


def test_what_is_posted_shortly_before_the_end_of_a_span_belongs_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    for now, end in ((1000.0, 1005.0), (1004.5, 1005.0), (1004.9, 1010.0), (1005.0, 1010.0)):
        monkeypatch.setattr(jobs, "time", SimpleNamespace(time=partial(float, now)))
        assert jobs.find_end(5.0) == end


def test_a_posted_message_waits_for_the_others(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "GATHER_SECONDS", 1000.0)
    post_each(cast, ["one", "two", "three"])
    waiting = Job.objects.filter(kind=Job.Kind.INGEST, state=Job.State.QUEUED)
    assert waiting.count() == 3
    # Not some moments after one another, else the first of them would be read alone.
    dues = waiting.filter(due_at__gt=timezone.now()).values_list("due_at", flat=True)
    assert len(dues) >= 2
    assert len({due.timestamp() for due in dues}) <= 2  # The moment may pass meanwhile.
    assert all(due.timestamp() % 1000 == 0 for due in dues)
    deliver(cast, b'{"raw": "a file"}\n')
    # A file waits for nothing.
    assert pipeline.run_due(seconds=60, only=(Job.Kind.INGEST,)) >= 1
    assert waiting.count() >= 2
    assert Delivery.objects.get(file_name="test.log").read == 1
