"""Sentences built in segments, each tied to the characters it came from; names and texts that cannot end theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ._hidden import HIDDEN, RIGHT_TO_LEFT
from ._record import Basis, Note, Segment, Span


class Sentence:
    """A sentence under construction. Segments carry their own spaces; joined, they are the sentence."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []

    def say(
        self, text: str, *spans: Span | None, basis: Basis = "exact", source: tuple[Any, int] | None = None
    ) -> Sentence:
        """Append words that came from these spans. Words of our own grammar have none."""
        if text:
            if None in spans:
                spans = tuple(span for span in spans if span is not None)
            self._segments.append(Segment.trust({"text": text, "spans": spans, "basis": basis, "source": source}))
        return self

    def add(self, segments: Sequence[Segment]) -> Sentence:
        """Append segments that were built elsewhere."""
        self._segments.extend(segments)
        return self

    def segments(self) -> tuple[Segment, ...]:
        """What was said, with the first letter left as it is: a name keeps its own case."""
        return tuple(self._segments)


def join_words(words: Sequence[str], *, last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


# A mark that a reader may take for the end of a quotation, with the backslashes before it, or those at the very end.
_ENDS_QUOTE = re.compile(r"(?<!\\)(\\*+)([“”‟❝❞〝〞＂″]|\Z)")
_PLAIN_NAME = re.compile(r"\w++(?>(?:[-/:@+~#&]\w++)*)\Z")
# A name that the program's own words would hide.
_OWN_WORDS = frozenset({"someone", "everyone", "nobody", "itself", "and", "or", "not", "caution", "message"})
_MAX_KEPT_NAME_LENGTH = 256


def escape(text: str) -> str:
    """The text as it stands between quotation marks: a mark in it has a backslash before it and cannot end them."""
    if text.isascii() and text[-1:] != "\\":
        return text
    return _ENDS_QUOTE.sub(lambda found: found[1] * 2 + (f"\\{found[2]}" if found[2] else ""), text)


def holds_marks(text: str) -> bool:
    """Whether a text holds a mark that could end its quotation, or ends so that it would take the mark's meaning."""
    return not (text.isascii() and text[-1:] != "\\") and escape(text) != text


def enclose(text: str) -> tuple[str, str, str]:
    """The text as a quotation: the mark that opens it, what stands between, and the mark that closes it.

    What an agent says ends where the marks end. A text that holds such marks stands as it is between « and »; only one
    that holds these too has backslashes.
    """
    inner = escape(text)
    return ("«", text, "»") if inner != text and "«" not in text and "»" not in text else ("“", inner, "”")


def quote(text: str) -> str:
    """The text in quotation marks, as an auditor would cite it."""
    return f"“{text}”" if text.isascii() and text[-1:] != "\\" else "".join(enclose(text))


def say_name(name: str) -> str:
    """A name, an id or a code from a log: as it is where it can only be read as one word, else quoted."""
    return say_short_name(name) if len(name) <= _MAX_KEPT_NAME_LENGTH else quote(name)


@lru_cache(maxsize=4096)
def say_short_name(name: str) -> str:
    """The same of a name that a specification bounds: it is kept for the next time."""
    is_plain = _PLAIN_NAME.match(name) is not None and name.lower() not in _OWN_WORDS
    if is_plain and not name.isascii():
        is_plain = not HIDDEN.search(name) and not RIGHT_TO_LEFT.search(name)
    return name if is_plain else quote(name)


def say_instant(moment: datetime) -> str:
    """`21 November 2026, 09:00:00 UTC`: absolute, with its zone."""
    moment = moment.astimezone(UTC)
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{moment.day} {moment:%B} {moment.year:04d}, {moment:%H:%M:%S}{fraction} UTC"


# The truth values of JSON in words; a text that says the same stands in quotation marks.
TRUTHS = {"true": "yes", "false": "no"}

_UNITS = ((604800, "week"), (86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def say_seconds(seconds: int) -> str:
    """`1 day 15 hours`: a length of time in its largest units."""
    if seconds == 0:
        return "0 seconds"
    words = []
    for size, name in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            words.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " ".join(words)


_TOLD_NOTES = frozenset({"error", "warning", "notice"})


def say_cautions(notes: Iterable[Note]) -> tuple[Segment, ...]:
    """What a reader must know of a message beside its sentence: each error, warning and notice, once.

    Each segment is a sentence of the program's own, with the space before it: ` Caution: the turn is missing.`
    """
    told = dict.fromkeys((note.text, note.span) for note in notes if note.severity in _TOLD_NOTES)
    return tuple(Segment(text=f" Caution: {text.rstrip('.')}.", spans=(span,) if span else ()) for text, span in told)
