"""The real web server on a real socket: chunked bodies, cut ones, silent ones, wrong lengths, and no broker at all."""

from __future__ import annotations

import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from psycopg.conninfo import make_conninfo

from inspector.intake.models import Delivery, Record, Sighting

pytestmark = pytest.mark.django_db(transaction=True)

PROJECT = Path(__file__).parents[3]
SILENCE = "2"
# A server on which `bodies.SILENCE_SECONDS` is short; everything else is as in production.
IMPATIENT = f"""
import sys
from inspector.server import *

def post_fork(server, worker):
    print("FORKED", "inspector.urls" in sys.modules, file=sys.stderr, flush=True)

def post_worker_init(worker):
    from inspector.api import bodies
    bodies.SILENCE_SECONDS = {SILENCE}
"""


def find_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        number: int = listener.getsockname()[1]
    return number


def find_database() -> str:
    """The database of this test, as `DATABASE_URL` names one."""
    info = connection.get_connection_params()
    return make_conninfo(
        **{name: info[name] for name in ("dbname", "user", "password", "host", "port") if info.get(name)}
    )


@contextmanager
def serve(number: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A web server of its own on the database of the tests, with a broker that nobody answers at; it leads a group."""
    (folder / "server.py").write_text(IMPATIENT)
    command = [sys.executable, "-m", "gunicorn", "inspector.wsgi:application", f"--bind=127.0.0.1:{number}"]
    command += ["--worker-class=gthread", "--workers=1", "--threads=4", f"--config={folder / 'server.py'}"]
    command += ["--no-control-socket"]
    environment = os.environ | {
        "DATABASE_URL": find_database(),
        "INSPECTOR_STATE_DIR": str(folder),
        "CELERY_BROKER_URL": "redis://127.0.0.1:1",
        "PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}",
    }
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=PROJECT, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", number), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "web.log").read_text()
                assert time.monotonic() < until, (folder / "web.log").read_text()
                time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server of a module keeps its files."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def port(django_db_setup: None, server_folder: Path) -> Iterator[int]:
    """Where a web server listens that serves the tests of a module, one after the other."""
    number = find_port()
    with serve(number, server_folder):
        yield number


def answer(port: int, token: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/plain", **headers}
    try:
        client.request(
            "POST", "/api/v1/messages", body=body, headers=headers, encode_chunked="Transfer-Encoding" in headers
        )
        response = client.getresponse()
        return response.status, json.loads(response.read())
    finally:
        client.close()


def send(
    port: int, token: str, pieces: Iterable[bytes], *headers: str, ends: bool = True, address: str = "messages"
) -> bytes:
    """Send a request byte by byte as written here; what comes back, or nothing once the line was cut."""
    head = [f"POST /api/v1/{address} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
    head += ["Content-Type: text/plain", "Connection: close", *headers, "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=120) as line:
        line.sendall("\r\n".join(head).encode())
        for piece in pieces:
            line.sendall(piece)
        if not ends:
            line.shutdown(socket.SHUT_WR)
        said = b""
        while got := line.recv(65536):
            said += got
        return said


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def wait_for_end(state: str) -> Delivery:
    until = time.monotonic() + 120
    while not Delivery.objects.filter(state=state).exists():
        assert time.monotonic() < until, list(Delivery.objects.values_list("state", "failure"))
        time.sleep(0.05)
    return Delivery.objects.get()


LINES = [f"line {number}\n".encode() for number in range(40)]


def test_a_chunked_body_is_read_to_its_end_and_no_broker_delays_it(port: int, token: str) -> None:
    status, said = answer(port, token, iter(LINES), **{"Transfer-Encoding": "chunked"})
    assert (status, said["stored"]) == (202, 40), said
    taken = []
    for _ in range(3):  # A broker would delay each of them, and a busy machine one.
        started = time.monotonic()
        status, said = answer(port, token, iter(LINES), **{"Transfer-Encoding": "chunked"})
        taken.append(time.monotonic() - started)
        assert (status, said["stored"]) == (202, 40)
    assert min(taken) < 1.5
    assert Record.objects.count() == 160


def test_an_empty_chunked_body_is_refused(port: int, token: str) -> None:
    assert answer(port, token, iter([]), **{"Transfer-Encoding": "chunked"})[0] == 400
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("tail", [b"", b"10\r\nhalf a", b"zz\r\n"], ids=["between chunks", "in a chunk", "no number"])
def test_a_chunked_body_that_is_cut_keeps_its_complete_records(port: int, token: str, tail: bytes) -> None:
    pieces = [*map(chunk, LINES), tail]
    said = send(port, token, pieces, "Transfer-Encoding: chunked", ends=False)
    assert said.startswith(b"HTTP/1.1 400"), said
    delivery = wait_for_end(Delivery.State.BROKEN)
    assert delivery.stored >= 40
    # What is half a record is kept, and never passes for a whole one.
    assert delivery.received == delivery.stored + (tail == b"10\r\nhalf a")
    assert Sighting.objects.count() == Record.objects.count() == delivery.received


def test_a_body_shorter_than_its_length_keeps_its_complete_records(port: int, token: str) -> None:
    said = send(port, token, LINES, "Content-Length: 100000", ends=False)
    assert said.startswith(b"HTTP/1.1 400"), said
    assert wait_for_end(Delivery.State.BROKEN).stored == 40


def test_a_body_longer_than_its_length_is_taken_up_to_it(port: int, token: str) -> None:
    said = send(port, token, [b"one\ntwo\nthree\n"], "Content-Length: 8")
    assert said.startswith(b"HTTP/1.1 202"), said
    assert wait_for_end(Delivery.State.FRAMED).stored == 2


@pytest.mark.parametrize("header", ["Content-Length: 100000", "Transfer-Encoding: chunked"])
def test_a_silent_sender_is_answered_and_its_complete_records_are_kept(port: int, token: str, header: str) -> None:
    pieces = LINES if "Length" in header else map(chunk, LINES)
    started = time.monotonic()
    said = send(port, token, pieces, header)
    assert said.startswith(b"HTTP/1.1 408"), said
    assert b"application/problem+json" in said
    assert time.monotonic() - started < 10
    assert wait_for_end(Delivery.State.BROKEN).stored == 40


def test_a_slow_body_is_taken(port: int, token: str) -> None:
    def slowly() -> Iterator[bytes]:
        for one in LINES[:4]:
            time.sleep(0.4)
            yield chunk(one)
        yield b"0\r\n\r\n"

    assert send(port, token, slowly(), "Transfer-Encoding: chunked").startswith(b"HTTP/1.1 202")


@pytest.mark.parametrize("length", ["-1", "1e3", "abc", "99999999999999999999"])
def test_a_length_that_is_none_is_refused(port: int, token: str, length: str) -> None:
    said = send(port, token, [], f"Content-Length: {length}", ends=False)
    assert said[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 413"), said
    assert not Record.objects.exists()


@pytest.mark.parametrize(
    "headers",
    [
        ("Transfer-Encoding: chunked", "Content-Length: 4"),
        ("Content-Length: 4", "Content-Length: 9"),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding : chunked",),
        ("Transfer-Encoding: xchunked",),
    ],
    ids=" and ".join,
)
def test_a_body_of_two_lengths_is_refused_and_nothing_after_it_is_read(
    port: int, token: str, headers: tuple[str, ...]
) -> None:
    hidden = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    said = send(port, token, [b"0\r\n\r\n" + hidden], *headers)
    assert said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), said
    assert said.count(b"HTTP/1.1 ") == 1
    assert not Record.objects.exists()


def test_twins_at_the_same_time_have_one_effect(port: int, token: str) -> None:
    """Hostile input 47: whoever is first is taken in; the others are told to wait, or get the very same answer."""
    answers: list[tuple[int, dict[str, Any]]] = []
    start = threading.Barrier(4)

    def send_twin() -> None:
        start.wait(10)
        answers.append(answer(port, token, b"".join(LINES), **{"Idempotency-Key": "twin"}))

    twins = [threading.Thread(target=send_twin) for _ in range(4)]
    for twin in twins:
        twin.start()
    for twin in twins:
        twin.join(120)
    assert len(answers) == 4
    assert {status for status, _ in answers} <= {202, 409}
    receipts = [said for status, said in answers if status == 202]
    assert receipts
    assert all(said == receipts[0] for said in receipts)
    assert Record.objects.count() == 40
    assert Delivery.objects.count() == 1
    assert answer(port, token, b"".join(LINES), **{"Idempotency-Key": "twin"}) == (202, receipts[0])
    status, said = answer(port, token, b"another\n", **{"Idempotency-Key": "twin"})
    assert (status, said["status"]) == (409, 409)
    assert Record.objects.count() == 40


def test_who_goes_away_in_the_middle_leaves_no_complaint(port: int, token: str, server_folder: Path) -> None:
    """A body that is given up before its end hands the line back while it is open: nothing is tried on a closed one."""
    head = f"POST /api/v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    for header in ("Content-Length: 100000", "Transfer-Encoding: chunked"):
        for address in ("messages", "decode"):
            with socket.create_connection(("127.0.0.1", port), timeout=120) as line:
                line.sendall(
                    f"{head.replace('messages', address)}Content-Type: text/plain\r\n{header}\r\n\r\n".encode()
                )
                line.sendall(b"".join(LINES if "Length" in header else map(chunk, LINES)))
                # The line is cut at once, and not closed in an orderly way.
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # More than POST decode takes, in chunks: it is refused in the middle of the body.
    said = send(port, token, map(chunk, [b"x" * 65_536] * 2), "Transfer-Encoding: chunked", address="decode")
    assert said.startswith(b"HTTP/1.1 413"), said
    assert answer(port, token, b"hello\n")[0] == 202
    log = (server_folder / "web.log").read_text()
    assert "Bad file descriptor" not in log
    assert "Exception ignored" not in log


def test_the_access_log_names_the_key_by_its_prefix_and_keeps_neither_query_nor_link(
    port: int, server_folder: Path, token: str
) -> None:
    for path in ("/api/v1/messages?q=marmalade", "/sign-in/marmalade-link/"):
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        asked.request("GET", path, headers={"Authorization": f"Bearer {token}", "Referer": "/?q=marmalade"})
        asked.getresponse().read()
        asked.close()
    log, until = "", time.monotonic() + 10
    while "/sign-in/" not in log and time.monotonic() < until:
        time.sleep(0.1)
        log = (server_folder / "web.log").read_text()
    prefix = token.split("_")[1]
    assert '"GET /api/v1/messages" 200' in log
    assert f"key {prefix}," in log
    assert '"GET /sign-in/…/"' in log
    assert "marmalade" not in log
    assert token not in log


def test_the_application_is_loaded_before_a_worker_is_forked_so_that_all_share_its_memory(
    port: int, server_folder: Path
) -> None:
    assert "FORKED True" in (server_folder / "web.log").read_text()
