"""The normalised record: what every dialect is read into.

A *record* is one stretch of text that carries messages. Reading it yields a `Reading`: the layers of text
found in it, a tree of fields that covers every character, and one `Message` for each communicative act.
Absent is None: nothing here is ever invented. Positions count Unicode code points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

from ._value import Value, to_json_type

SHAPE_VERSION = 1

# What stands in the place of a secret, whatever its length.
MASK = "••••••"

Severity = Literal["info", "notice", "warning", "error"]
Group = Literal["malformed", "undecoded", "protocol", "sequence", "assumption", "security", "deprecated"]
Basis = Literal["exact", "inferred", "unknown"]
LayerKind = Literal["wire", "envelope", "json-string", "base64", "zlib", "plaintext"]

# A span is [layer, start, end): the layer's id and a half-open range of code points in that layer's text.
Span = tuple[int, int, int]


class Note(Value):
    """What a decoder saw. `code` is stable, `<dialect>.<name>`; `cites` is the section of the specification."""

    severity: Severity
    group: Group
    code: str
    text: str
    span: Span | None = None
    cites: str | None = None


class NoteKind(Value):
    """One row of a dialect's table of notes; the codes in the documentation come from these rows."""

    code: str
    severity: Severity
    group: Group
    about: str
    cites: str | None = None

    def note(self, text: str, span: Span | None = None) -> Note:
        """A note of this kind with its own words and place."""
        return Note(severity=self.severity, group=self.group, code=self.code, text=text, span=span, cites=self.cites)


class Layer(Value):
    """One text in which spans count. Layer 0 is the wire; an inner layer names the span (`of`) it came from."""

    id: int
    kind: LayerKind
    text: str
    of: Span | None = None


class Field(Value):
    """A node of the field tree: raw characters, the value they stand for, and what that means in English.

    Leaves tile layer 0: joined in order, the `raw` of all its leaves is the wire. Separators are leaves named
    `syntax`; characters no rule could place are leaves named `unread`. A secret's leaf is masked: its span
    stands, its `raw` and `value` are `MASK`.
    """

    name: str
    label: str
    raw: str
    span: Span
    value: Any = None
    meaning: str | None = None
    children: tuple[Field, ...] = ()
    is_masked: bool = False


class Segment(Value):
    """A piece of English with the characters it came from.

    Joined in order, the texts of a message's segments are its sentence; each carries its own spaces.
    `basis` says how sure it is: exact (said by the wire), inferred (by a rule), unknown (not understood, shown
    verbatim). `source` is (record, part) of another message that gave the meaning, if one did.
    """

    text: str
    spans: tuple[Span, ...] = ()
    basis: Basis = "exact"
    source: tuple[Any, int] | None = None


class Target(Value):
    """Whom or what a message aims at, as written and as understood."""

    raw: str
    name: str
    kind: Literal["agent", "human", "all", "self", "place", "object"]


class Moment(Value):
    """A deadline, schedule or condition: as written, its kind, and its instant (ISO 8601, UTC) or seconds."""

    raw: str
    kind: str
    instant: str | None = None
    seconds: int | float | None = None


class Priority(Value):
    """Rank 1 is the most urgent."""

    raw: str
    rank: int | None = None


class Failure(Value):
    """Why something failed. `retry_after` is a Moment's mapping {raw, seconds}."""

    code: str | None = None
    message: str | None = None
    retryable: bool | None = None
    retry_after: Mapping[str, Any] | None = None
    cause: str | None = None


class Reference(Value):
    """What a message leans on: a path or address, the hash it must have, text given inline."""

    ref: str | None = None
    hash: str | None = None
    inline: str | None = None


class Definition(Value):
    """A meaning, name or setting that a message establishes for its conversation."""

    kind: str
    name: str
    value: Any


class Security(Value):
    """What is known about the protection of a message; `claims` are carried, never verified here."""

    encrypted: bool = False
    opened: bool = False
    session: str | None = None
    claims: tuple[str, ...] = ()
    verified: bool | None = None


class Parent(Value):
    """The message answered, once placed: its record and part, how we know, and why."""

    record: Any
    part: int
    basis: Literal["explicit", "correlation", "turn", "adjacency"]
    why: str


