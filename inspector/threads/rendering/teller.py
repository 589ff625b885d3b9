"""Telling: a record's message in English, in the context of its conversation, as the row that is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from dialects import Entry, Message, Reading, Told, tell, to_shallow_json
from inspector.bounds import MAX_ANSWER_BYTES, fit_answer
from inspector.intake.bulk import write_array
from inspector.intake.concealing import conceal_told, hide_entry
from inspector.intake.models import Record
from inspector.intake.text import make_storable
from inspector.keyring.periods import leaves_unindexed

from ..models import Message as MessageRow
from ..models.packed_text import pack_text
from ..resolving.established import Established
from ..resolving.view import View
from . import terms
from .dependencies import DECODER_VERSION
from .rule_flags import decide_flags
from .terms import leave_out_texts, make_atoms, mark_workspace

# Made once: `json.dumps` makes a writer for each call. What was read is a tree: nobody need look for circles in it.
_write_json = json.JSONEncoder(
    ensure_ascii=True, separators=(",", ":"), default=to_shallow_json, check_circular=False
).encode

# Searches and lists take no more of a sentence; pages show it from the body.
MAX_SENTENCE: Final = 65_536
# An answer has room for as much again: the fields and the raw text.
MAX_BODY_BYTES: Final = MAX_ANSWER_BYTES // 2
_PIECE: Final = 2**20
_SEVERITY = {"info": 1, "notice": 2, "warning": 3, "error": 4}


class ToldRow(NamedTuple):
    """What telling writes of one message. `digest` is SHA-256 over what is told, whatever ids its sources have. `words`
    and `atoms` are literals of PostgreSQL, of a tsvector and of an array. `sights` is what the row shows by itself."""

    severity: int
    is_sealed: bool
    english: str
    body: str
    words: str
    atoms: str
    sights: int
    digest: bytes

    def list_told(self) -> tuple[object, ...]:
        """The values of the columns that hold what it is told as, but for the time."""
        body = pack_text(self.body)
        return (self.severity, self.is_sealed, self.english, body, self.words, self.atoms, self.digest)


def _digest_body(body: str, message: Message, identities: Mapping[str, str]) -> bytes:
    """The digest of a told body in which each cited record stands by its content and not by its id."""
    segments = (*message.english, *message.also, *message.gloss)
    for record in {str(segment.source[0]) for segment in segments if segment.source is not None}:
        body = body.replace(record, identities.get(record, record))
    digest = hashlib.sha256(f"{DECODER_VERSION}\n".encode())
    for start in range(0, len(body), _PIECE):  # A body may have a hundred megabytes: no copy of the whole is made.
        digest.update(body[start : start + _PIECE].encode())
    return digest.digest()


def make_body(given: Mapping[str, Any], reading: Reading, told: Told) -> dict[str, Any]:
    """The told message as its body has it: all names that are not absent, and the record's own notes."""
    body = given if "performative" in given else {**given, "performative": None}
    record = {
        "dialect": reading.dialect,
        "version": reading.version,
        "vocabulary": reading.vocabulary,
        "candidates": reading.candidates[:4],
        "footer": dict(reading.footer) if reading.footer else None,
        "from_envelope": reading.from_envelope,
        "notes": (*reading.notes, *told.notes),
        "decoder": DECODER_VERSION,
    }
    return {"message": body, "record": record}


def shorten_body(whole: Mapping[str, Any]) -> str:
    """The JSON text of a told body that is over the budget, with the beginnings of its texts and lists. What was left
    out stands in `cut`, and a sentence that was shortened ends with how much of it is not told. The digest of the
    message is made of the whole."""
    shown: dict[str, Any] = fit_answer(whole, MAX_BODY_BYTES)
    segments, told = shown["message"].get("english", []), whole["message"].get("english", ())
    left = sum(len(each.text) for each in told) - sum(len(each["text"]) for each in segments)
    if left:
        segments.append({"text": f" … and {left:,} more characters that are not told here.", "basis": "unknown"})
    return _write_json(shown)


