"""What is written of the entries of a block: records with their messages, as they stand now, in the set's order."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from django.db import connection
from psycopg import Cursor

from inspector.browsing.directory import KEYED
from inspector.browsing.transcripts import REUSING, add_cautions, find_conflicts
from inspector.keyring.encryption import SealError
from inspector.keyring.periods import open_value
from inspector.ledger.selectors import find_changed
from inspector.threads.keys import Places
from inspector.threads.models import Message
from inspector.threads.models.packed_text import unpack_text
from inspector.threads.timeline import load_all_places

from .listing import Entry

_STATEMENT: Final = """
SELECT wanted.place, record.id::text, record.source, record.wire, record.envelope, record.facts,
       record.channel_id::text, hidden.record_id IS NOT NULL, message.sights,
       message.id::text, message.part, message.conversation_id::text, message.place, message.parent::text,
       message.parent_basis, message.order_time, message.order_basis, message.dialect, message.carrier,
       message.severity, message.english, message.body, record.sealed_with_id
  FROM unnest(%s::uuid[], %s::int[]) WITH ORDINALITY AS wanted (record_id, part, place)
  JOIN threads_message AS message ON message.record_id = wanted.record_id AND message.part = wanted.part
  JOIN intake_record AS record ON record.id = wanted.record_id
  LEFT JOIN intake_hiddenrecord AS hidden ON hidden.record_id = wanted.record_id
 ORDER BY wanted.place
"""
# Where these stand in a row of it; the key that the record is sealed with comes last.
_SIGHTS, _ID, _CONVERSATION, _PLACE, _DIALECT = 8, 9, 11, 12, 17


@dataclass(frozen=True, slots=True)
class Part:
    """A message of a record. `position` is its place in the timeline of its conversation, from zero."""

    id: str
    part: int
    conversation: str
    position: int
    parent: str | None
    parent_basis: str
    at: datetime
    at_basis: str
    dialect: str
    carrier: str
    severity: int
    english: str
    body: str
    # That its id, number or turn was used before with other content, and its key is another, in sentences.
    reused: str

    @property
    def read_in(self) -> str:
        """The dialect that its record is read in."""
        return self.carrier or self.dialect

    @property
    def told(self) -> str:
        """Its English with its cautions."""
        has_doubts = self.severity >= Message.Severity.NOTICE
        told = add_cautions(self.english, self.body, self.part) if has_doubts else self.english
        return f"{told} {self.reused}" if self.reused else told


@dataclass(slots=True)
class Row:
    """A record with those of its messages that are in the set.

    `wire` is None where it is the source. `masked`, where the file is for somebody who may not see secrets, is what
    stands for the text; `is_withheld` where nothing may, because the record is too long to be looked through.
    `changed` is the index of its entry in the ledger, where it is not what was entered.
    """

    id: str
    source: bytes
    wire: bytes | None
    envelope: str
    facts: str
    channel: str
    parts: Sequence[Part]
    masked: str | None = None
    is_withheld: bool = False
    changed: int | None = None

    @property
    def text(self) -> str:
        """The text that was read, lone surrogates included."""
        return (self.source if self.wire is None else self.wire).decode("utf-8", "surrogatepass")

    @property
    def sha256(self) -> str | None:
        """The SHA-256 of its exact bytes; None of bytes that are not those that were received."""
        return hashlib.sha256(self.source).hexdigest() if self.changed is None else None


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of some entries, and how many of their messages are withdrawn by now."""

    rows: list[Row]
    withdrawn: int


def measure_records(record_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
    """The bytes that each of these records holds."""
    return dict(
        _fetch(
            "SELECT id, octet_length(source) + coalesce(octet_length(wire), 0) FROM intake_record WHERE id = ANY(%s)",
            [list(record_ids)],
        )
    )


def _fetch(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of a statement, its values and theirs in binary: as text each byte of a record would be two digits."""
    connection.ensure_connection()
    with connection.wrap_database_errors, Cursor(connection.connection) as cursor:
        return cursor.execute(statement, values, binary=True).fetchall()


def read_rows(entries: Sequence[Entry]) -> Found:
    """The records of these entries with their messages; without those that are not there any more, or withdrawn.

    Raises:
        SealError: for a record whose sealed bytes were changed.
    """
    record_ids = [record_id for record_id, parts in entries for _ in parts]
    numbers = [part for _, parts in entries for part in parts]
    found = _fetch(_STATEMENT, [record_ids, numbers])
    shown = [row for row in found if not row[7]]
    places = load_all_places({uuid.UUID(row[_CONVERSATION]) for row in shown})
    flagged = [row[_ID] for row in shown if row[_SIGHTS] & REUSING or row[_DIALECT] in KEYED]
    reused = find_conflicts(Message.objects.filter(pk__in=flagged).defer("body", "words", "atoms")) if flagged else {}
    rows = list(_join(shown, places, reused))
    changed = find_changed("record", [uuid.UUID(row.id) for row in rows])
    for row in rows:
        row.changed = changed.get(uuid.UUID(row.id))
    return Found(rows, len(found) - len(shown))


def _join(
    found: Sequence[tuple[Any, ...]], places: Mapping[uuid.UUID, Places], reused: Mapping[uuid.UUID, str]
) -> Iterator[Row]:
    for record_id, these in groupby(found, key=itemgetter(1)):
        messages = list(these)
        _, _, source, wire, envelope, facts, channel, *_, key = messages[0]
        try:
            source = open_value(key, source, "record source", uuid.UUID(record_id))
            wire = None if wire is None else open_value(key, wire, "record wire", uuid.UUID(record_id))
        except SealError as error:
            if error.is_destroyed:
                continue  # It is being erased.
            raise
        parts = [Part(*_list_values(each, places, reused)) for each in messages]
        yield Row(record_id, source, wire, envelope, facts, channel, parts)


def _list_values(
    message: Sequence[Any], places: Mapping[uuid.UUID, Places], reused: Mapping[uuid.UUID, str]
) -> Sequence[Any]:
    """The values of a part, of a row of its message: its position in the stead of its place."""
    known = places.get(uuid.UUID(message[_CONVERSATION]))
    position = known.find_position(message[_PLACE]) if known else -1
    said = reused.get(uuid.UUID(message[_ID]), "")
    return [*message[_ID:_PLACE], position, *message[_PLACE + 1 : -2], unpack_text(message[-2]), said]
