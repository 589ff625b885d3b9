"""A record cut into its frames: lines of statements, answers, human text and the signature that closes it; and how each
of these lines opens.

A record is optional prose, statements, and a signature line. Lines that go on with a broken payload belong to the
statement above them; blank lines belong to nothing. Every frame is a half-open stretch of the wire.

Specification: 0.4.0 Syntax Structure, Response Format, Error Codes, Protocol Signature. A 👽 opens a message only at
the start of a line. Two characters (and modifier digits) before a separator or the end of the line make a statement,
whatever the codes; anything else after the 👽 is human text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .tables import ALIENS, MANGLED_ALIENS, SELECTORS

_ALIEN = "|".join(map(re.escape, ALIENS))
_SELECTOR = "|".join(map(re.escape, SELECTORS))
_MARKER = re.compile(rf"(?:{_ALIEN})(?:{_SELECTOR})?")
_END = r"(?=[ \t]*(?:\||;;|[\r\n]|\Z))"
_STATEMENT = re.compile(rf"([^\s|;])([^\s|;])([0-9]*){_END}")
_BARE_STATEMENT = re.compile(rf"([0-9A-F])([0-9A-F])([0-9]*){_END}")
_RESPONSE = re.compile(rf"\^([0-9A-Za-z]){_END}")
_ERROR = re.compile(rf"!E([0-9])([A-Za-z]{{0,2}}){_END}")
_BROKEN_RESPONSE = re.compile(rf"\^{_END}")
_BROKEN_ERROR = re.compile(rf"!E{_END}")
_MARK = rf"(?:--|—)[ \t]{{0,3}}(?:{_ALIEN})(?:{_SELECTOR})?[ \t]{{0,3}}lingua/"
# Versions and addresses are bounded, so that a line of nothing but marks is read in linear time.
_SIGNATURE = re.compile(rf"{_MARK}([^\s@]{{0,32}})@(\S{{0,1024}}+)[ \t]*+(?=[\r\n]|\Z)")
MANGLED = re.compile("|".join(map(re.escape, MANGLED_ALIENS)))
_PLAIN = tuple(f"--{alien}lingua/" for alien in ALIENS)
_HAS_SIGNATURE = re.compile(_MARK)
_NAME = "lingua/"
# Dashes, a blank, a mangled marker with its selector, and a blank.
_WIDEST_MARK = 16


class Head(NamedTuple):
    """What opens at a place: its kind, the span of a 👽, and the spans of its codes.

    `kind` is statement, response, error, text, bare (a 👽 alone), or broken (an answer without its code).
    `codes` holds the spans of domain, action and modifiers; of the status; or of type and subtype.
    """

    kind: str
    marker: tuple[int, int] | None
    codes: tuple[tuple[int, int], ...]
    end: int


class Signature(NamedTuple):
    """A signature line: spans of the whole, of its version and of its source."""

    start: int
    end: int
    version: tuple[int, int]
    source: tuple[int, int]
    is_plain: bool


def is_mangled(text: str, marker: tuple[int, int] | None) -> bool:
    """Whether a marker is a 👽 that went through a wrong character set."""
    return marker is not None and text.startswith(MANGLED_ALIENS, marker[0])


def repair(text: str) -> str:
    """The text that was meant where UTF-8 was read as Windows-1252 or Latin-1; the same text where it was not."""
    if text.isascii():
        return text
    for charset in ("cp1252", "latin-1"):
        try:
            return text.encode(charset).decode("utf-8")
        except UnicodeError:
            continue
    return text


def open_marked(text: str, at: int, end: int | None = None) -> Head | None:
    """What a 👽 at this place opens, or None where there is no 👽; `end` is where its line or record ends."""
    stop = len(text) if end is None else end
    found = _MARKER.match(text, at, stop)
    if found is None:
        return None
    marker = found.span()
    answer = open_answer(text, marker[1], stop)
    if answer is not None:
        return answer._replace(marker=marker)
    head = _STATEMENT.match(text, marker[1], stop)
    if head is not None:
        return Head("statement", marker, (head.span(1), head.span(2), head.span(3)), head.end())
    line_end = text.find("\n", marker[1], stop)
    rest = text[marker[1] : stop if line_end < 0 else line_end]
    return Head("text" if rest.strip() else "bare", marker, (), marker[1])


def open_answer(text: str, at: int, end: int | None = None) -> Head | None:
    """The response or error that opens at this place without a 👽, or None."""
    stop = len(text) if end is None else end
    if text.startswith("^", at):
        found = _RESPONSE.match(text, at, stop)
        if found is not None:
            return Head("response", None, (found.span(1),), found.end())
    elif text.startswith("!E", at):
        found = _ERROR.match(text, at, stop)
        if found is not None:
            return Head("error", None, (found.span(1), found.span(2)), found.end())
    return None


def open_broken(text: str, at: int, end: int | None = None) -> Head | None:
    """An answer that lacks its code, `^|…` or `!E|…`, or None."""
    stop = len(text) if end is None else end
    for kind, pattern in (("response", _BROKEN_RESPONSE), ("error", _BROKEN_ERROR)):
        found = pattern.match(text, at, stop)
        if found is not None:
            return Head(f"broken-{kind}", None, (), found.end())
    return None


def open_unmarked(text: str, at: int, end: int | None = None) -> Head | None:
    """A statement whose 👽 was left out after a `;;`, or None."""
    stop = len(text) if end is None else end
    head = _BARE_STATEMENT.match(text, at, stop)
    return Head("statement", None, (head.span(1), head.span(2), head.span(3)), head.end()) if head else None


def find_signature(text: str, start: int, end: int) -> Signature | None:
    """The signature that closes the line text[start:end], whether it stands alone on it or behind a message."""
    at = text.find(_NAME, start, end)
    while at >= 0:
        window = max(start, at - _WIDEST_MARK)
        dashes = max(text.rfind("--", window, at), text.rfind("—", window, at))
        found = _SIGNATURE.match(text, dashes, end) if dashes >= 0 else None
        if found is not None:
            is_plain = dashes == start and text.startswith(_PLAIN, dashes)
            return Signature(dashes, found.end(), found.span(1), found.span(2), is_plain)
        at = text.find(_NAME, at + 1, end)
    return None


def has_signature(text: str) -> bool:
    """Whether a signature stands anywhere in the text: a cheap look, not a reading."""
    return _NAME in text and ("--" in text or "—" in text) and _HAS_SIGNATURE.search(text) is not None


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
