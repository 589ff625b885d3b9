"""Sentences built in segments, each tied to the characters it came from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ._record import Basis, Segment, Span


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


def quote(text: str) -> str:
    """The text in double quotation marks, as an auditor would cite it; its characters are not touched."""
    return f"“{text}”"


def say_instant(moment: datetime) -> str:
    """`21 November 2026, 09:00:00 UTC`: absolute, with its zone."""
    moment = moment.astimezone(UTC)
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{moment.day} {moment:%B} {moment.year:04d}, {moment:%H:%M:%S}{fraction} UTC"


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
