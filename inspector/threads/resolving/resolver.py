"""Resolving: each message of a conversation linked, assigned to its task and told; one loop, block by block.

The first dirty block (`blocks`) is gone through with a view of what holds where it begins (`view`): who is answered
(`linking`), which task each message belongs to (`assigning`), in which words it is told (`established`). Rows that came
out otherwise are written, and what the block adds up to (`summaries`). Whoever read a fact that has changed is dirty
now; until none is. A block is a function of its messages and of what it reads, and is written in one transaction: a
worker killed at any point leaves blocks that are resolved and blocks that are dirty. Those of one block keep no facts.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import Func, IntegerField, OuterRef

from inspector.intake import jobs

from ..agents.aggregates import add_rows, prune_declarations, write_declarations, write_exchanges
from ..inserting.marking import Fence, ask_to_examine, ask_to_open, hold_alone, hold_channels
from ..messages import count_hidden_by_conversation
from ..models import Conversation, Message, Task
from ..models.blocks import Fact
from ..placing.citations import Citation, Elsewhere, find_bearers
from ..placing.nodes import find_misread, load_timelines
from ..rendering.wordings import History
from ..tasks.rows import make_row, write_tasks, write_touched
from . import blocks
from .blocks import Timeline, is_one_block, read_misread
from .passes import Pass
from .storing import break_off, mark_readers, write_block, write_facts, write_only_blocks
from .summaries import add_up, read_summary, write_rows
from .view import View, digest_key
from .writing import Changes, find_homes, write_changes

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
    shown = Message.objects.shown().filter(conversation=OuterRef("pk")).values("part")[: blocks.MAX_MESSAGES + 1]
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
