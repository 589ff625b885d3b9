"""Resolving: each message of a conversation linked, assigned to its task and told; one loop, block by block.

A timeline is cut into blocks by its records alone. The first dirty block is gone through with a view of what holds
where it begins (`dependencies`): who is answered (`linking`), which task each message belongs to (`assigning`), in
which words it is told (`teller`). Rows that came out otherwise are written, and what the block adds up to
(`summaries`). Whoever read a fact that has changed is dirty now; until none is. A block is a function of its messages
and of what it reads, and is written in one transaction: a worker killed at any point leaves blocks that are resolved
and blocks that are dirty. Those of one block keep no facts.
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Final
from zlib import crc32

from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import Func, IntegerField, OuterRef

from inspector.intake import jobs
from inspector.intake.models import Record

from ..agents import add_rows, prune_declarations, write_declarations, write_exchanges
from ..dependencies import DECODER_VERSION, View, digest_key, name_form
from ..inserting import (
    Fence,
    ask_to_examine,
    ask_to_open,
    find_citing,
    find_keys,
    hold_alone,
    hold_channels,
    hold_conversations,
    mark_conversations,
    read_record,
    replace_parts,
)
from ..keys import KEY_BYTES, Guess, slot_of
from ..models import Conversation, Message, Task
from ..models.blocks import FIRST, Block, Fact
from ..nodes import Citation, Elsewhere, StoredNode, find_bearers, load_chunk, load_timelines
from ..selectors import count_hidden_by_conversation
from ..summaries import add_up, read_summary, write_rows
from ..tasks import make_row, write_tasks, write_touched
from .passes import Pass, Recut, break_off, mark_blocks, mark_readers, write_block, write_facts, write_only_blocks
from .writing import Changes, History, find_homes, write_changes

# Of so many messages one begins a block, on average; no block is longer than that, and no shorter conversation is cut.
SPACING: Final = 256
MAX_MESSAGES: Final = 1024
# So many messages are loaded at once, a block more or less.
CHUNK: Final = 2048


def find_misread(
    nodes: Iterable[StoredNode], spoken: dict[str, None]
) -> Iterator[tuple[uuid.UUID, str | None, Guess | None]]:
    """The records of these nodes of a conversation, in order key, that must be read again: (id, dialect, guess). One
    whose dialect was a guess takes the likeliest that has been spoken before it; the last two are None where a decoder
    has changed. The dialects that these nodes speak are added to `spoken`."""
    for record, same in groupby(nodes, key=lambda node: node.record):
        run = list(same)
        first = run[0]
        chosen = first.read_in
        if first.guess is not None:
            chosen, scores = first.guess.dialect, first.guess.scores
            likely = [slug for slug in spoken if slug in scores]
            if likely and chosen not in likely:
                chosen = max(likely, key=lambda slug: scores[slug])
        if not all(node.size_bytes and node.told_in.startswith(f"{DECODER_VERSION} ") for node in run):
            yield record, None, None
        elif any(node.read_in != chosen for node in run):
            yield record, chosen, first.guess
        if chosen != "prose":
            spoken[chosen] = None


def is_one_block(count: int) -> bool:
    """Whether a conversation of so many messages is not cut."""
    return count <= MAX_MESSAGES


def begins_block(node: StoredNode) -> bool:
    """Whether a message begins a block, whatever comes before it."""
    return crc32(node.identity) % SPACING == 0


class Timeline:
    """The blocks of one conversation that is being resolved, in order, and which of them are dirty; `nodes` are all of
    its messages, where they are one block."""

    def __init__(self, history: History, nodes: list[StoredNode] | None = None) -> None:
        self.history = history
        self.conversation = conversation = history.conversation
        self.is_only = nodes is not None
        first = Block(conversation=conversation, workspace_id=conversation.workspace_id, border=FIRST)
        self.blocks = [first]
        self.dirty = {FIRST}
        # Whether more may have changed than that messages came: then what is nobody's any more is looked for.
        self.is_whole = True
        # Blocks that are cut and loaded, and what that has changed.
        self._loaded = [] if nodes is None else [(first, nodes)]
        self._recut = Recut()
        if nodes is None:
            self._read_blocks()

    def _read_blocks(self) -> None:
        conversation, form = self.conversation, name_form()
        stored = list(Block.objects.filter(conversation=conversation).order_by("border"))
        if not stored or stored[0].start != FIRST:
            # What another version of the program has stored says where messages stand, and no more.
            self._recut.gone = [block.start for block in stored]
            return
        self.blocks, self.dirty = stored, set()
        latest = conversation.whole_generation
        self.is_whole = latest > conversation.settled_generation or not all(block.is_linked for block in stored)
        for block in stored:
            is_current = block.generation >= max(block.changed_generation, latest) and block.form == form
            if block.is_stale or not block.is_linked or not is_current:
                self.dirty.add(block.start)
        borders = [block.start for block in stored]
        rows = Message.objects.shown().filter(conversation=conversation, place__isnull=True)
        for at, source, index in rows.values_list("order_time", "order_source", "order_index").iterator():
            self.dirty.add(borders[max(0, bisect_right(borders, slot_of(at, bytes(source), index)) - 1)])

    def begin_next(self, changes: Changes, fence: Fence) -> Pass:
        """Begin to go through the first dirty block, as it is cut now."""
        if not self._loaded:
            self._load(fence)
        block, nodes = self._loaded.pop(0)
        self.dirty.discard(block.start)
        if self.is_only:
            return Pass(self.history, block, nodes, View(), changes)
        passed = Pass(self.history, block, nodes, View(self.conversation.pk, block.start), changes)
        passed.recut, self._recut = self._recut, Recut()
        passed.count_before = sum(each.count for each in self.blocks[: self.blocks.index(block)])
        passed.look_around()
        return passed

    def _load(self, fence: Fence) -> None:
        """Load and cut the first dirty blocks that stand together."""
        blocks = self.blocks
        at = next(at for at, block in enumerate(blocks) if block.start in self.dirty)
        while True:
            until = at + 1
            while until < len(blocks) and (blocks[until].is_forced or blocks[until].start in self.dirty):
                until += 1
            first, end = blocks[at], blocks[until].key if until < len(blocks) else None
            nodes, is_all = load_chunk(self.conversation.pk, first.key, end, limit=CHUNK)
            if at and not _begins(first, nodes):
                # Its first message is gone: what is left goes on with the block before.
                at -= 1
            elif not read_misread(self.history, nodes, View(self.conversation.pk, first.start), fence):
                break
        cut = list(_cut(nodes, first))
        # What follows what was loaded may go on with the last of these; where that is the only one, it is full.
        self._loaded = cut if is_all or len(cut) == 1 else cut[:-1]
        if not is_all:
            until = bisect_right(blocks, nodes[-1].slot, key=lambda block: block.start)
        old, new = blocks[at:until], [block for block, _ in cut]
        if [(each.start, each.is_forced) for each in old] == [(each.start, each.is_forced) for each in new]:
            self._loaded = [(block, nodes) for block, (_, nodes) in zip(old, self._loaded, strict=False)]
            self._recut.is_moved = any(block.count != len(nodes) for block, nodes in self._loaded)
        else:
            blocks[at:until] = new
            for each in new:
                each.generation = min(block.generation for block in old)
            borders = {each.start for each in new}
            self._recut.gone += [each.start for each in old if each.start not in borders]
            self._recut.beside, self._recut.is_moved = new[1:], True
        for block, held in self._loaded:
            block.count = len(held)
        self.dirty -= {each.start for each in old}
        self.dirty |= {each.start for each in new}


def _begins(block: Block, nodes: Sequence[StoredNode]) -> bool:
    """Whether a block still begins with the first of these messages."""
    is_there = bool(nodes) and nodes[0].slot[:KEY_BYTES] == block.start
    return is_there and (block.is_forced or begins_block(nodes[0]))


def _cut(nodes: Sequence[StoredNode], first: Block) -> Iterator[tuple[Block, list[StoredNode]]]:
    """These messages, which begin with a block, as blocks; the parts of a record stay together."""
    whose = {"conversation_id": first.conversation_id, "workspace_id": first.workspace_id}
    order = first.key or (None, None, None)
    block, held = Block(**whose, border=first.start, is_forced=first.is_forced), list[StoredNode]()
    block.order_time, block.order_source, block.order_index = order
    for order, same in groupby(nodes, key=lambda node: node.order):
        run = list(same)
        is_natural = begins_block(run[0])
        if held and (is_natural or len(held) + len(run) > MAX_MESSAGES):
            yield block, held
            block, held = Block(**whose, border=run[0].slot[:KEY_BYTES], is_forced=not is_natural), []
            block.order_time, block.order_source, block.order_index = order
        held += run
    yield block, held


def _read_again(history: History, record_id: uuid.UUID, dialect: str | None, guess: Guess | None, fence: Fence) -> None:
    """Put the messages of a record that is read otherwise in the place of its earlier ones, and mark who cites them."""
    conversation = history.conversation
    arrival = read_record(Record.objects.get(pk=record_id), dialect=dialect)
    with transaction.atomic():
        hold_channels([conversation.channel_id], is_shared=True)
        borne = {conversation.channel_id: {key: {conversation.pk} for key in find_keys(conversation, arrival)}}
        citing = find_citing(borne, conversation.workspace_id)
        hold_conversations({conversation.pk, *citing})
        fence()
        ids = citing.keys()
        mark_conversations(conversation_ids=ids, workspace_id=conversation.workspace_id, added_to=ids)
        mark_blocks(citing)
        history.read_anew(record_id, is_outdated=dialect is None)
        replace_parts(arrival, conversation, guess, at=history.at)


def read_misread(history: History, nodes: Sequence[StoredNode], view: View, fence: Fence) -> bool:
    """Read again what is to be read otherwise of these nodes of a conversation, in order key; whether there was
    anything. Its messages have to be loaded again then. `view` is what holds before them."""
    guessed = {slug for node in nodes if node.guess is not None for slug in node.guess.scores}
    spoken = {slug: None for slug in sorted(guessed) if view.get(("spoken", slug))}
    misread = list(find_misread(nodes, spoken))
    for record_id, dialect, guess in misread:
        fence()
        _read_again(history, record_id, dialect, guess, fence)
    return bool(misread)


# Conversations of one block are resolved together up to so many messages.
TOGETHER: Final = 2000


def resolve(
    *,
    conversation: Conversation,
    fence: Fence,
    finish: Callable[[set[uuid.UUID]], None],
    others: Sequence[Conversation] = (),
) -> None:
    """Link, assign and tell what is dirty of a conversation, up to its generation as loaded. `fence` is called inside
    every writing transaction, and as the sign of life between them; it raises when another worker has taken over.
    `finish` is called inside the last one, so that the job ends together with its work, with the ids of those of the
    `others` that are resolved with it: conversations of the workspace that are one block, on which nobody else works.
    """
    timelines = _begin(conversation, others, fence)
    held = [each.conversation.pk for each in timelines]
    changes = Changes()
    while True:
        passes = [each.begin_next(changes, fence) for each in timelines if each.dirty]
        go_through(passes, _look_up(passes), fence, partial(_write_window, passes, changes, fence))
        with hold_alone(held, fence) as generations:
            write_changes([changes], workspace_id=conversation.workspace_id)
            changes.clear()
            for timeline in timelines:
                if not timeline.is_only:
                    timeline.dirty |= {border for passed in passes for border in _write(passed, generations)}
            if not any(each.dirty for each in timelines):
                hidden = count_hidden_by_conversation([each.conversation for each in timelines])
                finish_rows(timelines, passes, generations, hidden)
                finish(set(held) - {conversation.pk})
                examined = {*held, *find_homes(changes.answered)}
                ask_to_examine(examined, workspace_id=conversation.workspace_id)
                return


def _begin(conversation: Conversation, others: Sequence[Conversation], fence: Fence) -> list[Timeline]:
    """The timelines that are gone through together: of a long conversation its own, else those of the short ones."""
    counts = _count_shown([conversation.pk, *(each.pk for each in others)])
    count, chosen = counts[conversation.pk], [conversation]
    if not is_one_block(count):
        return [Timeline(History(conversation))]
    for other in others:
        if is_one_block(counts[other.pk]) and count + counts[other.pk] <= TOGETHER:
            count += counts[other.pk]
            chosen.append(other)
    history = History(conversation)
    nodes = load_timelines([each.pk for each in chosen])
    while read_misread(history, nodes[conversation.pk], View(), fence):
        nodes |= load_timelines([conversation.pk])
    if not is_one_block(len(nodes[conversation.pk])):
        return [Timeline(History(conversation))]
    # What is to be read again of the others, their own jobs read.
    whole = [each for each in chosen[1:] if next(find_misread(nodes[each.pk], {}), None) is None]
    return [Timeline(history, nodes[conversation.pk]), *(Timeline(History(each), nodes[each.pk]) for each in whole)]


def _count_shown(conversation_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
    """How many messages of each conversation are shown, counted up to one more than a block holds."""
    shown = Message.objects.shown().filter(conversation=OuterRef("pk")).values("part")[: MAX_MESSAGES + 1]
    count = Func(ArraySubquery(shown), function="cardinality", output_field=IntegerField())
    return dict(Conversation.objects.filter(pk__in=conversation_ids).values_list("pk", count))


def _look_up(passes: Sequence[Pass]) -> dict[uuid.UUID, Mapping[Citation, Elsewhere]]:
    """By channel, who bears in other conversations the ids that nobody bears in the citing one. Nothing arrives
    meanwhile, so that whoever brings one of these ids finds who cites it."""
    wanted: dict[uuid.UUID, set[Citation]] = defaultdict(set)
    for each in passes:
        wanted[each.conversation.channel_id] |= each.list_citations()
    found: dict[uuid.UUID, Mapping[Citation, Elsewhere]] = {}
    for channel_id in filter(wanted.get, wanted):
        with transaction.atomic():
            hold_channels([channel_id], is_shared=False)
            found[channel_id] = find_bearers(passes[0].conversation.workspace_id, channel_id, wanted[channel_id])
    return found


def go_through(
    passes: Sequence[Pass],
    elsewhere: Mapping[uuid.UUID, Mapping[Citation, Elsewhere]],
    fence: Fence,
    write_window: Callable[[], None] | None = None,
) -> None:
    """Link, assign and tell the messages of these blocks, each of another conversation. `elsewhere` is by channel who
    bears in other conversations the ids that nobody bears in the citing one. `write_window` writes what has changed as
    soon as that is much."""
    for each in passes:
        each.link(elsewhere.get(each.conversation.channel_id, {}))
        for _ in each.tell(fence):
            if write_window is not None and each.changes.is_window:
                write_window()


def _write_window(passes: Sequence[Pass], changes: Changes, fence: Fence) -> None:
    """Write what has changed so far in blocks that are being gone through."""
    with hold_alone([each.conversation.pk for each in passes], fence):
        break_off(each for each in passes if not each.view.is_only)
        write_changes([changes], workspace_id=passes[0].conversation.workspace_id)
    changes.clear()


def _write(passed: Pass, generations: Mapping[uuid.UUID, int]) -> set[bytes]:
    """Write what a block gives and adds up to, where its conversation is held; the borders of those that are dirty."""
    conversation = passed.conversation
    changed = write_facts(passed)
    write_touched(conversation, passed.tasks.states.keys() | changed.tasks)
    write_declarations(passed.exchanges, [node.id for node in passed.nodes])
    is_quiet = generations[conversation.pk] == conversation.generation
    write_block(passed, is_quiet=is_quiet)
    return mark_readers(passed, changed, is_quiet=is_quiet)


def finish_rows(
    timelines: Sequence[Timeline],
    passes: Sequence[Pass],
    generations: Mapping[uuid.UUID, int],
    hidden: Mapping[uuid.UUID, int],
    *,
    reader: uuid.UUID | None = None,
) -> None:
    """Write what the blocks of conversations of one workspace come to, by the last passes over them; call inside the
    transaction that holds them, in these `generations`. `hidden` says of how many messages of each it is that a
    withdrawal hides them, `reader` is the job that reads the last of a delivery and resolves them, where it does."""
    conversations = [each.conversation for each in timelines]
    only = [each for each in passes if each.view.is_only]
    summaries = {each.conversation.pk: [each.summary] for each in only}
    exchanges = [each.exchanges for each in only]
    if only:
        tasks = ((each.conversation, task) for each in only for task in each.tasks.states.values())
        rows = [make_row(conversation, task) for conversation, task in tasks if task.message_count]
        write_tasks(rows, known=Task.objects.filter(conversation_id__in=list(summaries)))
        write_only_blocks(only)
    for each in timelines:
        if not each.is_only:
            summaries[each.conversation.pk] = held = [read_summary(block.summary) for block in each.blocks]
            exchanges.append(add_rows(each.conversation, (one.exchanges for one in held)))
            if each.is_whole:
                _prune(each.conversation)
    workspace_id = conversations[0].workspace_id
    is_half_read = jobs.is_half_read(workspace_id=workspace_id, reader=reader)
    for each in timelines:
        # One that was marked meanwhile does not come to rest.
        if not is_half_read and generations[each.conversation.pk] == each.conversation.generation:
            each.conversation.stood_at = each.history.at
    write_rows([(each, add_up(summaries[each.pk], hidden=hidden.get(each.pk, 0))) for each in conversations])
    write_exchanges(exchanges, has_declared=bool(only))
    for each in timelines:
        each.history.forget_unchanged()
    if sealed := {pk for pk, every in summaries.items() if any(each.is_sealed for each in every)}:
        ask_to_open(workspace_id=workspace_id, conversation_ids=sealed)


def _prune(conversation: Conversation) -> None:
    """Delete the tasks that no block tells of, and what messages declared that are not shown any more."""
    keys = {
        digest_key(("task", pk.hex)): pk
        for pk in Task.objects.filter(conversation=conversation).values_list("pk", flat=True)
    }
    known = Fact.objects.filter(conversation=conversation, key__in=list(keys)).values_list("key", flat=True)
    gone = [keys[key] for key in keys.keys() - {bytes(key) for key in known}]
    Task.objects.filter(pk__in=gone).delete()
    prune_declarations(conversation)
