"""Codecs for the terse dialects AI agents speak: one normalised record, plain English, every character accounted for.

    import dialects

    reading = dialects.decode('@a3|f0|c1|S0|d1|T1|k1|t"refactor_auth"#')
    reading.messages[0].sentence

The package knows nothing of files, databases or the network. `read` needs no context and never raises; `tell`
adds English in the context of a conversation; `decode` does both for one text. Bad input becomes notes; misuse
raises a `DialectsError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ._context import Context, Key, KeyList, Keys, NoKeys
from ._conversations import Conversations
from ._detect import detect
from ._dialect import Block, Dialect, Reply, Term
from ._english import quote, say_cautions, say_name
from ._envelope import INSPECTED, apply_envelope, envelope_of
from ._errors import DialectsError, EncodeError, RegistryError, UnknownDialectError
from ._exchange import EnvelopeError, decode_envelope, parse_json, show_failure, show_json, show_quarantined, write_json
from ._hidden import HIDDEN_CLASS, make_visible, note_hidden
from ._log import (
    Item,
    LogOptions,
    LogReader,
    LogRecord,
    LogWarning,
    Piece,
    Problem,
    Scaffold,
    read_log,
    warnings_of,
)
from ._meant import find_meant, write_content
from ._performatives import PERFORMATIVES
from ._plain import ShapeError, messages_of
from ._record import (
    MASK,
    SHAPE_VERSION,
    Candidate,
    Definition,
    Encoded,
    Entry,
    Envelope,
    Failure,
    Field,
    Identity,
    Layer,
    Loss,
    Message,
    Moment,
    Note,
    NoteKind,
    Parent,
    Priority,
    Reading,
    Reference,
    Security,
    Segment,
    Span,
    Target,
    Told,
)
from ._registry import all_dialects, get_dialect, title_of
from ._transcript import Answer, Transcript, bears, find_answer, name_message
from ._transcript import Line as TranscriptLine
from ._value import to_json_type, to_shallow_json

__all__ = [
    "HIDDEN_CLASS",
    "INSPECTED",
    "MASK",
    "PERFORMATIVES",
    "SHAPE_VERSION",
    "Answer",
    "Block",
    "Candidate",
    "Context",
    "Conversations",
    "Definition",
    "Dialect",
    "DialectsError",
    "EncodeError",
    "Encoded",
    "Entry",
    "Envelope",
    "EnvelopeError",
    "Failure",
    "Field",
    "Identity",
    "Item",
    "Key",
    "KeyList",
    "Keys",
    "Layer",
    "LogOptions",
    "LogReader",
    "LogRecord",
    "LogWarning",
    "Loss",
    "Message",
    "Moment",
    "NoKeys",
    "Note",
    "NoteKind",
    "Parent",
    "Piece",
    "Priority",
    "Problem",
    "Reading",
    "Reference",
    "RegistryError",
    "Reply",
    "Scaffold",
    "Security",
    "Segment",
    "ShapeError",
    "Span",
    "Target",
    "Term",
    "Told",
    "Transcript",
    "TranscriptLine",
    "UnknownDialectError",
    "all_dialects",
    "bears",
    "choose_dialect",
    "decode",
    "decode_envelope",
    "detect",
    "encode",
    "envelope_of",
    "find_answer",
    "find_meant",
    "get_dialect",
    "identify",
    "make_visible",
    "messages_of",
    "name_message",
    "parse_json",
    "quote",
    "read",
    "read_log",
    "say_cautions",
    "say_name",
    "show_failure",
    "show_json",
    "show_quarantined",
    "tell",
    "title_of",
    "to_json_type",
    "to_shallow_json",
    "warnings_of",
    "write_content",
    "write_json",
]

# Below this score a guess yields to a dialect that the conversation is known to speak.
_SURE = 0.5


def identify(wire: str, dialect: str | None = None) -> Identity:
    """Conversation, id and time where the wire itself carries them. Cheap; never raises for any text."""
    chosen = get_dialect(dialect) if dialect else get_dialect(detect(wire)[0].dialect)
    return chosen.identify(wire)


def read(wire: str, envelope: Envelope | None = None, *, dialect: str | None = None) -> Reading:
    """Read a text into a record, without context. Never raises for any text.

    Args:
        wire: the text.
        envelope: what the log says around it; its `dialect`, when known here, forces that dialect.
        dialect: a slug that forces the dialect, whatever the text looks like.

    Raises:
        UnknownDialectError: for a `dialect` that does not exist.
    """
    candidates = detect(wire)
    forced = dialect or _known(envelope.dialect if envelope else None)
    chosen = get_dialect(forced or candidates[0].dialect)
    reading = chosen.read(wire, envelope)
    return apply_envelope(note_hidden(reading.replace(candidates=candidates)), envelope)


def _known(slug: str | None) -> str | None:
    return slug if slug and any(dialect.slug == slug for dialect in all_dialects()) else None


def tell(reading: Reading, context: Context | None = None, keys: Keys | None = None) -> Told:
    """Tell a record in English, in the context of its conversation, and add to that context what it establishes.

    A record whose dialect was a guess is read anew in the dialect that the conversation is known to speak, where
    that is among its candidates; the answer's `reading` is then the new one. Never raises for any reading.
    """
    context = Context() if context is None else context
    reading = choose_dialect(reading, context)
    told = get_dialect(reading.dialect).tell(reading, context, keys or NoKeys())
    spoken = Entry(kind="dialect", name=reading.dialect, value=reading.dialect)
    context.add((*told.entries, spoken) if reading.dialect != "prose" else told.entries)
    return told


def choose_dialect(reading: Reading, context: Context) -> Reading:
    """The reading, or one in another of its candidates if it was a guess and its conversation speaks that dialect."""
    scores = {candidate.dialect: candidate.score for candidate in reading.candidates}
    if scores.get(reading.dialect, 1.0) >= _SURE:
        return reading
    spoken = [slug for slug in context.all_of("dialect") if slug in scores and slug != "prose"]
    if not spoken or reading.dialect in spoken:
        return reading
    best = max(spoken, key=lambda slug: scores[slug])
    return read(reading.wire, reading.envelope, dialect=best)


def decode(
    wire: str,
    envelope: Envelope | None = None,
    *,
    dialect: str | None = None,
    prior: Iterable[tuple[str, Envelope | None]] = (),
    keys: Keys | None = None,
) -> Reading:
    """Read and tell one text: the reading with its messages told, and the layers and fields that telling added.

    Args:
        wire: the text.
        envelope: what the log says around it.
        dialect: a slug that forces the dialect.
        prior: what was said earlier in the same conversation, oldest first, as (wire, envelope).
        keys: a resolver of keys for sealed messages.
    """
    context = Context()
    for index, (earlier, around) in enumerate(prior):
        context.record, context.position = index, index + 1
        tell(read(earlier, around), context, keys)
    context.record, context.position = None, context.position + 1
    return tell(read(wire, envelope, dialect=dialect), context, keys).whole


def encode(messages: Reading | Sequence[Message], dialect: str | None = None) -> Encoded:
    """Write a record in a dialect; the losses list what its wire cannot hold.

    Args:
        messages: a reading, or its messages in order of their parts.
        dialect: the slug to write in; the reading's own where it is left out.

    Raises:
        UnknownDialectError: for a dialect that does not exist.
        EncodeError: if the record cannot be written in that dialect at all.
    """
    if isinstance(messages, Reading):
        dialect = dialect or messages.dialect
        messages = messages.messages
    if dialect is None:
        raise EncodeError("none", "a dialect must be named to write messages in")
    return get_dialect(dialect).encode(messages)
