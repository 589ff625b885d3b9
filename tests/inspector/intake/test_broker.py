"""Celery's worker and beat beside a real Redis, which is emptied, spoilt and away: work is only ever late.

They run with nothing but what requirements/base.txt installs.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis

from inspector.intake.models import Job
from inspector.threads.models import Message
from tests.test_compose import ONLY_BASE, list_pinned

from ..api.test_server import find_port
from ..conftest import Cast, deliver
from .processes import process
from .test_recovery import is_done, wait_for

REDIS = shutil.which("redis-server") or ""
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.long(seconds=15, waits=True),
    pytest.mark.skipif(not REDIS, reason="redis-server is missing"),
]
GARBAGE = (b'{"body": "', b"", b"[]", b"\x00", b'{"properties": {}}')


@contextmanager
def broker(port: int, state: Path) -> Iterator[redis.Redis]:
    """A Redis server that keeps nothing on disk."""
    server = subprocess.Popen(
        [REDIS, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(state)],
        stdout=subprocess.DEVNULL,
    )
    client = redis.Redis(port=port)
    try:
        wait_for(lambda: answers(client), 20, state / "process.log")
        yield client
    finally:
        client.close()
        server.terminate()
        server.wait(10)


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


@contextmanager
def workers(port: int, state: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A worker and a beat of docker-compose.yml, where whatever base.txt does not pin cannot be imported."""
    command = ("-c", f"{ONLY_BASE}from celery.__main__ import main\nmain()", list_pinned(), "--app=inspector")
    beat = ("beat", "--schedule", str(state / "schedule"), "--pidfile=")
    with ExitStack() as stack:
        yield [
            stack.enter_context(process(state, *command, *words, CELERY_BROKER_URL=f"redis://127.0.0.1:{port}/0"))
            for words in (("worker", "--concurrency=1"), beat)
        ]


def test_a_worker_and_a_beat_take_and_finish_a_delivery(cast: Cast, tmp_path: Path) -> None:
    port = find_port()
    # Nobody wakes them for the delivery but the beat: it comes in beside no broker.
    deliver(cast, b"one\n", b"two\n")
    with broker(port, tmp_path), workers(port, tmp_path):
        wait_for(lambda: Message.objects.count() == 2 and is_done(), 60, tmp_path / "process.log")


def test_an_emptied_broker_and_one_that_was_away_lose_no_work(cast: Cast, tmp_path: Path) -> None:
    port, log = find_port(), tmp_path / "process.log"
    with workers(port, tmp_path) as (worker, beat):
        with broker(port, tmp_path) as server:
            for number in range(5):
                deliver(cast, *(b"line %d of %d\n" % (line, number) for line in range(20)), name=f"{number}.log")
                server.flushdb()
            wait_for(lambda: Message.objects.count() == 100 and is_done(), 120, log)
        deliver(cast, *(b"line %d while it was away\n" % line for line in range(20)))
        with broker(port, tmp_path):
            wait_for(lambda: Message.objects.count() == 120 and is_done(), 120, log)
        assert worker.poll() is None
        assert beat.poll() is None


def test_garbage_in_the_queue_costs_a_worker_at_most(cast: Cast, tmp_path: Path) -> None:
    port, log = find_port(), tmp_path / "process.log"
    with broker(port, tmp_path) as server:
        deliver(cast, *(b"line %d\n" % number for number in range(20)))
        server.lpush("celery", *GARBAGE)
        for _ in range(len(GARBAGE) + 1):
            with workers(port, tmp_path) as (worker, _beat):
                wait_for(lambda worker=worker: is_done() or worker.poll() is not None, 60, log)
            if is_done():
                break
    assert Message.objects.count() == 20
    assert not Job.objects.exclude(failure="").exists()
