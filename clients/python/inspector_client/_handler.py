"""A logging handler that hands messages to a thread, and never makes the agent that logs them wait.

What is waiting is bounded in records and bytes. What does not fit is dropped, counted, and told to the inspector by a
record of its own, so that nobody takes a log with a hole for a whole one.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from ._batches import Batch, encode_message, make_batch
from ._client import Client
from ._errors import GaveUpError, RefusedError

_JOIN_SECONDS = 1.0


class _StoppedError(Exception):
    """The handler is being closed, and nothing more is waited for."""


def describe_record(handler: logging.Handler, record: logging.LogRecord) -> dict[str, object]:
    """A record of the log as a message: its text, the time of logging, and what its `envelope` says beside it."""
    said: object = record.msg
    if isinstance(said, Mapping) and not record.args:
        raw = json.dumps(dict(said), default=str)
    else:
        raw = handler.format(record)
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
    envelope = getattr(record, "envelope", None)
    return {"raw": raw, "at": at, **(envelope if isinstance(envelope, Mapping) else {})}


class InspectorHandler(logging.Handler):
    """Sends what is logged: `logger.info(wire, extra={"envelope": {"from": "ada", "to": "bob"}})`.

    The formatted message is the text of the record, and the time of logging its time. A message that is a mapping is
    sent as JSON. After a fork the child begins with an empty buffer, and the parent keeps what is waiting.

    Args:
        url: where the inspector is; or give `client`.
        key: an API key with the scope `ingest`.
        channel: the namespace of ids.
        client: a client made elsewhere, in the place of the three.
        level: as of every handler.
        capacity: how many records may wait.
        capacity_bytes: how many bytes they may have.
        drop: which records go when there is no room: the `oldest` that wait, or the `newest` that come.
        flush_seconds: how long a record waits for others to go with it.
        close_seconds: how long `flush` and `close` wait for what is left.

    Raises:
        ValueError: without an address or a key, or for another `drop`.

    Attributes:
        sent: how many records the inspector took.
        dropped: how many found no room.
        refused: how many the inspector did not want.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        channel: str | None = None,
        *,
        client: Client | None = None,
        level: int | str = logging.NOTSET,
        capacity: int = 10_000,
        capacity_bytes: int = 16 * 1024 * 1024,
        drop: Literal["oldest", "newest"] = "oldest",
        flush_seconds: float = 1.0,
        close_seconds: float = 5.0,
    ) -> None:
        if client is None and (url is None or key is None):
            raise ValueError("give a url and a key, or a client")
        if drop not in ("oldest", "newest"):
            raise ValueError(f"drop is 'oldest' or 'newest', and not {drop!r}")
        super().__init__(level)
        self._client = client or Client(url or "", key or "", channel)
        self._capacity = max(1, capacity)
        self._capacity_bytes = capacity_bytes
        self._drops_oldest = drop == "oldest"
        self._flush_seconds = flush_seconds
        self._close_seconds = close_seconds
        self._begin()
        _alive.add(self)

    def _begin(self) -> None:
        """An empty buffer and no thread: at the start, and again in the child of a fork."""
        self.sent = self.dropped = self.refused = 0
        self._told = 0
        self._complaints: set[str] = set()
        self._lines: deque[bytes] = deque()
        self._size_bytes = 0
        self._in_flight = 0
        self._first_at = 0.0
        self._is_flushing = self._is_closed = False
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """How many records have not been taken yet."""
        return len(self._lines) + self._in_flight

    def emit(self, record: logging.LogRecord) -> None:
        """Put the record into the buffer; this waits for no network."""
        try:
            line = encode_message(describe_record(self, record))
        except Exception:  # noqa: BLE001 (whatever a record's own code raises, as in every handler)
            self.handleError(record)
            return
        with self._changed:
            if self._is_closed or not self._make_room(len(line)):
                self.dropped += 1
                return
            if not self._lines:
                self._first_at = time.monotonic()
            self._lines.append(line)
            self._size_bytes += len(line)
            self._start()
            if len(self._lines) in (1, self._client.batch_records):
                self._changed.notify_all()

    def _make_room(self, size_bytes: int) -> bool:
        if size_bytes > self._capacity_bytes:
            return False
        while len(self._lines) >= self._capacity or self._size_bytes + size_bytes > self._capacity_bytes:
            if not self._drops_oldest or not self._lines:
                return False
            self._size_bytes -= len(self._lines.popleft())
            self.dropped += 1
        return True

    def _start(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="inspector-handler", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return  # The interpreter is ending and takes no new thread; close() counts what is left.
            self._thread = thread

    def _run(self) -> None:
        while lines := self._take():
            taken = self._deliver(lines)
            with self._changed:
                self._in_flight = 0
                self.sent += taken
                self._changed.notify_all()

    def _take(self) -> list[bytes]:
        """The next lines to send, as soon as they are due; none when the handler is closed and has no more."""
        with self._changed:
            while not self._stop.is_set() and not self._is_due():
                if self._is_closed:
                    return []
                left = self._first_at + self._flush_seconds - time.monotonic() if self._lines else None
                self._changed.wait(left)
            if self._stop.is_set():
                return []
            lines: list[bytes] = []
            size = 0
            while self._lines and len(lines) < self._client.batch_records:
                if lines and size + len(self._lines[0]) > self._client.batch_bytes:
                    break
                lines.append(self._lines.popleft())
                size += len(lines[-1])
            self._size_bytes -= size
            self._first_at = time.monotonic()
            self._in_flight = len(lines)
            if self.dropped > self._told:
                lines.append(self._tell_dropped())
            return lines

    def _is_due(self) -> bool:
        if not self._lines:
            return self.dropped > self._told and (self._is_flushing or self._is_closed)
        is_old = time.monotonic() - self._first_at >= self._flush_seconds
        return is_old or self._is_flushing or self._is_closed or len(self._lines) >= self._client.batch_records

    def _tell_dropped(self) -> bytes:
        """A record that says what is missing; it comes as soon as there is room, and at the end at the latest."""
        count, self._told = self.dropped - self._told, self.dropped
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        words = f"inspector_client: {count} records were dropped here, because the buffer was full"
        return encode_message({"raw": words, "at": at})

    def _deliver(self, lines: list[bytes]) -> int:
        """How many of the agent's records were taken; a batch is given up only when it is refused, or at the end."""
        batch, count = make_batch(lines), self._in_flight
        try:
            self._insist(batch)
        except _StoppedError:
            with self._changed:
                self._lines.extendleft(reversed(lines[:count]))
                self._in_flight = 0
            return 0
        except Exception as error:  # noqa: BLE001 (the thread outlives whatever happens to one batch)
            self.refused += count
            self._complain(str(error) if isinstance(error, RefusedError) else f"{type(error).__name__}: {error}")
            return 0
        return count

    def _insist(self, batch: Batch) -> None:
        while True:
            try:
                receipt = self._client.deliver(batch, pause=self._pause)
            except GaveUpError as error:
                self._complain(f"{error.reason}; it is tried again")
                seconds = error.wait_seconds
            else:
                for warning in receipt.warnings:
                    self._complain(f"{warning.get('reason')}; {warning.get('hint')}")
                return
            self._pause(seconds)

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _StoppedError

    def _complain(self, words: str) -> None:
        """Say it once on standard error, since logging it would come back here."""
        if words in self._complaints or len(self._complaints) > 100 or not logging.raiseExceptions:
            return
        self._complaints.add(words)
        if sys.stderr is not None:
            print(f"inspector_client: {words}", file=sys.stderr)

    def flush(self) -> None:
        """Send what is waiting, and wait for it, but no longer than `close_seconds`."""
        with self._changed:
            if self._thread is None:
                return
            self._is_flushing = True
            self._changed.notify_all()
            self._changed.wait_for(self._is_empty, self._close_seconds)
            self._is_flushing = False

    def _is_empty(self) -> bool:
        return not self._lines and not self._in_flight and self.dropped == self._told

    def close(self) -> None:
        """Send what is waiting, for no longer than `close_seconds`, and end the thread; it says what is left."""
        if self._is_closed:
            return
        self.flush()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)
        if self.waiting:
            self._complain(f"{self.waiting} records were not sent before the end")
        super().close()


# Handlers that are still there, for the children of a fork to begin anew with.
_alive: weakref.WeakSet[InspectorHandler] = weakref.WeakSet()


def _begin_in_child() -> None:
    for handler in list(_alive):
        is_closed = handler._is_closed
        handler._begin()
        handler._is_closed = is_closed


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
