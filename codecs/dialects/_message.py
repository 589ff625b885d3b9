"""The normalised message: one communicative act, and what its names hold.

Absent is None: nothing here is ever invented. Positions count Unicode code points.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ._value import Value

Severity = Literal["info", "notice", "warning", "error"]
Group = Literal["malformed", "undecoded", "protocol", "sequence", "assumption", "security", "deprecated"]
Basis = Literal["exact", "inferred", "unknown"]

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
    # The dialect of this message, and the part that carries it, where it is a text inside another message.
    dialect: str | None = None
    carrier_part: int | None = None
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
