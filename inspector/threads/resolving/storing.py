"""Storing blocks: their rows, facts and reads, written where they came out otherwise; and marking who read what did."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from django.db import connection
from django.db.models import Max

from inspector.intake.bulk import copy_rows
from inspector.lookups import IsAny

from ..models.blocks import BROKEN_OFF, Block, Fact, Read
from ..tasks.states import make_task_id
from .passes import Pass
from .view import digest_everywhere, digest_key, name_form


def write_only_blocks(passes: Sequence[Pass]) -> None:
    """Note that conversations are resolved of which these are the only blocks, whatever they were before."""
    ids = [each.conversation.pk for each in passes]
    cut = list(Block.objects.filter(conversation__in=ids, is_linked=True).values_list("conversation_id", flat=True))
    if cut:
        for model in (Block, Fact, Read):
            model._default_manager.filter(conversation__in=cut).delete()
    for each in passes:
        each.block.count, each.block.generation = len(each.nodes), each.conversation.generation
        each.block.form = name_form()
    _store([each.block for each in passes])


def _store(blocks: Sequence[Block]) -> None:
    Block.objects.bulk_create(
        blocks,
        update_conflicts=True,
        unique_fields=["conversation", "border", "workspace"],
        update_fields=[
            *("is_forced", "count", "generation", "form", "is_stale", "changed_generation", "is_linked", "summary")
        ],
    )


# What is stored of facts or reads, by border and key.
_Rows = dict[tuple[bytes, bytes], tuple[Any, ...]]


@dataclass(slots=True)
class Changed:
    """Which keys have changed, by the border of the block that gave them: for those behind it, and for all others.
    `names` are ids of new messages: a block that was resolved since they arrived has seen them. `tasks` are the ids of
    those that a block that is gone said something of."""

    behind: list[tuple[bytes, bytes]] = field(default_factory=list)
    everywhere: list[tuple[bytes, bytes]] = field(default_factory=list)
    names: list[tuple[bytes, bytes]] = field(default_factory=list)
    tasks: set[uuid.UUID] = field(default_factory=set)


def write_facts(passed: Pass) -> Changed:
    """Put the facts and reads of a block in the place of those that it, and the blocks that it stands for, had."""
    changed, view, border = Changed(), passed.view, passed.block.start
    facts: _Rows = {}
    everywhere = set()
    for key, value, extra, is_everywhere in view.list_given():
        facts[border, key] = value, extra
        if is_everywhere:
            everywhere.add(key)
    held = _replace_rows(Fact, ("value", "extra"), passed, facts)
    for (_, key), (value, _) in facts.items():
        if (border, key) not in held or held[border, key][0] != value:
            changed.behind.append((key, border))
            if key in everywhere:
                changed.everywhere.append((digest_everywhere(key), border))
    for at, key in held.keys() - facts.keys():
        value, extra = held[at, key]
        if extra is not None:
            # Only tasks keep something beside how they stand.
            changed.tasks.add(make_task_id(passed.conversation.pk, bytes.fromhex(json.loads(value)[0])))
        changed.behind.append((key, at))
        changed.everywhere.append((digest_everywhere(key), at))
    _replace_rows(Read, ("reached",), passed, {(border, key): (reached,) for key, reached in view.reads.items()})
    _note_nodes(passed, changed)
    if passed.recut.is_moved:
        changed.behind.append((digest_key(("count",)), border))
    return changed


def _note_nodes(passed: Pass, changed: Changed) -> None:
    """What others read of the messages of a block themselves: what they answer, their tasks, the ids that they bear."""
    border, is_broken_off = passed.block.start, passed.is_broken_off
    for node in passed.nodes:
        if node.is_new or is_broken_off:
            for name in {*node.correlation, *((node.key,) if node.key else ())}:
                changed.names.append((digest_everywhere(digest_key(("id", name.hex()))), border))
        if (node.was_task != node.task_id and not node.is_new) or is_broken_off:
            changed.behind.append((digest_key(("above", node.id.hex)), border))
        if (node.was_parent != node.parent and not node.is_new) or is_broken_off:
            changed.behind.append((digest_key(("parent", node.id.hex)), border))


def _replace_rows(model: type[Fact] | type[Read], columns: Sequence[str], passed: Pass, rows: _Rows) -> _Rows:
    """Put these rows in the place of those of a block and of those that it stands for; what was stored before."""
    pk, held, ids = passed.conversation.pk, _Rows(), dict[tuple[bytes, bytes], int]()
    stored = model._default_manager.filter(conversation=pk, border__in=[passed.block.start, *passed.recut.gone])
    for row_id, border, key, *said in stored.values_list("pk", "border", "key", *columns):
        at = bytes(border), bytes(key)
        ids[at], held[at] = row_id, tuple(None if each is None else bytes(each) for each in said)
    if stale := [ids[at] for at, before in held.items() if rows.get(at) != before]:
        model._default_manager.filter(IsAny("id", stale)).delete()
    owner = passed.conversation.pk, passed.conversation.workspace_id
    new = [(*owner, key, border, *said) for (border, key), said in rows.items() if held.get((border, key)) != said]
    copy_rows(model=model, columns=("conversation_id", "workspace_id", "key", "border", *columns), rows=new)
    return held


def write_block(passed: Pass, *, is_quiet: bool) -> None:
    """Put the row of a block, and of those that are cut beside it, in the place of those that were there. Unless it is
    quiet somebody has marked the conversation meanwhile, and perhaps one of these: they stay marked."""
    conversation, block, recut = passed.conversation, passed.block, passed.recut
    held = Block.objects.filter(conversation=conversation, border__in=[block.start, *recut.gone])
    changed = 0 if is_quiet else held.aggregate(latest=Max("changed_generation"))["latest"] or 0
    if recut.gone:
        held.exclude(border=block.start).delete()
    block.generation, block.form, block.is_stale = conversation.generation, name_form(), False
    block.summary = msgspec.json.encode(passed.summary).decode()
    for each in recut.beside:
        each.form, each.is_stale = name_form(), True
    for each in (block, *recut.beside):
        each.pk, each.is_linked, each.changed_generation = None, True, changed
    _store([block, *recut.beside])


def break_off(passes: Iterable[Pass]) -> None:
    """Note that messages of blocks are written, and not yet what these give: who goes on takes all for changed."""
    for each in passes:
        borders = [each.block.start, *each.recut.gone]
        Block.objects.filter(conversation=each.conversation, border__in=borders).update(generation=BROKEN_OFF)


def mark_blocks(slots: Mapping[uuid.UUID, Iterable[bytes]], names: Iterable[tuple[uuid.UUID, bytes]] = ()) -> None:
    """Mark blocks as dirty: those that messages stand in, by conversation and `slots`, and those that have looked for
    `names`: keys of ids that are no longer borne, or are borne again. Call it inside the transaction that holds their
    conversations and counts them up."""
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


def mark_readers(passed: Pass, changed: Changed, *, is_quiet: bool) -> set[bytes]:
    """Mark the blocks that have read what has changed by a pass over one; their borders. It `is_quiet` where nothing
    has arrived since the blocks of the present generation were gone through."""
    found: set[bytes] = set()
    not_itself = "read.border <> asked.border"
    unseen = " AND block.generation < %(generation)s" if is_quiet else ""
    with connection.cursor() as cursor:
        for rows, where in (
            (changed.behind, "read.border > asked.border AND read.reached <= asked.border"),
            (changed.everywhere, not_itself),
            (changed.names, not_itself + unseen),
        ):
            if rows:
                cursor.execute(
                    _MARK_READERS.format(where=where),
                    {
                        "conversation": passed.conversation.pk,
                        "generation": passed.conversation.generation,
                        "keys": [key for key, _ in rows],
                        "borders": [border for _, border in rows],
                    },
                )
                found |= {bytes(border) for (border,) in cursor.fetchall()}
    return found


_MARK_READERS: Final = """
UPDATE threads_block SET is_stale = true WHERE id IN (
    SELECT block.id FROM unnest(%(keys)s::bytea[], %(borders)s::bytea[]) AS asked (key, border)
      JOIN threads_read AS read ON read.conversation_id = %(conversation)s AND read.key = asked.key
      JOIN threads_block AS block ON block.conversation_id = %(conversation)s AND block.border = read.border
     WHERE {where}
) RETURNING border
"""
