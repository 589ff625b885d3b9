"""Arrivals: the messages of records that were read are inserted, and their conversations resolved or marked.

A conversation that is small and at rest is resolved with what is new in it before anything is held (`prepare`), and
written once, by the transaction that inserts its messages (`insert_arrivals`) and proves that neither the conversation
nor who bears the ids that it cites has changed meanwhile. Any other conversation is marked and has a job of its own.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from django.utils import timezone

from inspector.database import IsAny, copy_rows, insert_rows, make_storable
from inspector.intake.models import HiddenRecord, Record
from inspector.intake.withdrawals import Weighing

from .. import inserting
from ..inserting import ask_to_examine, ask_to_resolve, count_up, hold_channels, mark_traces
from ..keys import read_links, slot_of
from ..lines import take_down
from ..models import Conversation, Declaration, MaskedWire
from ..models import Message as MessageRow
from ..nodes import (
    Citation,
    Elsewhere,
    StoredNode,
    find_bearers,
    load_timelines,
    make_new_node,
    sort_nodes,
    suspect_answers,
)
from ..summaries import read_tally
from .passes import Pass, mark_blocks
from .resolver import TOGETHER, Timeline, find_misread, finish_rows, go_through, is_one_block
from .writing import Changes, History, find_homes, keep_moved, write_changes

# A conversation is gone through whole for what is new in it: where it holds more than so many times as much, and these
# more where nothing follows soon, it waits until there is more.
SHARE: Final = 2
FREE: Final = 50

# A conversation by its channel and its key there.
Name = tuple[uuid.UUID, bytes]


def _go_on() -> None:
    """Where nothing is written no lease is needed."""


class Ready(NamedTuple):
    """A conversation that was gone through with what is new in it, before it was held. `cited` are the ids that nobody
    in it bears, each with who bears it elsewhere, or None."""

    timeline: Timeline
    passed: Pass
    cited: dict[Citation, Elsewhere | None]

    @property
    def conversation(self) -> Conversation:
        return self.passed.conversation


@dataclass(slots=True)
class Prepared:
    """What was made of records before they are held: their messages by record, conversations, and those resolved.
    `borne` are by channel the keys of the ids that the messages bear, each with the conversations that these come into.
    """

    arrivals: dict[uuid.UUID, inserting.Arrival]
    conversations: dict[Name, Conversation]
    messages: dict[uuid.UUID, list[inserting.NewMessage]] = field(default_factory=dict)
    borne: dict[uuid.UUID, dict[bytes, set[uuid.UUID]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    ready: list[Ready] = field(default_factory=list)


def prepare(arrivals: Sequence[inserting.Arrival], *, workspace_id: uuid.UUID, has_more: bool) -> Prepared:
    """Resolve what can be resolved with what these records of one workspace bring; nothing is held or written, so that
    nobody has to wait meanwhile. `has_more`: more of their delivery follows."""
    prepared = _make(arrivals, workspace_id)
    wanted: dict[uuid.UUID, set[Citation]] = defaultdict(set)
    for conversation, nodes in _choose(prepared, has_more=has_more):
        timeline = Timeline(History(conversation), nodes)
        passed = timeline.begin_next(Changes(), _go_on)
        cited = passed.list_citations()
        # What is brought by the same records is no row yet.
        if prepared.borne[conversation.channel_id].keys().isdisjoint(each.key for each in cited):
            wanted[conversation.channel_id] |= cited
            prepared.ready.append(Ready(timeline, passed, dict.fromkeys(cited)))
    elsewhere = {channel_id: find_bearers(workspace_id, channel_id, cited) for channel_id, cited in wanted.items()}
    for ready in prepared.ready:
        found = elsewhere[ready.conversation.channel_id]
        ready.cited.update({each: found.get(each) for each in ready.cited})
    go_through([each.passed for each in prepared.ready], elsewhere, _go_on)
    return prepared


def _order(record: Record) -> tuple[datetime, bytes, int]:
    return record.order_time, bytes(record.order_source), record.order_index


def _make(arrivals: Sequence[inserting.Arrival], workspace_id: uuid.UUID) -> Prepared:
    """The messages of these records, and their conversations; those that are not there yet are made, and no rows."""
    arrivals = sorted(arrivals, key=lambda each: (*_order(each.record), bytes(each.record.identity)))
    wanted = {(each.record.channel_id, key): name for each in arrivals for key, name in each.places}
    rows = Conversation.objects.filter(
        workspace_id=workspace_id, channel_id__in={channel for channel, _ in wanted}, key__in=[key for _, key in wanted]
    )
    found = {(row.channel_id, bytes(row.key)): row for row in rows}
    conversations = {
        (channel_id, key): found.get((channel_id, key))
        or Conversation(workspace_id=workspace_id, channel_id=channel_id, key=key, native_id=make_storable(name))
        for (channel_id, key), name in wanted.items()
    }
    prepared = Prepared({each.record.pk: each for each in arrivals}, conversations)
    for arrival in arrivals:
        channel_id = arrival.record.channel_id
        ids = [conversations[channel_id, key].pk for key, _ in arrival.places]
        prepared.messages[arrival.record.pk] = made = inserting.make_new(arrival, ids)
        for each in made:
            for key in filter(None, (each.links.key, each.own["call_key"])):
                prepared.borne[channel_id][key].add(each.conversation_id)
    return prepared


def _choose(prepared: Prepared, *, has_more: bool) -> list[tuple[Conversation, list[StoredNode]]]:
    """Those of the conversations that are resolved at once, and their messages, stored and new, in order key."""
    new: dict[uuid.UUID, list[inserting.NewMessage]] = defaultdict(list)
    for each in chain.from_iterable(prepared.messages.values()):
        new[each.conversation_id].append(each)
    found, size = [], 0
    for conversation in prepared.conversations.values():
        count, stored = len(new[conversation.pk]), conversation.message_count
        is_little = stored <= SHARE * count + (0 if has_more else FREE) and is_one_block(stored + count)
        if conversation.is_settled and is_little and size + stored + count <= TOGETHER:
            size += stored + count
            found.append(conversation)
    timelines = load_timelines([each.pk for each in found if each.generation])
    merged = [(each, sort_nodes([*timelines.get(each.pk, ()), *map(make_new_node, new[each.pk])])) for each in found]
    # A dialect that was guessed may have to be decided: its job reads the record again.
    return [
        (each, nodes)
        for each, nodes in merged
        if is_one_block(len(nodes)) and next(find_misread(nodes, {}), None) is None
    ]


def insert_arrivals(
    *,
    arrivals: Sequence[inserting.Arrival],
    workspace_id: uuid.UUID,
    prepared: Prepared | None = None,
    moved: Sequence[uuid.UUID] = (),
    also_stale: Mapping[uuid.UUID, set[bytes]] = MappingProxyType({}),
    resolve_after_seconds: float = 0,
    reader: uuid.UUID | None = None,
) -> None:
    """Insert the messages of these held records of one workspace, and write or mark their conversations, all of which
    are marked without `prepared`; call inside a transaction. `moved` are the ids of records whose order key or facts
    changed: their messages are inserted anew, each with the id that it had. `also_stale` are conversations to be marked
    in the same order of locks, each with the slots at which something else has changed. `reader` is the job that reads
    the last of a delivery with them."""
    # A record may have moved since, or somebody else may have made a conversation of theirs: nothing of it holds then.
    if prepared is None or any(prepared.arrivals[each.record.pk] is not each for each in arrivals):
        prepared = _make(arrivals, workspace_id)
    # Who looks up cited ids and who brings them must not pass each other unseen.
    channels = {each.record.channel_id for each in arrivals}
    hold_channels(channels, is_shared=not any(each.cited for each in prepared.ready))
    if not inserting.insert_conversations(prepared.conversations.values()):
        prepared = _make(arrivals, workspace_id)
    old = MessageRow.objects.filter(workspace_id=workspace_id, record_id__in=moved)
    # Those of which more changes than that messages are added to them.
    changed = set(old.values_list("conversation_id", flat=True)) if moved else set()
    stale = _merge(inserting.find_citing(prepared.borne, workspace_id), also_stale)
    reached = changed | {each.pk for each in prepared.conversations.values()} | stale.keys()
    is_theirs = IsAny("record_id", prepared.arrivals)
    read, hidden = (each.objects.filter(is_theirs) for each in (MessageRow, HiddenRecord))
    # Where some were read before or are hidden, which is seldom, nothing is resolved with any.
    is_met_before = bool(read.values("record").union(hidden.values("record"), all=True)[:1])
    # Conversations before their messages: resolving locks them in the same order.
    generations = count_up(reached, changed=changed)
    untouched = {each.pk for each in prepared.conversations.values() if generations.get(each.pk) == each.generation + 1}
    candidates = [each for each in prepared.ready if each.conversation.pk in untouched - stale.keys()]
    ready = [] if is_met_before else _prove(candidates, workspace_id)
    resolved = {each.conversation.pk for each in ready}
    ask_to_resolve(reached - resolved, workspace_id=workspace_id, after_seconds=resolve_after_seconds)
    answered = {name for each in ready for name in each.passed.changes.answered}
    ask_to_examine(resolved | find_homes(answered), workspace_id=workspace_id)
    mark_blocks(stale)
    now = timezone.now()
    before: Mapping[uuid.UUID, Mapping[int, inserting.Shown]] = {}
    if moved:
        keep_moved(messages=old, at=now)
        suspect_answers(moved=old, among=reached)
        before = inserting.take_out(old, workspace_id)
        MaskedWire.objects.filter(record__in=moved).delete()
    inserting.insert_masked(prepared.arrivals.values())
    unplaced = (
        row
        for pk, arrival in prepared.arrivals.items()
        if (left := [each for each in prepared.messages[pk] if each.conversation_id not in resolved])
        for row in inserting.make_unplaced(arrival, left, before.get(pk, {}), at=now)
    )
    # Whoever inserts messages of these records holds them, so that what is not there now does not come meanwhile.
    if is_met_before:
        insert_rows(model=MessageRow, columns=inserting.MESSAGE_COLUMNS, rows=unplaced, order_by=("record_id", "part"))
    else:
        copy_rows(model=MessageRow, columns=inserting.MESSAGE_COLUMNS, rows=unplaced)
    for each in ready:
        each.conversation.generation += 1
    if ready:
        write_changes([each.passed.changes for each in ready], workspace_id=workspace_id)
        # Of what was at rest as many messages are hidden as when it came to rest.
        tallied = {each.pk: read_tally(each.tally).hidden for each in (one.conversation for one in ready) if each.tally}
        timelines, passes = [each.timeline for each in ready], [each.passed for each in ready]
        finish_rows(timelines, passes, generations, tallied, reader=reader)


def _prove(ready: Sequence[Ready], workspace_id: uuid.UUID) -> list[Ready]:
    """Those of the ones that nothing has reached meanwhile that stand as they were resolved: who bears what they cite
    is the same."""
    wanted: dict[uuid.UUID, set[Citation]] = defaultdict(set)
    for each in ready:
        wanted[each.conversation.channel_id] |= each.cited.keys()
    bearers = {channel_id: find_bearers(workspace_id, channel_id, cited) for channel_id, cited in wanted.items()}
    return [
        each
        for each in ready
        if all(bearers[each.conversation.channel_id].get(name) == bearer for name, bearer in each.cited.items())
    ]


def follow_weighing(*, weighing: Weighing, workspace_id: uuid.UUID) -> None:
    """Mark what records that were hidden, shown or moved belong to; call inside the transaction that weighed them. A
    record with another place or other facts is read again, for it may belong to another conversation now."""
    rows = MessageRow.objects.filter(workspace_id=workspace_id, record_id__in=weighing.turned)
    order = ("order_time", "order_source", "order_index")
    turned = list(rows.values_list("conversation_id", "channel_id", "id_key", "call_key", "links", *order))
    hold_channels({channel_id for _, channel_id, *_ in turned}, is_shared=True)
    borne: dict[uuid.UUID, dict[bytes, set[uuid.UUID]]] = defaultdict(lambda: defaultdict(set))
    slots: dict[uuid.UUID, set[bytes]] = defaultdict(set)
    names: set[tuple[uuid.UUID, bytes]] = set()
    for conversation_id, channel_id, key, call_key, links, at, source, index in turned:
        slots[conversation_id].add(slot_of(at, bytes(source), index))
        names |= {(conversation_id, name) for name in (read_links(links, key).correlation if links else ())}
        if key is not None:
            names.add((conversation_id, bytes(key)))
            borne[channel_id][bytes(key)].add(conversation_id)
        if call_key is not None:
            borne[channel_id][bytes(call_key)].add(conversation_id)
    # What they answer in other conversations is answered no longer, or again.
    elsewhere = rows.filter(parent__isnull=False, parent_key__isnull=False).values("parent")
    for pk, at, source, index in MessageRow.objects.filter(pk__in=elsewhere).values_list("conversation_id", *order):
        slots[pk].add(slot_of(at, bytes(source), index))
    stale = _merge(inserting.find_citing(borne, workspace_id), slots)
    arrivals = [
        inserting.read_record(record) for record in Record.objects.filter(pk__in=weighing.moved).order_by("identity")
    ]
    insert_arrivals(arrivals=arrivals, workspace_id=workspace_id, moved=weighing.moved, also_stale=stale)
    mark_blocks({}, names)
    Declaration.objects.filter(message__in=rows.values("pk")).delete()
    take_down(record_ids=weighing.turned)
    # What is hidden or shown again belongs to its trace no longer, or again, before its conversation is resolved.
    mark_traces(messages=rows, workspace_id=workspace_id, is_whole=True)


def _merge(one: Mapping[uuid.UUID, set[bytes]], other: Mapping[uuid.UUID, set[bytes]]) -> dict[uuid.UUID, set[bytes]]:
    return {pk: one.get(pk, set()) | other.get(pk, set()) for pk in one.keys() | other.keys()}
