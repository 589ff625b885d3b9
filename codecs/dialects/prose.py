"""Prose: text that is in no dialect. It is kept and shown as what it is, an inform whose English quotes the text.

Specification: none. The normalised record holds the text in `content`; there is nothing else to hold.
JSON that is no dialect's own is such a text too, and its English says so: what it quotes is nobody's statement here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._context import Context, Keys
from ._dialect import Dialect, never
from ._english import enclose, say_name
from ._errors import EncodeError
from ._json import is_json
from ._record import (
    Candidate,
    Encoded,
    Envelope,
    Identity,
    Layer,
    Loss,
    Message,
    Note,
    NoteKind,
    Reading,
    Segment,
    Told,
    leaf,
)

JSON_UNKNOWN = NoteKind(
    code="prose.json-unknown",
    severity="info",
    group="undecoded",
    about="JSON of a kind that no dialect reads is kept as text, and what it quotes is not read as a message.",
)

DOUBTFUL = NoteKind(
    code="prose.doubtful",
    severity="notice",
    group="assumption",
    about="Plain text that has something of a dialect, too little to be read in it.",
)
# From this score on a guess that did not win is told.
_WORTH_TELLING = 0.25


def _sniff(wire: str) -> Candidate:
    return Candidate(dialect="prose", score=0.3, why="any text is at least text")


def _read(wire: str, envelope: Envelope | None = None) -> Reading:
    notes: tuple[Note, ...] = ()
    if is_json(wire):
        notes = (JSON_UNKNOWN.note("JSON of a kind that no dialect reads: kept as text", (0, 0, len(wire))),)
    return Reading(
        dialect="prose",
        layers=(Layer(id=0, kind="wire", text=wire),),
        tree=lambda: (leaf("text", "text", wire, 0, len(wire), value=wire),) if wire else (),
        candidates=(_sniff(wire),),
        messages=(Message(performative="inform", content=wire, notes=notes),),
    )


def _tell(reading: Reading, context: Context, keys: Keys) -> Told:
    doubts = tuple(_note_guesses(reading))
    told = (_say(message, reading.wire) for message in reading.messages)
    return Told(reading=reading, messages=tuple(each.replace(notes=(*each.notes, *doubts)) for each in told))


def _note_guesses(reading: Reading) -> Iterator[Note]:
    """What the text is perhaps; nothing where it was decided to be plain text against a better guess."""
    scores = {each.dialect: each.score for each in reading.candidates}
    for each in reading.candidates:
        if each.dialect != "prose" and _WORTH_TELLING <= each.score < scores.get("prose", 0):
            yield DOUBTFUL.note(f"it may be more than plain text ({each.why})", (0, 0, len(reading.wire)))


def _say(message: Message, wire: str) -> Message:
    """The text as what it is: its sender's words, between marks that it cannot end, and nothing that we say."""
    sender = "Someone" if message.sender is None else say_name(message.sender)
    if not wire:
        return message.replace(english=(Segment(text=f"{sender} sends an empty text."),))
    is_unknown_json = any(note.code == JSON_UNKNOWN.code for note in message.notes)
    what = "sends JSON of a kind that no dialect reads, as it stands" if is_unknown_json else "writes plain text"
    before, text, after = enclose(wire)
    said = Segment(text=text, spans=((0, 0, len(wire)),))
    return message.replace(english=(Segment(text=f"{sender} {what}: {before}"), said, Segment(text=f"{after}.")))


def _encode(messages: Sequence[Message]) -> Encoded:
    if len(messages) != 1 or not isinstance(messages[0].content, str):
        raise EncodeError("prose", "only one message whose content is text can be written as prose")
    message = messages[0]
    losses = tuple(
        Loss(name=name, part=message.part, reason="plain text has no place for it")
        for name in message.given()
        if name not in _HELD
    )
    return Encoded(wire=message.content, losses=losses)


_HELD = {"part", "performative", "content", "english", "also", "gloss", "notes", "parent"}

DIALECT = Dialect(
    slug="prose",
    title="Prose",
    summary="Text that is in no dialect, kept as it is.",
    specification="none",
    sniff=_sniff,
    identify=lambda wire: Identity(),
    read=_read,
    tell=_tell,
    encode=_encode,
    masks=never,
    packs=never,
    notes=(JSON_UNKNOWN, DOUBTFUL),
    has_objects=True,
    rank=99,
)
