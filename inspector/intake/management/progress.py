"""How far an import is: a line that is written over in a terminal, and now and then a plain line elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Protocol

BAR_SECONDS = 0.1
LINE_SECONDS = 10.0
_BAR_WIDTH = 20


class Screen(Protocol):
    """What is written to: a text stream, or the wrapper that a command has around one."""

    def write(self, words: str, /) -> object:
        """Write some text."""

    def flush(self) -> None:
        """Let it be seen."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""


class Progress:
    """Bytes and records so far, records a second, and the time that is left.

    Args:
        stream: where it is written to.
        total_bytes: what there is to be read in all.
        is_terminal: whether a line can be written over; the stream is asked when it is None.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        stream: Screen,
        *,
        total_bytes: int,
        is_terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._total = total_bytes
        self._is_terminal = stream.isatty() if is_terminal is None else is_terminal
        self._clock = clock
        self._started = self._said = clock()
        self._width = 0
        self._done_bytes = 0.0
        self._done_records = 0

    def show(self, name: str, taken_bytes: float, records: int) -> None:
        """Say how far the file of this name is, unless that was said a moment ago."""
        now = self._clock()
        if now - self._said < (BAR_SECONDS if self._is_terminal else LINE_SECONDS):
            return
        self._said = now
        words = self._tell(name, self._done_bytes + taken_bytes, self._done_records + records, now - self._started)
        if self._is_terminal:
            columns = shutil.get_terminal_size().columns - 1
            line = words[:columns]
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(words + "\n")
        self._stream.flush()

    def end_file(self, taken_bytes: float, records: int) -> None:
        """A file has come to its end: what follows is counted on top, and nothing is left on the line."""
        self._done_bytes += taken_bytes
        self._done_records += records
        self.clear()

    def clear(self) -> None:
        """Take the line away, for another to be written in its place."""
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0

    def _tell(self, name: str, taken: float, records: int, seconds: float) -> str:
        share = min(1.0, taken / self._total) if self._total else 1.0
        full = int(share * _BAR_WIDTH)
        bar = f"[{'#' * full}{'.' * (_BAR_WIDTH - full)}] " if self._is_terminal else ""
        pace = f"{records / seconds:,.0f} records/s" if seconds > 0 else ""
        left = f"{tell_seconds(seconds * (1 - share) / share)} left" if share else "time left unknown"
        sizes = f"{tell_bytes(taken)} of {tell_bytes(self._total)}"
        return f"{bar}{share:.0%}  {sizes}  {records:,} records  {pace}  {left}  {name}"


def tell_bytes(size: float) -> str:
    """A size in the largest unit in which it is not below one."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def tell_seconds(seconds: float) -> str:
    """A time as minutes and seconds, or hours and minutes."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
