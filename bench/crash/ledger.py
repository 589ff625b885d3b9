"""What the senders know: what they offered, what was accepted, what was cut off in the middle."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any


@dataclass(frozen=True)
class Load:
    """A body or a file: its lines, each of them one record that exists nowhere else."""

    lines: tuple[bytes, ...]
    name: str = ""

    @property
    def body(self) -> bytes:
        """The bytes that are sent."""
        return b"\n".join(self.lines) + b"\n"

    @property
    def digests(self) -> frozenset[bytes]:
        """The SHA-256 of each record."""
        return frozenset(sha256(line).digest() for line in self.lines)


@dataclass(frozen=True)
class Claim:
    """Everything that the server has said it holds, at one moment."""

    posted: frozenset[bytes]
    receipts: tuple[dict[str, Any], ...]
    files: tuple[Load, ...]


class Ledger:
    """Written by several senders at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offered: dict[bytes, bytes] = {}
        self._posted: set[bytes] = set()
        self._receipts: list[dict[str, Any]] = []
        self._files: list[Load] = []
        # Of records whose sender's line was cut in the middle, what came of them.
        self.parts: set[bytes] = set()
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    def offer(self, load: Load) -> None:
        """These records are about to be sent for the first time."""
        with self._lock:
            self._offered |= {sha256(line).digest(): line for line in load.lines}

    def accept_post(self, load: Load, receipt: dict[str, Any]) -> None:
        """A POST was answered with 2xx."""
        expected = {"received": len(load.lines), "sha256": sha256(load.body).hexdigest()}
        with self._lock:
            self._posted |= load.digests
            self._receipts.append(receipt | {"expected": expected})
            self.counts["accepted"] += len(load.lines)
            self.counts["posts"] += 1

    def accept_lines(self, load: Load, count: int) -> None:
        """A POST was broken off, and the answer counts so many of its first lines as kept."""
        with self._lock:
            self._posted |= Load(load.lines[:count]).digests
            self.counts["accepted"] += count
            self.counts["broken off"] += 1

    def accept_file(self, load: Load, new: int) -> None:
        """An upload was answered with 2xx; so many of its records were not in one before."""
        with self._lock:
            self._files.append(load)
            self.counts["accepted"] += new
            self.counts["uploads"] += 1

    def count(self, what: str) -> None:
        """Something happened to a request."""
        with self._lock:
            self.counts[what] += 1

    def blame(self, sentence: str) -> None:
        """Something happened that must never happen."""
        with self._lock:
            self.faults.append(sentence)

    def claim(self) -> Claim:
        """What the server must hold from now on."""
        with self._lock:
            return Claim(frozenset(self._posted), tuple(self._receipts), tuple(self._files))

    def list_strangers(self, present: Sequence[bytes]) -> list[bytes]:
        """Of these digests those that nobody ever sent."""
        with self._lock:
            return [digest for digest in present if digest not in self._offered]

    def is_part(self, source: bytes) -> bool:
        """Whether a record that somebody sent begins so, and goes on."""
        with self._lock:
            return any(line.startswith(source) and line != source for line in self._offered.values())
