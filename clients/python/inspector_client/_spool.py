"""Sending from the disk: messages stand in a folder until the inspector has them, whatever becomes of the program.

A process writes one file at a time, on which it holds a lock. A file that is full or due is sent as one batch, under a
key that is its name, and deleted when the receipt is there: what a killed program leaves behind, the next one sends,
and nothing is stored twice. Needs a system with `fcntl`.
"""

from __future__ import annotations

import fcntl
import gzip
import logging
import os
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from ._batches import Batch, Message, encode_message, list_messages
from ._client import Client
from ._errors import GaveUpError, RefusedError, SpoolFullError
from ._handler import describe_record

_OPEN, _READY, _REFUSED = ".open", ".ready", ".refused"


class _StoppedError(Exception):
    """The spool is being closed, and nothing more is waited for."""


class Spool:
    """Messages on their way to an inspector. `send` returns when they stand on this disk; a thread takes them further.

    Args:
        client: the way to the inspector; its `batch_records` and `batch_bytes` bound a file.
        folder: where the files stand; made where it is missing. Programs may share one.
        most_bytes: how much may wait there.
        flush_seconds: how long a message waits for others to go with it.
        is_durable: whether each `send` waits for the disk itself, so that a loss of power loses nothing either.

    Attributes:
        sent: how many messages the inspector took from this process.
        refused: how many it did not want; their files stay, as `.refused`.
    """

    def __init__(
        self,
        client: Client,
        folder: str | os.PathLike[str],
        *,
        most_bytes: int = 256 * 1024 * 1024,
        flush_seconds: float = 1.0,
        is_durable: bool = False,
    ) -> None:
        self._client = client
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._most_bytes = most_bytes
        self._flush_seconds = flush_seconds
        self._is_durable = is_durable
        self._begin()
        _alive.add(self)

    def _begin(self) -> None:
        """No file of its own and no thread: at the start, and again in the child of a fork."""
        self.sent = self.refused = 0
        self._complaints: set[str] = set()
        self._file: BinaryIO | None = None
        self._path = self._folder
        self._count = self._size = 0
        self._due_at = 0.0
        self._is_closed = False
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._waiting_bytes = sum(path.stat().st_size for path in self._folder.iterdir() if path.suffix != _REFUSED)
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """How many files wait, those of other programs in the same folder too."""
        return sum(path.suffix in (_OPEN, _READY) for path in self._folder.iterdir())

    def send(self, messages: Iterable[Message] | Message) -> None:
        """Write messages down; when this returns, the end of the program cannot lose them.

        Args:
            messages: as of `Client.send`.

        Raises:
            SpoolFullError: where as much waits as may; nothing of the call is written then.
            TypeError: for a message that is neither text nor a mapping.
            ValueError: after `close`.
        """
        several = list_messages(messages)
        lines = [encode_message(message) for message in several]
        with self._changed:
            if self._is_closed:
                raise ValueError("the spool is closed")
            if self._waiting_bytes + sum(map(len, lines)) > self._most_bytes:
                raise SpoolFullError(self._waiting_bytes)
            for line in lines:
                self._write(line)
            if self._file is not None:
                self._file.flush()
                if self._is_durable:
                    os.fsync(self._file.fileno())
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="inspector-spool", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _write(self, line: bytes) -> None:
        is_full = self._count >= self._client.batch_records or self._size + len(line) > self._client.batch_bytes
        if self._file is not None and is_full and self._count:
            self._finish()
        if self._file is None:
            # Names sort by time, and no two are alike.
            self._path = self._folder / f"{time.time_ns():020d}-{uuid.uuid4().hex}{_OPEN}"
            self._file = self._path.open("xb")
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._count = self._size = 0
            self._due_at = time.monotonic() + self._flush_seconds
        self._file.write(line)
        self._count += 1
        self._size += len(line)
        self._waiting_bytes += len(line)

    def _finish(self) -> None:
        """Close the file at hand: from now on it can be sent."""
        if self._file is not None:
            self._file.flush()
            self._path.rename(self._path.with_suffix(_READY))
            self._file.close()
            self._file = None

    def _adopt(self) -> None:
        """Take over the files of programs that are no more."""
        for path in self._folder.glob(f"*{_OPEN}"):
            if self._file is not None and path == self._path:
                continue
            try:
                with path.open("rb") as left:
                    fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.rename(path.with_suffix(_READY))
            except (BlockingIOError, FileNotFoundError):
                continue  # It is being written, or somebody else has taken it.

    def _run(self) -> None:
        self._adopt()
        while not self._stop.is_set():
            with self._changed:
                if self._file is not None and (self._is_closed or time.monotonic() >= self._due_at):
                    self._finish()
            try:
                is_busy = self._send_next()
            except _StoppedError:
                return
            except OSError as error:
                self._complain(f"the spool cannot be read: {error}")
                is_busy = False
            with self._changed:
                if not is_busy:
                    if self._is_closed and self._file is None:
                        return
                    left = self._due_at - time.monotonic() if self._file is not None else None
                    self._changed.wait(left if left is None else max(0.0, left))

    def _send_next(self) -> bool:
        """Send the oldest file that is ready; whether there was one."""
        path = min(self._folder.glob(f"*{_READY}"), default=None)
        if path is None:
            return False
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return True  # Another program has sent it.
        size = len(text)
        whole, end, torn = text.rpartition(b"\n")
        # What a killed program was just writing is sent as far as it came.
        text = whole + end + (encode_message(torn.decode(errors="replace")) if torn else b"")
        count = text.count(b"\n")
        batch = Batch(body=gzip.compress(text, 6, mtime=0), count=count, key=path.stem.partition("-")[2])
        try:
            self._insist(batch)
        except RefusedError as error:
            self.refused += count
            self._complain(str(error))
            path.rename(path.with_suffix(_REFUSED))
        else:
            self.sent += count
            path.unlink(missing_ok=True)
        with self._changed:
            self._waiting_bytes = max(0, self._waiting_bytes - size)
            self._changed.notify_all()
        return True

    def _insist(self, batch: Batch) -> None:
        if not batch.count:
            return
        while True:
            try:
                self._client.deliver(batch, pause=self._pause)
            except GaveUpError as error:
                self._complain(f"{error.reason}; it is tried again")
                self._pause(error.wait_seconds)
            else:
                return

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _StoppedError

    def _complain(self, words: str) -> None:
        """Say it once on standard error."""
        if words not in self._complaints and len(self._complaints) <= 100 and sys.stderr is not None:
            self._complaints.add(words)
            print(f"inspector_client: {words}", file=sys.stderr)

    def close(self, seconds: float = 5.0) -> None:
        """Send what waits, for no longer than this; what is left stays on the disk for the next program."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(seconds)
        self._stop.set()
        with self._changed:
            self._finish()


class SpoolHandler(logging.Handler):
    """A logging handler that writes to a spool: what was logged survives the end of the program, however it comes.

    Args:
        spool: where to.
        level: as of every handler.
    """

    def __init__(self, spool: Spool, *, level: int | str = logging.NOTSET) -> None:
        super().__init__(level)
        self._spool = spool

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record down; this waits for no network. Without room it is reported as every handler does."""
        try:
            self._spool.send(describe_record(self, record))
        except Exception:  # noqa: BLE001 (whatever a record's own code raises, as in every handler)
            self.handleError(record)


# Spools that are still there, for the children of a fork to begin anew with.
_alive: weakref.WeakSet[Spool] = weakref.WeakSet()


def _begin_in_child() -> None:
    for spool in list(_alive):
        # The file and its lock are the parent's.
        spool._begin()


os.register_at_fork(after_in_child=_begin_in_child)
