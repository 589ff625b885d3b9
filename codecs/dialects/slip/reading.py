"""Reading SLIP: a text into its record, the thread that it names, and its field tree."""

from __future__ import annotations

from functools import partial
from typing import Any

from .._record import Envelope, Failure, Field, Identity, Layer, Message, Reading, Reference, leaf, tile
from .lines import SEPARATORS, Line, Prose, Record, Role, parse_record
from .tables import FORCES, VOCABULARIES


def read(wire: str, envelope: Envelope | None = None) -> Reading:
    """The record of a text: one message a line, and one inform for each stretch of text around. Never raises."""
    record = parse_record(wire)
    messages = (_malformed(wire, record),) if record.error else _messages_of(wire, record)
    versions = [] if record.error else sorted({line.version for line in record.lines})
    known = [version for version in versions if version in VOCABULARIES]
    return Reading(
        dialect="slip",
        version=(known or versions)[-1].removeprefix("v") if versions else None,
        vocabulary=VOCABULARIES[known[-1]] if known else None,
        layers=(Layer(id=0, kind="wire", text=wire),),
        tree=partial(grow_tree, wire),
        messages=messages,
        notes=record.notes,
        parsed=record,
    )


def identify(wire: str) -> Identity:
    """The thread that the first line which names one does."""
    threads = (line.pieces["thread"].value for line in parse_record(wire).lines if "thread" in line.pieces)
    return Identity(conversation=next(threads, None))


def _messages_of(wire: str, record: Record) -> tuple[Message, ...]:
    return tuple(
        Message(part=index, performative="inform", content=wire[part.start : part.end], notes=part.notes)
        if isinstance(part, Prose)
        else _message_of(part, index)
        for index, part in enumerate(record.parts, 1)
    )


# The pieces that fill a name of the record as they are.
_PLACES: tuple[tuple[Role, str], ...] = (("sender", "sender"), ("thread", "conversation_id"), ("payload", "content"))
# The lines before a message, by what they are called in its attributes.
REMARKS: tuple[Role, ...] = ("thought", "choice")


def _message_of(line: Line, part: int) -> Message:
    pieces = line.pieces
    values: dict[str, Any] = {name: pieces[role].value for role, name in _PLACES if role in pieces}
    values["attributes"] = {"slip": line.version, **{role: pieces[role].value for role in REMARKS if role in pieces}}
    values["receivers"] = (pieces["receiver"].value,)
    force = FORCES.get(pieces["act"].value) if line.form == "pair" else None
    if line.anchor:
        values["performative"], values["status"] = line.anchor.performative, line.anchor.status
    else:
        values["performative"] = force.performative if force else "unknown"
    if "reference" in pieces:
        values["references"] = (Reference(ref=pieces["reference"].value),)
    if values["performative"] == "failure" and (code := _code_of(line)):
        values["error"] = Failure(code=code)
    return Message(part=part, native_act=line.act, notes=line.notes, **values)


def _code_of(line: Line) -> str | None:
    """What kind of error an act of the force Error reports, in its own word."""
    kind = line.anchor.object if line.anchor else line.pieces["object"].value if "object" in line.pieces else None
    return None if kind == "Generic" else kind


def _malformed(wire: str, record: Record) -> Message:
    """One message without an act; what its only line says of who and to whom still stands."""
    notes = () if record.error is None else (record.error,)
    pieces = record.lines[0].pieces if len(record.parts) == len(record.lines) == 1 else {}
    values: dict[str, Any] = {"sender": pieces["sender"].value} if "sender" in pieces else {}
    if "receiver" in pieces:
        values["receivers"] = (pieces["receiver"].value,)
    return Message(performative=None, content=wire, notes=notes, **values)


_LABELS: dict[Role, str] = {
    "thought": "what it thought",
    "choice": "the act it chose",
    "version": "version",
    "sender": "sender",
    "receiver": "receiver",
    "act": "act",
    "object": "object",
    "thread": "thread",
    "reference": "where its words are",
    "payload": "payload",
}
# The marks before a version, a thought and a choice.
_SYNTAX = SEPARATORS | frozenset("SLIP:THOUGHTQUANTIZE")


def grow_tree(text: str) -> tuple[Field, ...]:
    """The tree over the whole text: one node a line, one leaf a piece, marks and prose between them."""
    fields = []
    for part in parse_record(text).parts:
        start, end = part.start, part.end
        if isinstance(part, Prose):
            fields.append(leaf("prose", "text around the lines", text, start, end, value=text[start:end]))
            continue
        leaves = tuple(
            leaf(role, _LABELS[role], text, *piece[:2], value=piece.value, meaning=_mean(part, role))
            for role, piece in part.pieces.items()
        )
        fields.append(
            Field(name="message", label="SLIP message", raw=text[start:end], span=(0, start, end), children=leaves)
        )
    return tile(fields, text, syntax=_SYNTAX)


def _mean(line: Line, role: Role) -> str | None:
    if role != "act" or line.fault:
        return None
    if line.anchor:
        return mean(line.anchor.words)
    force = FORCES.get(line.pieces["act"].value)
    return f"sends {force.noun}" if force else "an act that no table holds"


def mean(words: str) -> str:
    """The words of an anchor without a receiver's name."""
    return words.format(whom="the receiver")
