"""How likely a text is agent-lingua, in words; and how a record spans the lines of a log.

Specification: 0.4.0 Response Mode. A 👽 counts only at the start of a line, and only with two codes and a separator
behind it is it wire; responses and errors carry no 👽 and are certain only above a signature.
"""

from __future__ import annotations

from typing import Literal

from .._record import Candidate
from .frames import Head, Tail, find_signature, has_signature, open_answer, open_marked
from .tables import ACTIONS, ALIENS, DOMAINS

SLUG = "agent_lingua"
# Lines that a record may have before its signature: beyond them it is not waited for.
MAX_LINES = 4096


def _candidate(score: float, why: str) -> Candidate:
    return Candidate(dialect=SLUG, score=score, why=why)


def sniff(wire: str) -> Candidate | None:
    """Score a text: certain for statements, a guess for unsigned answers, None for what has neither."""
    first = wire[:1]
    if not any(alien in wire for alien in ALIENS):
        if first not in ("^", "!"):
            return None
        head = open_answer(wire, 0)
        return _sniff_answer(wire, head) if head else None
    is_signed = has_signature(wire)
    start = len(wire) - len(wire.lstrip("\ufeff\r\n"))
    head = open_marked(wire, start) or open_answer(wire, start)
    if head is not None:
        return _sniff_head(wire, head, is_signed)
    return _sniff_below(wire, is_signed)


def _sniff_answer(wire: str, head: Head) -> Candidate:
    has_fields = wire[head.end : head.end + 2] in ("|$", "|#", "|~")
    if head.kind == "response":
        return _candidate(0.48 if has_fields else 0.42, "looks like a response, but no signature follows")
    return _candidate(0.45 if has_fields else 0.4, "looks like an error, but no signature follows")


def _sniff_head(wire: str, head: Head, is_signed: bool) -> Candidate:
    if head.kind in ("response", "error"):
        if is_signed or head.marker:
            return _candidate(0.95, f"{_a(head.kind)} with a lingua signature or a 👽")
        return _sniff_answer(wire, head)
    if head.kind == "statement":
        domain, action = (wire[first:last].upper() for first, last in head.codes[:2])
        if domain in DOMAINS and action in ACTIONS:
            return _candidate(0.98 if is_signed else 0.96, "opens with 👽, a domain and an action")
        return _candidate(0.9, "opens with 👽 and two characters before a separator")
    if head.kind == "bare":
        return _candidate(0.9, "a 👽 and nothing after it")
    return _candidate(0.9 if is_signed else 0.6, "opens with 👽 and human text")


def _sniff_below(wire: str, is_signed: bool) -> Candidate | None:
    """Prose above: a statement or a signature at the start of a later line decides."""
    for alien in ALIENS:
        at = wire.find("\n" + alien)
        while at >= 0:
            head = open_marked(wire, at + 1)
            if head is not None and head.kind not in ("text", "bare"):
                return _candidate(0.92 if is_signed else 0.8, "human text above a statement")
            at = wire.find("\n" + alien, at + 1)
    if not is_signed:
        return None
    last = wire.rstrip("\r\n")
    signature = find_signature(last, last.rfind("\n") + 1, len(last))
    return _candidate(0.85, "closed by a lingua signature") if signature else None


def _a(kind: str) -> str:
    return "an error" if kind == "error" else "a response"


class LinguaBlock:
    """A record over several lines of a log: statements and their broken payloads, up to the signature.

    Several 👽 lines over one signature are one record. Without a signature each 👽 line is its own, with the lines
    that surely go on with its payload: that many are `lines_if_cut`.
    """

    def __init__(self, line: str, is_answer: bool) -> None:
        self.is_complete = False
        self.lines_if_cut: int | None = 1
        self._is_answer = is_answer
        self._tail = Tail(line)
        self._taken = 0
        self._is_first = self._is_open = True

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether the next line belongs to the record, ends it, or is not part of it."""
        line = line.rstrip("\r\n")
        if find_signature(line, 0, len(line)) is not None:
            head = None if self._is_answer else open_marked(line, 0)
            if line.lstrip().startswith(("--", "—")) or head is not None or self._tail.is_raw:
                self.is_complete = True
                return "last"
            return "not"
        self._taken += 1
        if self._taken > MAX_LINES:
            return "not"
        head = open_marked(line, 0)
        if head is not None:
            if self._is_answer:
                return "not"
            self._is_first = False
            self._tail, self._is_open = Tail(line), True
            return "more"
        if open_answer(line, 0) is not None:
            return "not"
        if not line.strip():
            self._is_open = self._tail.is_raw
            return "more"
        if not (self._is_open and self._tail.take(line)):
            return "not"
        if self._is_first and self._tail.is_certain and self.lines_if_cut is not None:
            self.lines_if_cut = self._taken + 1
        return "more"


def open_block(line: str) -> LinguaBlock | None:
    """The block that a line of a log opens, or None where it opens none or is a whole record already."""
    line = line.rstrip("\r\n")
    start = 1 if line.startswith("\ufeff") else 0
    head = open_marked(line, start)
    answer = open_answer(line, start) if head is None else None
    if head is None and answer is None:
        return None
    if has_signature(line) and find_signature(line, 0, len(line)) is not None:
        return None
    return LinguaBlock(line, answer is not None)
