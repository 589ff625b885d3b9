"""Tracing: the tree of a trace and what its row says, from the messages that carry its id; a pure function of them.

It depends on the settled messages alone, with their order keys: on no conversation's order of processing. Small facts
of each are held, and no text. Messages of one channel belong to the trace across channels as soon as one of them
carries the id in an envelope, or the id is random by form; else their channel has a trace of its own.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from django.db import transaction
from django.db.models import Case, Count, Q, TextField, Value, When
from django.utils import timezone

from inspector.intake.bulk import update_rows

from ..arriving.marking import hold_traces
from ..models import Conversation, Message, MessageQuerySet, Trace
from ..placing.instants import count_microseconds
from ..placing.keys import WIRE
from ..placing.links import read_links
from ..placing.nodes import make_mark, order_by_identity
from ..placing.several import SEVERAL
from .outline import ADJACENCY, ASKING, Knot
from .stored import Tree, write_trees

# Traces of at most so many messages are drawn together, and so many of theirs at once.
SMALL, TOGETHER = 200, 2000
_ROWS_AT_ONCE = 2000

# Whether it may be tried again, and whether it was put up for everyone, stand among the links alone.
_TELLS_OF_WORK: Final = Q(performative="failure") | Q(performative="request", receivers=[], is_broadcast=False)

# The last act that decides says how a trace stands: an end, or work that was asked for or went on after it.
_STATES: Final = {
    "done": Conversation.State.DONE,
    "failure": Conversation.State.FAILED,
    "cancel": Conversation.State.CANCELLED,
}
_REOPENS: Final = ASKING | {"commit", "accept", "progress"}

_COLUMNS: Final = (
    "trace_key",
    "order_time",
    "order_source",
    "order_index",
    "record_id",
    "part",
    "id",
    "channel_id",
    "conversation_id",
    "dialect",
    "performative",
    "sender",
    "receivers",
    "severity",
    "told_digest",
    "parent",
    "parent_key",
    "parent_basis",
    "has_topic",
    "work",
    "has_several",
)
_SUM_COLUMNS: Final = (
    "id",
    "settled_generation",
    "settled_at",
    "digest",
    "state",
    "subject",
    "agents",
    "dialects",
    "message_count",
    "conversation_count",
    "missing_count",
    "open_count",
    "severity",
    "first_at",
    "last_at",
)


@dataclass(slots=True)
class Strand:
    """The messages of one trace, gathered in the order of the timeline, and what its row says of them."""

    knots: list[Knot] = field(default_factory=list)
    agents: Counter[str] = field(default_factory=Counter)
    dialects: Counter[str] = field(default_factory=Counter)
    state: str = Conversation.State.OPEN
    ghosts: set[bytes] = field(default_factory=set)
    conversations: set[bytes] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)
    severity: int = 0
    asked_of: uuid.UUID | None = None
    named_of: uuid.UUID | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    digest: Any = field(default_factory=hashlib.sha256)


def draw_traces(
    *,
    trace: Trace,
    fence: Callable[[], None],
    finish: Callable[[], None],
    others: Sequence[Trace] = (),
    end_others: Callable[[set[uuid.UUID]], set[uuid.UUID]] = set,
) -> None:
    """Draw a trace's tree and sum it up, and note up to which generation it is drawn.

    Args:
        trace: the row; its generation as loaded is what this run draws.
        fence: called inside the writing transaction; raises when another worker has taken over.
        finish: called inside it, so that the job ends together with its work.
        others: more traces of the same workspace: those of them that are small are drawn together with it.
        end_others: called inside the transaction with the ids of those; says which are still to be written.
    """
    together = _find_together(trace, others)
    strands = load_strands(together)
    with transaction.atomic():
        hold_traces(together)
        fence()
        kept = {trace.pk}
        if len(together) > 1:
            kept |= end_others({each.pk for each in together} - kept)
        drawn = [each for each in together if each.pk in kept]
        trees = [Tree(each.pk, strands[each.pk].knots) for each in drawn]
        write_trees(trees=trees, owner="trace", workspace_id=trace.workspace_id)
        _write_sums(drawn, strands)
        finish()


def _find_together(trace: Trace, others: Sequence[Trace]) -> list[Trace]:
    """The trace, and of the others as many as are few messages together with it."""
    small = [other for other in others if other.pk != trace.pk and other.message_count <= SMALL]
    if not small:
        return [trace]
    # What carries the id in any of its channels: never less than what one of them holds.
    counts = Counter(
        {
            bytes(key or b""): count
            for key, count in _members(small).values_list("trace_key").annotate(count=Count("pk"))
        }
    )
    found, held = [trace], 0
    for other in small:
        count = counts[bytes(other.key)]
        if count <= SMALL and held + count <= TOGETHER:
            held += count
            found.append(other)
    return found


def _members(traces: Sequence[Trace]) -> MessageQuerySet:
    """The settled messages that may belong to these traces."""
    condition = Q(pk__in=())
    for channel_id, same in groupby(sorted(traces, key=_channel_name), key=lambda trace: trace.channel_id):
        keys = Q(trace_key__in=[bytes(trace.key) for trace in same])
        condition |= keys if channel_id is None else keys & Q(channel_id=channel_id)
    return Message.objects.shown().filter(condition, workspace_id=traces[0].workspace_id, place__isnull=False)


def _channel_name(trace: Trace) -> str:
    return str(trace.channel_id or "")


def load_strands(traces: Sequence[Trace]) -> dict[uuid.UUID, Strand]:
    """What is drawn and summed up of each of these traces."""
    members = _members(traces)
    joined: set[tuple[bytes, uuid.UUID]] = {
        (bytes(key or b""), channel_id)
        for key, channel_id in members.exclude(trace_basis=WIRE).values_list("trace_key", "channel_id").distinct()
    }
    wanted = {(bytes(trace.key), trace.channel_id): trace.pk for trace in traces}
    gatherers = {trace.pk: _Gatherer() for trace in traces}
    for row in _read_members(members):
        key, channel_id = bytes(row[0]), row[7]
        owner = wanted.get((key, None if (key, channel_id) in joined else channel_id))
        if owner is not None:
            gatherers[owner].add(row)
    return {pk: gatherer.end() for pk, gatherer in gatherers.items()}


def _read_members(members: MessageQuerySet) -> Iterator[Sequence[Any]]:
    rows = (
        members.annotate(
            has_topic=Case(When(topic="", then=Value(False)), default=Value(True)),
            has_several=Case(
                When(parent__isnull=True, parent_why__contains=SEVERAL, then=Value(True)), default=Value(False)
            ),
            work=Case(When(_TELLS_OF_WORK, then="links"), default=Value(""), output_field=TextField()),
        )
        .order_by("trace_key", "order_time", "order_source", "order_index", "record_id", "part")
        .values_list(*_COLUMNS)
    )
    for _, same in groupby(rows.iterator(chunk_size=_ROWS_AT_ONCE), key=itemgetter(0, 1, 2, 3)):
        yield from order_by_identity(list(same))


class _Gatherer:
    """Takes the rows of one trace in their order; who answers whom is known when all are there."""

    def __init__(self) -> None:
        self._strand = Strand()
        self._places: dict[bytes, int] = {}
        self._parents: list[bytes | None] = []
        self._conversations: dict[uuid.UUID, bytes] = {}

    def add(self, row: Sequence[Any]) -> None:
        (_, at, source, index, _, part, message_id, channel_id, conversation_id, dialect, performative) = row[:11]
        (sender, receivers, severity, told_digest, parent, parent_key, basis, has_topic, work, has_several) = row[11:]
        strand = self._strand
        links = read_links(work) if work else None
        group = self._conversations.setdefault(conversation_id, conversation_id.bytes)
        ghost = None
        if parent is None and parent_key is not None and basis:
            # The same id may be missing in two channels.
            ghost = bytes(parent_key) + channel_id.bytes
            if not has_several:
                strand.ghosts.add(ghost)
        self._places[message_id.bytes] = len(strand.knots)
        self._parents.append(parent.bytes if parent is not None and basis != ADJACENCY else None)
        strand.knots.append(
            Knot(
                id=message_id.bytes,
                mark=make_mark(source, index, part),
                at=count_microseconds(at),
                performative=None if links and links.work.is_public else performative,
                severity=severity,
                parent=None,
                ghost=ghost,
                group=group,
            )
        )
        strand.agents.update(name for name in (sender, *receivers) if name)
        strand.dialects[dialect] += 1
        is_public = links is not None and links.work.is_public
        if (performative in _REOPENS and not is_public) or (links is not None and links.is_retryable):
            strand.state = Conversation.State.OPEN
        elif performative in _STATES:
            strand.state = _STATES[performative]
        strand.severity = max(strand.severity, severity)
        strand.first_at = strand.first_at or at
        strand.last_at = at
        strand.digest.update(bytes(told_digest or b""))
        if has_topic:
            strand.named_of = strand.named_of or message_id
            if performative in ASKING:
                strand.asked_of = strand.asked_of or message_id

    def end(self) -> Strand:
        """The strand, each knot with the place of the message that it answers."""
        strand = self._strand
        for at, parent in enumerate(self._parents):
            place = self._places.get(parent) if parent is not None else None
            if place is not None:
                strand.knots[at] = strand.knots[at]._replace(parent=place)
                strand.answered.add(place)
            ghost = (strand.knots[at].ghost or b"")[:32]
            strand.digest.update(repr((place, ghost)).encode())
        strand.conversations = set(self._conversations.values())
        return strand


def _write_sums(traces: Sequence[Trace], strands: dict[uuid.UUID, Strand]) -> None:
    subjects: dict[uuid.UUID, uuid.UUID | None] = {
        trace.pk: strands[trace.pk].asked_of or strands[trace.pk].named_of for trace in traces
    }
    topics: dict[uuid.UUID | None, str] = defaultdict(str)
    topics.update(Message.objects.filter(pk__in=[pk for pk in subjects.values() if pk]).values_list("id", "topic"))
    now = timezone.now()
    rows = [_sum_up(trace, strands[trace.pk], topics[subjects[trace.pk]][:500], now) for trace in traces]
    update_rows(model=Trace, columns=_SUM_COLUMNS, rows=rows)


def _sum_up(trace: Trace, strand: Strand, subject: str, now: datetime) -> tuple[Any, ...]:
    asking = (at for at, knot in enumerate(strand.knots) if knot.performative in ASKING)
    return (
        trace.pk,
        trace.generation,
        now,
        strand.digest.digest(),
        strand.state,
        subject,
        list(strand.agents),
        [name for name, _ in strand.dialects.most_common()],
        len(strand.knots),
        len(strand.conversations),
        len(strand.ghosts),
        sum(at not in strand.answered for at in asking),
        strand.severity,
        strand.first_at,
        strand.last_at,
    )
