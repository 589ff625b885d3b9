"""A server that keeps the contract as far as a client sees it, and misbehaves as it is told."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class Inspector:
    """What arrived and what is stored; `faults` are done to the next requests, one each.

    A fault is a status with a Retry-After or none, `drop` (the connection is closed before anything is stored),
    `lose` (it is stored, and the answer never comes) or `cut` (of the answer, the body ends in its middle).
    """

    port: int = 0
    faults: list[Any] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    stored: list[Any] = field(default_factory=list)
    answers: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Serve, at the same address as before."""
        inspector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                inspector.answer(self)

            def log_message(self, *args: object) -> None:
                """Nothing: the tests look at the requests."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *args: object) -> None:
                """Nothing: connections are dropped on purpose."""

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Close the door: connections are refused."""
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self.lock:
            self.requests.append({"headers": dict(handler.headers), "body": body, "path": handler.path})
            fault = self.faults.pop(0) if self.faults else None
            if isinstance(fault, tuple):
                status, after = fault
                said = json.dumps({"status": status, "detail": f"this is a {status}"}).encode()
                reply(handler, status, said, {"Retry-After": after} if after is not None else {})
                return
            if fault == "drop":
                handler.connection.shutdown(socket.SHUT_RDWR)
                return
            status, receipt = self.take(handler.headers["Idempotency-Key"], body)
        if fault == "lose":
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        said = json.dumps(receipt).encode()
        reply(handler, status, said, {}, sent=len(said) // 2 if fault == "cut" else None)

    def take(self, key: str, body: bytes) -> tuple[int, dict[str, Any]]:
        digest = hashlib.sha256(body).hexdigest()
        if key in self.answers:
            known, receipt = self.answers[key]
            return (202, receipt) if known == digest else (409, {"detail": "this key was used with another body"})
        lines = [json.loads(line) for line in gzip.decompress(body).splitlines()]
        self.stored += lines
        counts = {"received": len(lines), "stored": len(lines), "duplicate": 0, "quarantined": 0}
        self.answers[key] = (
            digest,
            {"delivery": f"d{len(self.answers)}", "problems": [], "warnings": self.warnings, **counts},
        )
        return 202, self.answers[key][1]


def reply(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str], *, sent: int | None = None
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[:sent])


@pytest.fixture
def inspector() -> Iterator[Inspector]:
    running = Inspector()
    running.start()
    yield running
    running.stop()
