"""What a withdrawal means for conversations: those that held a record, and those that cite it, are settled again."""

from __future__ import annotations

import uuid
from collections import defaultdict

from inspector.intake.models import Record
from inspector.intake.withdrawals import Weighing

from ..arriving.arrivals import find_citing
from ..arriving.holding import hold_channels
from ..arriving.inserts import read_record
from ..arriving.marking import mark_conversations, mark_traces
from ..models import Message
from ..trees.lines import take_down
from .arrivals import insert_arrivals


def follow_weighing(*, weighing: Weighing, workspace_id: uuid.UUID) -> None:
    """Mark what records that were hidden, shown or moved belong to; call inside the transaction that weighed them.

    A record with another place or other facts is read again, for it may belong to another conversation now.
    """
    rows = Message.objects.filter(workspace_id=workspace_id, record_id__in=weighing.turned)
    turned = list(rows.values_list("conversation_id", "channel_id", "id_key"))
    hold_channels({channel_id for _, channel_id, _ in turned}, is_shared=True)
    borne: dict[uuid.UUID, dict[bytes, set[uuid.UUID]]] = defaultdict(lambda: defaultdict(set))
    for conversation_id, channel_id, key in turned:
        if key is not None:
            borne[channel_id][bytes(key)].add(conversation_id)
    dirty = {conversation_id for conversation_id, *_ in turned} | find_citing(borne, workspace_id)
    if weighing.moved:
        arrivals = [read_record(record) for record in Record.objects.filter(pk__in=weighing.moved).order_by("identity")]
        insert_arrivals(arrivals=arrivals, workspace_id=workspace_id, moved=weighing.moved, also_dirty=dirty)
    else:
        mark_conversations(conversation_ids=dirty, workspace_id=workspace_id)
    take_down(record_ids=weighing.turned)
    # What is hidden or shown again belongs to its trace no longer, or again, before its conversation is settled.
    mark_traces(messages=rows, workspace_id=workspace_id, is_whole=True)
