"""Settling: a conversation's messages placed, told and outlined; a pure function of the set of its records.

What it depends on: the records of the conversation with their order keys, and the messages of the channel that they
cite. Placing goes through small facts of all messages and reads no record. Telling reads the records of those alone
that have not been told in a context such as theirs is now, so that what is appended, or arrives late near the front,
costs what it changes. Only rows that came out differently are written, in batches, each of which proves that the
lease still holds.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from django.db import transaction
from django.db.models import Count

from inspector.intake.models import Record

from ..agents.exchanges import Exchanges, gather_exchanges, write_exchanges
from ..arriving.arrivals import find_citing, find_keys, replace_parts
from ..arriving.holding import hold_channels, hold_conversations
from ..arriving.inserts import read_record
from ..arriving.marking import mark_conversations
from ..hidden import count_hidden_by_conversation
from ..models import Conversation
from ..models import Message as MessageRow
from ..opening.opener import ask_opening
from ..placing.bearers import find_bearers
from ..placing.links import Guess, guess_of
from ..placing.nodes import Timeline, find_misread, load_timelines
from ..placing.numbering import write_directories
from ..placing.placer import Citation, Elsewhere, LookUp, find_cited, place
from ..telling.retelling import Retelling, load_together
from ..telling.wordings import History, note_rest
from .summing import Sum, sum_nodes, write_sums
from .writing import Changes, write_changes, write_outlines

Fence = Callable[[], None]
# Ends the jobs of the other conversations, and says which of them are still to be written.
EndOthers = Callable[[set[uuid.UUID]], set[uuid.UUID]]

# Conversations of at most so many messages and bytes are settled together, and so many of theirs at once.
SMALL, TOGETHER = 1000, 2000
SMALL_BYTES, TOGETHER_BYTES = 512 * 1024, 1024 * 1024


def settle(
    *,
    conversation: Conversation,
    fence: Fence,
    finish: Callable[[], None],
    others: Sequence[Conversation] = (),
    end_others: EndOthers = set,
) -> None:
    """Place, tell and outline a conversation, and note up to which generation it is settled.

    Args:
        conversation: the row; its generation as loaded is what this run settles.
        fence: called inside every writing transaction, and as the sign of life between them; raises when another
            worker has taken over.
        finish: called inside the last one, so that the job ends together with its work.
        others: more conversations of the same workspace: those of them that are small are settled in the same last
            transaction.
        end_others: called inside it with the ids of those that were settled; says which of them are still to be
            written. Not called where there are none.
    """
    together = _find_together(conversation, others)
    histories = {each.pk: History(each) for each in together}
    timelines = _load(together, fence, histories)
    together = _bound(together, timelines)
    look_ups = _look_up(together, timelines)
    hidden = count_hidden_by_conversation(together)
    changes: dict[uuid.UUID, Changes] = {}
    sums: dict[uuid.UUID, Sum] = {}
    exchanges: dict[uuid.UUID, Exchanges] = {}
    retellings: dict[uuid.UUID, Retelling] = {}
    for each in together:
        timeline = timelines[each.pk]
        timeline.nodes = place(timeline.nodes, look_ups[each.pk])
        timeline.give_places()
        retellings[each.pk] = Retelling(timeline.nodes, fence)
    load_together([retellings[each.pk] for each in together if _is_small(timelines[each.pk])], fence)
    for each in together:
        timeline = timelines[each.pk]
        changes[each.pk] = Changes(each.pk, histories[each.pk])
        write = partial(_write_window, conversation, fence) if each is conversation else None
        _tell(retellings.pop(each.pk), changes[each.pk], write)
        sums[each.pk] = sum_nodes(each, timeline, hidden=hidden.get(each.pk, 0))
        exchanges[each.pk] = gather_exchanges(each, timeline)
    with _alone([each.pk for each in together], fence):
        kept = {conversation.pk}
        if len(together) > 1:
            kept |= end_others(changes.keys() - kept)
        write_changes([changes[pk] for pk in kept], workspace_id=conversation.workspace_id)
        write_directories([(each, timelines[each.pk].blocks) for each in together if each.pk in kept])
        write_outlines([(pk, timelines[pk].nodes) for pk in kept], workspace_id=conversation.workspace_id)
        write_sums([sums[pk] for pk in kept])
        write_exchanges([exchanges[pk] for pk in kept])
        for pk in kept:
            histories[pk].forget_unchanged()
        note_rest([histories[pk] for pk in kept])
        ask_opening(workspace_id=conversation.workspace_id, conversation_ids=kept)
        finish()


def _find_together(conversation: Conversation, others: Sequence[Conversation]) -> list[Conversation]:
    """The conversation, and those of the others that are few messages together with it."""
    if not others:
        return [conversation]
    every = [conversation, *(other for other in others if other.pk != conversation.pk)]
    rows = MessageRow.objects.filter(conversation_id__in=[each.pk for each in every])
    counts = dict(rows.values_list("conversation_id").annotate(count=Count("id")).order_by())
    held = counts.get(conversation.pk, 0)
    found = [conversation]
    for other in every[1:]:
        count = counts.get(other.pk, 0)
        if count <= SMALL and held + count <= TOGETHER:
            held += count
            found.append(other)
    return found


def _bound(conversations: Sequence[Conversation], timelines: Mapping[uuid.UUID, Timeline]) -> list[Conversation]:
    """The first of these conversations, and the small ones after it that are not too much together.

    What is told of them is held until their last transaction. Of the first that is written on the way.
    """
    first, *others = conversations
    found, held = [first], 0
    for other in others:
        size = _count_bytes(timelines[other.pk])
        if size <= SMALL_BYTES and held + size <= TOGETHER_BYTES:
            held += size
            found.append(other)
    return found


def _is_small(timeline: Timeline) -> bool:
    return _count_bytes(timeline) <= SMALL_BYTES


def _count_bytes(timeline: Timeline) -> int:
    return sum(node.size_bytes for node in timeline.nodes)


@contextmanager
def _alone(conversation_ids: Iterable[uuid.UUID], fence: Fence) -> Iterator[None]:
    """A transaction that locks conversations and then their jobs, in the order in which arriving locks them."""
    with transaction.atomic():
        hold_conversations(conversation_ids)
        fence()
        yield


def _write_window(conversation: Conversation, fence: Fence, changes: Changes) -> None:
    with _alone([conversation.pk], fence):
        write_changes([changes], workspace_id=conversation.workspace_id)


def _tell(retelling: Retelling, changes: Changes, write: Callable[[Changes], None] | None) -> None:
    """Tell what must be told, and keep what changes; where it becomes much, it is written on the way."""
    for node, row, established in retelling.go_through():
        changes.take(node, row, established)
        if write is not None and changes.is_window:
            write(changes)
            changes.clear()


def _load(
    conversations: Sequence[Conversation], fence: Fence, histories: Mapping[uuid.UUID, History]
) -> dict[uuid.UUID, Timeline]:
    """The nodes of these conversations, each record in the dialect that its conversation settles for it."""
    timelines = load_timelines([each.pk for each in conversations])
    for conversation in conversations:
        # Each record that is read otherwise can decide only for those after it, so that this comes to an end.
        while misread := list(find_misread(timelines[conversation.pk].nodes)):
            for record_id, dialect, guess in misread:
                fence()
                _read_again(histories[conversation.pk], record_id, dialect, guess, fence)
            timelines |= load_timelines([conversation.pk])
    return timelines


def _read_again(history: History, record_id: uuid.UUID, dialect: str | None, guess: Guess | None, fence: Fence) -> None:
    """Put the messages of a record that is read otherwise in the place of its earlier ones, and mark who cites them."""
    conversation = history.conversation
    arrival = read_record(Record.objects.get(pk=record_id), dialect=dialect)
    guess = guess or guess_of(arrival.reading)
    with transaction.atomic():
        hold_channels([conversation.channel_id], is_shared=True)
        cited = {conversation.channel_id: find_keys(conversation, arrival)}
        citing = find_citing(cited, conversation.workspace_id) - {conversation.pk}
        hold_conversations({conversation.pk, *citing})
        fence()
        mark_conversations(conversation_ids=citing, workspace_id=conversation.workspace_id)
        history.read_anew(record_id, is_outdated=dialect is None)
        replace_parts(arrival, conversation, guess, at=history.at)


def _look_up(conversations: Sequence[Conversation], timelines: Mapping[uuid.UUID, Timeline]) -> dict[uuid.UUID, LookUp]:
    """For each conversation a look-up of the messages of others in its channel, all asked for at once.

    Nobody in the conversation itself bears an id that it looks up.
    """
    wanted: dict[uuid.UUID, set[Citation]] = defaultdict(set)
    for each in conversations:
        wanted[each.channel_id] |= find_cited(timelines[each.pk].nodes)
    found = {
        channel_id: find_bearers(conversations[0].workspace_id, channel_id, citations)
        for channel_id, citations in wanted.items()
    }
    return {each.pk: partial(_pick, found[each.channel_id]) for each in conversations}


def _pick(found: Mapping[Citation, Elsewhere], citations: Iterable[Citation]) -> Mapping[Citation, Elsewhere]:
    return found
