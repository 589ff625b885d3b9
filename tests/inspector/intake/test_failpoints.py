"""Failpoints: whatever statement fails, however it fails, in the end every record is there once.

Each run lets one statement fail, the n-th that is sent to the database, commits and COPY included; then everything
goes on as a supervisor would have it: the sender sends again, a worker finds the work. n goes from the first
statement to the last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from inspector import database, pipeline, reading
from inspector.accounts.services import ensure_channel
from inspector.intake import framing, jobs
from inspector.intake.framing import take_stream
from inspector.intake.models import DeadLetter, Delivery, Door, Job, Record, Sighting
from inspector.intake.services import open_delivery, take_file
from inspector.threads.models import Message
from tests.lanes import begin_with

from ..conftest import Cast

pytestmark = pytest.mark.django_db(transaction=True)

RECORDS = 6


def write_log(number: int) -> bytes:
    """A small log of its own: four ids, a time, a conversation that is shared."""
    name = f"run {number}"
    lines = [{"raw": f"{name} step {step}", "id": f"{name}.{step}", "conversation": name} for step in range(4)]
    lines.append({"raw": f"{name} at a time", "at": "2026-11-21T09:00:00Z"})
    lines.append({"raw": f"{name} answers", "id": f"{name}.a", "parent": f"{name}.0", "conversation": name})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def fail_by(kind: type[psycopg.Error]) -> Callable[[], None]:
    def fail() -> None:
        raise kind("as the server would say it")

    return fail


def fall_over() -> None:
    raise RuntimeError("a failpoint")


def cut_the_line() -> None:
    """The server ends our session, as when it is restarted."""
    connection.connection.close()


FAILURES: dict[str, Callable[[], None]] = {
    "exception": fall_over,
    "connection reset": cut_the_line,
    "deadlock": fail_by(psycopg.errors.DeadlockDetected),
    "serialisation": fail_by(psycopg.errors.SerializationFailure),
    "disk full": fail_by(psycopg.errors.DiskFull),
}


# Every statement fails in the first two ways, one ours and one the line's; in the others, which differ only in how they
# are retried, every fourth one does. A worker's work is hundreds of statements: there each fails in the first way, and
# half as many in the others. `make failpoints` lets every statement fail in every way.
FIRST_AND_STEP = {
    "exception": (1, 1),
    "connection reset": (1, 1),
    "deadlock": (1, 4),
    "serialisation": (2, 4),
    "disk full": (3, 4),
}
IS_LONG = "FAILPOINTS" in os.environ


# The short lane lets every tenth fail, in the first way.
WAYS = begin_with(1, [("exception", 10), *((failure, 1) for failure in FAILURES)], seconds=20)
# A log is read batch by batch, or as a small one, which is done in one transaction with all that is due.
BATCHES = (RECORDS - 1, RECORDS)
WAYS_OF_WORK = begin_with(
    len(BATCHES),
    [
        *(("exception", 10, batch) for batch in BATCHES),
        *((failure, 1, batch) for failure in FAILURES for batch in BATCHES),
    ],
    seconds=20,
)


def count_up(failure: str, stride: int, *, are_many: bool = False) -> Iterator[int]:
    """The numbers of the statements that fail, without an end."""
    first, step = (1, 1) if IS_LONG else FIRST_AND_STEP[failure]
    return count(first, stride * (step * 2 if are_many and not IS_LONG and failure != "exception" else step))


class Failpoint:
    """Fails at the n-th statement, once; counts how many there are."""

    def __init__(self, at: int, fail: Callable[[], None]) -> None:
        self.at, self.fail = at, fail
        self.count = 0
        self.is_armed = True

    def pass_by(self) -> None:
        if not self.is_armed:
            return
        self.count += 1
        if self.count == self.at:
            self.is_armed = False
            # As Django tells of what the server says, and as it would know of a broken line.
            with connection.wrap_database_errors:
                self.fail()


class Cursor(CursorWrapper):
    """A cursor that passes the failpoint before each statement, COPY included."""

    failpoint: Failpoint

    def execute(self, sql: Any, params: Any = None) -> Any:
        self.failpoint.pass_by()
        return super().execute(sql, params)

    def executemany(self, sql: Any, param_list: Any) -> Any:
        self.failpoint.pass_by()
        return super().executemany(sql, param_list)

    def copy(self, *words: Any, **names: Any) -> Any:
        self.failpoint.pass_by()
        return self.cursor.copy(*words, **names)


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, failpoint: Failpoint) -> Iterator[Failpoint]:
    with monkeypatch.context() as patch:
        mine = type("FailingCursor", (Cursor,), {"failpoint": failpoint})
        patch.setattr(connection, "make_cursor", lambda cursor: mine(cursor, connection))
        patch.setattr(connection, "make_debug_cursor", lambda cursor: mine(cursor, connection))
        commit = connection._commit

        def commit_late() -> None:
            failpoint.pass_by()
            commit()

        patch.setattr(connection, "_commit", commit_late)
        yield failpoint


def recover() -> None:
    """What the supervisor and the workers do, without their pauses: a lost line is made anew, what is due is done."""
    connection.close_if_unusable_or_obsolete()
    for _ in range(12):
        framing.end_abandoned()
        jobs.take_back()
        Job.objects.filter(state=Job.State.QUEUED).update(due_at=timezone.now())
        pipeline.run_due(seconds=30)
        if not Job.objects.filter(state__in=[Job.State.QUEUED, Job.State.RUNNING]).exists():
            return
    raise AssertionError(list(Job.objects.exclude(state=Job.State.DONE).values_list("kind", "state", "failure")))


def try_and_recover(work: Callable[[], Any]) -> bool:
    """Do it; whether it failed. Then do what would be done about it."""
    try:
        work()
    except Exception:  # noqa: BLE001  # whatever a statement does to us
        connection.close()
        return True
    return False


def prove_whole(number: int, channel_id: Any) -> None:
    """Everything of this log is there, once, and the accounts are exact."""
    records = Record.objects.filter(channel_id=channel_id)
    assert records.count() == RECORDS, number
    assert Message.objects.filter(channel_id=channel_id).count() == RECORDS, number
    assert not Message.objects.filter(channel_id=channel_id, told_digest=None).exists(), number
    assert not DeadLetter.objects.exists(), number
    assert not Job.objects.exclude(state=Job.State.DONE).exists(), number
    deliveries = Delivery.objects.filter(channel_id=channel_id)
    assert sum(delivery.stored for delivery in deliveries) == RECORDS, number
    for delivery in deliveries:
        assert delivery.is_framed, number
        outcomes = Sighting.objects.filter(delivery=delivery)
        assert outcomes.count() == delivery.received == delivery.stored + delivery.duplicate, number
        assert outcomes.filter(outcome=Sighting.Outcome.STORED).count() == delivery.stored == delivery.read, number


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits: pauses are proven elsewhere."""
    monkeypatch.setattr(framing, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(jobs, "wake", lambda **names: None)


@pytest.fixture(autouse=True)
def copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of a few records is written as one of many is: by way of a table of its own, with COPY."""
    monkeypatch.setattr(database, "MAX_VALUES", 0)


@pytest.mark.parametrize(("failure", "stride", "batch"), WAYS_OF_WORK)
def test_a_log_survives_a_failure_at_every_statement_of_its_work(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, failure: str, stride: int, batch: int
) -> None:
    """The worker's side: framing an upload, reading its records, settling its conversations."""
    monkeypatch.setattr(reading, "BATCH_RECORDS", batch)
    for number in count_up(failure, stride, are_many=True):
        channel = ensure_channel(workspace=cast.workspace, name=f"run-{number}")
        delivery = open_delivery(workspace=cast.workspace, channel=channel, door=Door.UPLOAD, file_name="a.jsonl")
        take_file(delivery=delivery, chunks=[write_log(number)])
        with failing(monkeypatch, Failpoint(number, FAILURES[failure])) as failpoint:
            try_and_recover(lambda: pipeline.run_due(seconds=30))
            is_over = failpoint.is_armed
        recover()
        prove_whole(number, channel.pk)
        if is_over:
            break
    assert number > 60, "there were hardly any statements to fail"


@pytest.mark.parametrize(("failure", "stride"), WAYS)
def test_a_log_survives_a_failure_at_every_statement_of_its_arrival(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, failure: str, stride: int
) -> None:
    """The door's side: what the sender was not told is kept, he sends again, and nothing is there twice."""
    for number in count_up(failure, stride):
        channel = ensure_channel(workspace=cast.workspace, name=f"run-{number}")

        def send(door: str = Door.IMPORT, name: int = number, into: Any = channel) -> None:
            delivery = open_delivery(workspace=cast.workspace, channel=into, door=door, file_name="a.jsonl")
            take_stream(delivery=delivery, chunks=[write_log(name)])

        with failing(monkeypatch, Failpoint(number, FAILURES[failure])) as failpoint:
            has_failed = try_and_recover(send)
        is_over = failpoint.is_armed
        if has_failed:
            send()
        recover()
        prove_whole(number, channel.pk)
        if is_over:
            break
    assert number > 15, "there were hardly any statements to fail"


@pytest.mark.parametrize("failure", begin_with(1, ["exception", "connection reset"], seconds=10))
def test_a_checkpoint_before_its_work_would_be_noticed(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """A worker that commits how far it is before it has done the work loses records: the tests above can fail."""
    insert = reading._insert_sightings

    def acknowledge_early(job: Job, sightings: Any, state: dict[str, Any], **names: Any) -> None:
        jobs.checkpoint(job, state)
        insert(job, sightings, state, **names)

    monkeypatch.setattr(reading, "_insert_sightings", acknowledge_early)
    monkeypatch.setattr(reading, "BATCH_RECORDS", BATCHES[0])
    lost, whole = 0, 0
    for number in range(1, 42, 4):
        channel = ensure_channel(workspace=cast.workspace, name=f"run-{number}")
        delivery = open_delivery(workspace=cast.workspace, channel=channel, door=Door.IMPORT, file_name="a.jsonl")
        take_stream(delivery=delivery, chunks=[write_log(number)])
        with failing(monkeypatch, Failpoint(number, FAILURES[failure])):
            try_and_recover(lambda: pipeline.run_due(seconds=30, only=(Job.Kind.INGEST,)))
        recover()
        is_whole = Message.objects.filter(channel=channel).count() == RECORDS
        whole, lost = whole + is_whole, lost + (not is_whole)
    assert lost, "the broken variant was not noticed"
    assert whole, "it is broken altogether, which proves nothing"
