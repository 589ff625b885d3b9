"""The set of an export: which messages are in it, fixed by one statement.

**What is in the set** is decided at one instant, `fixed_at`: every message that was committed then, is shown (no
withdrawal hides it) and is meant by the query. What arrives later is not in it, however early its time. The statement
writes the names of the messages, in the order of the timeline, into blocks; from then on nothing is searched again, so
that no message can be written twice or be passed over, whatever is inserted meanwhile and however often a worker dies.
Of an audit sample the conversations follow one another in the order they were drawn, each in blocks of its own.

**What a message says** is what it says when its block is written, between `fixed_at` and `finished_at`: it may be told
otherwise in between. One whose delivery is withdrawn in between is left out, and counted as such; so is one that is not
there any more, because its record was settled in another dialect and read as other messages.

Entries are read as they stand when their block is written: records with their messages, in the order of the set.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Value
from psycopg import Cursor

from inspector.accounts.models import Workspace
from inspector.audit.findings.selectors import EVERYWHERE, list_findings, of_assignee, of_delivery
from inspector.audit.models import Finding
from inspector.audit.models.reviews import SampledConversation
from inspector.audit.rules.rule import SEVERITIES
from inspector.browsing.directory import KEYED
from inspector.browsing.transcripts import REUSING, add_cautions, find_conflicts
from inspector.keyring.encryption import SealError
from inspector.keyring.periods import open_value
from inspector.ledger.proofs import find_changed
from inspector.search.selectors import days_of, read_query
from inspector.search.sql import as_filter
from inspector.threads.keys import Places
from inspector.threads.models import Message
from inspector.threads.models.packed_text import unpack_text
from inspector.threads.selectors import filter_conversations
from inspector.threads.timeline import load_all_places

from .models import Block, Export

BLOCK_RECORDS: Final = 1000
# So many numbers of blocks belong to each conversation of a sample, counted by its place: more than it can have.
GROUP_BLOCKS: Final = 100_000
# Names nobody in a filter by the person that findings are assigned to.
NOBODY: Final = "nobody"
MAX_MESSAGES: Final = 10_000_000
# Longer than this nothing is looked for: a query that takes so long is to be narrowed down.
PATIENCE_MS: Final = 540_000
_ENTRY: Final = struct.Struct(">16si")

Entry = tuple[uuid.UUID, tuple[int, ...]]


def find_messages(export: Export, workspace: Workspace) -> QuerySet[Message]:
    """The messages that an export means, as of now.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    rows = Message.objects.filter(workspace=workspace).shown()
    if export.subject == Export.Subject.SAMPLE:
        drawn = SampledConversation.objects.filter(sample=export.sample_id)
        place = drawn.filter(conversation=OuterRef("conversation")).values("place")[:1]
        return rows.filter(conversation__in=drawn.values("conversation")).annotate(group=Subquery(place))
    rows = rows.annotate(group=Value(0))
    if export.subject == Export.Subject.FINDINGS:
        about = find_findings(export, workspace).filter(record=OuterRef("record"), part=OuterRef("part"))
        return rows.filter(Exists(about))
    if export.conversation_id is not None:
        return rows.filter(conversation_id=export.conversation_id)
    if export.subject == Export.Subject.CONVERSATIONS:
        found = filter_conversations(workspace=workspace, **export.filters)
        return rows.filter(conversation_id__in=found.values("pk"))
    with days_of(ZoneInfo(export.zone)):
        return rows.filter(as_filter(read_query(export.query), workspace, may_see_secrets=not export.is_masked))


def find_findings(export: Export, workspace: Workspace) -> QuerySet[Finding]:
    """The findings that an export means, as of now.

    Its `filters` may name `state` (as `select_findings` has it), `rule`, `severity`, `q` (words), `assignee` (the
    number of an account, or `NOBODY`), `channel` (its name), `delivery` and `conversation`.
    """
    named: dict[str, str] = export.filters
    within = Q(channel__name=named["channel"]) if "channel" in named else EVERYWHERE
    if "delivery" in named:
        within &= of_delivery(uuid.UUID(named["delivery"]))
    if "conversation" in named:
        within &= Q(conversation=named["conversation"])
    if "assignee" in named:
        within &= of_assignee(None if named["assignee"] == NOBODY else int(named["assignee"]))
    return list_findings(
        workspace=workspace,
        rule=named.get("rule", ""),
        state=named.get("state", ""),
        words=named.get("q", ""),
        severity=SEVERITIES.index(named.get("severity", "none")),
        within=within,
    )


def fix_set(export: Export, workspace: Workspace) -> tuple[int, datetime]:
    """Write the blocks of an export's set, in one statement; call inside the transaction that keeps its result.

    Returns:
        how many messages there are, and at which instant.
    """
    names = ("record_id", "part", "order_time", "order_source", "order_index", "group")
    chosen, values = find_messages(export, workspace).values(*names)[: MAX_MESSAGES + 1].query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, TRUE)", [str(PATIENCE_MS)])
        cursor.execute(
            f"""
            WITH chosen AS ({chosen}), placed AS (
              SELECT record_id, part, "group" * {GROUP_BLOCKS} AS first, dense_rank() OVER (
                       PARTITION BY "group" ORDER BY order_time, order_source, order_index, record_id
                     ) - 1 AS place
                FROM chosen
            ), written AS (
              INSERT INTO exports_block (export_id, number, entries)
              SELECT %s, first + place / %s,
                     string_agg(uuid_send(record_id) || int4send(part), ''::bytea ORDER BY place, part)
                FROM placed GROUP BY first + place / %s
              RETURNING octet_length(entries) AS size
            )
            SELECT sum(size), statement_timestamp() FROM written
            """,  # noqa: S608  # compiled by Django, its values apart
            [*values, export.pk, BLOCK_RECORDS, BLOCK_RECORDS],
        )
        size, at = cursor.fetchone()
        cursor.execute("SELECT set_config('statement_timeout', '0', TRUE)")
    return int(size or 0) // _ENTRY.size, at


def find_beginning(block: Block) -> int | None:
    """The place of the sampled conversation that begins with this block; None where none does."""
    place, number = divmod(block.number, GROUP_BLOCKS)
    return place if place and not number else None


def read_entries(entries: bytes) -> Iterator[Entry]:
    """The records of a block in order, each with its parts."""
    for record_id, parts in groupby(_ENTRY.iter_unpack(entries), key=itemgetter(0)):
        yield uuid.UUID(bytes=record_id), tuple(part for _, part in parts)


def count_parts(entries: Sequence[Entry]) -> int:
    """How many messages these records stand for."""
    return sum(len(parts) for _, parts in entries)


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
    def is_masked(self) -> bool:
        """Whether something stands for the text, or nothing does."""
        return self.masked is not None or self.is_withheld

    @property
    def shown(self) -> str | None:
        """The text as the file's reader may see it; None where they may not."""
        return None if self.is_withheld else self.text if self.masked is None else self.masked

    @property
    def sha256(self) -> str | None:
        """The SHA-256 of its exact bytes; None of bytes that are not those that were received."""
        return hashlib.sha256(self.source).hexdigest() if self.changed is None else None


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


def read_rows(entries: Sequence[Entry]) -> tuple[list[Row], int]:
    """The records of these entries with their messages, without those that are not there any more, or withdrawn by now;
    and how many of the messages are withdrawn.

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
    return rows, len(found) - len(shown)


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
