"""How a line of agent-lingua opens: a marked statement, a response, an error, human text or a signature.

Specification: 0.4.0 Syntax Structure, Response Format, Error Codes, Protocol Signature. A 👽 opens a message only
at the start of a line. Two characters (and modifier digits) before a separator or the end of the line make a
statement, whatever the codes; anything else after the 👽 is human text.
"""

from __future__ import annotations

import re
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
