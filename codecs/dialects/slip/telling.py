"""Telling SLIP: each message's sentence, what that sentence leaves out, and the gloss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._context import Context, Keys
from .._english import Sentence, enclose, quote, say_name
from .._record import Message, Reading, Segment, Told
from .lines import Line, Piece, Prose, Record, parse_record
from .reading import mean
from .tables import FORCES


def tell(reading: Reading, context: Context, keys: Keys) -> Told:
    """The messages with their English, what the sentence leaves out, and the gloss. Never raises."""
    wire = reading.wire
    record = reading.parsed if isinstance(reading.parsed, Record) else parse_record(wire)
    if record.error:
        messages = tuple(_tell_malformed(message, record, wire) for message in reading.messages)
    else:
        pairs = zip(reading.messages, record.parts, strict=True)
        messages = tuple(
            _tell_prose(message, part, record.lines, wire) if isinstance(part, Prose) else _tell_line(message, part)
            for message, part in pairs
        )
    return Told(reading=reading, messages=messages)


def _tell_prose(message: Message, part: Prose, lines: Sequence[Line], wire: str) -> Message:
    """Where text stands beside the lines, so that it is not taken for a message of its own."""
    what = "the message" if len(lines) == 1 else "the messages"
    where = "before" if part.end <= lines[0].start else "after" if part.start >= lines[-1].end else "between"
    before, text, after = enclose(wire[part.start : part.end])
    said = Segment(text=text, spans=((0, part.start, part.end),))
    english = (Segment(text=f"Text {where} {what}: {before}"), said, Segment(text=f"{after}."))
    return message.replace(english=english, gloss=(Segment(text=before), said, Segment(text=after)))


def _tell_line(message: Message, line: Line) -> Message:
    sentence = _open(message, line)
    pieces = line.pieces
    spans = tuple(pieces[role].span for role in ("act", "object") if role in pieces)
    words = line.anchor.words if line.anchor else _describe(line)
    before, _, after = words.partition("{whom}")  # the first one is the table's, whatever the wire holds
    sentence.say(f" {before}", *spans, basis="exact" if line.anchor else "unknown")
    _say_receiver(sentence, message, pieces["receiver"])
    sentence.say(after, *spans, basis="exact" if line.anchor else "unknown")
    if line.anchor is None and line.form == "pair" and "object" in pieces and pieces["act"].value in FORCES:
        named = pieces["object"]
        if named.value != "Generic":
            sentence.say(", object ").say(quote(named.value), named.span)
    if "reference" in pieces:
        kept = pieces["reference"]
        sentence.say(", which are not in the message but kept under ").say(say_name(kept.value), kept.span)
    if "payload" in pieces:
        sentence.say(": ").say(quote(pieces["payload"].value), pieces["payload"].span)
    english = sentence.say(".").segments()
    return message.replace(english=english, also=tuple(_tell_rest(line)), gloss=tuple(_gloss(line)))


def _open(message: Message, line: Line | None) -> Sentence:
    """A sentence that begins with its speaker."""
    sender = line.pieces.get("sender") if line else None
    if message.sender is None:
        return Sentence().say("Someone", basis="unknown")
    return Sentence().say(say_name(message.sender), sender.span if sender else None)


def _say_receiver(sentence: Sentence, message: Message, piece: Piece | None) -> None:
    names = ["itself" if name == message.sender else say_name(name) for name in message.receivers]
    sentence.say(" and ".join(names), piece.span if piece else None)


def _describe(line: Line) -> str:
    """The words of an act that is no anchor: its force, or that nobody knows what it means."""
    act = line.pieces["act"].value
    if line.form == "index":
        return f"sends {{whom}} act {act}, a number of a table that the message does not name"
    if line.form == "pair" and act in FORCES:
        return f"sends {{whom}} {FORCES[act].noun}"
    return f"sends {{whom}} a message with the act {quote(line.act)}, which no table of SLIP holds"


def _tell_malformed(message: Message, record: Record, wire: str) -> Message:
    """Who sent it to whom, as far as that is known, and its text; why it cannot be read is a caution of its own."""
    line = record.lines[0] if len(record.lines) == 1 else None
    sentence = _open(message, line).say(" sends ")
    if message.receivers:
        _say_receiver(sentence, message, line.pieces.get("receiver") if line else None)
        sentence.say(" ")
    sentence.say("a message that cannot be read; as it stands: ")
    sentence.say(quote(wire), (0, 0, len(wire)), basis="unknown").say(".")
    return message.replace(english=sentence.segments(), gloss=tuple(_gloss(line)) if line else ())


def _tell_rest(line: Line) -> Iterator[Segment]:
    """What the message carries beyond its sentence, one phrase each."""
    for role, words in (
        ("thread", "in conversation {}"),
        ("thought", "before it wrote: {}"),
        ("choice", "it chose: {}"),
    ):
        piece = line.pieces.get(role)  # type: ignore[call-overload]  # all three are roles
        if piece:
            said = say_name(piece.value) if role == "thread" else quote(piece.value)
            yield Segment(text=words.format(said), spans=(piece.span,))


# The words of a piece in the gloss; a piece that is not here is quoted.
_GLOSSES = {
    "version": "SLIP {}",
    "sender": "from {}",
    "receiver": "to {}",
    "thread": "thread {}",
    "reference": "ref {}",
}


def _gloss(line: Line) -> Iterator[Segment]:
    """One segment a piece, in wire order, with marks between."""
    for index, (role, piece) in enumerate(line.pieces.items()):
        if index:
            yield Segment(text=" · ")
        text = _GLOSSES[role].format(say_name(piece.value)) if role in _GLOSSES else quote(piece.value)
        if role == "act":
            known = f" ({mean(line.anchor.words)})" if line.anchor and line.form == "word" else ""
            text = say_name(piece.value) + known
        elif role == "object":
            text = say_name(piece.value) + (f" ({mean(line.anchor.words)})" if line.anchor else "")
        yield Segment(text=text, spans=(piece.span,))
