"""Slow and greedy clients before the real front and the real processes: they stop nobody, and fill no disk."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from inspector.bounds import EVERY_SECONDS
from inspector.intake.models import Delivery
from tests.inspector.api.test_server import LINES, PROJECT, chunk, find_database, find_port, send, wait_for_end
from tests.inspector.intake.processes import make_environment
from tests.lanes import begin_with

pytestmark = pytest.mark.django_db(transaction=True)

SLOW_S = 3


@dataclass
class Site:
    """A front with its processes."""

    port: int
    spool: Path
    token: str

    def get(self, path: str) -> tuple[int, float]:
        """The status of a page, and the seconds it took."""
        started = time.monotonic()
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            line.request("GET", path)
            response = line.getresponse()
            response.read()
            return response.status, time.monotonic() - started
        finally:
            line.close()

    def measure_spool(self) -> int:
        """The bytes of files in the folder for temporary ones, also of those without a name."""
        total = 0
        for link in Path("/proc").glob("[0-9]*/fd/*"):
            with contextlib.suppress(OSError):
                if str(link.readlink()).startswith(str(self.spool)):
                    total += link.stat().st_size
        return total


def start(stack: contextlib.ExitStack, commands: Mapping[str, Sequence[str]], state: Path, **more: str) -> None:
    """Run programs on the database of the test until the stack ends; the log of each has its name."""
    environment = make_environment(state, CELERY_BROKER_URL="redis://127.0.0.1:1", **more)
    for name, command in commands.items():
        log = stack.enter_context((state / f"{name}.log").open("wb"))
        process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)
        stack.callback(process.wait, 20)
        stack.callback(process.terminate)


@contextlib.contextmanager
def serve(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """The port of the front while it serves, and the folder for temporary files."""
    port, spool = find_port(), tmp_path / "spool"
    spool.mkdir()
    with tempfile.TemporaryDirectory(prefix="inspector-") as sockets, contextlib.ExitStack() as stack:
        web, posting = f"{sockets}/web", f"{sockets}/posting"
        pool = ["gunicorn", "inspector.wsgi:behind_front", "--worker-class=gthread", "--workers=1", "--threads=4"]
        pool += ["--config=python:inspector.server", "--limit-request-line=0"]
        pace = [f"--head={SLOW_S}", f"--silence={SLOW_S}", "--grace=6"]
        front = [f"--bind=127.0.0.1:{port}", f"--pages={web}", f"--posting={posting}", *pace]
        commands = {
            "web": [sys.executable, "-m", *pool, f"--bind=unix:{web}", "--no-control-socket"],
            "posting": [sys.executable, "-m", *pool, f"--bind=unix:{posting}", "--no-control-socket"],
            "front": [sys.executable, "-m", "inspector.front", *front],
        }
        start(stack, commands, tmp_path, TMPDIR=str(spool))
        one = Site(port, spool, "")
        until = time.monotonic() + 60
        while True:
            try:
                assert one.get("/sign-in/")[0] == 200
                break
            except (ConnectionError, TimeoutError):
                assert time.monotonic() < until, (tmp_path / "front.log").read_text()
                time.sleep(0.1)
        yield port, spool


@pytest.fixture(scope="module")
def address(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """Processes that serve one test after the other."""
    with serve(tmp_path_factory.mktemp("site")) as given:
        yield given


@pytest.fixture
def crowded_site(token: str, tmp_path: Path) -> Iterator[Site]:
    """Processes of a test's own: what a crowd leaves them to do ends with them, before the tables are emptied."""
    with serve(tmp_path) as given:
        yield Site(*given, token)


@pytest.fixture
def site(address: tuple[int, Path], token: str) -> Site:
    return Site(*address, token)


def post_greedily(site: Site, path: str, framing: str) -> tuple[bytes, int]:
    """Send up to 64 MB to an address; the answer, and the most bytes that lay in temporary files meanwhile."""
    most = 0
    with socket.create_connection(("127.0.0.1", site.port), timeout=120) as line:
        line.sendall(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n{framing}\r\n\r\n".encode()
        )
        piece = b"x" * 65536 if "Length" in framing else chunk(b"x" * 65536)
        with contextlib.suppress(OSError):
            for number in range(1000):
                line.sendall(piece)
                if number % 100 == 0:
                    most = max(most, site.measure_spool())
        said = b""
        with contextlib.suppress(OSError):
            said = line.recv(65536)
    return said, max(most, site.measure_spool())


@pytest.mark.parametrize(
    "framing", begin_with(1, ("Transfer-Encoding: chunked", "Content-Length: 400000000"), seconds=5)
)
def test_a_stranger_fills_no_disk(site: Site, framing: str) -> None:
    for path in ("/sign-in/", "/api/v1/messages", "/nothing/there", "/w/acme/upload/"):
        started = time.monotonic()
        said, most = post_greedily(site, path, framing)
        assert time.monotonic() - started < 8, path
        assert most < 2 * 1024 * 1024, path
        # A sender that goes on sending may lose the answer with its line; what it may not do is to be let in.
        assert said[:12] in (b"", b"HTTP/1.1 413", b"HTTP/1.1 401", b"HTTP/1.1 302"), (path, said[:300])
    assert not Delivery.objects.exists()


