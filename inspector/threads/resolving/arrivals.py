"""Arrivals: the messages of records that were read are inserted, and their conversations resolved or marked.

A conversation that is small and at rest is resolved with what is new in it before anything is held (`prepare`): its
messages are linked and told, and then written once, by the transaction that inserts them (`insert_arrivals`). That
proves that nothing has changed meanwhile: neither the conversation nor who bears the ids that it cites. Any other
conversation is marked and has a job of its own, which finds its new messages as rows that are not placed yet.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.intake.bulk import copy_rows, insert_rows
from inspector.intake.models import HiddenRecord, Record
from inspector.intake.text import make_storable
from inspector.intake.withdrawals import Weighing

from ..inserting.inserts import (
    MESSAGE_COLUMNS,
    Arrival,
    NewMessage,
    Shown,
    are_read_before,
    find_citing,
    insert_conversations,
    insert_masked,
    key_of_order,
    list_shown,
    make_new,
    make_unplaced,
    read_record,
)
from ..inserting.marking import (
    ask_to_examine,
    ask_to_resolve,
    count_up,
    hold_channels,
    mark_conversations,
    mark_traces,
)
from ..models import Conversation, Declaration, MaskedWire
from ..models import Message as MessageRow
from ..placing.across import suspect_answers
from ..placing.citations import Citation, Elsewhere, find_bearers
from ..placing.keys import key_of_id
from ..placing.links import read_links
from ..placing.nodes import StoredNode, find_misread, load_timelines, merge_new
from ..placing.places import slot_of
from ..rendering.wordings import History, keep_moved
from ..trees.lines import take_down
from .blocks import Timeline, is_one_block
from .passes import Pass
from .resolver import TOGETHER, finish_rows, go_through
from .storing import mark_blocks
from .writing import Changes, write_changes

# A conversation is gone through whole for what is new in it: where it holds more than so many times as much, and these
# more where nothing follows soon, it waits until there is more.
SHARE: Final = 2
FREE: Final = 50

# A conversation by its channel and its key there.
Name = tuple[uuid.UUID, bytes]


@dataclass(slots=True)
class Ready:
    """A conversation that was gone through with what is new in it, before it was held.

    `cited` are the ids that nobody in it bears, each with who bears it elsewhere, or None.
    """

    timeline: Timeline
    passed: Pass
    new: Sequence[NewMessage]
    cited: dict[Citation, Elsewhere | None]

    @property
    def conversation(self) -> Conversation:
        """Its row, as it was."""
        return self.passed.conversation


@dataclass(slots=True)
class Prepared:
    """What was made of records before they are held: their messages by record, conversations, and those resolved."""

    messages: dict[uuid.UUID, list[NewMessage]] = field(default_factory=dict)
    conversations: dict[Name, Conversation] = field(default_factory=dict)
    ready: list[Ready] = field(default_factory=list)


def prepare(arrivals: Sequence[Arrival], *, workspace_id: uuid.UUID, has_more: bool) -> Prepared:
    """Resolve what can be resolved with what these records bring; nothing is held or written.

    Most of the time that it takes to read a log is spent here: nobody has to wait meanwhile.

    Args:
        arrivals: records of one workspace.
        workspace_id: that workspace.
        has_more: whether more of their delivery follows.
    """
    arrivals = sorted(arrivals, key=key_of_order)
    prepared = Prepared(conversations=_find_or_make(arrivals, workspace_id))
    new: dict[uuid.UUID, list[NewMessage]] = defaultdict(list)
    bearing: dict[Name, set[uuid.UUID]] = defaultdict(set)
    for arrival in arrivals:
        channel_id = arrival.record.channel_id
        ids = [prepared.conversations[channel_id, key].pk for key, _ in arrival.places]
        prepared.messages[arrival.record.pk] = made = make_new(arrival, ids, arrival.guess)
        for each, conversation_id in zip(made, ids, strict=True):
            new[conversation_id].append(each)
            if each.links.key:
                bearing[channel_id, each.links.key].add(conversation_id)
    passes: list[Pass] = []
    wanted: dict[uuid.UUID, set[Citation]] = defaultdict(set)
    for conversation, nodes in _choose(prepared.conversations.values(), new, has_more=has_more):
        timeline = Timeline(History(conversation), nodes)
        passed = timeline.begin_next(Changes(), _go_on)
        cited = passed.list_citations()
        # What is brought by the same records is no row yet.
        if not any(bearing[conversation.channel_id, each.key] for each in cited):
            conversation.generation += 1
            wanted[conversation.channel_id] |= cited
            passes.append(passed)
            prepared.ready.append(Ready(timeline, passed, new[conversation.pk], dict.fromkeys(cited)))
    elsewhere = {channel_id: find_bearers(workspace_id, channel_id, cited) for channel_id, cited in wanted.items()}
    for ready in prepared.ready:
        ready.cited |= {each: elsewhere[ready.conversation.channel_id].get(each) for each in ready.cited}
    go_through(passes, elsewhere, _go_on)
    return prepared


def _find_or_make(arrivals: Sequence[Arrival], workspace_id: uuid.UUID) -> dict[Name, Conversation]:
    """The conversations of these records; those that are not there yet are made, and no rows."""
    wanted = {(each.record.channel_id, key): name for each in arrivals for key, name in each.places}
    rows = Conversation.objects.filter(
        workspace_id=workspace_id, channel_id__in={channel for channel, _ in wanted}, key__in=[key for _, key in wanted]
    )
    found: dict[Name, Conversation] = {(row.channel_id, bytes(row.key)): row for row in rows}
    for (channel_id, key), name in wanted.items():
        if (channel_id, key) not in found:
            found[channel_id, key] = Conversation(
                id=make_id(), workspace_id=workspace_id, channel_id=channel_id, key=key, native_id=make_storable(name)
            )
    return {name: found[name] for name in wanted}


def _choose(
    conversations: Iterable[Conversation], new: Mapping[uuid.UUID, Sequence[NewMessage]], *, has_more: bool
) -> list[tuple[Conversation, list[StoredNode]]]:
    """Those of these conversations that are resolved at once, and their messages, stored and new, in order key."""
    found, size = [], 0
    for each in conversations:
        count, stored = len(new[each.pk]), each.message_count
        is_little = stored <= SHARE * count + (0 if has_more else FREE) and is_one_block(stored + count)
        if each.is_settled and is_little and size + stored + count <= TOGETHER:
            size += stored + count
            found.append(each)
    timelines = load_timelines([each.pk for each in found if each.generation])
    chosen = []
    for each in found:
        nodes = merge_new(timelines.get(each.pk, ()), new[each.pk])
        # A dialect that was guessed may have to be decided: its job reads the record again.
        if is_one_block(len(nodes)) and next(find_misread(nodes, {}), None) is None:
            chosen.append((each, nodes))
    return chosen


def _go_on() -> None:
    """Nothing is asked for between loads: no lease is needed where nothing is written."""


def insert_arrivals(
    *,
    arrivals: Sequence[Arrival],
    workspace_id: uuid.UUID,
    prepared: Prepared | None = None,
    moved: Sequence[uuid.UUID] = (),
    also_stale: Mapping[uuid.UUID, set[bytes]] = MappingProxyType({}),
    settle_after_seconds: float = 0,
    reader: uuid.UUID | None = None,
) -> None:
    """Insert the messages of these records, and write or mark their conversations; call inside a transaction.

    Args:
        arrivals: records of one workspace, held.
        workspace_id: that workspace.
        prepared: what was made of them, or of more; without it all of their conversations are marked.
        moved: ids of those among the records whose order key or facts changed: their messages are inserted anew, each
            with the id that it had, so that its address holds.
        also_stale: conversations to be marked together with theirs, all in one order, each with the slots at which
            something else has changed.
        settle_after_seconds: how long the settling of those that are marked may wait for more.
        reader: the job that reads the last of a delivery with them.
    """
    prepared = prepared or Prepared()
    # Who looks up cited ids and who brings them must not pass each other unseen.
    is_citing = any(each.cited for each in prepared.ready)
    hold_channels({arrival.record.channel_id for arrival in arrivals}, is_shared=not is_citing)
    old = MessageRow.objects.filter(workspace_id=workspace_id, record_id__in=moved)
    # Those of which more changes than that messages are added to them.
    changed = set(old.values_list("conversation_id", flat=True)) if moved else set()
    arrivals = sorted(arrivals, key=key_of_order)
    conversations = insert_conversations(arrivals, prepared.conversations, workspace_id)
    added_to: set[uuid.UUID] = set()
    # By channel and key of an id: the conversations that a message which bears it comes into.
    borne: dict[uuid.UUID, dict[bytes, set[uuid.UUID]]] = defaultdict(lambda: defaultdict(set))
    for arrival in arrivals:
        for message, (key, _) in zip(arrival.reading.messages, arrival.places, strict=True):
            conversation = conversations[arrival.record.channel_id, key]
            added_to.add(conversation)
            if message.message_id:
                borne[arrival.record.channel_id][key_of_id(message.message_id)].add(conversation)
    stale = _merge(find_citing(borne, workspace_id), also_stale)
    reached = changed | added_to | stale.keys()
    is_read_before = are_read_before([arrival.record.pk for arrival in arrivals])
    # Conversations before their messages: resolving locks them in the same order.
    generations = count_up(reached, changed=changed)
    untouched = {pk: generation for pk, generation in generations.items() if pk not in changed | stale.keys()}
    ready = [] if is_read_before else _prove(prepared.ready, arrivals, untouched, workspace_id)
    resolved = {each.conversation.pk for each in ready}
    ask_to_resolve(reached - resolved, workspace_id=workspace_id, after_seconds=settle_after_seconds)
    ask_to_examine(resolved, workspace_id=workspace_id)
    mark_blocks(stale)
    now = timezone.now()
    before: Mapping[uuid.UUID, Mapping[int, Shown]] = {}
    if moved:
        mark_traces(messages=old, workspace_id=workspace_id, is_whole=True)
        keep_moved(messages=old, at=now)
        suspect_answers(moved=old, among=reached)
        before = list_shown(old)
        old.delete()
        MaskedWire.objects.filter(record__in=moved).delete()
    insert_masked(arrivals)
    unplaced = (
        row
        for arrival in arrivals
        if (left := _list_left(arrival, prepared, conversations, resolved))
        for row in make_unplaced(arrival, left, before.get(arrival.record.pk, {}), at=now)
    )
    # Whoever inserts messages of these records holds them, so that what is not there now does not come meanwhile.
    if is_read_before:
        insert_rows(model=MessageRow, columns=MESSAGE_COLUMNS, rows=unplaced, order_by=("record_id", "part"))
    else:
        copy_rows(model=MessageRow, columns=MESSAGE_COLUMNS, rows=unplaced)
    if ready:
        write_changes([each.passed.changes for each in ready], workspace_id=workspace_id)
        finish_rows([each.timeline for each in ready], [each.passed for each in ready], reader=reader)


def _list_left(
    arrival: Arrival,
    prepared: Prepared,
    conversations: Mapping[Name, uuid.UUID],
    resolved: set[uuid.UUID],
) -> list[NewMessage]:
    """The messages of a record that are to be placed later."""
    ids = [conversations[arrival.record.channel_id, key] for key, _ in arrival.places]
    if resolved.issuperset(ids):
        return []
    made = prepared.messages.get(arrival.record.pk, [])
    if not made or made[0].arrival is not arrival or [each.values["conversation_id"] for each in made] != ids:
        # It has moved meanwhile, or somebody else has made its conversation.
        made = make_new(arrival, ids, arrival.guess)
    return [each for each, conversation_id in zip(made, ids, strict=True) if conversation_id not in resolved]


def _prove(
    ready: Sequence[Ready],
    arrivals: Sequence[Arrival],
    generations: Mapping[uuid.UUID, int],
    workspace_id: uuid.UUID,
) -> list[Ready]:
    """Those that stand as they were resolved: neither they, nor their records, nor what they cite has changed.

    Args:
        ready: as they were resolved.
        arrivals: the records as they are held.
        generations: of the conversations that are held and counted up, but for those in which anything else has
            changed.
        workspace_id: theirs.
    """
    held = {arrival.record.pk: arrival for arrival in arrivals}
    hidden = set(HiddenRecord.objects.filter(record_id__in=held).values_list("record_id", flat=True)) if ready else ()
    standing = [
        each
        for each in ready
        if generations.get(each.conversation.pk) == each.conversation.generation
        and all(held.get(message.arrival.record.pk) is message.arrival for message in each.new)
        and not any(message.arrival.record.pk in hidden for message in each.new)
    ]
    bearers = {
        channel_id: find_bearers(
            workspace_id,
            channel_id,
            {each for one in standing if one.conversation.channel_id == channel_id for each in one.cited},
        )
        for channel_id in {each.conversation.channel_id for each in standing}
    }
    return [
        each
        for each in standing
        if all(bearers[each.conversation.channel_id].get(name) == bearer for name, bearer in each.cited.items())
    ]


def follow_weighing(*, weighing: Weighing, workspace_id: uuid.UUID) -> None:
    """Mark what records that were hidden, shown or moved belong to; call inside the transaction that weighed them.

    A record with another place or other facts is read again, for it may belong to another conversation now.
    """
    rows = MessageRow.objects.filter(workspace_id=workspace_id, record_id__in=weighing.turned)
    order = ("order_time", "order_source", "order_index")
    turned = list(rows.values_list("conversation_id", "channel_id", "id_key", "links", *order))
    hold_channels({channel_id for _, channel_id, *_ in turned}, is_shared=True)
    borne: dict[uuid.UUID, dict[bytes, set[uuid.UUID]]] = defaultdict(lambda: defaultdict(set))
    slots: dict[uuid.UUID, set[bytes]] = defaultdict(set)
    names: set[tuple[uuid.UUID, bytes]] = set()
    for conversation_id, channel_id, key, links, at, source, index in turned:
        slots[conversation_id].add(slot_of(at, bytes(source), index))
        names |= {(conversation_id, name) for name in (read_links(links).correlation if links else ())}
        if key is not None:
            names.add((conversation_id, bytes(key)))
            borne[channel_id][bytes(key)].add(conversation_id)
    stale = _merge(find_citing(borne, workspace_id), slots)
    if weighing.moved:
        arrivals = [read_record(record) for record in Record.objects.filter(pk__in=weighing.moved).order_by("identity")]
        insert_arrivals(arrivals=arrivals, workspace_id=workspace_id, moved=weighing.moved, also_stale=stale)
    else:
        mark_conversations(conversation_ids=stale.keys(), workspace_id=workspace_id, added_to=stale.keys())
    mark_blocks(stale, names)
    Declaration.objects.filter(message__in=rows.values("pk")).delete()
    take_down(record_ids=weighing.turned)
    # What is hidden or shown again belongs to its trace no longer, or again, before its conversation is settled.
    mark_traces(messages=rows, workspace_id=workspace_id, is_whole=True)


def _merge(*marks: Mapping[uuid.UUID, set[bytes]]) -> dict[uuid.UUID, set[bytes]]:
    """Slots of conversations, together."""
    merged: dict[uuid.UUID, set[bytes]] = defaultdict(set)
    for each in marks:
        for conversation_id, slots in each.items():
            merged[conversation_id] |= slots
    return merged
