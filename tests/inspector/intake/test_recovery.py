"""After a death: a killed worker's job goes on in seconds, a killed receiver's delivery is closed.

The leases are those of production, so that no test passes because a lease ran out.
"""

from __future__ import annotations

import http.client
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from django.db import connection
from django.utils import timezone

from inspector import reading, steps
from inspector.intake import framing, jobs, liveness
from inspector.intake.framing import take_stream
from inspector.intake.liveness import Listener
from inspector.intake.models import Delivery, Door, Job, Record, Sighting
from inspector.intake.services import open_delivery
from inspector.intake.store import AbandonedError
from inspector.threads.models import Message

from ..conftest import Cast, deliver, resolve_all
from .processes import kill, process, worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long(seconds=5, waits=True)]

# What is promised: fifteen seconds after a death the work goes on.
PROMISED_SECONDS = 15.0
# A worker that stands still in the middle of its first batch, and says so.
STANDING = """
import sys, time, django
django.setup()
from inspector import pipeline, reading
def stand(**names):
    print("standing", flush=True)
    time.sleep(600)
reading.insert_arrivals = stand
pipeline.run_due(seconds=600)
"""


def wait_for(is_so: Callable[[], bool], seconds: float, log: Path) -> float:
    """How long it took."""
    started = time.monotonic()
    while not is_so():
        assert time.monotonic() - started < seconds, log.read_text()[-3000:] if log.exists() else "nothing was logged"
        time.sleep(0.05)
    return time.monotonic() - started


def is_done() -> bool:
    return not Job.objects.exclude(state=Job.State.DONE).exists()


def is_standing(state: Path) -> bool:
    log = state / "process.log"
    return log.exists() and "standing" in log.read_text()


