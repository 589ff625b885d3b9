"""A record cut into its frames: lines of statements, answers, human text and the signature that closes it.

A record is optional prose, statements, and a signature line. Lines that go on with a broken payload belong to the
statement above them; blank lines belong to nothing. Every frame is a half-open stretch of the wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .openers import Head, Signature, find_signature, has_signature, open_answer, open_broken, open_marked
from .tables import ALIENS

# A line that goes on with Base64: its first word, then the end of the line, or a separator and more fields.
_GOES_ON = re.compile(r"[ \t]*([A-Za-z0-9+/_-]+={0,2})[ \t]*(?:\r?$|\||;;)", re.MULTILINE)
_OPEN_PAYLOAD = re.compile(r"\$(?:[jze]:)?[A-Za-z0-9+/_:\s-]*\Z")
_WORD = re.compile(r"[A-Za-z]{1,20}\Z")
# Encoders wrap Base64 at 64 or 76 characters.
_WRAPPED = 60


class Frame(NamedTuple):
    """A stretch of the wire: kind marked, answer, broken, text or signature, and what opens it."""

    kind: str
    start: int
    end: int
    head: Head | None = None
    signature: Signature | None = None


class Tail:
    """What the end of a statement still takes: raw text takes all, broken Base64 takes more of itself.

    Attributes:
        is_raw: whether a raw payload, which any text may continue, is open.
        is_certain: whether the last line taken is surely part of the statement, signature or not.
    """

    def __init__(self, line: str) -> None:
        self.is_raw = False
        self.is_certain = True
        self._count: int | None = None
        self._width = 0
        self._see(line)

    def _see(self, line: str) -> None:
        joint = max(line.rfind(f";;{alien}") for alien in ALIENS) if ";;" in line else -1
        last = line[joint + 2 :] if joint >= 0 else line
        self.is_raw = "|$r:" in last
        opened = _OPEN_PAYLOAD.match(last, last.rfind("|") + 1)
        if opened is None:
            self._count = None
        else:
            self._count = self._width = len(opened[0].rpartition(":")[2].lstrip("$").strip())

    def take(self, line: str) -> bool:
        """Whether the line goes on with the statement; what it opens in turn is remembered."""
        if self.is_raw:
            self.is_certain = False
            return True
        if line.startswith(("|", ";;")):
            self._see(line)
            return True
        found = _GOES_ON.match(line)
        if self._count is None or found is None or line.startswith("--"):
            return False
        written = found[1]
        is_wanted = self._width >= _WRAPPED or self._count % 4 != 0
        if not is_wanted and _WORD.match(written):
            return False
        self.is_certain = self.is_certain and is_wanted
        if found.end(1) < len(line.rstrip()):
            self._see(line)
        elif written.endswith("="):
            self._count = None
        else:
            self._count += len(written)
            self._width = len(written)
        return True


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start, size = 0, len(text)
    while start <= size:
        end = text.find("\n", start)
        stop = size if end < 0 else end
        if stop > start and text[stop - 1] == "\r":
            yield start, stop - 1
        else:
            yield start, stop
        if end < 0:
            return
        start = end + 1


def cut_frames(text: str) -> list[Frame]:
    """The frames of a record in order. Never raises; linear in the length of the text."""
    is_signed = has_signature(text)
    frames: list[Frame] = []
    tail: Tail | None = None
    is_first = True
    for start, end in _lines(text):
        if start == 0 and text.startswith("\ufeff"):
            start = 1
        if start == end or text[start:end].isspace():
            tail = tail if tail is not None and tail.is_raw else None
            continue
        signature = find_signature(text, start, end) if is_signed else None
        stop = signature.start if signature else end
        if stop > start and not text[start:stop].isspace():
            tail = _take_line(frames, tail, text, start, stop, is_signed or is_first)
        if signature is not None:
            frames.append(Frame("signature", signature.start, signature.end, None, signature))
            tail = None
        is_first = False
    return frames


def _take_line(
    frames: list[Frame], tail: Tail | None, text: str, start: int, end: int, may_answer: bool
) -> Tail | None:
    head = open_marked(text, start, end)
    if head is not None:
        frames.append(Frame("marked", start, end, head))
        return Tail(text[start:end]) if head.kind != "text" else None
    if may_answer and (head := open_answer(text, start, end)):
        frames.append(Frame("answer", start, end, head))
        return Tail(text[start:end])
    last = frames[-1] if frames else None
    if tail is not None and last is not None and tail.take(text[start:end]):
        frames[-1] = last._replace(end=end)
        return tail
    if may_answer and last is None and (head := open_broken(text, start, end)):
        frames.append(Frame("broken", start, end, head))
    elif last is not None and (last.kind == "text" or (last.head is not None and last.head.kind == "text")):
        frames[-1] = last._replace(end=end)
    else:
        frames.append(Frame("text", start, end))
    return None
