"""The client against a server that is busy, drops connections, loses answers, and goes away for a while."""

from __future__ import annotations

import email.utils
import gzip
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from inspector_client import Client, GaveUpError, RefusedError
from inspector_client._batches import encode_message, make_batches

from .conftest import Inspector

ROOT = Path(__file__).resolve().parents[2]


def make_client(inspector: Inspector, **options: Any) -> Client:
    return Client(inspector.url, "secret", **{"first_pause_seconds": 0.01, **options})


def test_messages_arrive_as_they_were(inspector: Inspector) -> None:
    messages = [
        "@a3|f0#",
        "two\nlines \u2028 \x00 \ud800",
        {"raw": "x", "from": "ada", "to": ["bob"]},
        {"clowl": "0.2"},
    ]
    receipt = make_client(inspector, channel="lab").send(messages)
    assert inspector.stored == messages
    assert (receipt.received, receipt.stored, receipt.duplicate, receipt.quarantined) == (4, 4, 0, 0)
    assert receipt.deliveries == ("d0",)
    (request,) = inspector.requests
    assert request["path"] == "/api/v1/messages"
    expected = {
        "Authorization": "Bearer secret",
        "Content-Type": "application/x-ndjson",
        "Content-Encoding": "gzip",
        "X-Channel": "lab",
    }
    headers = {name.title(): value for name, value in request["headers"].items()}
    assert {name: headers[name] for name in expected} == expected


def test_one_message_needs_no_list_and_none_needs_no_request(inspector: Inspector) -> None:
    client = make_client(inspector)
    client.send("one")
    client.send({"raw": "two"})
    assert inspector.stored == ["one", {"raw": "two"}]
    assert client.send([]).received == 0
    assert len(inspector.requests) == 2


@pytest.mark.parametrize("wrong", [b"bytes", 1, None, ["a"]])
def test_what_is_no_message_is_refused_at_home(inspector: Inspector, wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"a text or a mapping, and not {type(wrong).__name__}"):
        make_client(inspector).send(["fine", wrong])


@pytest.mark.parametrize("wrong", [b"bytes", bytearray(b"bytes"), 42, None])
def test_one_that_is_no_message_is_refused_as_what_it_is(inspector: Inspector, wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"a text or a mapping, and not {type(wrong).__name__}"):
        make_client(inspector).send(wrong)


def test_many_messages_go_in_batches_with_a_key_each(inspector: Inspector) -> None:
    receipt = make_client(inspector, batch_records=100).send(str(number) for number in range(1050))
    assert receipt.stored == 1050
    assert len(receipt.deliveries) == len(inspector.requests) == 11
    assert len({request["headers"]["Idempotency-Key"] for request in inspector.requests}) == 11
    assert inspector.stored == [str(number) for number in range(1050)]


def test_batches_are_bounded_in_bytes_and_a_large_message_goes_alone() -> None:
    messages = ["a" * 10, "b" * 500, "c" * 10, "d" * 10]
    batches = list(make_batches(messages, records=100, size_bytes=100))
    assert (
        [gzip.decompress(batch.body).count(b"\n") for batch in batches]
        == [batch.count for batch in batches]
        == [1, 1, 2]
    )


def test_a_line_is_ascii_json_without_a_line_end_in_it() -> None:
    line = encode_message({"raw": "a\nb\r\u2028\u2029\ud800é"})
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"raw": "a\nb\r\u2028\u2029\ud800é"}


# ---------------------------------------------------------------- trying again


@pytest.mark.parametrize(
    "fault", ["drop", "lose", "cut", (503, None), (500, None), (429, "0"), (502, None), (408, None), (409, "0")]
)
def test_what_passes_is_tried_again_with_the_same_bytes_and_key_and_stored_once(
    inspector: Inspector, fault: Any
) -> None:
    inspector.faults = [fault, fault, fault]
    receipt = make_client(inspector).send(["one", "two"])
    assert receipt.stored == 2
    assert inspector.stored == ["one", "two"]
    assert len(inspector.requests) == 4
    assert len({(request["headers"]["Idempotency-Key"], request["body"]) for request in inspector.requests}) == 1


def test_a_server_that_comes_back_gets_everything_once(inspector: Inspector) -> None:
    client = make_client(inspector, batch_records=10)
    inspector.faults = [None, "lose", None, "drop"]
    inspector.stop()
    comes_back = threading.Timer(0.4, inspector.start)
    comes_back.start()
    receipt = client.send(str(number) for number in range(50))
    comes_back.join()
    assert receipt.stored == 50
    assert inspector.stored == [str(number) for number in range(50)]


