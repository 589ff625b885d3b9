"""Reading a record without context: its frames become messages, its payloads layers.

Specification: 0.4.0 Syntax Structure, Response Format, Protocol Signature. Sender and time are never on the wire.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from .._record import Envelope, Layer, Message, Note, NoteKind, Reading
from . import notes as kinds
from .frames import MANGLED, Frame, Signature, cut_frames, is_mangled, open_marked
from .messages import build_message
from .payloads import Layers
from .statements import MAX_STATEMENTS, Statement, read_statements
from .tables import (
    KNOWN_VERSIONS,
    SOURCE,
    VOCABULARY,
)
from .trees import build_tree

_LOOKS_LIKE_FIELDS = re.compile(r"\|[@#~%$^]")


class Record(NamedTuple):
    """What a reading keeps for telling: a statement for each message, and the signatures."""

    statements: tuple[Statement, ...]
    signatures: tuple[Signature, ...]


def read_record(wire: str, envelope: Envelope | None = None) -> Reading:
    """Read a record. Never raises for any text; linear in its length."""
    return _read(wire, is_inner=False)


def read_inner(text: str) -> Reading | None:
    """The record that a payload's text carries, one level deep; None where no statement opens it."""
    head = open_marked(text, 0)
    if head is None or head.kind in ("text", "bare"):
        return None
    return _read(text, is_inner=True)


def _read(wire: str, *, is_inner: bool) -> Reading:
    inner = None if is_inner else read_inner
    layers = Layers()
    notes: list[Note] = []
    statements: list[Statement] = []
    signatures: list[Signature] = []
    signed = 0
    for frame in cut_frames(wire):
        if frame.signature is not None:
            _note_signature(wire, frame.signature, bool(signatures), notes)
            signatures.append(frame.signature)
            signed = len(statements) if len(signatures) == 1 else signed
            continue
        if len(statements) >= MAX_STATEMENTS:
            text = f"more than {MAX_STATEMENTS} statements: the rest is not read"
            notes.append(kinds.LIMIT.note(text, (0, frame.start, len(wire))))
            break
        if len(signatures) == 1 and signed == len(statements):
            text = "the record ends at its signature; what follows it is read, and is not covered"
            notes.append(kinds.AFTER_SIGNATURE.note(text, (0, frame.start, frame.end)))
        _read_frame(wire, frame, statements, layers, notes)
    _see_mojibake(wire, statements, signatures, notes)
    error = _find_error(wire, statements, signatures, notes)
    footer = _footer(wire, signatures)
    all_layers = (Layer(id=0, kind="wire", text=wire), *layers.found)
    if error is not None:
        messages: tuple[Message, ...] = (Message(performative=None, content=wire, notes=(error,)),)
        notes = [note for note in notes if note.code != kinds.STRAY_MARKER.code]
        statements = []
    else:
        _note_missing_signature(statements, signatures, notes)
        messages = tuple(
            build_message(wire, statement, part, _written(footer) if part <= signed else None, inner)
            for part, statement in enumerate(statements, 1)
        )
    record = Record(tuple(statements), tuple(signatures))
    return Reading(
        dialect="agent_lingua",
        version=footer["version"] if footer else None,
        vocabulary=VOCABULARY,
        layers=all_layers,
        tree=partial(build_tree, all_layers, record.statements, record.signatures),
        messages=messages,
        footer=footer,
        notes=tuple(notes),
        parsed=record,
    )


def _see_mojibake(wire: str, statements: list[Statement], signatures: list[Signature], notes: list[Note]) -> None:
    """A record that was mangled in one place was mangled in all: its human text is repaired too."""
    mangled = next((each for each in signatures if MANGLED.search(wire, each.start, each.version[0])), None)
    if not mangled and not any(statement.is_mangled for statement in statements):
        return
    for statement in statements:
        statement.is_mangled = statement.is_mangled or statement.kind == "prose"
    if mangled and not any(note.code == kinds.MOJIBAKE.code for each in statements for note in each.notes):
        text = "a 👽 in the wrong character set, read as one"
        notes.append(kinds.MOJIBAKE.note(text, (0, mangled.start, mangled.version[0])))


def _footer(wire: str, signatures: list[Signature]) -> Mapping[str, Any] | None:
    if not signatures:
        return None
    first = signatures[0]
    return {"version": wire[slice(*first.version)], "source": wire[slice(*first.source)]}


def _written(footer: Mapping[str, Any] | None) -> str | None:
    return f"{footer['version']}@{footer['source']}" if footer else None


