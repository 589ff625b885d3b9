"""Strands: the messages of traces in the order of the timeline, and what they add up to.

Messages of one channel belong to the trace across channels as soon as one of them carries the id in an envelope, or the
id is random by form; else their channel has a trace of its own. Small facts of each are held, and no text.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from django.db.models import Case, Q, TextField, Value, When

from ..models import Conversation, Message, MessageQuerySet, Trace
from ..multiset import Multiset
from ..placing.keys import WIRE
from ..placing.links import read_links
from ..placing.nodes import make_mark, order_by_identity
from ..placing.several import SEVERAL
from .elements import Place, describe, name_content, number_element, read_place
from .outline import ADJACENCY, ASKING, Knot

_ROWS_AT_ONCE: Final = 2000

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
ID, CHANNEL, BASIS = (_COLUMNS.index(name) for name in ("id", "channel_id", "trace_basis"))


@dataclass(slots=True)
class Strand:
    """The messages of one trace, or those appended to it, and what they add up to together with those before.

    Of what was appended `answers` says which message before it answers, by its place among the knots. What the first
    message of something decides, or the last, is held with where that stands in the timeline.
    """

    knots: list[Knot] = field(default_factory=list)
    # In the order of their first appearance, each with the place of that.
    agents: dict[str, Place | None] = field(default_factory=dict)
    dialects: Counter[str] = field(default_factory=Counter)
    dialects_at: dict[str, Place] = field(default_factory=dict)
    state: str = Conversation.State.OPEN
    decided_at: Place | None = None
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
    # The first request with a topic, and the first message with one.
    asked_of: uuid.UUID | None = None
    asked_at: Place | None = None
    named_of: uuid.UUID | None = None
    named_at: Place | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    # What the digest is of.
    elements: Multiset = field(default_factory=Multiset)

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


def hash_ghost(cited: bytes, channel_id: uuid.UUID) -> bytes:
    """What a missing message is known by in a trace: the same id may be missing in two channels."""
    return hashlib.sha256(cited + channel_id.bytes).digest()


def find_missed(members: MessageQuerySet, keys: Collection[tuple[bytes, uuid.UUID]]) -> set[tuple[bytes, uuid.UUID]]:
    """Those of these keys that messages among the members cite and lack."""
    rows = members.filter(parent_key__in={key for key, _ in keys}, parent__isnull=True)
    rows = rows.exclude(parent_basis="").exclude(parent_why__contains=SEVERAL)
    found = rows.values_list("parent_key", "channel_id").distinct()
    return {(bytes(key or b""), channel_id) for key, channel_id in found}.intersection(keys)


class Gatherer:
    """Takes the rows of one trace in their order; who answers whom is known when all are there."""

    def __init__(self, strand: Strand) -> None:
        """Begin with an empty strand, or with one that goes on from what was summed up before."""
        self.strand = strand
        self._numbers: dict[bytes, int] = {}
        # Of each message by its number what it answers, where it stands and how it is told, and what it lacks.
        self.parents: list[bytes | None] = []
        self.places: list[Place] = []
        self.told: list[bytes] = []
        self.cited: dict[int, bytes] = {}
        self._conversations: dict[uuid.UUID, bytes] = {}

    def add(self, row: Sequence[Any]) -> None:
        """Take the next message."""
        (_, at, source, index, _, part, message_id, channel_id, conversation_id, dialect, performative) = row[:11]
        (sender, receivers, severity, told_digest, parent, parent_key, basis, has_topic, work, has_several) = row[11:21]
        strand, name = self.strand, message_id.bytes
        links = read_links(work) if work else None
        group = self._conversations.get(conversation_id)
        if group is None:
            group = self._conversations[conversation_id] = conversation_id.bytes
        ghost = None
        if parent is None and parent_key is not None and basis:
            self.cited[len(strand.knots)] = bytes(parent_key)
            ghost = hash_ghost(bytes(parent_key), channel_id)
            if not has_several:
                strand.ghosts.add((bytes(parent_key), channel_id))
        self._numbers[name] = len(strand.knots)
        self.parents.append(parent.bytes if parent is not None and basis != ADJACENCY else None)
        place = read_place(at, source, index, part)
        self.places.append(place)
        self.told.append(bytes(told_digest or b""))
        strand.knots.append(
            Knot(
                id=name,
                mark=make_mark(place[1], index, part),
                at=place[0],
                performative=None if links and links.work.is_public else performative,
                severity=severity,
                parent=None,
                ghost=ghost,
                group=group,
            )
        )
        for agent in (sender, *receivers):
            if agent and agent not in strand.agents:
                strand.agents[agent] = place
        if dialect not in strand.dialects:
            strand.dialects_at[dialect] = place
        strand.dialects[dialect] += 1
        is_public = links is not None and links.work.is_public
        if (performative in _REOPENS and not is_public) or (links is not None and links.is_retryable):
            strand.state, strand.decided_at = Conversation.State.OPEN, place
        elif performative in _STATES:
            strand.state, strand.decided_at = _STATES[performative], place
        strand.severity = max(strand.severity, severity)
        strand.first_at = strand.first_at or at
        strand.last_at = at
        if has_topic:
            if strand.named_of is None:
                strand.named_of, strand.named_at = message_id, place
            if strand.asked_of is None and performative in ASKING:
                strand.asked_of, strand.asked_at = message_id, place

    @property
    def outside(self) -> set[bytes]:
        """The ids of messages that are answered and are not among those taken."""
        return {parent for parent in self.parents if parent is not None and parent not in self._numbers}

    def end(self, before: Mapping[bytes, bytes] | None = None) -> Strand:
        """The strand, each knot with the number of the message that it answers.

        Args:
            before: of a strand that goes on: the messages before it that are answered, by id, each named by its
                content.
        """
        strand = self.strand
        strand.elements = strand.elements.add(self._link(before or {}))
        strand.conversations = set(self._conversations.values())
        return strand

    def _link(self, before: Mapping[bytes, bytes]) -> Iterator[bytes]:
        """Link the knots; what the digest has of each comes out on the way."""
        strand, cited = self.strand, self.cited
        names: dict[int, bytes] = {}
        # What stands at one instant, and how often.
        instant, counts = -1, dict[bytes, int]()
        for at, (parent, place, told) in enumerate(zip(self.parents, self.places, self.told, strict=True)):
            answered = b""
            number = self._numbers.get(parent) if parent is not None else None
            if number is not None:
                strand.knots[at] = strand.knots[at]._replace(parent=number)
                strand.answered.add(number)
                answered = names.get(number) or names.setdefault(number, self._name(number))
            elif parent is not None and parent in before:
                strand.answers[at] = parent
                answered = before[parent]
            elif parent is not None:
                strand.awaited.add(parent)
            if place[0] != instant:
                instant = place[0]
                counts.clear()
            said = describe(instant, place[3], told, answered, cited.get(at, b""))
            count = counts[said] = counts.get(said, -1) + 1
            yield number_element(said, count)

    def _name(self, number: int) -> bytes:
        at, _, _, part = self.places[number]
        return name_content(at, part, self.told[number])
