"""The normalised record: what every dialect is read into.

A *record* is one stretch of text that carries messages. Reading it yields a `Reading`: the layers of text found in it,
a tree of fields whose leaves cover every character, and one `Message` for each communicative act. Absent is None:
nothing here is ever invented. Positions count Unicode code points.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, Self

from ._value import Value, to_json_type

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


# What stands in the place of a secret, whatever its length.
MASK = "••••••"

_new, _set = object.__new__, object.__setattr__

LayerKind = Literal[
    "wire", "envelope", "string", "json-string", "json-value", "base64", "zlib", "plaintext", "put-together"
]


class Piece(NamedTuple):
    """A piece of a text that was put together: text[start:end], where it stands, and the part that says it."""

    start: int
    end: int
    span: Span
    part: int


class Layer(Value):
    """One text in which spans count. Layer 0 is the wire; an inner layer names the span (`of`) it came from. One that
    was put together of several in this record knows each of these `pieces`, which are not shown."""

    _carried = frozenset({"_pieces"})

    id: int
    kind: LayerKind
    text: str
    of: Span | None = None

    @property
    def pieces(self) -> Sequence[Piece]:
        """Those that it was put together of; none of any other."""
        pieces: Sequence[Piece] = vars(self).get("_pieces", ())
        return pieces

    def find_outer(self, spans: Sequence[Span]) -> list[Span]:
        """The stretches of outer layers from which these spans of this one came; none where there is no span."""
        if not self.pieces:
            return [self.of] if self.of is not None and spans else []
        return [each.span for each in self.find_pieces(spans)]

    def find_pieces(self, spans: Sequence[Span]) -> list[Piece]:
        """The pieces that share characters with any of these spans."""
        found: dict[Piece, None] = {}
        for _, start, end in spans:
            first = bisect_right(self.pieces, start, key=lambda each: each.end)
            last = bisect_left(self.pieces, end, key=lambda each: each.start)
            found |= dict.fromkeys(self.pieces[first:last])
        return list(found)


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


class WireReading(Reading):
    """A reading that is made of its wire and its messages alone: its layer and its tree come when they are asked for.

    Most records are stored before anybody looks into one, so the usual messages of a dialect are read into this. The
    dialect derives its own, with its constant names as the class's defaults and `grow` for the tree. It equals a plain
    reading of the same content.
    """

    _carried = frozenset({"_wire"})

    @classmethod
    def of(cls, wire: str, messages: tuple[Message, ...], parsed: Any = None) -> Self:
        """The reading of a wire. Nothing is checked."""
        reading = _new(cls)
        _set(reading, "__dict__", {"_wire": wire, "messages": messages, "parsed": parsed})
        return reading

    @staticmethod
    def grow(wire: str, /) -> tuple[Field, ...]:
        """The field tree of a wire of this kind."""
        raise NotImplementedError

    @property
    def wire(self) -> str:
        """The text that was read."""
        text: str = self.__dict__["_wire"]
        return text

    @cached_property  # type: ignore[misc]  # a name of the reading, worked out when it is asked for
    def layers(self) -> tuple[Layer, ...]:
        """The wire's own layer."""
        return (Layer(id=0, kind="wire", text=self.wire),)

    @cached_property  # type: ignore[misc]  # a name of the reading, worked out when it is asked for
    def tree(self) -> Callable[[], tuple[Field, ...]]:
        """What grows the tree."""
        return partial(self.grow, self.wire)

    def plain(self) -> Reading:
        """The same reading with every name its own."""
        names = {name: getattr(self, name) for name in self._order}
        return Reading(**{name: value for name, value in names.items() if value != getattr(Reading, name, None)})

    def given(self) -> dict[str, Any]:
        """The names that differ from a plain reading's defaults, in their declared order."""
        return self.plain().given()

    def __repr__(self) -> str:
        return repr(self.plain())


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


SHAPE_VERSION = 1


def leaf(
    name: str,
    label: str,
    text: str,
    start: int,
    end: int,
    *,
    layer: int = 0,
    value: object = None,
    meaning: str | None = None,
) -> Field:
    """A leaf over text[start:end] of a layer."""
    return Field(name=name, label=label, raw=text[start:end], span=(layer, start, end), value=value, meaning=meaning)


def masked_leaf(name: str, label: str, start: int, end: int, *, layer: int = 0, meaning: str | None = None) -> Field:
    """A leaf whose characters are a secret: the span stands, the characters do not."""
    return Field(
        name=name, label=label, raw=MASK, value=MASK, span=(layer, start, end), meaning=meaning, is_masked=True
    )


def tile(
    fields: Iterable[Field],
    text: str,
    *,
    syntax: frozenset[str],
    layer: int = 0,
    start: int = 0,
    end: int | None = None,
) -> tuple[Field, ...]:
    """Fill the gaps between fields, at every depth, so that the leaves cover text[start:end].

    A gap made only of `syntax` characters becomes a leaf named `syntax`; any other becomes one named `unread`.
    The fields must lie in order and apart; children lie inside their parent on the same layer.
    """
    end = len(text) if end is None else end
    whole: list[Field] = []
    at = start
    for field in fields:
        _, first, last = field.span
        whole.extend(_gap(text, at, first, syntax, layer))
        own = [child for child in field.children if child.span[0] == layer]
        if own:
            inner = [child for child in field.children if child.span[0] != layer]
            tiled = tile(own, text, syntax=syntax, layer=layer, start=first, end=last)
            field = field.replace(children=(*tiled, *inner))
        whole.append(field)
        at = last
    whole.extend(_gap(text, at, end, syntax, layer))
    return tuple(whole)


def _gap(text: str, start: int, end: int, syntax: frozenset[str], layer: int) -> Iterator[Field]:
    if end <= start:
        return
    is_syntax = syntax.issuperset(text[start:end])
    name, label = ("syntax", "separator") if is_syntax else ("unread", "not understood")
    yield leaf(name, label, text, start, end, layer=layer)


def leaves(fields: Sequence[Field], *, layer: int = 0) -> Iterator[Field]:
    """The leaves on one layer, in order. A field whose children are all on inner layers is a leaf of its own."""
    stack = [iter(fields)]
    while stack:
        field = next(stack[-1], None)
        if field is None:
            stack.pop()
            continue
        own = [child for child in field.children if child.span[0] == layer]
        if own:
            stack.append(iter(own))
        elif field.span[0] == layer:
            yield field