def _read_frame(wire: str, frame: Frame, statements: list[Statement], layers: Layers, notes: list[Note]) -> None:
    head = frame.head
    if frame.kind == "text" or head is None:
        statements.append(_text("prose", wire, frame.start, frame.start, frame.end))
    elif head.kind == "text":
        statement = _text("text", wire, frame.start, head.end, frame.end)
        statement.marker = head.marker
        statement.is_mangled = is_mangled(wire, head.marker)
        if statement.is_mangled and head.marker:
            statement.note(kinds.MOJIBAKE, "a 👽 in the wrong character set, read as one", *head.marker)
        found = _LOOKS_LIKE_FIELDS.search(wire, head.end, frame.end)
        if found:
            text = "fields follow, but not two codes and a separator: kept as human text"
            statement.note(kinds.NOT_A_STATEMENT, text, frame.start, frame.end)
        statements.append(statement)
    elif head.kind == "bare" or frame.kind == "broken":
        text = "nothing follows the 👽" if head.kind == "bare" else "an answer without its code"
        notes.append(kinds.STRAY_MARKER.note(text, (0, frame.start, frame.end)))
    else:
        if "\n" in wire[frame.start : frame.end]:
            text = "the statement goes on over several lines"
            notes.append(kinds.BROKEN_LINE.note(text, (0, frame.start, frame.end)))
        for statement in read_statements(wire, frame.start, frame.end, head, layers):
            if len(statements) >= MAX_STATEMENTS:
                text = f"more than {MAX_STATEMENTS} statements: the rest is not read"
                notes.append(kinds.LIMIT.note(text, (0, statement.start, len(wire))))
                break
            statements.append(statement)


def _text(kind: str, wire: str, start: int, inner: int, end: int) -> Statement:
    whole = wire[inner:end]
    first = inner + len(whole) - len(whole.lstrip())
    last = inner + len(whole.rstrip())
    return Statement(kind, start, end, text=(min(first, last), last))


def _find_error(wire: str, statements: list[Statement], signatures: list[Signature], notes: list[Note]) -> Note | None:
    """The error that makes a record without any message malformed; None where there is a message."""
    if statements:
        return None
    stray = next((note for note in notes if note.code == kinds.STRAY_MARKER.code), None)
    if stray is not None and stray.span is not None:
        kind: NoteKind = kinds.BARE_MARKER
        if "answer" in stray.text:
            kind = kinds.UNREADABLE_RESPONSE if wire.startswith("^", stray.span[1]) else kinds.UNREADABLE_ERROR
        return kind.note(stray.text, stray.span)
    if signatures:
        text = "a signature line stands alone: the message that it should close is missing"
        return kinds.SIGNATURE_ALONE.note(text, (0, signatures[0].start, signatures[0].end))
    statements.append(Statement("prose", 0, len(wire), text=(0, len(wire))))
    return None


def _note_signature(wire: str, signature: Signature, is_again: bool, notes: list[Note]) -> None:
    span = (0, signature.start, signature.end)
    version, source = wire[slice(*signature.version)], wire[slice(*signature.source)]
    if is_again:
        notes.append(kinds.AFTER_SIGNATURE.note("a further signature below the one that closes the record", span))
    if not signature.is_plain:
        notes.append(kinds.ODD_SIGNATURE.note("a signature stands on a line of its own, as --👽lingua/…", span))
    if source != SOURCE:
        text = f"the source {source or '(none)'} is not {SOURCE}; it is shown and never fetched"
        notes.append(kinds.FOREIGN_SOURCE.note(text, (0, *signature.source)))
    if ".".join(version.split(".")[:2]) not in KNOWN_VERSIONS:
        text = f"version {version or '(none)'} is read with the tables of {VOCABULARY}"
        notes.append(kinds.UNKNOWN_VERSION.note(text, (0, *signature.version)))


def _note_missing_signature(statements: list[Statement], signatures: list[Signature], notes: list[Note]) -> None:
    """A signature is optional in encrypted sessions and for a note to oneself; human text needs none."""
    if all(statement.kind == "prose" for statement in statements) and not signatures:
        span = (0, statements[0].start, statements[0].end)
        notes.append(kinds.NO_MARKER.note("no 👽, response or error opens it: kept as text", span))
        return
    wanting = [statement for statement in statements if statement.kind in ("statement", "response", "error")]
    if signatures or not wanting or all(_may_be_unsigned(statement) for statement in wanting):
        return
    span = (0, wanting[-1].start, wanting[-1].end)
    is_public = any(statement.domain in ("7", "8") and statement.action == "3" for statement in wanting)
    need = ", and a public post needs one" if is_public else ""
    notes.append(kinds.UNSIGNED.note(f"no signature line closes the record{need}", span))


def _may_be_unsigned(statement: Statement) -> bool:
    target = statement.standing.get("target")
    is_own = bool(target and target.aim and target.aim.target.kind == "self")
    return is_own or bool(statement.payload and statement.payload.kind == "encrypted")
