"""Strands: the messages of traces in the order of the timeline, and what they add up to.

Messages of one channel belong to the trace across channels as soon as one of them carries the id in an envelope, or the
id is random by form; else their channel has a trace of its own. Small facts of each are held, and no text.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from django.db.models import Case, Q, TextField, Value, When

from ..models import Conversation, Message, MessageQuerySet, Trace
from ..placing.instants import count_microseconds
from ..placing.keys import WIRE
from ..placing.links import read_links
from ..placing.nodes import make_mark, order_by_identity
from ..placing.several import SEVERAL
from .outline import ADJACENCY, ASKING, Knot

_ROWS_AT_ONCE: Final = 2000
_TIME_AND_PART: Final = struct.Struct(">qI")

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
    "trace_basis",
)
# The places of columns that those who read the rows decide by.
CHANNEL, BASIS = _COLUMNS.index("channel_id"), _COLUMNS.index("trace_basis")
# What names a message by what it says, whatever its random id: see `name_content`.
CONTENT: Final = ("order_time", "part", "told_digest")


@dataclass(slots=True)
class Strand:
    """The messages of one trace, or those appended to it, and what they add up to together with those before.

    Of what was appended `answers` says which message before it answers, by its place among the knots.
    """

    knots: list[Knot] = field(default_factory=list)
    agents: dict[str, None] = field(default_factory=dict)
    dialects: Counter[str] = field(default_factory=Counter)
    state: str = Conversation.State.OPEN
    # What is cited and was not received: the keys of ids, each with its channel.
    ghosts: set[tuple[bytes, uuid.UUID]] = field(default_factory=set)
    conversations: set[bytes] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)
    answers: dict[int, bytes] = field(default_factory=dict)
    # The ids of messages that are answered and not among these: they may belong to the trace later.
    awaited: set[bytes] = field(default_factory=set)
    # Of a trace across channels: those whose messages it has.
    channels: frozenset[uuid.UUID] = frozenset()
    severity: int = 0
    asked_of: uuid.UUID | None = None
    named_of: uuid.UUID | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    digest: bytes = b""

    def count_open(self) -> int:
        """How many requests nothing among these messages answers."""
        asking = (at for at, knot in enumerate(self.knots) if knot.performative in ASKING)
        return sum(at not in self.answered for at in asking)


def select_members(traces: Sequence[Trace]) -> MessageQuerySet:
    """The settled messages that may belong to these traces."""
    condition = Q(pk__in=())
    for channel_id, same in groupby(sorted(traces, key=_channel_name), key=lambda trace: trace.channel_id):
        keys = Q(trace_key__in=[bytes(trace.key) for trace in same])
        condition |= keys if channel_id is None else keys & Q(channel_id=channel_id)
    return Message.objects.shown().filter(condition, workspace_id=traces[0].workspace_id, place__isnull=False)


def _channel_name(trace: Trace) -> str:
    return str(trace.channel_id or "")


def load_strands(traces: Sequence[Trace], until: datetime | None = None) -> dict[uuid.UUID, Strand]:
    """What is drawn and summed up of each of these traces, of their messages until then where that is given.

    Which channels a trace has is decided by all of its messages nevertheless.
    """
    members = select_members(traces)
    if [each.channel_id is None for each in traces] == [False] and members.exclude(trace_basis=WIRE).exists():
        # The trace across channels has all of this channel's: however many they are, none of them is read.
        return {each.pk: Gatherer(Strand()).end() for each in traces}
    joined: set[tuple[bytes, uuid.UUID]] = {
        (bytes(key or b""), channel_id)
        for key, channel_id in members.exclude(trace_basis=WIRE).values_list("trace_key", "channel_id").distinct()
    }
    channels: dict[bytes, set[uuid.UUID]] = defaultdict(set)
    for key, channel_id in joined:
        channels[key].add(channel_id)
    wanted = {(bytes(trace.key), trace.channel_id): trace.pk for trace in traces}
    gatherers = {
        trace.pk: Gatherer(Strand(channels=frozenset() if trace.channel_id else frozenset(channels[bytes(trace.key)])))
        for trace in traces
    }
    for row in read_members(members if until is None else members.filter(order_time__lte=until)):
        key, channel_id = bytes(row[0]), row[CHANNEL]
        owner = wanted.get((key, None if (key, channel_id) in joined else channel_id))
        if owner is not None:
            gatherers[owner].add(row)
    return {pk: gatherer.end() for pk, gatherer in gatherers.items()}


def read_members(members: MessageQuerySet) -> Iterator[Sequence[Any]]:
    """The rows of these messages by trace id, in the order of the timeline, as a `Gatherer` takes them."""
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


def name_content(at: datetime, part: int, told_digest: bytes | None) -> bytes:
    """Sixteen bytes that name a message by its time and by how it is told, whatever it came with."""
    said = _TIME_AND_PART.pack(count_microseconds(at), part) + bytes(told_digest or b"")
    return hashlib.blake2b(said, digest_size=16).digest()


class Gatherer:
    """Takes the rows of one trace in their order; who answers whom is known when all are there."""

    def __init__(self, strand: Strand) -> None:
        """Begin with an empty strand, or with one that goes on from what was summed up before."""
        self._strand = strand
        self._places: dict[bytes, int] = {}
        self._parents: list[bytes | None] = []
        # By what content each message is known, and what it cites that is missing.
        self._contents: list[bytes] = []
        self._cited: dict[int, bytes] = {}
        self._conversations: dict[uuid.UUID, bytes] = {}

    def add(self, row: Sequence[Any]) -> None:
        """Take the next message."""
        (_, at, source, index, _, part, message_id, channel_id, conversation_id, dialect, performative) = row[:11]
        (sender, receivers, severity, told_digest, parent, parent_key, basis, has_topic, work, has_several) = row[11:21]
        strand = self._strand
        links = read_links(work) if work else None
        group = self._conversations.setdefault(conversation_id, conversation_id.bytes)
        ghost = None
        if parent is None and parent_key is not None and basis:
            self._cited[len(strand.knots)] = bytes(parent_key)
            # The same id may be missing in two channels; a line shows the beginning of its key.
            ghost = hashlib.sha256(bytes(parent_key) + channel_id.bytes).digest()
            if not has_several:
                strand.ghosts.add((bytes(parent_key), channel_id))
        self._places[message_id.bytes] = len(strand.knots)
        self._parents.append(parent.bytes if parent is not None and basis != ADJACENCY else None)
        self._contents.append(name_content(at, part, told_digest))
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
        strand.agents.update(dict.fromkeys(name for name in (sender, *receivers) if name))
        strand.dialects[dialect] += 1
        is_public = links is not None and links.work.is_public
        if (performative in _REOPENS and not is_public) or (links is not None and links.is_retryable):
            strand.state = Conversation.State.OPEN
        elif performative in _STATES:
            strand.state = _STATES[performative]
        strand.severity = max(strand.severity, severity)
        strand.first_at = strand.first_at or at
        strand.last_at = at
        if has_topic:
            strand.named_of = strand.named_of or message_id
            if performative in ASKING:
                strand.asked_of = strand.asked_of or message_id

    @property
    def outside(self) -> set[bytes]:
        """The ids of messages that are answered and are not among those taken."""
        return {parent for parent in self._parents if parent is not None and parent not in self._places}

    def end(self, before: Mapping[bytes, bytes] | None = None) -> Strand:
        """The strand, each knot with the place of the message that it answers.

        Args:
            before: of a strand that goes on: the messages before it that are answered, by id, each named by its
                content.
        """
        strand = self._strand
        for at, parent in enumerate(self._parents):
            answered = b""
            place = self._places.get(parent) if parent is not None else None
            if place is not None:
                strand.knots[at] = strand.knots[at]._replace(parent=place)
                strand.answered.add(place)
                answered = self._contents[place]
            elif parent is not None and before and parent in before:
                strand.answers[at] = parent
                answered = before[parent]
            elif parent is not None:
                strand.awaited.add(parent)
            said = self._contents[at] + answered.ljust(16, b"\0") + self._cited.get(at, b"")
            # A chain: what is appended goes on from the digest of what was there.
            strand.digest = hashlib.sha256(strand.digest + said).digest()
        strand.conversations = set(self._conversations.values())
        return strand
