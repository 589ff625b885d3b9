"""A pass over one block: its messages linked, assigned to their tasks, and once they are told, summed up; and its rows,
facts and reads, written where they came out otherwise, with a mark for each block that read what did.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from django.db import connection
from django.db.models import Max

from inspector.database import IsAny, copy_rows

from ..agents import Exchanges, gather_exchanges, write_counted
from ..dependencies import View, digest_everywhere, digest_key, name_form
from ..inserting import Fence
from ..keys import make_place
from ..models.blocks import BROKEN_OFF, Block, Fact, Read
from ..nodes import Citation, Elsewhere, StoredNode
from ..states import make_task_id
from ..summaries import Moment, Summary, sum_up
from ..tasks import Tasks
from ..teller import Established
from .assigning import Assigner
from .linking import Linker, load_bearers, order_nodes
from .writing import Changes, History, Retelling


@dataclass(slots=True)
class Recut:
    """What a block changes of how its conversation is cut: `gone` are the borders of blocks that are none any more,
    `beside` other blocks that are cut anew and yet to be gone through. `is_moved`: other messages may stand before
    those behind it."""

    gone: list[bytes] = field(default_factory=list)
    beside: list[Block] = field(default_factory=list)
    is_moved: bool = False


class Pass:
    """A block that is gone through; what it adds up to is known once its messages are told. `changes` takes the rows
    that come out otherwise."""

    # What is known once it has been linked, and once it has been told.
    tasks: Tasks
    summary: Summary
    exchanges: Exchanges

    def __init__(
        self, history: History, block: Block, nodes: Sequence[StoredNode], view: View, changes: Changes
    ) -> None:
        self.history = history
        self.conversation = history.conversation
        self.block = block
        self.nodes = nodes
        self.view = view
        self.changes = changes
        self.recut = Recut()
        self.count_before = 0
        # Whether it was left in the middle of being written: then what its messages were is not known any more.
        self.is_broken_off = block.generation == BROKEN_OFF
        self._outside: Sequence[StoredNode] = ()

    def look_around(self) -> None:
        """Load who bears the ids that its messages cite, in other blocks of the conversation."""
        for slug in {slug for node in self.nodes if node.guess is not None for slug in node.guess.scores}:
            # In which dialect they are read was decided by this.
            self.view.get(("spoken", slug))
        self._outside = load_bearers(self.conversation, self.nodes)

    def list_citations(self) -> set[Citation]:
        """What its messages cite that nobody in their conversation bears."""
        return list_citations(self.nodes, {node.key for node in [*self.nodes, *self._outside] if node.key})

    def link(self, elsewhere: Mapping[Citation, Elsewhere]) -> None:
        """Link and assign its messages; `elsewhere` is who bears what they cite in other conversations."""
        conversation, view = self.conversation, self.view
        self.nodes = nodes = order_nodes(self.nodes, view)
        for position, node in enumerate(nodes):
            node.position = position
            node.place = make_place(self.block.start, position)
        Linker(conversation, nodes, view, self._outside, elsewhere).link()
        self.tasks = Tasks(conversation.pk, view)
        Assigner(conversation, nodes, view, self.tasks).assign()

    def tell(self, fence: Fence) -> Iterator[None]:
        """Tell those of its messages that do not stand as they are told, one by one, and sum all up. `fence` is called
        between loads, as a sign of life."""
        retelling = Retelling(self.nodes, Established(self.view, self.count_before), fence)
        for node, row in retelling.go_through():
            self.changes.take(self.history, node, row)
            yield
        view, nodes = self.view, self.nodes
        if not view.is_only:
            self.tasks.note()
            retelling.context.note()
            for dialect in dict.fromkeys(node.read_in for node in nodes if node.read_in != "prose"):
                if not view.get(("spoken", dialect)):
                    view.put(("spoken", dialect), True)
        self.summary = sum_up(nodes, _find_moment(nodes, view))
        self.exchanges = gather_exchanges(self.conversation, nodes)
        if not view.is_only:
            self.summary.exchanges = write_counted(self.exchanges)


def list_citations(nodes: Sequence[StoredNode], borne: set[bytes]) -> set[Citation]:
    """What these messages cite that nobody in their conversation bears, as `borne` says."""
    return {
        Citation(way.key, node.trace)
        for node in nodes
        for way in node.ways
        if way.whom in ("message-id", "request-elsewhere") and way.key is not None and way.key not in borne
    }


def _find_moment(nodes: Sequence[StoredNode], view: View) -> Moment | None:
    """The latest time before a block, where one of its messages has it too; and what the block says of its own."""
    if view.is_only or not nodes:
        return None
    held = view.get(("moment",))
    before = Moment(*held) if held is not None else None
    instants = [node.instant for node in nodes]
    latest = max(instants)
    count = instants.count(latest)
    if before is not None and before.instant == latest:
        count += before.messages
    view.put(("moment",), [latest, count])
    return before if before is not None and before.instant in instants else None


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
