"""Memory does not grow with what arrives: child processes take in 5 MB and 50 MB, and are compared by their peak."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inspector.intake.models import Record
from inspector.threads.models import Message

from .conftest import Cast
from .intake.processes import PROJECT, make_environment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long(seconds=10)]

# Fat records, so that megabytes take seconds: 100 kB each, many of them on one line of one conversation.
CHILD = """
import json, sys
import django
django.setup()
from inspector import pipeline
from inspector.accounts.models import Workspace
from inspector.intake.models import Door, Job
from inspector.intake.framing import take_stream
from inspector.intake.services import open_delivery, take_file
way, megabytes = sys.argv[1], int(sys.argv[2])
workspace = Workspace.objects.get(slug="acme")
channel = workspace.channels.get(name="main")

def log():
    if way == "one line":
        for _ in range(megabytes * 16):
            yield b"x" * 65536
        yield b"\\n"
        return
    for number in range(megabytes * 10):
        text = f"step {number} " + "lorem ipsum " * 8300
        yield json.dumps({"raw": text, "conversation": f"{way} {megabytes} {number // 40}"}).encode() + b"\\n"

door = Door.UPLOAD if way == "upload" else Door.API
delivery = open_delivery(workspace=workspace, channel=channel, door=door)
(take_file if way == "upload" else take_stream)(delivery=delivery, chunks=log())
kinds = {"upload": [Job.Kind.FRAME], "one line": [], "post": [Job.Kind.INGEST]}[way]
while kinds and pipeline.run_due(only=tuple(kinds)):
    pass
if way == "post":
    # Not one of those that an earlier child has done.
    job = Job.objects.filter(kind=Job.Kind.RESOLVE).exclude(state=Job.State.DONE).first()
    Job.objects.filter(kind=Job.Kind.RESOLVE).exclude(pk=job.pk).update(state=Job.State.DONE)
    assert pipeline.run_due(only=(Job.Kind.RESOLVE,)) == 1
assert not Job.objects.exclude(failure="").exists(), list(Job.objects.exclude(failure="").values("kind", "failure"))
# Not ru_maxrss: that remembers the process this one was forked from.
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def measure_peak(way: str, megabytes: int, state: Path) -> int:
    """The peak memory in KiB of a process that takes so much in."""
    environment = make_environment(state, CELERY_BROKER_URL="redis://127.0.0.1:1", LOG_LEVEL="ERROR")
    command = [sys.executable, "-c", CHILD, way, str(megabytes)]
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout)


@pytest.mark.parametrize("way", ["post", "upload", "one line"])
def test_fifty_megabytes_take_hardly_more_memory_than_five(cast: Cast, tmp_path: Path, way: str) -> None:
    small, large = (measure_peak(way, megabytes, tmp_path) for megabytes in (5, 50))
    assert large < small * 1.35, (small, large)
    assert large < 220_000
    if way == "post":
        assert Record.objects.count() == Message.objects.count() == 550
