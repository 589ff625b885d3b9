"""Writing: the rows of conversations that came out differently, many in one statement; and that messages were told for
the first time, which readers follow (`browsing.activity`)."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.db.models import BigIntegerField, Func
from django.db.models.functions import Now

from inspector.intake.bulk import copy_rows, update_rows
from inspector.intake.text import make_storable

from ..inserting.inserts import HUNG, LEANED, MESSAGE_COLUMNS, OWN, PLACED, TOLD
from ..inserting.marking import mark_traces
from ..models import Announcement
from ..models import Message as MessageRow
from ..models.packed_text import unpack_text
from ..placing.citations import look_across
from ..placing.nodes import StoredNode
from ..rendering.rule_flags import decide_established
from ..rendering.teller import ToldRow
from ..rendering.wordings import Change, History, keep_wordings
from ..trees.lines import Home, Placed, hang, keep_ghosts

WINDOW = 500
WINDOW_BYTES = 2 * 1024 * 1024
# Of so many messages one row is written, for so long it is kept, and so many rows one sweep deletes at most.
MAX_TOGETHER: Final = 500
KEPT: Final = timedelta(days=1)
MAX_FORGOTTEN: Final = 5000

# A row is found by its conversation and order key too: one that was moved meanwhile keeps its id and is not written.
_KEY = ("id", "conversation_id", "order_time", "order_source", "order_index")
_HOME, _CHANNEL, _TRACE = map(OWN.index, ("conversation_id", "channel_id", "trace_key"))
_BODY = len(_KEY) + len(PLACED) + len(LEANED) + TOLD.index("body")


@dataclass(slots=True)
class Changes:
    """The rows of conversations to be written: new, told otherwise, leaning otherwise, placed otherwise."""

    new: list[tuple[Any, ...]] = field(default_factory=list)
    told: list[tuple[Any, ...]] = field(default_factory=list)
    leaned: list[tuple[Any, ...]] = field(default_factory=list)
    placed: list[tuple[Any, ...]] = field(default_factory=list)
    # Those that no reader has seen yet, and those of which a trace shows something else now.
    fresh: list[uuid.UUID] = field(default_factory=list)
    traced: list[uuid.UUID] = field(default_factory=list)
    where: dict[uuid.UUID, Placed] = field(default_factory=dict)
    # Those of which something that stood is told otherwise.
    reworded: dict[uuid.UUID, Change] = field(default_factory=dict)
    # What they answer otherwise than before, also once they are written: it may stand in other conversations.
    answered: set[uuid.UUID] = field(default_factory=set)
    size_bytes: int = 0

    @property
    def is_window(self) -> bool:
        lighter = len(self.leaned) + len(self.placed)
        return len(self.told) >= WINDOW or lighter >= 10 * WINDOW or self.size_bytes >= WINDOW_BYTES

    def take(self, history: History, node: StoredNode, row: ToldRow | None) -> None:
        """Add what has changed of a node's row; nothing where it came out as it stands."""
        is_changed = row is not None and bool(node.was_told) and row.digest != node.was_told
        if change := history.pass_by(node, is_changed=is_changed):
            self.reworded[node.id] = change
        if node.is_new:
            self.fresh.append(node.id)
        is_told = row is not None and row.digest != node.was_told
        if node.trace and (node.is_new or is_told or node.hash_link() != node.was_linked):
            self.traced.append(node.id)
        if node.parent_elsewhere and (node.is_new or node.hash_link() != node.was_linked):
            self.answered |= {node.parent} if node.parent else set()
        if node.was_parent not in (None, node.parent):
            self.answered.add(node.was_parent)
        key = (node.id, history.conversation.pk, node.at, node.source, node.index)
        self.where[node.id] = Placed(node.id, history.conversation.pk, node.parent, node.cited, node.basis)
        placed = (node.place, node.run, node.parent, node.cited, node.basis, make_storable(node.why), node.task_id)
        if row is None:
            if node.hash_place() != node.was_placed:
                self.placed.append((*key, *placed))
            return
        established = node.established or ""
        leaned = (*placed, node.told_in, established, row.sights | decide_established(established))
        if node.new is not None:
            self.new.append((*node.new.own.values(), *leaned, *row.list_told(), history.at))
            return
        self.size_bytes += len(established)
        if not is_told:
            self.leaned.append((*key, *leaned))
            return
        self.told.append((*key, *leaned, *row.list_told(), history.at))
        self.size_bytes += len(row.body) + len(row.words)

    def clear(self) -> None:
        """Forget what has been written."""
        self.new, self.told, self.leaned, self.placed, self.size_bytes = [], [], [], [], 0
        self.fresh, self.traced, self.where, self.reworded = [], [], {}, {}


