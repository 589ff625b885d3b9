"""Writers at the same time: overlapping files, framing beside reading, reading beside settling; nothing is doubled."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from inspector import pipeline, reading, steps
from inspector.intake import jobs
from inspector.intake.framing import Framer, take_stream
from inspector.intake.models import Delivery, Door, Job, Record, Sighting
from inspector.intake.services import open_delivery
from inspector.threads.models import Conversation, Message
from inspector.threads.resolving import writing

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db(transaction=True)


def line(raw: str, **names: object) -> bytes:
    return json.dumps({"raw": raw, **names}).encode() + b"\n"


class Beside:
    """Runs a function in a thread with a connection of its own; what it raised is raised at the end."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  # it is raised again where the thread is joined
            self._error = error
        finally:
            connection.close()

    def join(self) -> None:
        self._thread.join(120)
        assert not self._thread.is_alive(), "it hangs"
        if self._error is not None:
            raise self._error


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < until, "it never came to this"
        time.sleep(0.02)


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])  # type: ignore[index]


def count_waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'")
        return int(cursor.fetchone()[0])  # type: ignore[index]


def open_upload(cast: Cast) -> Delivery:
    return open_delivery(workspace=cast.workspace, channel=cast.channel, door=Door.IMPORT, file_name="test.log")


