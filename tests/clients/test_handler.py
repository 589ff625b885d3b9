"""The logging handler: nothing it does makes its agent wait, and nothing it loses goes unsaid."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from inspector_client import Client, InspectorHandler

from .conftest import Inspector

CLIENTS = Path(__file__).resolve().parents[2] / "clients" / "python"
Maker = Callable[..., tuple[logging.Logger, InspectorHandler]]


@pytest.fixture
def make(inspector: Inspector) -> Iterator[Maker]:
    made: list[tuple[logging.Logger, InspectorHandler]] = []

    def make_handler(**options: Any) -> tuple[logging.Logger, InspectorHandler]:
        client = Client(
            inspector.url, "secret", first_pause_seconds=0.01, batch_records=options.pop("batch_records", 500)
        )
        handler = InspectorHandler(client=client, **{"flush_seconds": 0.02, **options})
        logger = logging.Logger("agent")
        logger.addHandler(handler)
        made.append((logger, handler))
        return logger, handler

    yield make_handler
    for _, handler in made:
        handler.close()


def raws(inspector: Inspector) -> list[str]:
    return [line["raw"] for line in inspector.stored]


def test_what_is_logged_arrives_with_its_envelope(inspector: Inspector, make: Maker) -> None:
    logger, handler = make()
    logger.info("@a%d|f0#", 3, extra={"envelope": {"from": "ada", "to": ["bob"], "conversation": "c1"}})
    logger.info({"clowl": "0.2", "mid": "m1"})
    logger.info("plain")
    handler.flush()
    first, second, third = inspector.stored
    assert (first["raw"], first["from"], first["to"], first["conversation"]) == ("@a3|f0#", "ada", ["bob"], "c1")
    assert json.loads(second["raw"]) == {"clowl": "0.2", "mid": "m1"}
    assert third["raw"] == "plain"
    at = datetime.fromisoformat(first["at"])
    assert abs(at.timestamp() - time.time()) < 10
    assert (handler.sent, handler.dropped, handler.refused, handler.waiting) == (3, 0, 0, 0)


def test_records_go_together_and_soon(inspector: Inspector, make: Maker) -> None:
    logger, handler = make(flush_seconds=0.2, batch_records=100)
    for number in range(250):
        logger.info("record %d", number)
    deadline = time.monotonic() + 30
    while handler.sent < 250 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert raws(inspector) == [f"record {number}" for number in range(250)]
    assert len(inspector.requests) == 3


def test_the_agent_never_waits_for_a_server_that_hangs(make: Maker, inspector: Inspector) -> None:
    logger, handler = make(capacity=100, batch_records=10, close_seconds=0.1)
    with inspector.lock:  # The server takes the request and answers nothing.
        started = time.monotonic()
        for number in range(5000):
            logger.info("record %d", number)
        assert time.monotonic() - started < 2
        assert handler.waiting <= 110
        assert handler.dropped + handler.waiting == 5000
    deadline = time.monotonic() + 30
    while handler.waiting and time.monotonic() < deadline:
        time.sleep(0.01)
    assert handler.sent + handler.dropped == 5000


@pytest.mark.parametrize(("drop", "kept"), [("oldest", range(15, 20)), ("newest", range(5))])
def test_what_finds_no_room_is_dropped_counted_and_said(
    inspector: Inspector, make: Maker, drop: Any, kept: range
) -> None:
    logger, handler = make(drop=drop, capacity=5, flush_seconds=60)
    for number in range(20):
        logger.info("record %d", number)
    assert handler.dropped == 15
    handler.close()
    *records, last = raws(inspector)
    assert records == [f"record {number}" for number in kept]
    assert last == "inspector_client: 15 records were dropped here, because the buffer was full"
    assert handler.sent == 5


def test_the_buffer_is_bounded_in_bytes_too(inspector: Inspector, make: Maker) -> None:
    logger, handler = make(capacity_bytes=10_000, flush_seconds=60)
    logger.info("small")
    logger.info("x" * 20_000)
    assert (handler.waiting, handler.dropped) == (1, 1)
    for _ in range(10):
        logger.info("y" * 3000)
    assert handler.waiting == 3
    handler.close()
    assert [len(raw) for raw in raws(inspector)[:-1]] == [3000] * 3


def test_a_server_that_goes_away_and_comes_back_gets_everything_once(inspector: Inspector, make: Maker) -> None:
    logger, handler = make(batch_records=7)
    inspector.faults = [None, "lose", (503, "0"), "drop", None, "lose", (429, None)]
    for number in range(100):
        logger.info("record %d", number)
        if number == 30:
            inspector.stop()
        if number == 60:
            inspector.start()
        time.sleep(0.002)
    handler.flush()
    assert raws(inspector) == [f"record {number}" for number in range(100)]
    assert (handler.sent, handler.dropped, handler.waiting) == (100, 0, 0)


def test_threads_lose_and_double_nothing(inspector: Inspector, make: Maker) -> None:
    logger, handler = make(batch_records=50)

    def work(name: int) -> None:
        for number in range(300):
            logger.info("%d-%d", name, number)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.flush()
    assert sorted(raws(inspector)) == sorted(f"{name}-{number}" for name in range(6) for number in range(300))


def test_a_refusal_is_counted_and_said_once_and_does_not_end_it(
    inspector: Inspector, make: Maker, capsys: pytest.CaptureFixture[str]
) -> None:
    logger, handler = make()
    inspector.faults = [(401, None), (401, None)]
    for word in ("one", "two", "three"):
        logger.info(word)
        handler.flush()
    assert (handler.refused, handler.sent) == (2, 1)
    assert raws(inspector) == ["three"]
    assert capsys.readouterr().err.count("the inspector refused: 401 this is a 401") == 1


def test_what_the_inspector_warns_of_is_said_once(
    inspector: Inspector, make: Maker, capsys: pytest.CaptureFixture[str]
) -> None:
    logger, handler = make()
    inspector.warnings = [{"code": "name", "reason": "`sender` is not read", "hint": "write `from`"}] * 3
    for word in ("one", "two"):
        logger.info(word, extra={"envelope": {"sender": "ada"}})
        handler.flush()
    assert (handler.sent, handler.refused) == (2, 0)
    assert capsys.readouterr().err.count("inspector_client: `sender` is not read; write `from`") == 1


def test_a_long_retry_after_does_not_end_the_trying(
    inspector: Inspector, make: Maker, capsys: pytest.CaptureFixture[str]
) -> None:
    logger, handler = make(close_seconds=0.2)
    inspector.faults = [(503, "3600")]
    logger.info("one")
    handler.flush()
    assert (handler.waiting, len(inspector.requests)) == (1, 1)
    handler.close()
    assert "1 records were not sent before the end" in capsys.readouterr().err
    assert len(inspector.requests) == 1


def test_closing_is_bounded_and_says_what_is_left(
    inspector: Inspector, make: Maker, capsys: pytest.CaptureFixture[str]
) -> None:
    logger, handler = make(close_seconds=0.2)
    inspector.stop()
    for _ in range(12):
        logger.info("lost")
    started = time.monotonic()
    handler.close()
    assert time.monotonic() - started < 2
    assert "12 records were not sent before the end" in capsys.readouterr().err
    logger.info("too late")
    assert handler.dropped == 1
    handler.close()


def test_a_record_that_cannot_be_told_is_reported_as_handlers_do(
    make: Maker, inspector: Inspector, capsys: pytest.CaptureFixture[str]
) -> None:
    logger, handler = make()
    logger.info("%d", "no number")
    logger.info("fine")
    handler.flush()
    assert raws(inspector) == ["fine"]
    assert "--- Logging error ---" in capsys.readouterr().err


@pytest.mark.parametrize("options", [{}, {"url": "http://x"}, {"url": "http://x", "key": "k", "drop": "some"}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"give a url|drop is"):
        InspectorHandler(**options)


PROGRAM = """
import logging, os, sys
from inspector_client import InspectorHandler
logger = logging.getLogger("agent")
logger.setLevel(logging.INFO)
logger.addHandler(InspectorHandler(sys.argv[1], "secret", flush_seconds=60))
logger.info("before the fork")
if "fork" in sys.argv:
    child = os.fork()
    logger.info("child" if child == 0 else "parent")
    if child:
        os.waitpid(child, 0)
if "crash" in sys.argv:
    raise SystemExit(3)
"""


def run_program(inspector: Inspector, *words: str) -> int:
    environment = os.environ | {"PYTHONPATH": str(CLIENTS)}
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {str(CLIENTS)!r}){PROGRAM}",
            inspector.url,
            *words,
        ],
        env=environment,
        timeout=30,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.returncode


@pytest.mark.parametrize("words", [(), ("crash",)])
def test_the_end_of_the_program_sends_what_is_waiting(inspector: Inspector, words: tuple[str, ...]) -> None:
    assert run_program(inspector, *words) == (3 if words else 0)
    assert raws(inspector) == ["before the fork"]


def test_a_fork_sends_each_record_from_the_process_that_logged_it(inspector: Inspector) -> None:
    assert run_program(inspector, "fork") == 0
    assert sorted(raws(inspector)) == ["before the fork", "child", "parent"]


def test_the_client_needs_only_the_standard_library() -> None:
    code = f"import sys; sys.path.insert(0, {str(CLIENTS)!r}); import inspector_client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    roots = {name.partition(".")[0] for name in done.stdout.split()}
    assert roots - set(sys.stdlib_module_names) <= {"inspector_client", "__main__"}
