"""Sentences built in segments, each tied to the characters it came from; names and texts that cannot end theirs; and
characters that a reader cannot see, or that turn the direction of writing: their ranges, and the note on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ._record import Basis, Envelope, Note, NoteKind, Reading, Segment, Span, WireReading

# Line feed (0A) and tab (09) are laid out and not in it.
HIDDEN_RANGES: tuple[tuple[int, int], ...] = (
    (0x0000, 0x0008),  # C0 controls
    (0x000B, 0x001F),
    (0x007F, 0x009F),  # delete and C1 controls
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian selectors
    (0x200B, 0x200F),  # zero width and direction marks
    (0x2028, 0x202E),  # line and paragraph separator, embeddings, overrides
    (0x2060, 0x206F),  # word joiner, invisible operators, isolates
    (0x2800, 0x2800),  # braille blank
    (0x3164, 0x3164),  # Hangul filler
    (0xD800, 0xF8FF),  # lone surrogates, private use
    (0xFDD0, 0xFDEF),  # noncharacters
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
    (0xFFF0, 0xFFFB),  # specials
    (0xFFFE, 0xFFFF),
    (0x13430, 0x1343F),  # Egyptian format controls
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
    (0xE0000, 0x10FFFF),  # tags, selectors, private planes
)

HIDDEN_CLASS = "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in HIDDEN_RANGES) + "]"
HIDDEN = re.compile(HIDDEN_CLASS)
# Letters that are written from right to left: what stands beside them moves.
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdfc\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001eeff]")

# What has no honest use inside a word, and its escapes in JSON; joiners, marks and tags that scripts, emoji and flags
# need are not.
_DECEPTIVE = re.compile(
    "[\u00ad\u061c\u115f\u1160\u180e\u200b\u202a-\u202e\u2060-\u2064\u2066-\u206f\u3164]"
    "|(?<=[ -~])[\u200c-\u200f](?=[ -~])|(?<=[^\n])\ufeff"
    "|(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]"
)
_ESCAPED = re.compile(
    r"\\u(00ad|061c|115f|1160|180e|200b|202[a-e]|206[0-46-f]|3164)|(?<!\\udff4)(?<!\\udc[0-7].)\\udb40\\udc([0-7][0-9a-f])",
    re.IGNORECASE,
)

NOTE = NoteKind(
    code="text.hidden",
    severity="warning",
    group="security",
    about="Characters that cannot be seen, or that change the direction of what stands around them.",
)


def note_hidden(reading: Reading, envelope: Envelope | None = None) -> Reading:
    """The reading with a note on the hidden characters of each of its layers, and of the names of its envelope."""
    # One that is made of its wire has no other layer, and makes that one when somebody looks into it.
    layers = [(0, reading.wire)]
    if not isinstance(reading, WireReading):
        layers = [(layer.id, layer.text) for layer in reading.layers]
    notes = [
        NOTE.note(_say_first("it holds", found[0]), (layer, *found[1]))
        for layer, text in layers
        if (found := _find_deceptive(text))
    ]
    if envelope is not None:
        names = (envelope.sender, *envelope.receivers, envelope.conversation, envelope.trace, envelope.id)
        if found := _find_deceptive("\n".join(filter(None, (*names, envelope.parent)))):
            notes.append(NOTE.note(_say_first("a name in the log around it holds", found[0])))
    return reading.replace(notes=(*reading.notes, *notes)) if notes else reading


def _find_deceptive(text: str) -> tuple[int, tuple[int, int]] | None:
    """The first such character of a text, and where it or its escape stands."""
    if "\\u" in text and text.lstrip().startswith(("{", "[")) and (found := _ESCAPED.search(text)):
        return int(found[1], 16) if found[1] else 0xE0000 + int(found[2], 16), found.span()
    if text.isascii() or not (found := _DECEPTIVE.search(text)):
        return None
    return ord(found[0]), found.span()


def _say_first(who: str, point: int) -> str:
    return f"{who} characters that cannot be seen or that change the direction of text, the first U+{point:04X}"


# What a reader cannot see, and what ends a line: a log must not steer a terminal, nor hide in what it shows.
_STEERING = re.compile(f"[\t\n]|{HIDDEN_CLASS}")


def make_visible(text: str) -> str:
    """The text on one line: control characters as their pictures, other hidden ones as escapes."""
    return _STEERING.sub(lambda found: _show(ord(found[0])), text)


def _show(point: int) -> str:
    if point < 0x20:
        return chr(0x2400 + point)
    return "\u2421" if point == 0x7F else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


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