def test_retry_after_is_honoured(inspector: Inspector) -> None:
    pauses: list[float] = []
    client = make_client(inspector)
    (batch,) = make_batches(["one"], records=1, size_bytes=1)
    soon = email.utils.formatdate(time.time() + 90, usegmt=True)
    inspector.faults = [(503, "7"), (429, soon), (503, "nonsense"), (503, None)]
    client.deliver(batch, pause=pauses.append)
    assert 7 <= pauses[0] <= 7.8
    assert 88 <= pauses[1] <= 100
    assert max(pauses[2:]) < 0.2


def test_pauses_grow_and_differ() -> None:
    client = Client("http://127.0.0.1:1", "k", first_pause_seconds=1, most_pause_seconds=8, give_up_after_seconds=100)
    (batch,) = make_batches(["one"], records=1, size_bytes=1)
    runs = []
    for _ in range(3):
        pauses: list[float] = []

        def pause(seconds: float, pauses: list[float] = pauses) -> None:
            pauses.append(seconds)
            if len(pauses) == 6:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            client.deliver(batch, pause=pause)
        runs.append(tuple(pauses))
        assert all(top / 2 <= one <= top for one, top in zip(pauses, (1, 2, 4, 8, 8, 8), strict=True))
    assert len(set(runs)) == 3


def test_it_gives_up_after_a_bounded_time_and_says_what_was_taken(inspector: Inspector) -> None:
    client = make_client(inspector, batch_records=1, give_up_after_seconds=0.3)
    inspector.faults = [None] + [(503, None)] * 1000
    started = time.monotonic()
    with pytest.raises(GaveUpError, match=r"gave up after \d+ attempts in [01] seconds: 503 this is a 503") as gave_up:
        client.send(["one", "two", "three"])
    assert time.monotonic() - started < 1
    assert gave_up.value.attempts > 2
    assert gave_up.value.receipt.stored == 1


def test_it_does_not_wait_longer_than_it_may(inspector: Inspector) -> None:
    inspector.faults = [(503, "3600")]
    started = time.monotonic()
    with pytest.raises(GaveUpError, match="1 attempt "):
        make_client(inspector).send("one")
    assert time.monotonic() - started < 1


@pytest.mark.parametrize(
    "fault", [(400, None), (401, None), (403, None), (409, None), (413, None), (415, None), (422, None)]
)
def test_what_would_be_refused_again_is_not_tried_again(inspector: Inspector, fault: Any) -> None:
    inspector.faults = [None, fault]
    with pytest.raises(RefusedError) as refused:
        make_client(inspector, batch_records=1).send(["one", "two"])
    assert (refused.value.status, refused.value.detail) == (fault[0], f"this is a {fault[0]}")
    assert refused.value.receipt.stored == 1
    assert len(inspector.requests) == 2


def test_a_redirect_is_told_and_not_followed(inspector: Inspector) -> None:
    inspector.faults = [(301, None)]
    with pytest.raises(RefusedError, match="301"):
        make_client(inspector).send("one")
    assert len(inspector.requests) == 1


def test_an_answer_that_is_no_receipt_is_not_taken_for_one(inspector: Inspector) -> None:
    inspector.take = lambda key, body: (202, {"hello": "world"})  # type: ignore[method-assign]
    with pytest.raises(RefusedError, match="no receipt"):
        make_client(inspector).send("one")


@pytest.mark.parametrize("url", ["inspector.example", "ftp://x", "file:///etc/passwd", ""])
def test_an_address_that_is_none_is_refused_at_home(url: str) -> None:
    with pytest.raises(ValueError, match="begins with http"):
        Client(url, "k")


def test_the_key_is_not_shown() -> None:
    client = Client("https://inspector.example/base/", "secret-key")
    assert repr(client) == "Client('https://inspector.example/base')"


EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "clients.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES[:2], ids=["client", "handler"])
def test_the_examples_of_the_page_work_when_pasted(inspector: Inspector, example: str) -> None:
    """Pasted into a program of its own, with this server in the place of the page's."""
    code = example.replace("http://127.0.0.1:8000", inspector.url)
    assert code != example
    environment = os.environ | {"PYTHONPATH": str(ROOT / "clients" / "python")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    last = inspector.stored[-1]
    assert (last["raw"], last["from"], last["to"], last["conversation"]) == ("?Uk/co", "oscar", "radar", "c7")


def test_the_examples_of_a_spool_and_of_a_loop_work_when_pasted(inspector: Inspector, tmp_path: Path) -> None:
    spool, loop = (example.replace("http://127.0.0.1:8000", inspector.url) for example in EXAMPLES[2:])
    spool = f"import logging\nlogger = logging.getLogger('agent')\n{spool}\nspool.close()"
    loop = f"import asyncio\n{loop}\nasyncio.run(main())"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "clients" / "python")}
    for code in (spool, loop):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    assert [str(each) for each in inspector.stored] == ['@a3|f0|c1|S0|d1|T1|k4|t"count aisle 6"#', "?Uk/co"]