@contextmanager
def standing_worker(state: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process that holds a job in the middle of its work."""
    with process(state, "-c", STANDING) as child:
        wait_for(lambda: is_standing(state), 60, state / "process.log")
        yield child


def test_a_killed_workers_job_is_taken_back_at_once(cast: Cast, tmp_path: Path) -> None:
    delivery = deliver(cast, *(b"line %d\n" % number for number in range(20)))
    with standing_worker(tmp_path) as child:
        job = Job.objects.get(kind=Job.Kind.INGEST)
        assert job.lease_until is not None
        assert job.lease_until > timezone.now() + timedelta(seconds=60)
        assert jobs.take_back() == 0, "its worker lives"
        kill(child)
        seconds = wait_for(lambda: jobs.take_back() == 1, PROMISED_SECONDS, tmp_path / "process.log")
    print(f"\ntaken back {seconds:.2f} s after kill -9, with a lease of 120 s")
    resolve_all()
    delivery.refresh_from_db()
    assert delivery.read == Message.objects.count() == 20


def test_work_goes_on_within_fifteen_seconds_of_a_kill(cast: Cast, tmp_path: Path) -> None:
    """The whole way: a worker is running, another worker is killed, and the work is done."""
    deliver(cast, *(b"line %d\n" % number for number in range(20)))
    other = tmp_path / "other"
    other.mkdir()
    with (
        standing_worker(other) as child,
        worker(tmp_path),
    ):
        # A second delivery shows that this worker is awake; the first one is held by the other.
        second = deliver(cast, b"awake\n", name="second.log")
        wait_for(lambda: Delivery.objects.get(pk=second.pk).read == 1, 90, tmp_path / "process.log")
        assert Message.objects.count() == 1
        kill(child)
        seconds = wait_for(lambda: Message.objects.count() == 21, PROMISED_SECONDS, tmp_path / "process.log")
    print(f"\nread {seconds:.2f} s after kill -9 of the worker that held it")


def test_a_long_step_keeps_its_lease(cast: Cast, settings: object, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.JOB_LEASE_SECONDS = 1  # type: ignore[attr-defined]
    deliver(cast, b"one\n")

    def read_long(*words: object, **names: object) -> object:
        time.sleep(3)
        return read(*words, **names)  # type: ignore[arg-type]

    read = reading.read_record
    monkeypatch.setattr(reading, "read_record", read_long)
    job = jobs.claim(kinds=[Job.Kind.INGEST])
    assert job is not None
    rivals: list[Job | None] = []

    def rival() -> None:
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            jobs.take_back()
            rivals.append(jobs.claim(kinds=[Job.Kind.INGEST]))
            time.sleep(0.1)
        connection.close()

    beside = threading.Thread(target=rival)
    beside.start()
    steps.run_job(job)
    beside.join()
    assert len(rivals) > 10
    assert not any(rivals)
    resolve_all()
    assert Message.objects.count() == 1


def test_what_hangs_loses_its_lease_in_the_end(cast: Cast, settings: object, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.JOB_LEASE_SECONDS = 1  # type: ignore[attr-defined]
    monkeypatch.setattr(jobs, "MAX_SILENCE_SECONDS", 0.0)
    deliver(cast, b"one\n")
    job = jobs.claim(kinds=[Job.Kind.INGEST])
    assert job is not None
    with jobs.working_on(job):
        time.sleep(1.5)
        assert jobs.claim(kinds=[Job.Kind.INGEST]) is not None
        with pytest.raises(jobs.LostLeaseError):
            jobs.checkpoint(job, {"index": 0})


@contextmanager
def web_server(state: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    words = ["-m", "gunicorn", "inspector.wsgi:application", f"--bind=127.0.0.1:{port}", "--worker-class=gthread"]
    with process(state, *words, "--threads=2", "--no-control-socket", CELERY_BROKER_URL="redis://127.0.0.1:1") as child:
        wait_for(lambda: _listens(port), 60, state / "process.log")
        yield child, port


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def post(port: int, token: str, body: bytes, key: str) -> int:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/plain", "Idempotency-Key": key}
    with closing(client):
        client.request("POST", "/api/v1/messages", body=body, headers=headers)
        with client.getresponse() as response:
            return response.status


def test_a_delivery_whose_web_process_was_killed_is_closed(
    cast: Cast, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [b"line %d of a long body\n" % number for number in range(12_000)]
    body = b"".join(lines)
    key = uuid.uuid4().hex
    with web_server(tmp_path) as (server, port), socket.create_connection(("127.0.0.1", port)) as line:
        head = ["POST /api/v1/messages HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
        head += ["Content-Type: text/plain", f"Content-Length: {len(body)}", f"Idempotency-Key: {key}", "", ""]
        line.sendall("\r\n".join(head).encode() + body[: len(body) // 2])
        wait_for(lambda: Delivery.objects.filter(stored__gte=1000).exists(), 60, tmp_path / "process.log")
        monkeypatch.setattr(framing, "GRACE_SECONDS", 0.0)
        assert framing.end_abandoned() == 0, "its receiver lives, however slow the sender is"
        kill(server)
        killed_at = time.monotonic()
    wait_for(lambda: framing.end_abandoned() == 1, PROMISED_SECONDS, tmp_path / "process.log")
    print(f"\nclosed {time.monotonic() - killed_at:.2f} s after kill -9, besides the grace of 10 s after its beginning")
    delivery = Delivery.objects.get()
    assert delivery.state == Delivery.State.BROKEN
    assert "Send the body again" in delivery.failure
    assert delivery.sha256 is None
    assert 1000 <= delivery.stored < len(lines)
    assert delivery.received == delivery.stored == Record.objects.count() == Sighting.objects.count()
    resolve_all()
    delivery.refresh_from_db()
    assert delivery.read == delivery.stored
    # What the sender was not told is kept, he sends again, and it goes on where it ended.
    kept = delivery.stored
    with web_server(tmp_path) as (_, port):
        assert post(port, token, body, key) == 202
    second = Delivery.objects.exclude(pk=delivery.pk).get()
    assert (second.duplicate, second.stored) == (kept, len(lines) - kept)
    assert Record.objects.count() == len(lines)


@pytest.mark.parametrize("door", Door.values)
def test_what_nobody_receives_is_closed_with_its_doors_words(cast: Cast, door: str) -> None:
    delivery = open_delivery(workspace=cast.workspace, channel=cast.channel, door=door)
    assert framing.end_abandoned() == 0, "it has only just begun"
    Delivery.objects.update(received_at=timezone.now() - timedelta(seconds=framing.GRACE_SECONDS + 1))
    assert framing.end_abandoned() == 1
    assert framing.end_abandoned() == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.failure) == (Delivery.State.BROKEN, framing.WORDS[Door(door)])


def test_a_closed_delivery_takes_nothing_more(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = open_delivery(workspace=cast.workspace, channel=cast.channel, door=Door.API)
    monkeypatch.setattr("inspector.intake.framing.BATCH_RECORDS", 1)

    def close_between() -> Iterator[bytes]:
        yield b"one\n"
        Delivery.objects.update(state=Delivery.State.BROKEN)
        yield b"two\n"

    with pytest.raises(AbandonedError):
        take_stream(delivery=delivery, chunks=close_between())
    delivery.refresh_from_db()
    assert (delivery.state, delivery.received, Record.objects.count()) == (Delivery.State.BROKEN, 1, 1)


def test_a_killed_worker_process_is_replaced(cast: Cast, tmp_path: Path) -> None:
    log = tmp_path / "process.log"
    with worker(tmp_path, 2) as pool:
        children = psutil.Process(pool.pid).children
        wait_for(lambda: len(children()) == 2, 60, log)
        deliver(cast, b"before\n")
        wait_for(is_done, 60, log)
        killed = children()
        for child in killed:
            child.kill()
        deliver(cast, b"after\n")
        wait_for(lambda: Message.objects.count() == 2 and is_done(), 60, log)
        assert not {child.pid for child in killed} & {child.pid for child in children()}
    assert not Message.objects.filter(told_digest=None).exists()


def test_a_stopped_worker_ends_what_it_has_begun(cast: Cast, tmp_path: Path) -> None:
    """SIGTERM while it waits, and while it reads: no job is left to anybody's lease."""
    log = tmp_path / "process.log"
    for lines in (1, 2000):
        with worker(tmp_path, 2) as pool:
            deliver(cast, *(b"line %d of %d\n" % (number, lines) for number in range(lines)), name=f"{lines}.log")
            wait_for(Job.objects.filter(state=Job.State.RUNNING).exists if lines > 1 else is_done, 60, log)
            pool.terminate()
            assert pool.wait(30) == 0, log.read_text()[-3000:]
        assert not Job.objects.filter(state=Job.State.RUNNING).exists()
    resolve_all()
    assert Message.objects.count() == 2001


def test_a_listener_hears_of_work_at_once() -> None:
    with Listener() as listener:
        before = time.monotonic()
        listener.wait(0.2)
        assert time.monotonic() - before >= 0.2, "nobody woke it"
        liveness.wake(delay_seconds=5)
        liveness.wake()
        listener.wait(60)
        assert time.monotonic() - before < 30


def test_a_restarted_database_costs_only_time(cast: Cast, tmp_path: Path) -> None:
    """Every session of a worker is ended by the server, again and again; the worker goes on."""
    deliver(cast, *(b"line %d\n" % number for number in range(3000)))
    with worker(tmp_path):
        wait_for(Message.objects.exists, 90, tmp_path / "process.log")
        for _ in range(3):
            _end_other_sessions()
            time.sleep(0.5)
        wait_for(is_done, 90, tmp_path / "process.log")
    assert Message.objects.count() == 3000


def _end_other_sessions() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
