"""The client against the product itself: answers are lost on the line between them, and the server is killed."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection

from inspector.intake import framing
from inspector.intake.models import Delivery, Record
from inspector_client import Client, Receipt, RefusedError
from tests.inspector.api.test_server import find_port, port, serve, server_folder
from tests.inspector.conftest import Cast, cast, token

__all__ = ["cast", "port", "server_folder", "token"]

pytestmark = pytest.mark.django_db(transaction=True)


class LossyLine:
    """Passes bytes to a server and back; of the first connections the answer is not passed back."""

    def __init__(self, port: int, *, losses: int) -> None:
        self._target = ("127.0.0.1", port)
        self._losses = losses
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # It was closed.
            self.connections += 1
            with near, socket.create_connection(self._target) as far:
                threading.Thread(target=self._pass, args=(near, far), daemon=True).start()
                answer = far.recv(65536)
                if self.connections > self._losses:
                    while answer:
                        near.sendall(answer)
                        answer = far.recv(65536)
                # Closing alone would wait for the other thread, which still reads.
                near.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _pass(near: socket.socket, far: socket.socket) -> None:
        try:
            while piece := near.recv(65536):
                far.sendall(piece)
        except OSError:
            return  # One of the two is gone.

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def line(port: int) -> Iterator[LossyLine]:
    opened = LossyLine(port, losses=3)
    yield opened
    opened.close()


def test_what_was_sent_again_is_stored_once(line: LossyLine, token: str) -> None:
    client = Client(line.url, token, first_pause_seconds=0.01, batch_records=100)
    # Neither id nor time: nothing but the key tells that a batch was seen.
    receipt = client.send("a heartbeat" for _ in range(250))
    assert line.connections == 6
    assert (receipt.received, receipt.stored, receipt.duplicate, receipt.quarantined) == (250, 250, 0, 0)
    assert Record.objects.count() == 250
    assert sorted(receipt.deliveries) == sorted(str(pk) for pk in Delivery.objects.values_list("pk", flat=True))
    assert client.send("a heartbeat").stored == 1


@pytest.mark.long(seconds=12, waits=True)
def test_a_server_that_is_killed_and_started_again_has_everything_once(
    token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody sweeps here: what a killed server had begun to receive is closed below, while none is there.
    monkeypatch.setattr(framing, "GRACE_SECONDS", 0.0)
    number, records, kills = find_port(), 3000, 4
    client = Client(
        f"http://127.0.0.1:{number}",
        token,
        first_pause_seconds=0.05,
        most_pause_seconds=0.5,
        batch_records=50,
        give_up_after_seconds=600,
    )
    with ThreadPoolExecutor(1) as pool:
        # Neither id nor time: nothing but the key of its batch tells a record that was seen from a new one.
        sending = pool.submit(client.send, ("a heartbeat" for _ in range(records)))
        for kill in range(kills):
            sessions = count_sessions()
            with serve(number, tmp_path) as server:
                wait_for_records(records * (kill + 1) // (kills + 2), sending)
                os.killpg(server.pid, signal.SIGKILL)
            end_what_was_begun(sessions)
        assert not sending.done(), "it was over before it could be interrupted"
        with serve(number, tmp_path):
            receipt = sending.result(600)
    assert (receipt.received, receipt.stored + receipt.duplicate) == (records, records)
    assert Record.objects.count() == records


def wait_for_records(count: int, sending: Future[Receipt]) -> None:
    """Until so many are durable.

    Raises:
        ClientError: as it was given up.
    """
    until = time.monotonic() + 300
    while Record.objects.count() < count:
        assert not sending.done() or sending.result()
        assert time.monotonic() < until, [*Delivery.objects.values_list("state", "stored", "received_at")]
        time.sleep(0.01)


def count_sessions() -> int:
    """How many others are at work in the database of the tests."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])


def end_what_was_begun(sessions: int) -> None:
    """As a worker does, once the database has heard of the death of its clients, and no more sessions are left than
    there were: what one of them had asked for may be written until then."""
    until = time.monotonic() + 120
    while count_sessions() > sessions or Delivery.objects.filter(state=Delivery.State.RECEIVING).exists():
        assert time.monotonic() < until
        framing.end_abandoned()
        time.sleep(0.05)


def test_the_receipt_tells_what_the_product_did(port: int, token: str, cast: Cast) -> None:
    client = Client(f"http://127.0.0.1:{port}", token, "lab")
    message = {"raw": "hello \ud800", "id": "1", "at": "2026-11-21T09:00:00Z", "from": "ada"}
    receipt = client.send([message, message])
    assert (receipt.stored, receipt.duplicate) == (1, 1)
    assert Record.objects.get().channel.name == "lab"
    assert receipt.warnings == ()
    warned = client.send([{"raw": "hello", "sender": "ada"}, {"text": "hello"}])
    assert [warning["code"] for warning in warned.warnings] == ["name", "no-raw"]
    assert warned.warnings[0]["hint"] == "write `from` instead of `sender`"


def test_a_wrong_key_is_refused_with_the_reason(port: int, db: None) -> None:
    with pytest.raises(RefusedError, match="401 ") as refused:
        Client(f"http://127.0.0.1:{port}", "wrong").send("x")
    assert len(refused.value.detail) > 10
