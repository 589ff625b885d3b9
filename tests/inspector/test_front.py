"""The front alone, before processes that only say what came: what it refuses and how, and who has gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader

from inspector import server
from inspector.front.requests import HEAD_BYTES, LINE_BYTES, MAX_HEADERS, Pace, Room
from inspector.front.server import Front
from tests.each import for_each

BODY_BYTES = 3 * 1024 * 1024
GET = b"GET /api/v1/limits HTTP/1.1\r\nHost: a\r\n"
POST = b"POST /api/v1/messages HTTP/1.1\r\nHost: a\r\n"


@dataclass
class Behind:
    """A front, and what came to the processes behind it."""

    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    waits_s: float = 0.0
    gone: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Say the head again, unless the line is closed before."""
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if b"X-Front-Body: asked" in head:
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.waits_s):
                    while await reader.read(65536):
                        pass
                    self.gone += 1
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + head)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    def send(self, request: bytes, *, shuts: bool = False) -> bytes:
        """All that is answered to this."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as line:
            line.sendall(request)
            if shuts:
                line.shutdown(socket.SHUT_WR)
            return line.makefile("rb").read()


def read_problem(said: bytes) -> dict[str, Any]:
    """The problem document that is answered."""
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"Content-Type: application/problem+json" in head, said
    problem: dict[str, Any] = json.loads(body)
    assert head.startswith(b"HTTP/1.1 %d " % problem["status"])
    return problem


@contextlib.contextmanager
def serve(**bounds: Any) -> Iterator[Behind]:
    """A front with these bounds while the block lasts."""
    behind, ready, loop = Behind(), threading.Event(), asyncio.new_event_loop()

    async def run(sockets: str, stopped: asyncio.Event) -> None:
        path = Path(sockets) / "both"
        front = Front(pages=path, posting=path, room=Room(10**8), body_bytes=BODY_BYTES, **bounds)
        async with (
            await asyncio.start_unix_server(behind.answer, path),
            await asyncio.start_server(front.serve, "127.0.0.1", 0, limit=HEAD_BYTES) as line,
        ):
            behind.port = line.sockets[0].getsockname()[1]
            ready.set()
            await stopped.wait()
            # Each connection is closed by its client, so that none is left to cancel.
            if left := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(left, timeout=10)

    with tempfile.TemporaryDirectory(prefix="inspector-") as sockets:
        stopped = asyncio.Event()
        thread = threading.Thread(target=loop.run_until_complete, args=(run(sockets, stopped),))
        thread.start()
        try:
            assert ready.wait(20)
            yield behind
        finally:
            loop.call_soon_threadsafe(stopped.set)
            thread.join(20)
            loop.close()


@pytest.fixture
def behind() -> Iterator[Behind]:
    with serve(head_s=3, pace=Pace(silence_s=3)) as given:
        yield given


BAD_HEADS = {
    "a long address": (414, b"GET /api/v1/messages?q=" + b"a" * LINE_BYTES + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
    "an address without end": (414, b"GET /api/v1/messages?q=" + b"a" * (HEAD_BYTES + 100)),
    "a long header": (431, GET + b"X-A: " + b"a" * HEAD_BYTES + b"\r\n\r\n"),
    "many headers": (431, GET + b"X-A: a\r\n" * MAX_HEADERS + b"\r\n"),
    "two hosts": (400, GET + b"Host: b\r\n\r\n"),
    "no host": (400, b"GET /api/v1/limits HTTP/1.1\r\n\r\n"),
    "no host, long ago": (400, b"GET /api/v1/limits HTTP/1.0\r\n\r\n"),
    "two types": (400, POST + b"Content-Type: text/plain\r\nContent-Type: text/csv\r\nContent-Length: 1\r\n\r\na"),
    "chunks of HTTP/1.0": (400, POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "CR": (400, GET + b"X-A: a\rb\r\n\r\n"),
    "NUL": (400, GET + b"X-A: a\0b\r\n\r\n"),
    "LF in a header": (400, GET + b"X-A: a\nb\r\n\r\n"),
    "LF alone": (400, b"GET /api/v1/limits HTTP/1.1\nHost: a\n\n"),
    "a name in small letters": (400, GET.replace(b"GET", b"get") + b"\r\n"),
    "bytes in the address": (400, GET.replace(b"limits", b"\xe4") + b"\r\n"),
    "proxies that contradict": (400, GET + b"X-Forwarded-Proto: https\r\nX-Forwarded-Ssl: off\r\n\r\n"),
    "no length": (400, POST + b"Content-Length: -1\r\n\r\n"),
    "the other door": (400, b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    "JSON wanted": (400, b"GET /w/ HTTP/1.1\r\naccept: text/x, application/json\r\nHost: a\r\nHost: b\r\n\r\n"),
}


@for_each(BAD_HEADS, of=("name",))
def test_a_bad_head_is_refused_at_once_with_a_problem(name: str, behind: Behind) -> None:
    status, request = BAD_HEADS[name]
    started = time.monotonic()
    assert read_problem(behind.send(request))["status"] == status
    assert time.monotonic() - started < 2.5
    assert not behind.heads


def test_a_person_is_told_in_plain_text_and_the_log_by_whom(behind: Behind, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "inspector.front")
    said = behind.send(b"GET /w/ HTTP/1.1\r\nHost: a\r\nHost: b\r\nAccept: text/html\r\n\r\n")
    assert b"Content-Type: text/plain" in said
    assert caplog.messages == ["a request of 127.0.0.1 was refused: the header Host is given twice: give it once"]


def test_a_slow_head_of_a_program_is_a_problem(behind: Behind) -> None:
    assert read_problem(behind.send(GET))["status"] == 408


def test_a_connection_too_many_is_a_problem_too() -> None:
    with serve(max_each=0) as behind:
        assert read_problem(behind.send(GET + b"\r\n"))["status"] == 429
        # What is asked for is not waited for long.
        assert behind.send(b"").startswith(b"HTTP/1.1 429 ")


GOOD_HEADS = {
    "a long query": GET.replace(b"limits", b"messages?q=" + b"%F0%9F%8D%B5" * 2000) + b"\r\n",
    "a hundred headers": GET + b"X-A: a\r\n" * (MAX_HEADERS - 1) + b"\r\n",
    "a header of 20 KB": GET + b"X-A: " + b"a" * 20_000 + b"\r\n\r\n",
    "an empty line before": b"\r\n" + GET + b"\r\n",
    "a probe of HTTP/1.0": b"GET /readyz HTTP/1.0\r\n\r\n",
    "all of the server": b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
}


@for_each(GOOD_HEADS, of=("name",))
def test_a_good_head_is_handed_on(name: str, behind: Behind) -> None:
    assert behind.send(GOOD_HEADS[name]).startswith(b"HTTP/1.1 200 ")
    # What the front takes, the server behind takes with the settings of the product.
    settings = Config()
    settings.set("limit_request_line", 0)
    settings.set("limit_request_fields", server.limit_request_fields)
    settings.set("limit_request_field_size", server.limit_request_field_size)
    assert Request(settings, IterUnreader(iter([behind.heads[-1]])), "").headers


def test_the_server_named_in_the_request_line_counts_and_not_the_header(behind: Behind) -> None:
    for target, path in {
        b"http://b:80/api/v1/limits?a=b": b"/api/v1/limits?a=b",
        b"HTTP://b:80": b"/",
        b"http://b:80?a": b"/?a",
    }.items():
        said = behind.send(b"GET " + target + b" HTTP/1.1\r\nhost: a\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 200 "), said
        lines = behind.heads[-1].split(b"\r\n")
        assert lines[0] == b"GET " + path + b" HTTP/1.1"
        assert [line for line in lines if line.lower().startswith(b"host:")] == [b"Host: b:80"]


LONG = b"Content-Type: text/plain\r\nExpect: 100-continue\r\nContent-Length: "


def test_a_length_over_the_limit_is_refused_before_anything_is_sent(behind: Behind) -> None:
    for length in (BODY_BYTES + 2 * 1024 * 1024, 3221225472, 9999999999999999999, 10**30):
        for expects in (LONG, LONG.replace(b"Expect: 100-continue\r\n", b"")):
            said = behind.send(POST + expects + b"%d\r\n\r\n" % length)
            assert str(BODY_BYTES) in read_problem(said)["detail"], length
            assert said.startswith(b"HTTP/1.1 413 ")
    assert not behind.heads
    with socket.create_connection(("127.0.0.1", behind.port), timeout=20) as line:
        line.sendall(POST + LONG + b"%d\r\n\r\n" % BODY_BYTES)
        assert line.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_chunks_are_refused_as_soon_as_they_are_over_the_limit(behind: Behind) -> None:
    piece = b"x" * 65536
    with socket.create_connection(("127.0.0.1", behind.port), timeout=20) as line:
        line.sendall(POST + b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range((BODY_BYTES + 1024 * 1024) // len(piece)):
            line.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        line.sendall(b"1\r\nx\r\n")
        assert read_problem(line.makefile("rb").read())["status"] == 413


def test_who_has_closed_one_side_gets_the_answer(behind: Behind) -> None:
    post = POST + b"Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
    for waits_s in (0.0, 1.5):
        behind.waits_s = waits_s
        for request in (GET + b"\r\n", post):
            said = behind.send(request, shuts=True)
            # An answer that takes time begins with the word by which the front looks who listens.
            assert said.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 " if waits_s else b"HTTP/1.1 200 ")
    assert behind.gone == 0
    behind.waits_s = 0.2
    assert behind.send(GET.replace(b"1.1", b"1.0") + b"\r\n", shuts=True).startswith(b"HTTP/1.1 200 ")


def test_who_has_gone_is_noticed(behind: Behind) -> None:
    behind.waits_s = 20
    for number, version in enumerate((b"1.1", b"1.0")):
        with socket.create_connection(("127.0.0.1", behind.port), timeout=20) as line:
            line.sendall(GET.replace(b"1.1", version) + b"\r\n")
            wait_until(lambda: len(behind.heads) == number + 1)  # noqa: B023  # it is called in this turn
        started = time.monotonic()
        wait_until(lambda: behind.gone == number + 1)  # noqa: B023
        assert time.monotonic() - started < 5, version


def wait_until(is_so: Any) -> None:
    until = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)