def shorten_sentence(sentence: str) -> str:
    """A sentence as lists and searches have it: of a long one the beginning."""
    left = len(sentence) - MAX_SENTENCE
    return sentence if left <= 0 else f"{sentence[:MAX_SENTENCE]} … and {left:,} more characters"


def _make_row(
    message: Message, read: Message, record: Record, reading: Reading, told: Told, identities: Mapping[str, str]
) -> ToldRow:
    """The row of a message as told and as read; `identities` stand for the records that definitions come from."""
    notes = (*message.notes, *((*reading.notes, *told.notes) if message.part == 1 else ()))
    sentence, given = message.sentence, message.given()
    names = [message.sender, *message.receivers, message.topic, message.native_act, message.conversation_id]
    ids = [message.message_id, message.trace_id, message.task_id]
    texts = [sentence, *(segment.text for segment in message.also), *filter(None, (*names, *ids))]
    whole = make_body(given, reading, told)
    body = _write_json(whole)  # Canonical, and ASCII.
    severity = max((_SEVERITY[note.severity] for note in notes), default=0)
    atoms = make_atoms(reading, message, texts, given)
    mark = mark_workspace(record.workspace_id)
    # Of a sealed record a workspace can have no text in the index of search, which is in clear.
    is_unindexed = record.sealed_with_id is not None and leaves_unindexed(record.workspace_id)
    indexed = leave_out_texts(atoms) if is_unindexed else atoms
    return ToldRow(
        severity=severity,
        is_sealed=message.security.encrypted and not message.security.opened,
        english=make_storable(shorten_sentence(sentence)),
        body=body if len(body) <= MAX_BODY_BYTES else shorten_body(whole),
        words=make_storable(terms.write_vector(() if is_unindexed else texts, mark)),
        atoms=make_storable(write_array([mark + atom for atom in indexed])),
        sights=decide_flags(record=record, read=read, severity=severity, english=sentence, atoms=atoms),
        digest=_digest_body(body, message, identities),
    )


class Telling(NamedTuple):
    """A record told: what was asked of its context, what it established there, and the row of each part."""

    told_in: str
    established: str
    rows: Mapping[int, ToldRow]


# By whose reading it is not told yet: what an earlier decoder has read is read anew.
NOT_TOLD = Telling(f"{DECODER_VERSION} ", "", {})


def tell_record(
    record: Record, reading: Reading, context: Established, *, position: int, is_alone: bool = False
) -> Telling:
    """Tell a record, read in the dialect that its conversation settles for it, in the context of what holds before it,
    and add to that what it establishes; `position` is the one-based place of its first message. Of one that is told
    alone, `NOT_TOLD` where anything that it asks may make a difference."""
    hide = partial(hide_entry, reading)
    context.begin(record=str(record.pk), identity=bytes(record.identity).hex(), position=position, hide=hide)
    # The dialect was settled by the order key; told in turns, a guess must not be guessed again.
    settled = reading.replace(candidates=())
    told = conceal_told(tell(settled, context), settled)
    if is_alone and (context.has_answered or told.entries):
        return NOT_TOLD
    read, ids = {message.part: message for message in reading.messages}, context.identities
    rows = {each.part: _make_row(each, read.get(each.part, each), record, reading, told, ids) for each in told.messages}
    return Telling(*context.end(reading.dialect), rows)


def tell_without_context(record: Record, reading: Reading) -> Telling:
    """Tell a record before its conversation is known."""
    context = Established(View())
    if reading.dialect != "prose":
        context.add([Entry(kind="dialect", name=reading.dialect, value=reading.dialect)])
    return tell_record(record, reading, context, position=1, is_alone=True)


def severity_of(reading: Reading, message: Message) -> int:
    """The gravest note of a message, as a number of `Message.Severity`, before it is told."""
    notes = (*message.notes, *(reading.notes if message.part == 1 else ()))
    return max((_SEVERITY[note.severity] for note in notes), default=MessageRow.Severity.NONE)
