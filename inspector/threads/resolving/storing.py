"""Storing blocks: their rows, facts and reads, written where they came out otherwise; and marking who read what did."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection
from django.db.models import Max

from inspector.intake.bulk import copy_rows

from ..models import Conversation
from ..models.blocks import FIRST, Block, Fact, Read
from ..tasks.states import make_task_id
from .blocks import Segment
from .passes import Pass
from .summaries import Summary, write_summary
from .view import digest_everywhere, digest_key, name_form


def write_only_blocks(conversations: Sequence[tuple[Conversation, int]]) -> None:
    """Note that these conversations are resolved, each as one block of so many messages, whatever they were before."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH cut AS (
                SELECT DISTINCT conversation_id FROM threads_block WHERE conversation_id = ANY(%(ids)s) AND is_linked
            ), blocks AS (
                DELETE FROM threads_block AS held USING cut
                 WHERE held.conversation_id = cut.conversation_id AND held.border <> %(first)s
            ), facts AS (
                DELETE FROM threads_fact AS held USING cut WHERE held.conversation_id = cut.conversation_id
            ), reads AS (
                DELETE FROM threads_read AS held USING cut WHERE held.conversation_id = cut.conversation_id
            )
            INSERT INTO threads_block AS held (conversation_id, workspace_id, border, is_forced, count, generation,
                                               form, is_stale, is_linked, summary)
            SELECT fresh.conversation_id, fresh.workspace_id, %(first)s, false, fresh.count, fresh.generation, %(form)s,
                   false, false, ''
              FROM unnest(%(ids)s::uuid[], %(workspaces)s::uuid[], %(counts)s::int[], %(generations)s::bigint[])
                   AS fresh (conversation_id, workspace_id, count, generation)
            ON CONFLICT (conversation_id, border) DO UPDATE
               SET count = excluded.count, generation = excluded.generation, form = excluded.form, is_stale = false,
                   is_linked = false, summary = ''
            """,
            {
                "first": FIRST,
                "form": name_form(),
                "ids": [each.pk for each, _ in conversations],
                "workspaces": [each.workspace_id for each, _ in conversations],
                "counts": [count for _, count in conversations],
                "generations": [each.generation for each, _ in conversations],
            },
        )


@dataclass(slots=True)
class Changed:
    """Which keys have changed, by the border of the block that gave them: for those behind it, and for all others.

    `names` are ids that messages bear which were not there before: a block that was resolved since they arrived has
    seen them.
    """

    behind: list[tuple[bytes, bytes]] = field(default_factory=list)
    everywhere: list[tuple[bytes, bytes]] = field(default_factory=list)
    names: list[tuple[bytes, bytes]] = field(default_factory=list)
    tasks: set[uuid.UUID] = field(default_factory=set)


def write_facts(conversation: Conversation, old: Sequence[bytes], passes: Sequence[Pass]) -> Changed:
    """Put the facts and reads of blocks in the place of what was there; what has changed by it.

    Args:
        conversation: theirs.
        old: the borders of the blocks that these stand for.
        passes: the blocks.
    """
    changed = Changed()
    held = _read_facts(conversation, old)
    facts: list[tuple[Any, ...]] = []
    stale: list[tuple[bytes, bytes]] = []
    for each in passes:
        border = each.segment.border
        for given in each.view.list_given():
            value, extra = given.value.encode(), None if given.extra is None else given.extra.encode()
            stored = held.pop((border, given.key), None)
            if stored is None or stored[0] != value:
                changed.behind.append((given.key, border))
                if given.is_everywhere:
                    changed.everywhere.append((digest_everywhere(given.key), border))
            if stored != (value, extra):
                if stored is not None:
                    stale.append((border, given.key))
                facts.append((conversation.pk, given.key, border, value, extra))
        _note_nodes(each, changed)
    for (border, key), (value, extra) in held.items():
        if extra is not None:
            # Only tasks keep something beside how they stand.
            changed.tasks.add(make_task_id(conversation.pk, bytes.fromhex(json.loads(value)[0])))
        stale.append((border, key))
        changed.behind.append((key, border))
        changed.everywhere.append((digest_everywhere(key), border))
    _delete(_DELETE_FACTS, conversation, stale)
    copy_rows(model=Fact, columns=("conversation_id", "key", "border", "value", "extra"), rows=facts)
    _write_reads(conversation, old, passes)
    return changed


def _note_nodes(each: Pass, changed: Changed) -> None:
    """What others read of the messages of a block themselves: what they answer, their tasks, the ids that they bear."""
    border = each.segment.border
    for node in each.nodes:
        if node.is_new:
            for name in {*node.correlation, *((node.key,) if node.key else ())}:
                changed.names.append((digest_everywhere(digest_key(("id", name.hex()))), border))
            continue
        if node.was_task != node.task_id:
            changed.behind.append((digest_key(("above", node.id.hex)), border))
        if node.was_parent != node.parent:
            changed.behind.append((digest_key(("parent", node.id.hex)), border))


def _read_facts(conversation: Conversation, borders: Sequence[bytes]) -> dict[tuple[bytes, bytes], Any]:
    if not borders:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT border, key, value, extra FROM threads_fact WHERE conversation_id = %s AND border = ANY(%s)",
            [conversation.pk, list(borders)],
        )
        return {
            (bytes(border), bytes(key)): (bytes(value), None if extra is None else bytes(extra))
            for border, key, value, extra in cursor.fetchall()
        }


def _write_reads(conversation: Conversation, old: Sequence[bytes], passes: Sequence[Pass]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT border, key, reached FROM threads_read WHERE conversation_id = %s AND border = ANY(%s)",
            [conversation.pk, list(old)],
        )
        held = {(bytes(border), bytes(key)): bytes(reached) for border, key, reached in cursor.fetchall()}
    rows: list[tuple[Any, ...]] = []
    stale: list[tuple[bytes, bytes]] = []
    for each in passes:
        border = each.segment.border
        for key, reached in each.view.reads.items():
            stored = held.pop((border, key), None)
            if stored != reached:
                if stored is not None:
                    stale.append((border, key))
                rows.append((conversation.pk, key, border, reached))
    _delete(_DELETE_READS, conversation, [*stale, *held])
    copy_rows(model=Read, columns=("conversation_id", "key", "border", "reached"), rows=rows)


_DELETE_FACTS: Final = """
DELETE FROM threads_fact AS held USING unnest(%s::bytea[], %s::bytea[]) AS stale (border, key)
 WHERE held.conversation_id = %s AND held.key = stale.key AND held.border = stale.border
