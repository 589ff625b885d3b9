"""kill -9 of real processes in the middle of their work: nothing is lost, nothing is doubled.

The first test kills workers at one large delivery; the second is the short form of `make crash`.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.crash.soak import find_slope
from bench.hosts import find_obstacle
from inspector.intake.models import Door, Job, Record
from inspector.intake.services import open_delivery, take_file
from inspector.threads.models import Conversation, Message

from .conftest import Cast
from .intake.processes import worker

RECORDS = 6_000
PROJECT = Path(__file__).parents[2]


def write_log() -> bytes:
    lines = []
    for number in range(RECORDS):
        job, step = number % 60 + 1, number // 60 + 1
        lines.append(f'{{"raw": "step {step} of job {job}", "conversation": "job {job}"}}\n')
    return "".join(lines).encode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.long(seconds=60, waits=True)
def test_killing_the_worker_loses_and_doubles_nothing(cast: Cast, tmp_path: Path) -> None:
    delivery = open_delivery(workspace=cast.workspace, channel=cast.channel, door=Door.UPLOAD, file_name="jobs.jsonl")
    take_file(delivery=delivery, chunks=[write_log()])
    chance = random.Random(20261121)
    kills = 0
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        with worker(tmp_path, JOB_LEASE_SECONDS="2") as process:
            # The first lives are cut short in the middle of the work; the last one may finish.
            before, lifetime = progress(), chance.uniform(0.2, 1.5) if kills < 5 else 60.0
            has_begun, end = False, time.monotonic() + 60.0
            while time.monotonic() < end and not is_settled():
                # On a busy machine too a life ends only after it has done something: three that did nothing are a
                # dead letter, and rightly so.
                if not has_begun and progress() != before:
                    has_begun, end = True, min(end, time.monotonic() + lifetime)
                assert process.poll() is None, (tmp_path / "process.log").read_text()[-3000:]
                time.sleep(0.1)
        if is_settled():
            break
        kills += 1
    delivery.refresh_from_db()
    assert is_settled(), list(Job.objects.values_list("kind", "state", "failure"))
    assert kills >= 2, "the work was over before it could be interrupted"
    assert (delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined) == (RECORDS, RECORDS, 0, 0)
    assert delivery.read == RECORDS
    assert Record.objects.count() == Message.objects.count() == RECORDS
    assert sorted(Conversation.objects.values_list("message_count", flat=True)) == [RECORDS // 60] * 60
    assert not Message.objects.filter(told_digest=None).exists()


def progress() -> tuple[object, ...]:
    """How far the work is: what of it has been committed."""
    told = Message.objects.exclude(told_digest=None).count()
    return (Record.objects.count(), Message.objects.count(), told)


def is_settled() -> bool:
    """Whether every job has ended."""
    return not Job.objects.exclude(state=Job.State.DONE).exists()


def run_harness(*options: str, module: str = "bench.crash") -> str:
    """The harness's table, once it has found nothing."""
    environment = os.environ | {"PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}"}
    command = [sys.executable, "-m", module, "--patience=300", *options]
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-3000:]
    # Not only its exit status: the counts have to be there, and of enough to mean something.
    told = dict(re.findall(r"^(accepted|lost|doubled) +([\d,]+)", done.stdout, re.MULTILINE))
    assert {name: told[name] for name in ("lost", "doubled")} == {"lost": "0", "doubled": "0"}
    assert int(told["accepted"].replace(",", "")) > 50
    return done.stdout


@pytest.mark.long(seconds=110, waits=True)
def test_the_crash_harness_finds_nothing_in_the_product_and_something_in_its_broken_variants() -> None:
    told = run_harness("--cycles=6", "--drain-every=6", "--variants=required", "--broker=none")
    assert len(re.findall(r"^kills ", told, re.MULTILINE)) >= 2
    assert len(re.findall(r"^variant .* caught after", told, re.MULTILINE)) == 2


@pytest.mark.long(seconds=60, waits=True)
@pytest.mark.skipif("REDIS_URL" not in os.environ, reason="no Redis server is given: name an empty one by REDIS_URL")
def test_the_crash_harness_finds_nothing_where_a_redis_server_is_the_broker() -> None:
    told = run_harness("--cycles=8", "--drain-every=8", "--variants=none", "--kill=broker", "--kill=worker")
    assert "broker the Redis server of" in told
    assert re.search(r"^kills .*broker, (emptied|garbage|silent|lines cut)$", told, re.MULTILINE)


@pytest.mark.long(seconds=200, waits=True)
def test_two_hosts_that_share_a_database_and_a_broker_lose_and_double_nothing() -> None:
    obstacle = find_obstacle()
    if obstacle or not os.environ.get("TWO_HOSTS"):
        pytest.skip(obstacle or "TWO_HOSTS is not set: two installations at once want more than two slow cores")
    # Afterwards each has of the other what the harness asks for: an export, the news of a page, and no file.
    told = run_harness("--hosts=2", "--cycles=3", "--drain-every=3")
    assert "2 hosts, a Redis server of our own" in told
    assert len(re.findall(r"^kills ", told, re.MULTILINE)) >= 2


@pytest.mark.long(seconds=120, waits=True)
def test_a_soak_measures_memory_and_pages_and_loses_nothing() -> None:
    told = run_harness("--minutes=0.5", "--kills=1", "--kill=worker", module="bench.crash.soak")
    # Half a minute says nothing of an hour: that there are figures is all that is asked for.
    assert re.search(
        r"^memory +[+-]\d+\.\d % an hour, (met|missed) \(at most 1\); [\d,]+ MB at the end, ", told, re.MULTILINE
    )
    assert re.search(r"^pages +p95 [+-]\d+ %, (met|missed) \(at most 10\); ", told, re.MULTILINE)
    assert re.search(r"^kills +1  worker, ", told, re.MULTILINE)
    accepted, stored = (re.search(rf"^{name} +([\d,]+) records", told, re.MULTILINE) for name in ("accepted", "stored"))
    assert accepted
    assert stored
    assert int(stored[1].replace(",", "")) >= int(accepted[1].replace(",", ""))


def test_the_slope_of_memory_leaves_out_how_a_process_warms_up() -> None:
    steady = [(float(second), 100.0) for second in range(100)]
    rising = [(float(second), 1000.0 if second < 50 else 100.0 + second / 36) for second in range(100)]
    assert find_slope([steady], 50) == pytest.approx(0)
    # A hundred bytes and something an hour of a hundred, and none of as many.
    assert find_slope([rising], 50) == pytest.approx(98, abs=2)
    assert find_slope([rising, steady], 50) == pytest.approx(49, abs=2)
