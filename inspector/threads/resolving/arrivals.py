"""Arrivals: the messages of records that were read are inserted, and their conversations resolved or marked.

A conversation that is small and at rest is resolved by the transaction that brings its messages: they are linked and
told with those that are there, and written once. Any other is marked and has a job of its own, which finds them as rows
that are not placed yet: one that is long, that something else has reached and nobody resolved yet, that answers ids of
other conversations, or whose guessed dialect has to be decided.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from django.utils import timezone

from inspector.intake.bulk import copy_rows, insert_rows
from inspector.intake.models import HiddenRecord

from ..arriving.arrivals import (
    are_read_before,
    find_citing,
    find_conversations,
    insert_masked,
    list_shown,
)
from ..arriving.holding import hold_channels
from ..arriving.inserts import MESSAGE_COLUMNS, Arrival, NewMessage, Shown, key_of_order, make_new, make_unplaced
from ..arriving.marking import mark_conversations, mark_traces
from ..models import Conversation, MaskedWire
from ..models import Message as MessageRow
from ..placing.across import suspect_answers
from ..placing.keys import key_of_id
from ..placing.nodes import StoredNode, find_misread, load_timelines, merge_new
from ..telling.wordings import History, keep_moved
from .blocks import is_one_block
from .passes import list_citations
from .small import go_through, write_together
from .together import TOGETHER

# A conversation is gone through whole for what is new in it: where it holds more than so many times as much, and these
# more where nothing follows soon, it waits until there is more.
SHARE: Final = 2
FREE: Final = 50


def insert_arrivals(
    *,
    arrivals: Sequence[Arrival],
    workspace_id: uuid.UUID,
    moved: Sequence[uuid.UUID] = (),
    also_dirty: Iterable[uuid.UUID] = (),
    has_more: bool = False,
    is_alone: bool = False,
    settle_after_seconds: float = 0,
    reader: uuid.UUID | None = None,
) -> None:
    """Insert the messages of these records, and resolve or mark their conversations; call inside a transaction.

    Args:
        arrivals: records of one workspace, held.
        workspace_id: that workspace.
        moved: ids of those among the records whose order key or facts changed: their messages are inserted anew, each
            with the id that it had, so that its address holds.
        also_dirty: conversations to be marked together with theirs, all in one order.
        has_more: whether more of their delivery follows.
        is_alone: whether a record is tried alone after a failure: its conversation is resolved by its own job then, so
            that what fails there is not held against the record.
        settle_after_seconds: how long the settling of those that are marked may wait for more.
        reader: the job that reads them.
    """
    hold_channels({arrival.record.channel_id for arrival in arrivals}, is_shared=True)
    old = MessageRow.objects.filter(workspace_id=workspace_id, record_id__in=moved)
    # Those of which more changes than that messages are added to them.
    changed: set[uuid.UUID] = {*also_dirty, *(old.values_list("conversation_id", flat=True) if moved else ())}
    arrivals = sorted(arrivals, key=key_of_order)
    conversations = find_conversations(arrivals, workspace_id)
    made = {each.record.pk: _make_new(each, conversations) for each in arrivals}
    new: dict[uuid.UUID, list[NewMessage]] = defaultdict(list)
    # By channel and key of an id: the conversations that a message which bears it comes into.
    borne: dict[uuid.UUID, dict[bytes, set[uuid.UUID]]] = defaultdict(lambda: defaultdict(set))
    for arrival in arrivals:
        for each, (key, _) in zip(made[arrival.record.pk], arrival.places, strict=True):
            conversation_id = conversations[arrival.record.channel_id, key]
            new[conversation_id].append(each)
            if each.message.message_id:
                borne[arrival.record.channel_id][key_of_id(each.message.message_id)].add(conversation_id)
    changed.update(find_citing(borne, workspace_id))
    is_read_before = bool(moved) or are_read_before([arrival.record.pk for arrival in arrivals])
    now = timezone.now()
    # Conversations before their messages: settling locks them in the same order.
    held = Conversation.objects.filter(pk__in=changed | new.keys()).order_by("pk").select_for_update(no_key=True)
    rest = [] if is_read_before or is_alone else [each for each in held if each.pk not in changed]
    ready = find_ready(rest, new, has_more=has_more)
    resolved = {each.pk for each, _ in ready}
    mark_conversations(
        conversation_ids=changed | new.keys(),
        workspace_id=workspace_id,
        added_to=new.keys() - changed,
        resolved=resolved,
        settle_after_seconds=settle_after_seconds,
    )
    before: Mapping[uuid.UUID, Mapping[int, Shown]] = {}
    if moved:
        mark_traces(messages=old, workspace_id=workspace_id, is_whole=True)
        keep_moved(messages=old, at=now)
        suspect_answers(moved=old, among=changed | new.keys())
        before = list_shown(old)
        old.delete()
        MaskedWire.objects.filter(record__in=moved).delete()
    insert_masked(arrivals)
    rows = (
        row
        for arrival in arrivals
        if (left := [each for each in made[arrival.record.pk] if each.values["conversation_id"] not in resolved])
        for row in make_unplaced(arrival, left, before.get(arrival.record.pk, {}), at=now)
    )
    # Whoever inserts messages of these records holds them, so that what is not there now does not come meanwhile.
    if is_read_before:
        insert_rows(model=MessageRow, columns=MESSAGE_COLUMNS, rows=rows, order_by=("record_id", "part"))
    else:
        copy_rows(model=MessageRow, columns=MESSAGE_COLUMNS, rows=rows)
    if ready:
        resolve_ready(ready, reader=None if has_more else reader)


def _make_new(arrival: Arrival, conversations: Mapping[tuple[uuid.UUID, bytes], uuid.UUID]) -> list[NewMessage]:
    channel_id = arrival.record.channel_id
    return make_new(arrival, [conversations[channel_id, key] for key, _ in arrival.places], arrival.guess)


Ready = tuple[Conversation, list[StoredNode]]


def find_ready(
    conversations: Collection[Conversation], new: Mapping[uuid.UUID, Sequence[NewMessage]], *, has_more: bool
) -> list[Ready]:
    """Those of these conversations that are resolved with what is new in them, and their messages in order key.

    Args:
        conversations: held, without what is new.
        new: by conversation.
        has_more: whether more of the delivery follows.
    """
    found, size = [], 0
    for each in conversations:
        count, stored = len(new[each.pk]), each.message_count
        is_little = stored <= SHARE * count + (0 if has_more else FREE) and is_one_block(stored + count)
        if each.is_settled and is_little and size + stored + count <= TOGETHER:
            size += stored + count
            found.append(each)
    records = {message.arrival.record.pk for each in found for message in new[each.pk]}
    hidden = set(HiddenRecord.objects.filter(record_id__in=records).values_list("record_id", flat=True))
    timelines = load_timelines([each.pk for each in found if each.generation])
    ready = []
    for each in found:
        if hidden.isdisjoint(message.arrival.record.pk for message in new[each.pk]):
            stored_nodes = timelines[each.pk].nodes if each.pk in timelines else []
            nodes = merge_new(stored_nodes, new[each.pk])
            borne = {node.key for node in nodes if node.key}
            if next(find_misread(nodes, {}), None) is None and not list_citations(nodes, borne):
                ready.append((each, nodes))
    return ready


def resolve_ready(ready: Sequence[Ready], *, reader: uuid.UUID | None) -> None:
    """Resolve these conversations and write them with what is new in them; call inside the transaction that holds them.

    Args:
        ready: as `find_ready` finds them; they have been marked.
        reader: the job that reads the last of a delivery, where it does.
    """
    for each, _ in ready:
        each.generation += 1
    histories = [History(each) for each, _ in ready]
    passes = go_through([(history, nodes) for history, (_, nodes) in zip(histories, ready, strict=True)], _go_on)
    write_together(list(passes.values()), histories, reader=reader)


def _go_on() -> None:
    """Nothing is asked for between loads: the lease is proven by the transaction."""
