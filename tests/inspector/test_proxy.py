"""The proxy of docker-compose.yml before the processes that stand behind it there: slow clients stop nobody."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.inspector.api.test_server import PROJECT, chunk, find_port, send

from .test_slow_clients import Site, check_while, expect_many_taken, start, stay_slow

NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or ""

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.long(seconds=30, waits=True),
    pytest.mark.skipif(not NGINX, reason="nginx is missing"),
]


@pytest.fixture
def site(token: str, tmp_path: Path) -> Iterator[Site]:
    """The proxy by its own file, but for addresses, folders and names of hosts, before the pages and the posting."""
    port = find_port()
    with tempfile.TemporaryDirectory(prefix="inspector-") as folder, contextlib.ExitStack() as stack:
        text = (PROJECT / "proxy" / "nginx.conf").read_text()
        text = text.replace("listen 8000;", f"listen 127.0.0.1:{port};").replace("/tmp/", f"{folder}/")
        # Sockets have no name to look up. Of two webs the second never answers, and is given two seconds to.
        text = re.sub(r"server (web|posting):8000 resolve", rf"server unix:{folder}/\1.socket", text)
        text = re.sub(r"server events:8000 resolve", "server 127.0.0.1:1", text).replace("timeout 65s", "timeout 2s")
        text = text.replace("zone web 128k;", f"zone web 128k;\n server unix:{folder}/hung.socket max_fails=3;")
        Path(folder, "resolver.conf").touch()
        file = Path(folder, "nginx.conf")
        file.write_text(text)
        pool = [sys.executable, "-m", "gunicorn", "inspector.wsgi:application", "--worker-class=gthread"]
        pool += ["--workers=1", "--threads=8", "--no-control-socket"]
        hung = stack.enter_context(socket.socket(socket.AF_UNIX))
        hung.bind(f"{folder}/hung.socket")
        hung.listen(64)
        commands = {
            "web": [*pool, f"--bind=unix:{folder}/web.socket"],
            "posting": [*pool, f"--bind=unix:{folder}/posting.socket"],
            # Whoever runs the tests runs it, so that it reads the folder; in its container it is nobody's.
            "proxy": [NGINX, "-c", str(file), "-g", "daemon off;" if os.geteuid() else "daemon off; user root;"],
        }
        start(stack, commands, tmp_path)
        one = Site(port, tmp_path, token)
        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(ConnectionError):
                if one.get("/sign-in/")[0] == 200 and one.get("/api/v1/messages")[0] == 401:
                    break
            assert time.monotonic() < until, (tmp_path / "proxy.log").read_text()[-2000:]
            time.sleep(0.2)
        yield one


def test_slow_strangers_stop_no_page_and_no_sender(site: Site) -> None:
    head = "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    chunked = "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    known = "Content-Type: text/plain\r\nContent-Length: 100000\r\n\r\n"
    crowd = [(head.format("/sign-in/"), b"X-A: b\r\n")] * 16
    for path in ("/sign-in/", "/api/v1/messages", "/w/acme/upload/", "/api/v1/decode"):
        crowd += [(head.format(path) + chunked, chunk(b"x")), (head.format(path) + known, b"x")] * 6
    sent: list[bytes] = []

    def post(stop: threading.Event) -> None:
        while not stop.wait(1):
            sent.append(send(site.port, site.token, [b"one\n"], "Content-Length: 4")[:12])

    slow = [lambda stop, head=head, piece=piece: stay_slow(site, head, piece, stop) for head, piece in crowd]
    check_while(site, [*slow, post])
    assert set(sent) == {b"HTTP/1.1 202"}
    assert len(sent) >= 4


def test_one_address_holds_a_hundred_connections_at_most(site: Site) -> None:
    with contextlib.ExitStack() as stack:
        for count, status in ((90, 200), (20, 429)):
            # More than a hundred: one that has just ended may still count, and one of these be refused for it.
            for _ in range(count):
                line = stack.enter_context(socket.create_connection(("127.0.0.1", site.port), timeout=5))
                line.sendall(b"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n")
            wait_for_answer(site, status)
    wait_for_answer(site, 200)


def wait_for_answer(site: Site, status: int) -> None:
    """Wait until /healthz answers so: the proxy counts a connection from its head until it has closed it."""
    until = time.monotonic() + 10
    while (said := site.get("/healthz")[0]) != status:
        assert time.monotonic() < until, f"{said} after ten seconds, and not {status}"
        time.sleep(0.1)


def test_a_large_body_is_taken_by_posting_alone(site: Site) -> None:
    expect_many_taken(site)
    large = 13 * 1024 * 1024
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as line:
        line.sendall(f"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {large}\r\n\r\n".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 413")


def test_a_web_that_hangs_is_left_out(site: Site) -> None:
    """After three failures in ten seconds it gets one request in ten seconds, and all pages come."""
    seconds = []
    for _ in range(30):
        began = time.monotonic()
        assert site.get("/healthz")[0] == 200
        seconds.append(time.monotonic() - began)
    assert sum(each > 1.5 for each in seconds) <= 4, seconds
