"""The spool: what was written down arrives once, whatever becomes of the program that wrote it or of the inspector."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from inspector_client import AsyncClient, Client, Spool, SpoolFullError, SpoolHandler

from .conftest import Inspector

PROJECT = Path(__file__).resolve().parents[2]
WRITER = """
import sys, time
from inspector_client import Client, Spool
spool = Spool(Client(sys.argv[1], "k", give_up_after_seconds=0.2), sys.argv[2], flush_seconds=60)
spool.send([f"message {number}" for number in range(5)])
print("written", flush=True)
time.sleep(60)
"""


def make_spool(inspector: Inspector, folder: Path, **names: object) -> Spool:
    client = Client(inspector.url, "k", first_pause_seconds=0.01, most_pause_seconds=0.02, give_up_after_seconds=0.5)
    return Spool(client, folder, flush_seconds=0.05, **names)  # type: ignore[arg-type]


def wait_until_sent(spool: Spool, folder: Path) -> None:
    for _ in range(200):
        if not list(folder.glob("*.open")) + list(folder.glob("*.ready")):
            return
        time.sleep(0.05)
    pytest.fail(f"{spool.waiting} files still wait")


def test_what_is_written_down_arrives_once_though_answers_are_lost(inspector: Inspector, tmp_path: Path) -> None:
    inspector.faults += ["drop", "lose", (503, "0")]
    spool = make_spool(inspector, tmp_path)
    spool.send(["one", {"raw": "two", "from": "ada"}])
    spool.send("three")
    wait_until_sent(spool, tmp_path)
    assert (len(inspector.stored), spool.sent) == (3, 3)
    spool.close()
    with pytest.raises(ValueError, match="closed"):
        spool.send("four")


def test_what_a_killed_program_left_the_next_one_sends(inspector: Inspector, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, "http://127.0.0.1:9", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={"PYTHONPATH": str(PROJECT / "clients/python")}) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"written\n"
        # As long as it lives its file is its own.
        spool = make_spool(inspector, tmp_path)
        spool.send("mine")
        time.sleep(0.5)
        assert inspector.stored == ["mine"]
        spool.close()
        one.send_signal(signal.SIGKILL)
    left = next(tmp_path.glob("*.open"))
    left.write_bytes(left.read_bytes()[:-4])  # It was killed while it wrote.
    spool = make_spool(inspector, tmp_path)
    spool.send("later")
    wait_until_sent(spool, tmp_path)
    spool.close()
    assert spool.sent == 6
    assert inspector.stored == ["mine", *(f"message {number}" for number in range(4)), '"message', "later"]


def test_what_is_refused_stays_and_what_is_too_much_is_said(inspector: Inspector, tmp_path: Path) -> None:
    inspector.faults.append((403, None))
    spool = make_spool(inspector, tmp_path, most_bytes=100, is_durable=True)
    spool.send("x" * 40)
    wait_until_sent(spool, tmp_path)
    (refused,) = tmp_path.glob("*.refused")
    assert refused.read_text() == f'"{"x" * 40}"\n'
    assert (spool.refused, inspector.stored) == (1, [])
    with pytest.raises(SpoolFullError):
        spool.send("x" * 200)
    spool.close()


def test_a_logger_writes_to_it_and_a_loop_goes_on(inspector: Inspector, tmp_path: Path) -> None:
    spool = make_spool(inspector, tmp_path)
    logger = logging.getLogger("agent.spooled")
    logger.propagate = False
    handler = SpoolHandler(spool)
    logger.addHandler(handler)
    try:
        logger.warning("?Uk/co", extra={"envelope": {"from": "oscar"}})
    finally:
        logger.removeHandler(handler)
    spool.close()
    assert inspector.stored[0]["raw"] == "?Uk/co"
    assert inspector.stored[0]["from"] == "oscar"

    async def send() -> int:
        sent, _ = await asyncio.gather(AsyncClient(Client(inspector.url, "k")).send(["a", "b"]), asyncio.sleep(0))
        return sent.stored

    assert asyncio.run(send()) == 2


@pytest.mark.long(seconds=10)
def test_its_wheel_holds_the_client_and_its_types_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t", "wheel"]
    subprocess.run(command, cwd=PROJECT / "clients/python", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("inspector_client-*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert "inspector_client/py.typed" in names
    assert names == {
        f"inspector_client/{path.name}"
        for path in (PROJECT / "clients/python/inspector_client").iterdir()
        if path.is_file()
    }
