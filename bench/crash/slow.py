"""Slow clients: a body that comes line by line, and an answer that is read a few bytes at a time."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator, Sequence

from inspector.embedded.samples import Door

TIMEOUT_S = 30.0
PIECE_BYTES = 512
PAUSE_S = 0.05


def post_slowly(
    door: Door,
    lines: Sequence[bytes],
    *,
    channel: str,
    pause_s: float,
    stops_after: int | None,
    is_over: threading.Event,
) -> tuple[int, bytes]:
    """Post the lines as a chunked body with a pause before each, or break off after so many of them.

    Returns:
        status and answer; status 0 where the connection was cut.
    """
    connection = http.client.HTTPConnection(door.host, door.port, timeout=TIMEOUT_S)
    headers = {
        "Authorization": f"Bearer {door.token}",
        "Content-Type": "application/x-ndjson",
        "X-Channel": channel,
    }

    def trickle() -> Iterator[bytes]:
        for line in lines[:stops_after]:
            is_over.wait(pause_s)
            yield line + b"\n"
        if stops_after is not None:
            connection.sock.shutdown(socket.SHUT_WR)

    try:
        # A server that has had enough may have answered before everything was sent.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", "/api/v1/messages", trickle(), headers, encode_chunked=True)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def read_slowly(door: Door, *, seconds: float, is_over: threading.Event) -> None:
    """Ask for a long list and read it slowly for so many seconds, then leave."""
    ask = f"GET /api/v1/messages?limit=200 HTTP/1.1\r\nHost: {door.host}\r\nAuthorization: Bearer {door.token}\r\n\r\n"
    # Only a broken line is expected here: what was asked for changes nothing.
    with contextlib.suppress(OSError), socket.create_connection((door.host, door.port), TIMEOUT_S) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.sendall(ask.encode())
        for _ in range(int(seconds / PAUSE_S)):
            if is_over.wait(PAUSE_S) or not line.recv(PIECE_BYTES):
                return
