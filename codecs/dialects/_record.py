"""The normalised record: what every dialect is read into.

A *record* is one stretch of text that carries messages. Reading it yields a `Reading`: the layers of text
found in it, a tree of fields that covers every character, and one `Message` for each communicative act.
Absent is None: nothing here is ever invented. Positions count Unicode code points.
"""

from __future__ import annotations

from ._message import (
    Basis,
    Definition,
    Failure,
    Group,
    Message,
    Moment,
    Note,
    NoteKind,
    Parent,
    Priority,
    Reference,
    Security,
    Segment,
    Severity,
    Span,
    Target,
)
from ._reading import (
    MASK,
    Candidate,
    Encoded,
    Entry,
    Envelope,
    Field,
    Identity,
    Layer,
    LayerKind,
    Loss,
    Reading,
    Told,
    WireReading,
)

SHAPE_VERSION = 1

__all__ = [
    "MASK",
    "SHAPE_VERSION",
    "Basis",
    "Candidate",
    "Definition",
    "Encoded",
    "Entry",
    "Envelope",
    "Failure",
    "Field",
    "Group",
    "Identity",
    "Layer",
    "LayerKind",
    "Loss",
    "Message",
    "Moment",
    "Note",
    "NoteKind",
    "Parent",
    "Priority",
    "Reading",
    "Reference",
    "Security",
    "Segment",
    "Severity",
    "Span",
    "Target",
    "Told",
    "WireReading",
]
