"""After a death: a killed worker's job goes on in seconds, a killed receiver's delivery is closed, without a broker.

The leases are those of production, so that no test passes because a lease ran out.
"""

from __future__ import annotations

import http.client
import os
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

from inspector import pipeline, reading
from inspector.intake import abandoned, jobs
from inspector.intake.models import Delivery, Door, Job, Record, Sighting
from inspector.intake.services import open_delivery, take_stream
from inspector.intake.store import AbandonedError
from inspector.threads.models import Message

from ..conftest import Cast, deliver, settle_all
from .processes import celery, kill, process

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
    settle_all()
    delivery.refresh_from_db()
    assert delivery.read == Message.objects.count() == 20


def test_work_goes_on_within_fifteen_seconds_of_a_kill(cast: Cast, tmp_path: Path) -> None:
    """The whole way: a worker and its sweeper are running, another worker is killed, and the work is done."""
    deliver(cast, *(b"line %d\n" % number for number in range(20)))
    other = tmp_path / "other"
    other.mkdir()
    with (
        standing_worker(other) as child,
        celery(tmp_path, "worker", "--beat", "--concurrency=1", "-s", str(tmp_path / "beat")),
    ):
        # A second delivery shows that this worker is awake; the first one is held by the other.
        second = deliver(cast, b"awake\n", name="second.log")
        wait_for(lambda: Delivery.objects.get(pk=second.pk).read == 1, 90, tmp_path / "process.log")
        assert Message.objects.count() == 1
        kill(child)
        seconds = wait_for(lambda: Message.objects.count() == 21, PROMISED_SECONDS, tmp_path / "process.log")
    print(f"\nread {seconds:.2f} s after kill -9 of the worker that held it")


def test_a_long_backlog_is_not_unheard_while_jobs_are_taken_up(cast: Cast) -> None:
    deliver(cast, b'{"v":1}\n')
    ask = {"after_seconds": 5, "though_working_after_seconds": 60}
    job = Job.objects.get(kind=Job.Kind.INGEST)
    Job.objects.update(due_at=timezone.now() - timedelta(seconds=61))
    assert jobs.is_unheard(**ask), "nobody works, and it is due"
    # Somebody took up another job a moment ago, and comes to this one in its turn.
    now = timezone.now()
    other = Job.objects.create(
        workspace_id=job.workspace_id,
        kind=Job.Kind.SETTLE,
        subject=uuid.uuid4(),
        state=Job.State.RUNNING,
        due_at=now + timedelta(seconds=30),
        claimed_at=now - timedelta(seconds=50),
    )
    assert not jobs.is_unheard(**ask)
    Job.objects.filter(pk=other.pk).update(claimed_at=now - timedelta(seconds=61))
    assert jobs.is_unheard(**ask), "everybody has been at one job for as long"


def test_taking_a_job_up_is_noted(cast: Cast) -> None:
    deliver(cast, b'{"v":1}\n')
    before = timezone.now()
    assert (job := jobs.claim()) is not None
    assert job.claimed_at is not None
    assert before - timedelta(seconds=1) < job.claimed_at <= timezone.now() + timedelta(seconds=1)


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
    pipeline.run_job(job)
    beside.join()
    assert len(rivals) > 10
    assert not any(rivals)
    settle_all()
    assert Message.objects.count() == 1


def test_what_hangs_loses_its_lease_in_the_end(cast: Cast, settings: object, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.JOB_LEASE_SECONDS = 1  # type: ignore[attr-defined]
    monkeypatch.setattr(jobs, "LONGEST_SILENCE_SECONDS", 0.0)
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
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
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
        monkeypatch.setattr(abandoned, "GRACE_SECONDS", 0.0)
        assert abandoned.end_abandoned() == 0, "its receiver lives, however slow the sender is"
        kill(server)
        killed_at = time.monotonic()
    wait_for(lambda: abandoned.end_abandoned() == 1, PROMISED_SECONDS, tmp_path / "process.log")
    print(f"\nclosed {time.monotonic() - killed_at:.2f} s after kill -9, besides the grace of 10 s after its beginning")
    delivery = Delivery.objects.get()
    assert delivery.state == Delivery.State.BROKEN
    assert "Send the body again" in delivery.failure
    assert delivery.sha256 is None
    assert 1000 <= delivery.stored < len(lines)
    assert delivery.received == delivery.stored == Record.objects.count() == Sighting.objects.count()
    settle_all()
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
    assert abandoned.end_abandoned() == 0, "it has only just begun"
    Delivery.objects.update(received_at=timezone.now() - timedelta(seconds=abandoned.GRACE_SECONDS + 1))
    assert abandoned.end_abandoned() == 1
    assert abandoned.end_abandoned() == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.failure) == (Delivery.State.BROKEN, abandoned.WORDS[Door(door)])


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