def write_changes(changes: Sequence[Changes], *, workspace_id: uuid.UUID) -> None:
    """Write the rows of these conversations, mark their traces and announce what is new; inside a transaction that
    holds them."""
    # What stood is kept; what comes out in the same words is told so since then.
    reworded = {pk: change for each in changes for pk, change in each.reworded.items()}
    told = [row for each in changes for row in each.told]
    bodies = {row[0]: unpack_text(row[_BODY]) for row in told if row[0] in reworded}
    since = keep_wordings(changes=reworded, told=bodies)
    told = [(*row[:-1], since.get(row[0], row[-1])) for row in told] if since else told
    new = [row for each in changes for row in each.new]
    columns = (*_KEY, *PLACED, *LEANED, *TOLD)
    changed = (
        (told, len(columns)),
        ([row for each in changes for row in each.leaned], len(_KEY) + len(PLACED) + len(LEANED)),
        ([row for each in changes for row in each.placed], len(_KEY) + len(PLACED)),
    )
    written = [row[0] for rows in (new, *(rows for rows, _ in changed)) for row in rows]
    where = {pk: placed for each in changes for pk, placed in each.where.items()}
    homes: dict[uuid.UUID, Home] = {row[0]: (row[_HOME], row[_CHANNEL], row[_TRACE] or b"", None, None) for row in new}
    hung = hang((where[pk] for pk in written), homes)
    hanging = ((*row, hung[row[0]].above, hung[row[0]].trace_above) for row in new)
    copy_rows(model=MessageRow, columns=MESSAGE_COLUMNS, rows=hanging)
    for rows, width in changed:
        found = [(row, hung[row[0]]) for row in rows if row[0] in hung]
        # What hangs in its trace already is hung elsewhere when that is drawn: there it is known what it leaves.
        fresh = [(*row, at.above, at.trace_above) for row, at in found if at.was_trace_above is None]
        old = [(*row, at.above) for row, at in found if at.was_trace_above is not None]
        update_rows(model=MessageRow, columns=(*columns[:width], *HUNG), rows=fresh, key_columns=len(_KEY))
        update_rows(model=MessageRow, columns=(*columns[:width], HUNG[0]), rows=old, key_columns=len(_KEY))
    ghosts = {at.above for at in hung.values() if at.is_ghost}
    left = {at.was_above for at in hung.values() if at.was_above is not None and at.was_above != at.above}
    keep_ghosts(ghosts, left=left)
    # What the statement joins grows with the square of how many it is given.
    for start in range(0, len(written), WINDOW):
        look_across(messages=written[start : start + WINDOW])
    traced = MessageRow.objects.filter(pk__in=[pk for each in changes for pk in each.traced])
    mark_traces(messages=traced, workspace_id=workspace_id, is_whole=False)
    announce(messages=[pk for each in changes for pk in each.fresh], workspace_id=workspace_id)


def find_homes(messages: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """The conversations in which these messages stand."""
    rows = MessageRow.objects.filter(pk__in=messages).values_list("conversation_id", flat=True)
    return set(rows) if messages else set()


def announce(*, messages: Sequence[uuid.UUID], workspace_id: uuid.UUID) -> None:
    """Announce messages that the open transaction tells for the first time."""
    number = Func(
        function="pg_current_xact_id", template="%(function)s()::text::bigint", output_field=BigIntegerField()
    )
    Announcement.objects.bulk_create(
        Announcement(workspace_id=workspace_id, transaction=number, at=Now(), messages=list(each))
        for each in (messages[start : start + MAX_TOGETHER] for start in range(0, len(messages), MAX_TOGETHER))
    )


def forget_announcements() -> int:
    """Delete announcements that are older than they are kept; how many. A part at a time, so that no sweep is long."""
    old = Announcement.objects.filter(at__lt=Now() - KEPT).order_by("at").values("pk")[:MAX_FORGOTTEN]
    return Announcement.objects.filter(pk__in=old).delete()[0]