def test_framing_and_reading_one_delivery_lock_in_one_order(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = open_upload(cast)
    framer = Framer(delivery)
    framer.feed(b"one\n")
    framer.pause()
    job = jobs.claim(kinds=[Job.Kind.INGEST])
    assert job is not None
    # Reading stands still with its job's row locked; framing stores its next batch meanwhile.
    is_reading = threading.Event()
    insert = reading.insert_arrivals

    def insert_late(**names: Any) -> None:
        is_reading.set()
        wait_for(waits_for_a_lock)
        insert(**names)

    monkeypatch.setattr(reading, "insert_arrivals", insert_late)
    batch = Beside(lambda: reading.ingest_batch(job))
    framer.feed(b"two\n")
    assert is_reading.wait(10)
    monkeypatch.setattr("inspector.intake.framing.MAX_TRIES", 1)  # A deadlock must not happen at all.
    framer.close()
    batch.join()


def test_two_workers_that_are_woken_at_once_do_not_part_what_is_due_together(cast: Cast) -> None:
    for number in range(5):
        deliver(cast, line(f"message {number}", conversation="c"), door=Door.API)
    claimed: list[int] = []

    def claim() -> None:
        job = jobs.claim(kinds=[Job.Kind.INGEST], together=pipeline.TOGETHER)
        claimed.append(0 if job is None else 1 + len(job.companions))

    with transaction.atomic():
        # Both have come to where they choose before either of them has chosen.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [jobs._CLAIMING])
        workers = [Beside(claim) for _ in range(2)]
        wait_for(lambda: count_waiting() == 2)
    for worker in workers:
        worker.join()
    assert sorted(claimed) == [0, 5]


@pytest.mark.usefixtures("resolved_apart")
def test_reading_into_a_conversation_that_is_being_settled_locks_in_one_order(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(cast, line("one", conversation="c"))
    resolve_all()
    deliver(cast, line("two", conversation="c"))
    job = jobs.claim(kinds=[Job.Kind.INGEST])
    assert job is not None
    steps.run_job(job)
    deliver(cast, line("three", conversation="c"))
    reading_job = jobs.claim(kinds=[Job.Kind.INGEST])
    Job.objects.filter(kind=Job.Kind.RESOLVE).update(due_at="2020-01-01T00:00:00Z")
    settling_job = jobs.claim(kinds=[Job.Kind.RESOLVE])
    assert reading_job is not None
    assert settling_job is not None
    # Settling is about to write when reading takes what it can get.
    started: list[Beside] = []

    def begin_reading(*_: object, **__: object) -> None:
        if not started:
            started.append(Beside(lambda: reading.ingest_batch(reading_job)))
            wait_for(waits_for_a_lock)

    monkeypatch.setattr("inspector.threads.resolving.resolver.write_changes", begin_reading)
    steps.STEPS[Job.Kind.RESOLVE](settling_job)
    started[0].join()


def test_a_record_that_moves_twice_ends_in_its_smallest_place(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that loaded a record before it moved again must not put it back."""
    deliver(cast, line("Go.", id="m", at="2026-11-21T10:00:00Z"))
    resolve_all()
    deliver(cast, line("Go.", id="m", at="2026-11-21T09:00:00Z"))
    slow = jobs.claim(kinds=[Job.Kind.INGEST])
    assert slow is not None
    insert = reading.insert_arrivals

    def overtake(**names: Any) -> None:
        monkeypatch.setattr(reading, "insert_arrivals", insert)

        def move_again() -> None:
            deliver(cast, line("Go.", id="m", at="2026-11-21T08:00:00Z"))
            fast = jobs.claim(kinds=[Job.Kind.INGEST])
            assert fast is not None
            steps.STEPS[Job.Kind.INGEST](fast)

        mover = Beside(move_again)
        time.sleep(0.5)  # It either moves the record now, or waits until this worker is through.
        insert(**names)
        movers.append(mover)

    movers: list[Beside] = []
    monkeypatch.setattr(reading, "insert_arrivals", overtake)
    steps.STEPS[Job.Kind.INGEST](slow)
    movers[0].join()
    resolve_all()
    assert Record.objects.get().order_time.hour == 8
    assert Message.objects.get().order_time.hour == 8


def test_two_deliveries_that_move_the_same_records_do_not_deadlock(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"m{number}" for number in range(300)]
    deliver(cast, *(line("Go.", id=name, at="2026-11-21T10:00:00Z") for name in names))
    monkeypatch.setattr("inspector.intake.framing.MAX_TRIES", 1)
    for hour in range(9, 3, -1):
        both = [
            Beside(
                lambda order=order, minute=minute, hour=hour: deliver(  # type: ignore[misc]
                    cast, *(line("Go.", id=name, at=f"2026-11-21T{hour:02d}:{minute}:00Z") for name in order)
                )
            )
            for order, minute in ((names, "30"), (names[::-1], "10"))
        ]
        for one in both:
            one.join()
    assert Record.objects.count() == 300
    assert {time.hour for time in Record.objects.values_list("order_time", flat=True)} == {4}


def test_an_unreadable_line_that_is_seen_earlier_is_not_read(cast: Cast) -> None:
    """Two uploads of one file: what was opened first is framed last, so all its sightings are earlier."""
    log = b"fine\n\xff\xfe\nfine too\n"
    first, second = open_upload(cast), open_upload(cast)
    take_stream(delivery=second, chunks=[log])
    take_stream(delivery=first, chunks=[log])
    resolve_all()
    assert Message.objects.count() == 2
    assert not Sighting.objects.filter(outcome=Sighting.Outcome.QUARANTINED, is_earlier=True).exists()
    assert Message.objects.order_by("place").first().order_time == first.received_at  # type: ignore[union-attr]


def test_three_concurrent_uploads_of_overlapping_files_double_nothing(cast: Cast) -> None:
    lines = [line(f"step {number}", id=f"m{number}", conversation=f"job {number % 7}") for number in range(1500)]
    plain = [f"plain {number}\n".encode() for number in range(500)]
    logs = [
        b"".join([*plain[:300], *lines[:1000], b"\xff bad\n"]),
        b"".join([*plain[:300], *lines[:1000][::-1], b"\xff bad\n"]),
        b"".join([*plain, *lines[500:]]),
    ]
    deliveries = [open_upload(cast) for _ in logs]
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            pipeline.run_due(seconds=0.5)
            time.sleep(0.05)

    def take(delivery: Delivery, log: bytes) -> None:
        take_stream(delivery=delivery, chunks=[log[at : at + 20_000] for at in range(0, len(log), 20_000)])

    workers = [Beside(work) for _ in range(2)]
    uploads = [Beside(lambda one=one, log=log: take(one, log)) for one, log in zip(deliveries, logs, strict=True)]  # type: ignore[misc]
    try:
        for upload in uploads:
            upload.join()
    finally:
        is_over.set()
        for worker in workers:
            worker.join()
    assert not Job.objects.exclude(failure="").exists(), list(Job.objects.exclude(failure="").values("kind", "failure"))
    resolve_all()
    # The plain lines are known by the file up to them: all 500 stand once, and the bad lines once a file.
    assert Record.objects.filter(is_quarantined=False).count() == 1500 + 500
    assert Message.objects.count() == 2000
    assert sum(Conversation.objects.values_list("message_count", flat=True)) == 2000
    for delivery, log in zip(deliveries, logs, strict=True):
        delivery.refresh_from_db()
        assert delivery.received == delivery.stored + delivery.duplicate + delivery.quarantined == log.count(b"\n")
    assert sum(delivery.stored for delivery in deliveries) == 2000
    with transaction.atomic():
        assert Sighting.objects.count() == sum(delivery.received for delivery in deliveries)


def test_a_citation_and_the_cited_that_pass_each_other_meet(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is committed after the other has looked for it; the ghost must be filled all the same."""
    deliver(cast, line("Do it.", id="p", conversation="one"))
    cited = jobs.claim(kinds=[Job.Kind.INGEST])
    deliver(cast, line("As you said.", id="q", parent="p", conversation="two"))
    citing = jobs.claim(kinds=[Job.Kind.INGEST])
    assert cited is not None
    assert citing is not None
    insert = reading.insert_arrivals
    has_looked, may_commit = threading.Event(), threading.Event()

    def insert_slowly(**names: Any) -> None:
        insert(**names)
        if not has_looked.is_set():
            has_looked.set()
            may_commit.wait(1.0)

    monkeypatch.setattr(reading, "insert_arrivals", insert_slowly)
    slow = Beside(lambda: reading.ingest_batch(cited))
    assert has_looked.wait(10)
    reading.ingest_batch(citing)
    Job.objects.filter(kind=Job.Kind.RESOLVE).update(due_at="2020-01-01T00:00:00Z")
    settling = jobs.claim(kinds=[Job.Kind.RESOLVE])
    assert settling is not None
    steps.STEPS[Job.Kind.RESOLVE](settling)
    may_commit.set()
    slow.join()
    Job.objects.filter(kind=Job.Kind.INGEST).update(state=Job.State.DONE)
    resolve_all()
    assert Message.objects.get(native_id="q").parent == Message.objects.get(native_id="p").pk


@pytest.mark.usefixtures("resolved_apart")
def test_what_moves_while_its_conversation_is_told_fails_nothing(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = line('{def:zo="tea"}?Uk/zo', id="d", conversation="c", dialect="lambda_lang")
    deliver(cast, b"before\n" + definition)
    resolve_all()
    assert Message.objects.filter(conversation__native_id="c").exclude(established="").count() == 1
    deliver(cast, line("?Uk/zo", conversation="c", dialect="lambda_lang"))
    while (job := jobs.claim(kinds=[Job.Kind.INGEST])) is not None:
        steps.run_job(job)
    skip, moves = writing.Retelling._skip, []

    def skip_late(*given: Any) -> None:
        # The same record arrives with an earlier time, and is put there.
        Delivery.objects.update(received_at="2026-11-21T09:00:00Z")
        Record.objects.update(order_time="2027-11-21T09:00:00Z")
        deliver(cast, definition)
        if (move := jobs.claim(kinds=[Job.Kind.INGEST])) is not None:
            moves.append(move)
            steps.run_job(move)
        skip(*given)

    monkeypatch.setattr(writing.Retelling, "_skip", skip_late)
    before = set(Message.objects.values_list("pk", "order_time"))
    Job.objects.filter(kind=Job.Kind.RESOLVE).update(due_at="2020-01-01T00:00:00Z")
    job = jobs.claim(kinds=[Job.Kind.RESOLVE])
    assert job is not None
    steps.run_job(job)
    monkeypatch.undo()
    assert moves
    assert not before <= set(Message.objects.values_list("pk", "order_time")), "nothing was put elsewhere"
    job.refresh_from_db()
    assert job.failure == ""
    resolve_all()
    told = Message.objects.filter(conversation__native_id="c").order_by("order_time")
    assert len(told) == 2
    assert "tea" in told[1].english