class Deaf:
    """A broker that takes every connection and never says a word."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lines: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self._lines.append(self._listener.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        for line in (self._listener, *self._lines):
            line.close()


@pytest.fixture(params=["down", "deaf", "no folder"])
def broken_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a process whose broker is down, says nothing, or has no folder."""
    if request.param == "down":
        yield {"CELERY_BROKER_URL": "redis://127.0.0.1:1"}
    elif request.param == "deaf":
        broker = Deaf()
        yield {"CELERY_BROKER_URL": f"redis://127.0.0.1:{broker.port}"}
        broker.close()
    else:
        yield {"CELERY_BROKER_URL": "filesystem://", "INSPECTOR_STATE_DIR": str(tmp_path / "none" / "of it")}


def test_without_a_broker_the_sweeper_sees_to_the_work(
    cast: Cast, tmp_path: Path, broken_broker: dict[str, str]
) -> None:
    deliver(cast, *(b"line %d\n" % number for number in range(20)))
    with celery(tmp_path, "beat", "-s", str(tmp_path / "beat"), "--pidfile=", **broken_broker):
        seconds = wait_for(is_done, 60, tmp_path / "process.log")
    print(f"\ndone {seconds:.2f} s after the sweeper was started, with no broker")
    assert Message.objects.count() == 20
    assert not Message.objects.filter(told_digest=None).exists()


def test_a_killed_sweeper_is_started_again(cast: Cast, tmp_path: Path) -> None:
    """A worker whose own beat is killed, and whose broker is down so that nothing else could wake it."""
    words = ("worker", "--beat", "--concurrency=1", "-s", str(tmp_path / "beat"))
    with celery(tmp_path, *words, CELERY_BROKER_URL="redis://127.0.0.1:1") as worker:
        children = psutil.Process(worker.pid).children
        wait_for(lambda: len(children()) == 2, 60, tmp_path / "process.log")
        time.sleep(0.5)
        for child in children():
            child.kill()
        deliver(cast, b"one line\n")
        wait_for(is_done, 60, tmp_path / "process.log")
    assert Message.objects.get().told_digest


def test_a_flushed_broker_loses_no_work(cast: Cast, tmp_path: Path) -> None:
    """Doorbells that nobody has heard yet are thrown away; the sweeper rings again, and a worker hears it."""
    bells = tmp_path / "broker" / "queue"
    deliver(cast, *(b"line %d\n" % number for number in range(20)))
    with celery(tmp_path, "beat", "-s", str(tmp_path / "beat"), "--pidfile="):
        for _ in range(2):
            wait_for(lambda: any(bells.iterdir()), 60, tmp_path / "process.log")
            for bell in bells.iterdir():
                bell.unlink()
        with celery(tmp_path, "worker", "--concurrency=1"):
            wait_for(is_done, 90, tmp_path / "process.log")
    assert Message.objects.count() == 20


@pytest.mark.skipif("REDIS_URL" not in os.environ, reason="there is no Redis server: name one by REDIS_URL")
def test_a_flushed_redis_loses_no_work(cast: Cast, tmp_path: Path) -> None:
    import redis

    address = os.environ["REDIS_URL"]
    with celery(
        tmp_path, "worker", "--beat", "--concurrency=1", "-s", str(tmp_path / "beat"), CELERY_BROKER_URL=address
    ):
        for number in range(5):
            deliver(cast, *(b"line %d of %d\n" % (line, number) for line in range(20)), name=f"{number}.log")
            redis.Redis.from_url(address).flushdb()
        wait_for(lambda: Message.objects.count() == 100 and is_done(), 120, tmp_path / "process.log")


def test_a_restarted_database_costs_only_time(cast: Cast, tmp_path: Path) -> None:
    """Every session of a worker is ended by the server, again and again; the worker goes on."""
    deliver(cast, *(b"line %d\n" % number for number in range(3000)))
    with celery(tmp_path, "worker", "--beat", "--concurrency=1", "-s", str(tmp_path / "beat")):
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
