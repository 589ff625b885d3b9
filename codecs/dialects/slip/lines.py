"""The lines of a text: which of them are SLIP, and what each piece of a line is; how a text gives itself away as SLIP,
and where a message that begins with its thought ends.

A message is a line that begins with `SLIP v1` or `SLIP v3`. A model that was trained on the official examples writes
what it thought and which act it chose on the two lines before: they belong to the message. All else is text around it.
Every regular expression here is possessive or looks at one line only, so that a scan is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from .._english import quote
from .._record import Candidate, Note, Span
from .tables import (
    CHOICE,
    CUT_LINE,
    FORCES,
    FORM,
    INDEX,
    MAX_LINES,
    MAX_REFERENCE,
    MAX_TOKENS,
    MISSING_OBJECT,
    MNEMONICS,
    NAME,
    NEWEST,
    NO_ANCHOR,
    NO_LINE,
    NO_REFERENCE,
    PAIRS,
    REFERENCE,
    THREAD_WORD,
    TOKEN,
    TOO_MANY_LINES,
    TOO_MANY_TOKENS,
    TOO_SHORT,
    UNKNOWN_ACT,
    VERSION,
    VOCABULARIES,
    Anchor,
)

_ROW = re.compile(r"[^\n]++")
OPENING = re.compile(r"\s*+(?>(?:SLIP:\s++)?)SLIP\s++(v[0-9]{1,9}+)(?!\S)")
THOUGHT = re.compile(r"\s*+THOUGHT:\s++(?=\S)")
CHOSEN = re.compile(r"\s*+QUANTIZE:\s++(?=\S)")
_WORD = re.compile(r"\S++")
_INDEX = re.compile(r"0x[0-9A-Fa-f]{1,8}\Z")
# How a thread is named: a word of English such as “threadpool” names none.
THREAD = re.compile(r"thread(?=[A-Za-z_.-]*+[0-9])([A-Za-z0-9_.-]++)(?!\S)")
_NAMES = {"v1": re.compile(r"[A-Za-z0-9._-]++\Z"), "v3": re.compile(r"[A-Za-z0-9]{1,20}\Z")}
_SAFE = re.compile(r"[A-Za-z0-9]{1,30}\Z")
_QUOTED = re.compile(r'"([^"\\]*+)"\Z')
# What a chosen act is called on the line before: `… -> RequestPlan`, or `Force=Request Object=Plan`.
_ANNOUNCED = re.compile(r".*->\s*+([A-Za-z]++)\s*+\Z|Force=([A-Za-z]++)\s++Object=([A-Za-z0-9]++)\s*+\Z", re.DOTALL)

# White space and what fences a block of code.
SEPARATORS = frozenset("` \t\r\n\x0b\x0c")

Role = Literal["thought", "choice", "version", "sender", "receiver", "act", "object", "thread", "reference", "payload"]


class Piece(NamedTuple):
    """One piece of a line: text[start:end], and the text that it stands for."""

    start: int
    end: int
    value: str

    @property
    def span(self) -> Span:
        """Its place on the wire."""
        return (0, self.start, self.end)


class Prose(NamedTuple):
    """A stretch of text around the lines, white space at its ends left out."""

    start: int
    end: int
    notes: tuple[Note, ...] = ()


class Line(NamedTuple):
    """A message: its pieces in order, the anchor or the force where the tables hold it, and the notes on it.

    `form` is how its act is spelt: as one word, as force and object, or as an index. `fault` makes it unreadable.
    """

    start: int
    end: int
    pieces: dict[Role, Piece]
    form: Literal["word", "pair", "index"]
    anchor: Anchor | None
    notes: tuple[Note, ...]
    fault: Note | None = None

    @property
    def version(self) -> str:
        """As it is written: `v1`."""
        return self.pieces["version"].value

    @property
    def act(self) -> str:
        """The act as the version of the line spells it; as it is written where no table holds it."""
        if self.anchor is not None:
            return self.anchor.spell(self.version)
        return " ".join(self.pieces[role].value for role in ("act", "object") if role in self.pieces)


class Record(NamedTuple):
    """A text as parsed: its parts in order, the note that makes it malformed if one does, and other notes on it."""

    parts: tuple[Prose | Line, ...]
    error: Note | None
    notes: tuple[Note, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """The messages among the parts."""
        return tuple(part for part in self.parts if isinstance(part, Line))


def parse_record(text: str) -> Record:
    """The parts of a text. A line that is cut is text where another one can be read. Never raises; linear."""
    parts: list[Prose | Line] = []
    rows = [row.span() for row in _ROW.finditer(text)]
    at = count = 0
    notes: tuple[Note, ...] = ()
    for index, row in enumerate(rows):
        opening = OPENING.match(text, *row)
        if opening is None:
            continue
        if count == MAX_LINES:
            rest = (0, row[0], len(text))
            notes = (
                TOO_MANY_LINES.note(f"only the first {MAX_LINES:,} lines are read: the rest is kept as text", rest),
            )
            break
        first, lead = _find_lead(text, rows, index, at)
        parts.extend(_find_prose(text, rows[at:first]))
        start = rows[first][1] - len(text[slice(*rows[first])].lstrip())
        parts.append(_read_line(text, start, opening, row[1], lead))
        at, count = index + 1, count + 1
    parts.extend(_find_prose(text, rows[at:]))
    faults = [part.fault for part in parts if isinstance(part, Line) and part.fault]
    if not count:
        return Record(tuple(parts), NO_LINE.note("no line of the text begins as SLIP", (0, 0, len(text))), notes)
    if len(faults) == count:
        return Record(tuple(parts), faults[0], notes)
    return Record(tuple(_keep_as_text(part) for part in parts), None, notes)


def _keep_as_text(part: Prose | Line) -> Prose | Line:
    if isinstance(part, Prose) or part.fault is None:
        return part
    return Prose(part.start, part.end, (CUT_LINE.note(part.fault.text, part.fault.span),))


def _find_lead(text: str, rows: list[tuple[int, int]], index: int, at: int) -> tuple[int, dict[Role, Piece]]:
    """The first row of a message, and what was thought and chosen in the rows before its line."""
    lead: dict[Role, Piece] = {}
    roles: tuple[tuple[Role, re.Pattern[str]], ...] = (("choice", CHOSEN), ("thought", THOUGHT))
    for role, pattern in roles:
        found = pattern.match(text, *rows[index - 1]) if index > at else None
        if found:
            index -= 1
            lead = {role: _make_piece(text, found.end(), rows[index][1]), **lead}
    return index, lead


def _make_piece(text: str, start: int, end: int) -> Piece:
    value = text[start:end].rstrip()
    return Piece(start, start + len(value), value)


def _find_prose(text: str, rows: list[tuple[int, int]]) -> Iterator[Prose]:
    if rows and not SEPARATORS.issuperset(between := text[rows[0][0] : rows[-1][1]]):
        yield Prose(rows[-1][1] - len(between.lstrip()), rows[0][0] + len(between.rstrip()))


def _read_line(text: str, start: int, opening: re.Match[str], end: int, lead: dict[Role, Piece]) -> Line:
    pieces = {**lead, "version": Piece(*opening.span(1), opening[1])}
    at = opening.end()
    roles: tuple[Role, ...] = ("sender", "receiver", "act")
    for role in roles:
        word = _WORD.search(text, at, end)
        if word is None:
            what = {"sender": "sender, receiver and act", "receiver": "receiver and act", "act": "act"}[role]
            fault = TOO_SHORT.note(f"the line ends before its {what}", (0, at, at))
            return Line(start, at, pieces, "word", None, (fault,), fault)
        pieces[role] = Piece(*word.span(), word[0])
        at = word.end()
    form, anchor, at = _read_act(text, pieces, at, end)
    notes = [*_note_header(pieces, form, anchor), *_read_payload(text, pieces, at, end, anchor)]
    notes.sort(key=lambda note: note.span or (0, 0, 0))
    line = Line(start, max(piece.end for piece in pieces.values()), pieces, form, anchor, tuple(notes))
    return line._replace(notes=(*_note_choice(line), *notes))


def _read_act(
    text: str, pieces: dict[Role, Piece], at: int, end: int
) -> tuple[Literal["word", "pair", "index"], Anchor | None, int]:
    """How the act is spelt, the anchor that it is, and where it ends; its object becomes a piece."""
    act, version = pieces["act"].value, pieces["version"].value
    if _INDEX.match(act):
        return "index", None, at
    word = _WORD.search(text, at, end)
    pair = (act, word[0]) if word else (act, "")
    is_word = act in MNEMONICS
    if (is_word and act not in FORCES) if version == "v3" else (is_word or pair not in PAIRS):
        return "word", MNEMONICS.get(act), at
    if word:
        pieces["object"] = Piece(*word.span(), word[0])
        at = word.end()
    return "pair", PAIRS.get(pair) or (None if word else MNEMONICS.get(act)), at


def _note_header(pieces: dict[Role, Piece], form: str, anchor: Anchor | None) -> Iterator[Note]:
    version, act = pieces["version"], pieces["act"]
    if version.value not in VOCABULARIES:
        yield VERSION.note(f"SLIP {version.value} is not known: it is read by its shape", version.span)
    for role in ("sender", "receiver"):
        piece = pieces[role]
        if not _NAMES.get(version.value, _NAMES["v1"]).match(piece.value):
            yield NAME.note(f"the {role}'s name is not one that SLIP {version.value} allows", piece.span)
    whole = (0, act.start, pieces.get("object", act).end)
    if form == "index":
        yield INDEX.note(f"the act is the number {act.value} of a table that the line does not name", whole)
    elif act.value not in FORCES and anchor is None:
        yield UNKNOWN_ACT.note("the act is in no table of SLIP", whole)
    elif form == "pair" and "object" not in pieces:
        yield MISSING_OBJECT.note(f"the force {act.value} has no object", whole)
    elif anchor is None or (version.value == "v3" and not anchor.is_v3):
        yield NO_ANCHOR.note("the table has no anchor for this force with this object", whole)
    if version.value in VOCABULARIES and form == {"v1": "pair", "v3": "word"}[version.value]:
        other = {"v1": "v3", "v3": "v1"}[version.value]
        yield FORM.note(f"the act is spelt as in SLIP {other}, and the line says {version.value}", whole)


def _read_payload(text: str, pieces: dict[Role, Piece], at: int, end: int, anchor: Anchor | None) -> Iterator[Note]:
    """The thread or the reference and the payload, which become pieces, with the notes on them."""
    is_v3, is_fallback = pieces["version"].value == "v3", pieces["act"].value == "Fallback"
    word = _WORD.search(text, at, end)
    if is_v3 and is_fallback:
        if word is None:
            yield NO_REFERENCE.note("the fallback does not say where its words are", (0, at, at))
        else:
            pieces["reference"] = Piece(*word.span(), word[0])
            if len(word[0]) > MAX_REFERENCE or not _SAFE.match(word[0]):
                yield REFERENCE.note(REFERENCE.about.rstrip("."), (0, *word.span()))
            word = _WORD.search(text, word.end(), end)
    elif word and not is_v3 and (thread := THREAD.match(text, word.start(), end)):
        pieces["thread"] = Piece(*word.span(), thread[1])
        word = _WORD.search(text, word.end(), end)
    if word is None:
        return
    payload = _make_piece(text, word.start(), end)
    quoted = _QUOTED.match(payload.value) if is_fallback else None
    pieces["payload"] = payload._replace(value=quoted[1]) if quoted else payload
    if is_v3:
        yield from _note_tokens(text, payload)
    elif "thread" not in pieces and not is_fallback:
        found = next((each for each in _WORD.finditer(payload.value) if each[0].startswith("thread")), None)
        if found:
            span = (0, payload.start + found.start(), payload.start + found.end())
            yield THREAD_WORD.note(f"{quote(found[0])} is read as a word and names no thread", span)


def _note_tokens(text: str, payload: Piece) -> Iterator[Note]:
    count, bad = 0, None
    for word in _WORD.finditer(text, payload.start, payload.end):
        count += 1
        if bad is None and not _SAFE.match(word[0]):
            bad = word
    if bad:
        yield TOKEN.note("a token of the payload is not 1 to 30 letters and digits", (0, *bad.span()))
    if count > MAX_TOKENS:
        yield TOO_MANY_TOKENS.note(f"the payload has {count:,} tokens, more than {MAX_TOKENS}", payload.span)


def _note_choice(line: Line) -> Iterator[Note]:
    """That the act announced before the line is not the one that the line has."""
    choice = line.pieces.get("choice")
    announced = _ANNOUNCED.match(choice.value) if choice else None
    if choice is None or announced is None:
        return
    chosen = MNEMONICS.get(announced[1]) if announced[1] else PAIRS.get((announced[2], announced[3]))
    words = announced[1] or f"{announced[2]} {announced[3]}"
    if chosen is not line.anchor if chosen else words != line.act:
        yield CHOICE.note(f"{quote(words)} was announced, and the line says {quote(line.act)}", choice.span)


def _make(score: float, why: str) -> Candidate:
    return Candidate(dialect="slip", score=score, why=why)


_WHOLE = _make(0.99, "the text is nothing but lines of SLIP with acts of its tables")
_AMONG_PROSE = _make(0.8, "a line of SLIP with an act of its tables stands among other text")
_OWN_ACT = _make(0.6, "the text has a line of SLIP whose act may be an installation's own")
# A line that is cut is a guess that the conversation may settle; a sentence that begins so is likelier prose.
_SHAPE = _make(0.4, "the text begins as a line of SLIP and ends before its act")
_LOOSE = _make(0.25, "a line begins as SLIP, but goes on as prose may")

# What no word of a sentence looks like: a name of two words in one, or a number of a table.
_COINED = re.compile(r"[A-Z][a-z]++[A-Z0-9][A-Za-z0-9]*+\Z|0x[0-9A-Fa-f]{1,8}\Z")
_CUT = re.compile(r"[\w-]++(?>(?:[.\s]++[\w-]++)*)\s*+\Z")
# A text is judged by its beginning.
_JUDGED = 65_536


def sniff(wire: str) -> Candidate | None:
    """The candidate with its score and reason, or None where no line opens."""
    if "SLIP" not in wire:
        return None
    text = wire[:_JUDGED]
    record = parse_record(text)
    if not record.lines:
        return None
    if record.error:
        is_alone = len(record.parts) == 1 and record.lines[0].version in ("v1", NEWEST)
        return _SHAPE if is_alone and _CUT.match(text.strip()) else _LOOSE
    if any(_is_known(line) for line in record.lines):
        return _WHOLE if len(record.lines) == len(record.parts) else _AMONG_PROSE
    return _OWN_ACT if any(_COINED.match(line.pieces["act"].value) for line in record.lines) else _LOOSE


def _is_known(line: Line) -> bool:
    return line.anchor is not None or (line.version == NEWEST and line.pieces["act"].value in FORCES)


class OpenThought:
    """The block of a thought or a choice, which the line of the message ends.

    Cut before it is complete, it is its first line alone: what follows is no part of it.
    """

    lines_if_cut: int | None = 1

    def __init__(self, line: str) -> None:
        self._has_choice = CHOSEN.match(line) is not None
        self.is_complete = False

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether the next line is the choice, the message itself, or neither."""
        if OPENING.match(line):
            self.is_complete = True
            return "last"
        if self._has_choice or not CHOSEN.match(line):
            return "not"
        self._has_choice = True
        return "more"


def opens(line: str) -> OpenThought | None:
    """The block that a line opens, or None where it is neither a thought nor a choice."""
    return OpenThought(line) if THOUGHT.match(line) or CHOSEN.match(line) else None
