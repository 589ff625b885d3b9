"""R27: slow and greedy strangers before a running installation, and how health and a page are answered meanwhile."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator

from .installation import HOST, Installation
from .measure import Goal, Row

SLOW = (16, 256)
SIGN_INS = 150
SECONDS = 20.0
LIMIT_S = 1.0
GOAL = Goal("R27", "percent of health and pages later than 1 s beside slow clients", 0, 0, is_share=True)


def measure_slow(installation: Installation) -> Iterator[Row]:
    """A row for each crowd: how many of the answers failed or came late, in percent."""
    installation.start()
    head = f"POST /api/v1/messages HTTP/1.1\r\nHost: {HOST}\r\n"
    key = f"Authorization: Bearer {installation.door.token}\r\n"
    body = "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    for count in SLOW:
        for name, start, piece in (
            ("heads", head, b"X-A: b\r\n"),
            ("bodies of strangers", head + body, b"1\r\nx\r\n"),
            ("bodies with a key", head + key + body, b"7\r\nrecord\n\r\n"),
        ):
            crowd = [_make_slow(installation, start.encode(), piece)] * count
            yield _watch(installation, f"{count} slow {name}", crowd)
    yield _watch(installation, f"{SIGN_INS} sign-ins at once", [_make_sign_in(installation)] * SIGN_INS)


def _make_slow(installation: Installation, head: bytes, piece: bytes) -> Callable[[threading.Event], None]:
    def stay(stop: threading.Event) -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(_find(installation), timeout=10) as line:
                line.sendall(head)
                while not stop.wait(1):
                    line.sendall(piece)

    return stay


def _make_sign_in(installation: Installation) -> Callable[[threading.Event], None]:
    token = "a" * 32
    form = f"username=nobody&password=wrong-but-long&csrfmiddlewaretoken={token}"
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"csrftoken={token}"}

    def enter(stop: threading.Event) -> None:
        line = http.client.HTTPConnection(*_find(installation), timeout=60)
        with contextlib.closing(line), contextlib.suppress(OSError, http.client.HTTPException):
            line.request("POST", "/sign-in/", form, headers)
            line.getresponse().read()

    return enter


def _find(installation: Installation) -> tuple[str, int]:
    return HOST, installation.door.port


def _watch(installation: Installation, name: str, crowd: list[Callable[[threading.Event], None]]) -> Row:
    stop = threading.Event()
    threads = [threading.Thread(target=one, args=(stop,)) for one in crowd]
    for thread in threads:
        thread.start()
    taken: list[float] = []
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        taken += [_ask(installation, path) for path in ("/healthz", "/sign-in/")]
        time.sleep(0.1)
    stop.set()
    for thread in threads:
        thread.join()
    late = 100 * sum(seconds > LIMIT_S for seconds in taken) / len(taken)
    return Row(GOAL, late, remark=f"{name}: {len(taken)} answers, the longest {max(taken):.2f} s")


def _ask(installation: Installation, path: str) -> float:
    """The seconds that an answer took; without end where it was none."""
    started = time.monotonic()
    line = http.client.HTTPConnection(*_find(installation), timeout=10)
    with contextlib.closing(line):
        try:
            line.request("GET", path)
            response = line.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            return 1e9
    return time.monotonic() - started if response.status == http.client.OK else 1e9
