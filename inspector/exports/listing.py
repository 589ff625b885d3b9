"""The set of an export: which messages are in it, fixed by one statement.

**What is in the set** is decided at one instant, `fixed_at`: every message that was committed then, is shown (no
withdrawal hides it) and is meant by the query. What arrives later is not in it, however early its time. The statement
writes the names of the messages, in the order of the timeline, into blocks; from then on nothing is searched again, so
that no message can be written twice or be passed over, whatever is inserted meanwhile and however often a worker dies.
Of an audit sample the conversations follow one another in the order they were drawn, each in blocks of its own.

**What a message says** is what it says when its block is written, between `fixed_at` and `finished_at`: it may be told
otherwise in between. One whose delivery is withdrawn in between is left out, and counted as such; so is one that is
not there any more, because its record was settled in another dialect and read as other messages.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Final
from zoneinfo import ZoneInfo

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Value

from inspector.accounts.models import Workspace
from inspector.audit.findings.selectors import EVERYWHERE, list_findings, of_assignee, of_delivery
from inspector.audit.models import Finding
from inspector.audit.models.reviews import SampledConversation
from inspector.audit.rules.rule import SEVERITIES
from inspector.search.selectors import days_of, read_query
from inspector.search.sql import as_filter
from inspector.threads.models import Message
from inspector.threads.selectors import filter_conversations

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