def test_a_refusal_arrives_whatever_of_the_body_was_read(site: Site) -> None:
    headers = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {site.token}"}
    for size in (1000, 300_000, 1024 * 1024):
        for path, status in (("/sign-in/", 403), ("/api/v1/decode", 200 if size == 1000 else 413)):
            line = http.client.HTTPConnection("127.0.0.1", site.port, timeout=120)
            line.request("POST", path, b"x" * size, headers)
            assert line.getresponse().status == status, (path, size)
            line.close()


def expect_many_taken(site: Site) -> None:
    lines = b"".join(b"line %d of many\n" % number for number in range(20_000))
    said = send(site.port, site.token, [lines], f"Content-Length: {len(lines)}")
    assert said.startswith(b"HTTP/1.1 202"), said
    assert wait_for_end(Delivery.State.FRAMED).stored == 20_000


def test_a_long_body_of_a_known_key_is_taken(site: Site) -> None:
    expect_many_taken(site)
    assert Delivery.objects.get().remote_address == "127.0.0.1"


def test_a_slow_head_is_told_so(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=120) as line:
        line.sendall(b"GET /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        said = line.recv(65536)
    assert said.startswith(b"HTTP/1.1 408"), said
    assert b"too slowly" in said


@pytest.mark.parametrize("framing", ["Content-Length: 100000", "Transfer-Encoding: chunked"])
def test_a_slow_body_is_told_what_was_kept(site: Site, framing: str) -> None:
    said = send(site.port, site.token, LINES if "Length" in framing else map(chunk, LINES), framing)
    assert said.startswith(b"HTTP/1.1 408"), said
    told = json.loads(said.partition(b"\r\n\r\n")[2])
    assert (told["stored"], told["status"]) == (40, 408)
    assert "too slowly" in told["detail"]
    assert wait_for_end(Delivery.State.BROKEN).stored == 40


def test_what_a_client_says_in_the_front_s_name_counts_for_nothing(site: Site) -> None:
    said = send(
        site.port, site.token, [b"hello\n"], "X-Front-Address: 192.0.2.9", "X_Front_Body: slow",
        "X-Front-Body: asked", "X-Forwarded-For: 192.0.2.8", "Content-Length: 6",
    )  # fmt: skip
    assert said.startswith(b"HTTP/1.1 202"), said
    assert Delivery.objects.get().remote_address == "127.0.0.1"


HEAD = "GET /api/v1/{} HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def test_every_head_is_answered_as_the_api_answers(site: Site) -> None:
    key = f"Authorization: Bearer {site.token}\r\n"
    limits, words = HEAD.format("limits"), quote("🍵 é" * 660)
    heads: dict[str, tuple[str, int]] = {
        # They are too many to be searched for, says the API itself.
        "a long query": (HEAD.format(f"messages?q={words}") + key, 400),
        "the server in the address": (limits.replace("/api", "http://127.0.0.1/api") + key, 200),
        "a hundred headers": (limits + key + "X-A: a\r\n" * 98, 200),
        "a long header": (limits + key + f"X-A: {'a' * 20_000}\r\n", 200),
        "two keys": (limits + key + key, 401),
        "a key that is no text": (limits + "Authorization: Bearer \xff\xfe\r\n", 401),
        "another host": (limits.replace("Host: ", "Host: x"), 400),
        "a host that is none": (limits.replace("Host: ", "Host: \xff"), 400),
        "no address": ("GET /v1/metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n", 404),
        "two hosts": (limits + "Host: a\r\n", 400),
    }
    for name, (head, status) in heads.items():
        with socket.create_connection(("127.0.0.1", site.port), timeout=60) as line:
            line.sendall(f"{head}\r\n".encode("latin-1"))
            line.shutdown(socket.SHUT_WR)
            said, _, body = line.makefile("rb").read().partition(b"\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 %d " % status), (name, said)
        kind = b"application/json" if status == 200 else b"application/problem+json"
        assert b"Content-Type: " + kind in said, (name, said)
        assert status == 200 or b'"status":%d' % status in body.replace(b" ", b""), (name, body)


def can_connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=120).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_stopped_front_answers_what_it_handed_on_and_takes_nothing_new() -> None:
    port, until = find_port(), time.monotonic() + 120
    with tempfile.TemporaryDirectory(prefix="inspector-") as sockets, socket.socket(socket.AF_UNIX) as pages:
        pages.bind(f"{sockets}/web")
        pages.listen()
        pages.settimeout(60)
        command = (sys.executable, "-m", "inspector.front", f"--bind=127.0.0.1:{port}", f"--pages={sockets}/web")
        with subprocess.Popen([*command, f"--posting={sockets}/posting"], cwd=PROJECT) as front:
            try:
                while not can_connect(port):
                    assert time.monotonic() < until
                    time.sleep(0.05)
                with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
                    line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                    behind, _ = pages.accept()
                    front.terminate()
                    while can_connect(port):
                        assert time.monotonic() < until
                        time.sleep(0.05)
                    with behind:
                        behind.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nready")
                    assert line.makefile("rb").read().endswith(b"ready")
                assert front.wait(60) == 0
            finally:
                front.kill()