"""
_DELETE_READS: Final = """
DELETE FROM threads_read AS held USING unnest(%s::bytea[], %s::bytea[]) AS stale (border, key)
 WHERE held.conversation_id = %s AND held.key = stale.key AND held.border = stale.border
"""


def _delete(statement: str, conversation: Conversation, rows: Sequence[tuple[bytes, bytes]]) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(statement, [[border for border, _ in rows], [key for _, key in rows], conversation.pk])


def write_blocks(
    conversation: Conversation, old: Sequence[bytes], rows: Sequence[tuple[Segment, Summary]], *, is_quiet: bool
) -> list[Block]:
    """Put the rows of blocks in the place of those that were there.

    Unless it is quiet somebody has marked the conversation meanwhile, and perhaps one of these: they stay marked.
    """
    held = Block.objects.filter(conversation=conversation, border__in=list(old))
    changed = 0 if is_quiet else held.aggregate(latest=Max("changed_generation"))["latest"] or 0
    borders = {segment.border for segment, _ in rows}
    gone = [border for border in old if border not in borders]
    if gone:
        Block.objects.filter(conversation=conversation, border__in=gone).delete()
    blocks = []
    for segment, summary in rows:
        block = Block(
            conversation=conversation,
            workspace_id=conversation.workspace_id,
            border=segment.border,
            is_forced=segment.is_forced,
            count=summary.count,
            generation=conversation.generation,
            form=name_form(),
            changed_generation=changed,
            is_linked=True,
            summary=write_summary(summary),
        )
        if segment.key is not None:
            block.order_time, block.order_source, block.order_index = segment.key
        blocks.append(block)
    Block.objects.bulk_create(
        blocks,
        update_conflicts=True,
        unique_fields=["conversation", "border"],
        update_fields=[
            *("is_forced", "count", "generation", "form", "is_stale", "changed_generation", "is_linked", "summary")
        ],
    )
    return blocks


def mark_blocks(slots: Mapping[uuid.UUID, Iterable[bytes]], names: Iterable[tuple[uuid.UUID, bytes]] = ()) -> None:
    """Mark blocks as dirty: those that messages stand in, and those that have looked for an id that a message bears.

    Call it inside the transaction that holds their conversations and counts them up.

    Args:
        slots: of the messages, by conversation, as far as the borders of blocks are long: see `places`.
        names: conversations, and the keys of ids that are no longer borne in them, or are borne again.
    """
    pairs = [(pk, slot) for pk, each in slots.items() for slot in each]
    read = [(pk, digest_everywhere(digest_key(("id", key.hex())))) for pk, key in names]
    with connection.cursor() as cursor:
        for found, statement in ((pairs, _MARK_SLOTS), (read, _MARK_NAMES)):
            if found:
                cursor.execute(statement, [[pk for pk, _ in found], [each for _, each in found]])


_MARK_SLOTS: Final = """
UPDATE threads_block AS block SET changed_generation = conversation.generation
  FROM unnest(%s::uuid[], %s::bytea[]) AS mark (conversation_id, slot)
  JOIN threads_conversation AS conversation ON conversation.id = mark.conversation_id CROSS JOIN LATERAL (
    SELECT id FROM threads_block AS held WHERE held.conversation_id = mark.conversation_id AND held.border <= mark.slot
     ORDER BY held.border DESC LIMIT 1) AS held
 WHERE block.id = held.id
