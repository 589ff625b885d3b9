"""Codecs for the terse dialects AI agents speak: one normalised record, plain English, every character accounted for.

    import dialects

    reading = dialects.decode('@a3|f0|c1|S0|d1|T1|k1|t"refactor_auth"#')
    reading.messages[0].sentence

The package knows nothing of files, databases or the network. `read` needs no context and never raises; `tell`
adds English in the context of a conversation; `decode` does both for one text. Bad input becomes notes; misuse
raises a `DialectsError`.
"""

from __future__ import annotations

from ._context import Context, Key, KeyList, Keys, NoKeys
from ._decoding import Conversations, choose_dialect, decode, encode, identify, read, tell
from ._dialect import Block, Dialect, Reply, Term
from ._english import enclose, quote, say_cautions, say_instant, say_name
from ._envelope import INSPECTED, envelope_of
from ._errors import DialectsError, EncodeError, RegistryError, UnknownDialectError
from ._exchange import (
    EnvelopeError,
    decode_envelope,
    parse_json,
    show_failure,
    show_json,
    show_quarantined,
    show_values,
    write_json,
)
from ._hidden import HIDDEN_CLASS, make_visible
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
from ._registry import all_dialects, detect, digest_installed, get_dialect, list_installed, title_of
from ._transcript import Answer, Transcript, bears, find_answer, name_message, say_conflict
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
    "digest_installed",
    "enclose",
    "encode",
    "envelope_of",
    "find_answer",
    "find_meant",
    "get_dialect",
    "identify",
    "list_installed",
    "make_visible",
    "messages_of",
    "name_message",
    "parse_json",
    "quote",
    "read",
    "read_log",
    "say_cautions",
    "say_conflict",
    "say_instant",
    "say_name",
    "show_failure",
    "show_json",
    "show_quarantined",
    "show_values",
    "tell",
    "title_of",
    "to_json_type",
    "to_shallow_json",
    "warnings_of",
    "write_content",
    "write_json",
]
