"""Telling: a record's message in English, in the context of its conversation, as the row that is stored."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from dialects import SHAPE_VERSION, Message, Reading, Told, to_json_type

from . import terms
from .models import Message as MessageRow
from .placing import Node

DECODER_VERSION = f"1.{SHAPE_VERSION}"

_SEVERITY = {"info": 1, "notice": 2, "warning": 3, "error": 4}


@dataclass(frozen=True, slots=True)
class ToldRow:
    """What telling writes of one message."""

    id: uuid.UUID
    position: int
    turn: int | None
    run: int
    parent: uuid.UUID | None
    parent_key: bytes | None
    parent_basis: str
    parent_why: str
    severity: int
    is_sealed: bool
    english: str
    body: str
    words: str
    atoms: list[str]

    def digest(self) -> bytes:
        """SHA-256 over everything that telling decides: equal digests need no write."""
        said = (self.position, self.run, self.parent, self.parent_key, self.parent_basis, self.parent_why, self.body)
        return hashlib.sha256(repr((DECODER_VERSION, *said)).encode("utf-8", "backslashreplace")).digest()


def write_body(message: Message, reading: Reading, told: Told) -> str:
    """The told message as canonical JSON text (ASCII): all names that are not absent, and the record's own notes."""
    body = {name: to_json_type(value) for name, value in message.given().items()}
    body.setdefault("performative", None)
    record = {
        "dialect": reading.dialect,
        "version": reading.version,
        "vocabulary": reading.vocabulary,
        "candidates": [candidate.to_dict() for candidate in reading.candidates[:4]],
        "footer": dict(reading.footer) if reading.footer else None,
        "from_envelope": list(reading.from_envelope),
        "notes": [note.to_dict() for note in (*reading.notes, *told.notes)],
        "decoder": DECODER_VERSION,
    }
    return json.dumps({"message": body, "record": record}, ensure_ascii=True, separators=(",", ":"), default=str)


def make_row(*, node: Node, message: Message, reading: Reading, told: Told, workspace_id: uuid.UUID) -> ToldRow:
    """The row of a told message, placed as its node says."""
    notes = (*message.notes, *(reading.notes if message.part == 1 else ()), *(told.notes if message.part == 1 else ()))
    sentence = message.sentence
    also = [segment.text for segment in message.also]
    names = [message.sender, *message.receivers, message.topic, message.native_act, message.conversation_id]
    ids = [message.message_id, message.trace_id, message.task_id]
    texts = [sentence, *also, *(name for name in (*names, *ids) if name)]
    return ToldRow(
        id=node.id,
        position=node.position,
        turn=node.turn,
        run=node.run,
        parent=node.parent,
        parent_key=node.cited,
        parent_basis=node.basis,
        parent_why=node.why,
        severity=max((_SEVERITY[note.severity] for note in notes), default=0),
        is_sealed=message.security.encrypted and not message.security.opened,
        english=sentence,
        body=write_body(message, reading, told),
        words=terms.write_vector(texts, workspace_id),
        atoms=make_atoms(reading, message, workspace_id, texts),
    )


def make_atoms(reading: Reading, message: Message, workspace_id: uuid.UUID, texts: Sequence[str]) -> list[str]:
    """The exact terms of a message: its fields, its codes, its glyphs, its workspace."""
    found = {terms.workspace_term(workspace_id), terms.term("dialect", reading.dialect)}
    found.add(terms.term("performative", message.performative or "malformed"))
    single = ("sender", "native_act", "conversation_id", "trace_id", "task_id", "message_id", "topic", "status")
    for name in single:
        value = getattr(message, name)
        if value not in (None, ""):
            found.add(terms.term(name, value))
    found.update(terms.term("receiver", name) for name in message.receivers)
    if message.broadcast:
        found.add(terms.term("receiver", "*"))
    for glyph in terms.find_glyphs(reading.wire) | set().union(*map(terms.find_glyphs, texts)):
        found.add(f"glyph={glyph}")
    return sorted(found)


def severity_of(reading: Reading, message: Message) -> int:
    """The gravest note of a message, as a number of `Message.Severity`, before it is told."""
    notes = (*message.notes, *(reading.notes if message.part == 1 else ()))
    return max((_SEVERITY[note.severity] for note in notes), default=MessageRow.Severity.NONE)