"""
_MARK_NAMES: Final = """
UPDATE threads_block AS block SET changed_generation = conversation.generation
  FROM unnest(%s::uuid[], %s::bytea[]) AS mark (conversation_id, key)
  JOIN threads_conversation AS conversation ON conversation.id = mark.conversation_id
  JOIN threads_read AS read ON read.conversation_id = mark.conversation_id AND read.key = mark.key
 WHERE block.conversation_id = read.conversation_id AND block.border = read.border
"""


def mark_readers(
    conversation: Conversation, changed: Changed, passed: Iterable[bytes], *, has_behind: bool, is_quiet: bool
) -> set[bytes]:
    """Mark the blocks that have read what has changed; their borders.

    Args:
        conversation: theirs.
        changed: that.
        passed: the borders of the blocks that were gone through together, in order: those behind have seen it.
        has_behind: whether any block comes after those.
        is_quiet: whether nothing has arrived since the blocks of the present generation were gone through.
    """
    found: set[bytes] = set()
    others = '"block"."border" <> ALL(%(passed)s::bytea[])'
    not_itself = '"read"."border" <> "asked"."border"'
    ways: list[tuple[list[tuple[bytes, bytes]], str]] = []
    if has_behind:
        reached = '"read"."border" > "asked"."border" AND "read"."reached" <= "asked"."border"'
        ways.append((changed.behind, f"{reached} AND {others}"))
    ways.append((changed.everywhere, f'{not_itself} AND ("read"."border" < "asked"."border" OR {others})'))
    unseen = ' AND "block"."generation" < %(generation)s' if is_quiet else ""
    ways.append((changed.names, f"{not_itself} AND {others}{unseen}"))
    with connection.cursor() as cursor:
        for rows, where in ways:
            if rows:
                cursor.execute(
                    _MARK.format(where=where),
                    {
                        "conversation": conversation.pk,
                        "passed": list(passed),
                        "generation": conversation.generation,
                        "keys": [key for key, _ in rows],
                        "borders": [border for _, border in rows],
                    },
                )
                found |= {bytes(border) for (border,) in cursor.fetchall()}
    return found


_MARK: Final = """
UPDATE "threads_block" SET "is_stale" = true WHERE "id" IN (
    SELECT "block"."id" FROM unnest(%(keys)s::bytea[], %(borders)s::bytea[]) AS "asked" ("key", "border")
      JOIN "threads_read" "read" ON "read"."conversation_id" = %(conversation)s AND "read"."key" = "asked"."key"
      JOIN "threads_block" "block" ON "block"."conversation_id" = %(conversation)s
       AND "block"."border" = "read"."border"
     WHERE {where}
) RETURNING "border"
"""