def count_waiting(line: psycopg.Connection[tuple[int]], table: str) -> int:
    """How many statements wait for a lock on a table."""
    found = line.execute(
        "SELECT count(*) FROM pg_locks WHERE relation = %s::regclass AND NOT granted", [f"public.{table}"]
    ).fetchone()
    return found[0] if found else 0


def wait_for(line: psycopg.Connection[tuple[int]], table: str, count: int) -> None:
    until = time.monotonic() + 120
    while count_waiting(line, table) != count:
        assert time.monotonic() < until, f"not {count} statements wait for {table}"
        time.sleep(0.05)


def test_work_ends_when_the_client_goes(site: Site) -> None:
    head = f"HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {site.token}\r\n"
    reads = f"GET /api/v1/conversations {head}\r\n".encode()
    # Also where each statement has a patience, and another one would follow.
    looks = f"GET /api/v1/messages?q=tea {head}\r\n".encode()
    writes = f"POST /api/v1/messages {head}Content-Type: text/plain\r\nContent-Length: 4\r\n\r\ntea\n".encode()
    with psycopg.connect(find_database(), autocommit=True) as watching, psycopg.connect(find_database()) as holding:
        for table, request in (
            ("threads_conversation", reads),
            ("threads_message", looks),
            ("intake_delivery", writes),
        ):
            holding.execute(psycopg.sql.SQL("LOCK TABLE {}").format(psycopg.sql.Identifier(table)))
            with socket.create_connection(("127.0.0.1", site.port), timeout=120) as line:
                line.sendall(request)
                wait_for(watching, table, 1)
            if request is writes:  # Its sender may have gone because all was said.
                time.sleep(3 * EVERY_SECONDS)
                assert count_waiting(watching, table) == 1
            else:
                wait_for(watching, table, 0)
                time.sleep(3 * EVERY_SECONDS)
                assert count_waiting(watching, table) == 0
            holding.rollback()
    assert wait_for_end(Delivery.State.FRAMED).stored == 1
    assert site.get("/sign-in/")[0] == 200


def stay_slow(site: Site, head: str, piece: bytes, stop: threading.Event) -> None:
    """A client that sends a piece a second, and comes again when it is thrown out."""
    while not stop.is_set():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", site.port), timeout=5) as line:
            line.sendall(head.encode())
            while not stop.wait(1):
                line.sendall(piece)


def test_slow_clients_stop_nobody(crowded_site: Site) -> None:
    start = "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    body = "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    key = f"Authorization: Bearer {crowded_site.token}\r\n"
    crowd = [(start.format("/sign-in/"), b"X-A: b\r\n")] * 16
    crowd += [(start.format("/sign-in/") + body, chunk(b"x"))] * 8 + [
        (start.format("/api/v1/messages") + body, chunk(b"x"))
    ] * 8
    crowd += [(start.format("/api/v1/messages") + key + body, chunk(b"x"))] * 16
    crowd += [(start.format("/api/v1/messages") + key + body, chunk(b"a whole record each second\n"))] * 10
    check_while(
        crowded_site,
        [lambda stop, head=head, piece=piece: stay_slow(crowded_site, head, piece, stop) for head, piece in crowd],
    )


@pytest.mark.long(seconds=7)
def test_sign_ins_at_once_stop_nobody(crowded_site: Site) -> None:
    statuses: list[int] = []

    def enter(stop: threading.Event) -> None:
        line = http.client.HTTPConnection("127.0.0.1", crowded_site.port, timeout=60)
        token = "a" * 32
        form = f"username=nobody&password=wrong-but-long&csrfmiddlewaretoken={token}"
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"csrftoken={token}"}
        line.request("POST", "/sign-in/", form, headers)
        statuses.append(line.getresponse().status)
        line.close()

    check_while(crowded_site, [enter] * 150, seconds=4)
    assert len(statuses) == 150
    assert set(statuses) <= {422, 429}
    assert statuses.count(429) >= 100


def check_while(site: Site, crowd: list[Callable[[threading.Event], None]], seconds: float = 8) -> None:
    """Ask for health and a page while the crowd is at work: each answer comes within a second, or where the machine is
    so busy with other things that it takes long without the crowd, within ten times that."""
    calm = statistics.median(site.get(path)[1] for path in ("/healthz", "/sign-in/") * 4)
    max_seconds = max(1.0, 10 * calm)
    stop = threading.Event()
    threads = [threading.Thread(target=one, args=(stop,)) for one in crowd]
    for thread in threads:
        thread.start()
    try:
        until = time.monotonic() + seconds
        asked = [(path, *site.get(path)) for path in iter_paths(until)]
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    late = [one for one in asked if one[1] != 200 or one[2] > max_seconds]
    assert len(asked) >= 8
    assert not late, (calm, late)


def iter_paths(until: float) -> Iterator[str]:
    while time.monotonic() < until:
        yield "/healthz"
        yield "/sign-in/"
        time.sleep(0.2)