class Message(Value):
    """One communicative act. Groups and names are those of docs/record.md."""

    part: int = 1
    performative: str | None = None
    native_act: str | None = None
    modifiers: tuple[str, ...] = ()
    topic: str | None = None
    content: Any = None
    defines: tuple[Definition, ...] = ()
    attributes: Mapping[str, Any] = {}

    sender: str | None = None
    receivers: tuple[str, ...] = ()
    broadcast: bool = False
    path: tuple[str, ...] = ()
    target: Target | None = None
    object_id: str | None = None

    message_id: str | None = None
    conversation_id: str | None = None
    trace_id: str | None = None
    parent_id: str | None = None
    parent: Parent | None = None
    task_id: str | None = None
    parent_task_id: str | None = None
    correlation_id: str | None = None
    turn: int | None = None
    run: int | None = None

    sent_at: str | None = None
    sent_at_raw: str | None = None
    deadline: Moment | None = None
    schedule: Moment | None = None
    condition: Moment | None = None

    status: str | None = None
    progress: int | float | None = None
    priority: Priority | None = None
    score: int | float | None = None
    result_id: str | None = None
    delegation: str | None = None
    capabilities: tuple[str, ...] = ()
    error: Failure | None = None

    references: tuple[Reference, ...] = ()
    frame: str | None = None
    nested: tuple[Mapping[str, Any], ...] = ()

    security: Security = Security()

    english: tuple[Segment, ...] = ()
    also: tuple[Segment, ...] = ()
    gloss: tuple[Segment, ...] = ()
    notes: tuple[Note, ...] = ()
    reference_line: str | None = None

    @property
    def sentence(self) -> str:
        """The English as one string."""
        return "".join(segment.text for segment in self.english)

    @property
    def gloss_line(self) -> str:
        """The gloss as one string."""
        return "".join(segment.text for segment in self.gloss)


class Candidate(Value):
    """A dialect that a text may be in: score from 0 to 1, and the reason in words."""

    dialect: str
    score: float
    why: str


class Envelope(Value):
    """What the log or the sender says around the text. It never overrides the wire.

    `at` is an ISO 8601 instant in UTC where it could be read; `at_raw` is what stood there. `label` is a
    bracketed label of a log line: kept, never a channel.
    """

    at: str | None = None
    at_raw: str | None = None
    sender: str | None = None
    receivers: tuple[str, ...] = ()
    conversation: str | None = None
    trace: str | None = None
    parent: str | None = None
    id: str | None = None
    dialect: str | None = None
    label: str | None = None
    extra: Mapping[str, Any] = {}


class Identity(Value):
    """What the wire itself says of its identity: conversation and id as written, time as ISO 8601 UTC."""

    conversation: str | None = None
    id: str | None = None
    time: str | None = None


class Reading(Value):
    """A record as read, without any context: `layers[0]` is the wire.

    `tree` is called once, when `fields` is first asked for: most records are never unfolded.
    """

    dialect: str
    layers: tuple[Layer, ...]
    tree: Callable[[], tuple[Field, ...]]
    version: str | None = None
    vocabulary: str | None = None
    candidates: tuple[Candidate, ...] = ()
    messages: tuple[Message, ...] = ()
    footer: Mapping[str, Any] | None = None
    notes: tuple[Note, ...] = ()
    from_envelope: tuple[str, ...] = ()
    envelope: Envelope | None = None
    # What the dialect itself parsed and wants again in `tell`; never shown, stored or compared.
    parsed: Any = None

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The field tree; the leaves cover layer 0 completely."""
        return self.tree()

    @property
    def wire(self) -> str:
        """The text that was read."""
        return self.layers[0].text

    @property
    def error(self) -> Note | None:
        """The error note of a malformed record, or None."""
        own = next((note for note in self.notes if note.severity == "error"), None)
        if own is not None:
            return own
        notes = (note for message in self.messages for note in message.notes)
        return next((note for note in notes if note.severity == "error" and note.group == "malformed"), None)

    @property
    def is_malformed(self) -> bool:
        """Whether no dialect reads this fully: one message without a performative, and an error note."""
        return any(message.performative is None for message in self.messages)

    def to_dict(self) -> dict[str, Any]:
        """The reading as JSON types, the field tree included."""
        names = ("dialect", "version", "vocabulary", "candidates", "layers", "messages", "footer", "notes")
        plain = {name: getattr(self, name) for name in (*names, "from_envelope")}
        shown: dict[str, Any] = to_json_type({**plain, "fields": self.fields})
        return shown

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reading) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # a reading is compared by content and never a key


class Entry(Value):
    """One thing a conversation has established: kind, name, value, and the message that said so.

    `source` is (record, part); `position` is that message's one-based place in its conversation when it was told.
    """

    kind: str
    name: str
    value: Any
    speaker: str | None = None
    source: tuple[Any, int] | None = None
    position: int | None = None


class Told(Value):
    """What telling yields: messages with English, what was opened on the way, and what they establish."""

    reading: Reading
    messages: tuple[Message, ...]
    layers: tuple[Layer, ...] = ()
    fields: tuple[Field, ...] = ()
    entries: tuple[Entry, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def whole(self) -> Reading:
        """The reading with its messages told, and with what telling added to it."""
        reading = self.reading
        return reading.replace(
            messages=self.messages,
            layers=(*reading.layers, *self.layers),
            notes=(*reading.notes, *self.notes),
            tree=lambda: (*reading.fields, *self.fields),
        )


class Loss(Value):
    """A name of the record that the wire cannot carry."""

    name: str
    part: int
    reason: str


class Encoded(Value):
    """A wire, and what it could not hold: the losses name the record's fields, each with a reason."""

    wire: str
    losses: tuple[Loss, ...] = ()
