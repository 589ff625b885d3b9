"""A worker and a beat beside a real Redis, with nothing but what requirements/base.txt installs, read a delivery."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from inspector.threads.models import Message

from ..api.test_server import find_port
from ..conftest import Cast, deliver
from .processes import PROJECT, process
from .test_recovery import is_done, wait_for

REDIS = shutil.which("redis-server") or ""
# `celery` where whatever base.txt does not pin cannot be imported.
ONLY_BASE = """
import re, sys
from importlib.metadata import packages_distributions
pinned = set(sys.argv.pop(1).split())
owners = {name: {re.sub("[-_.]+", "-", each).lower() for each in found}
          for name, found in packages_distributions().items()}
class OnlyBase:
    def find_spec(self, name, path=None, target=None):
        if name in owners and not owners[name] & pinned:
            raise ModuleNotFoundError(f"{name} is not in base.txt", name=name)
sys.meta_path.insert(0, OnlyBase())
from celery.__main__ import main
main()
"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.long(seconds=10, waits=True)
@pytest.mark.skipif(not REDIS, reason="redis-server is missing")
def test_a_worker_and_a_beat_take_and_finish_a_delivery(cast: Cast, tmp_path: Path) -> None:
    base = (PROJECT / "requirements" / "base.txt").read_text()
    pinned = " ".join(re.findall(r"^([a-z0-9._-]+)==", base, re.MULTILINE))
    port = find_port()
    server = subprocess.Popen(
        [REDIS, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL,
    )
    command = ("-c", ONLY_BASE, pinned, "--app=inspector")
    broker = {"CELERY_BROKER_URL": f"redis://127.0.0.1:{port}/0"}
    beat = ("beat", "--schedule", str(tmp_path / "schedule"), "--pidfile", str(tmp_path / "beat.pid"))
    try:
        # Nobody rings for the delivery but the beat: it is taken in beside another broker.
        deliver(cast, b"one\n", b"two\n")
        with (
            process(tmp_path, *command, "worker", "--concurrency=1", **broker),
            process(tmp_path, *command, *beat, **broker),
        ):
            wait_for(lambda: Message.objects.count() == 2 and is_done(), 60, tmp_path / "process.log")
    finally:
        server.terminate()
        server.wait(10)
