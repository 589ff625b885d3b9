"""Settling: a conversation's messages placed, told and outlined; a pure function of the set of its records.

What it depends on: the records of the conversation with their order keys, and the messages of the channel that they
cite. It reads the conversation's records in its timeline, so that definitions and sessions hold from where they were
said. It writes only the rows that came out differently, in batches, each of which proves that the lease still holds.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from django.db import transaction
from django.db.models.functions import Length
from django.utils import timezone

from dialects import Context, Entry, Message, Reading, choose_dialect, tell
from inspector.intake.bulk import cut_windows, update_rows
from inspector.intake.models import Record
from inspector.intake.text import make_storable

from .arriving import Arrival, hold_channels, read_record, replace_parts
from .lifecycle import derive_state
from .models import Conversation, OutlineChunk
from .models import Message as MessageRow
from .outline import outline, write_chunks
from .placing import Elsewhere, Node, SortKey, make_node, place
from .telling import ToldRow, make_row

WINDOW = 500
WINDOW_BYTES = 4 * 1024 * 1024
CACHED_BYTES = 8 * 1024 * 1024
# What is asked for names a conversation better than what is announced before it.
_ASKS = frozenset({"request", "query", "delegate", "propose", "subscribe"})

T = TypeVar("T")
Fence = Callable[[], None]


@dataclass(slots=True)
class Summary:
    """What a conversation's row says of its messages, gathered as they are told."""

    agents: Counter[str] = field(default_factory=Counter)
    dialects: Counter[str] = field(default_factory=Counter)
    acts: list[tuple[str | None, bool | None]] = field(default_factory=list)
    subject: str = ""
    severity: int = 0
    _is_asked: bool = False
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def take(self, row: ToldRow, message: Message, node: Node) -> None:
        """Add one told message, in the order of the timeline."""
        self.agents.update(name for name in (message.sender, *message.receivers) if name)
        self.dialects[node.dialect] += 1
        self.acts.append((message.performative, message.error.retryable if message.error else None))
        if message.topic and (not self.subject or (not self._is_asked and message.performative in _ASKS)):
            self.subject, self._is_asked = message.topic, message.performative in _ASKS
        self.severity = max(self.severity, row.severity)
        self.digest.update(row.digest())


def settle(*, conversation: Conversation, fence: Fence, finish: Callable[[], None]) -> None:
    """Place, tell and outline one conversation, and note up to which generation it is settled.

    Args:
        conversation: the row; its generation as loaded is what this run settles.
        fence: called inside every writing transaction, and as the sign of life between them; raises when another
            worker has taken over.
        finish: called inside the last one, so that the job ends together with its work.
    """
    readings = _Readings(conversation, fence)
    nodes = place(readings.load_nodes(), _look_up_in(conversation))
    summary = Summary()
    known = _known_digests(conversation)
    told = _told_rows(nodes, readings, conversation, summary, fence)
    changed = (row for row in told if known.get(row.id) != row.digest())
    for window in _windows(changed, lambda row: len(row.body)):
        with _alone(conversation, fence):
            _write(window)
    with _alone(conversation, fence):
        _write_outline(conversation, nodes)
        _write_summary(conversation, nodes, summary)
        finish()


@contextmanager
def _alone(conversation: Conversation, fence: Fence) -> Iterator[None]:
    """A transaction that locks the conversation and then its job, in the order in which arriving locks them."""
    with transaction.atomic():
        Conversation.objects.select_for_update(no_key=True).get(pk=conversation.pk)
        fence()
        yield


def _windows(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    return cut_windows(items, size_of=size_of, most_items=WINDOW, most_bytes=WINDOW_BYTES)


class _Readings:
    """The readings of a conversation's records: kept where they fit in memory, read again where they do not."""

    def __init__(self, conversation: Conversation, fence: Fence) -> None:
        self._conversation = conversation
        self._fence = fence
        self._sizes: dict[uuid.UUID, int] = {}
        self._cache: dict[uuid.UUID, Reading] = {}
        self._cached_bytes = 0

    def load_nodes(self) -> Iterator[Node]:
        """A node for each message, by order key; a record that was a guess takes the dialect spoken."""
        spoken = Context()
        # The identity settles what is equal in the order key; ids are random and must decide nothing.
        rows = (
            MessageRow.objects.shown()
            .filter(conversation=self._conversation)
            .order_by("order_time", "order_source", "order_index", "record__identity", "part")
        )
        found = rows.values_list("record_id", "id", "part", "dialect", Length("record__source"))
        parts: list[tuple[uuid.UUID, uuid.UUID, int, str]] = []
        for record_id, message_id, part, dialect, size in found.iterator(chunk_size=5000):
            parts.append((record_id, message_id, part, dialect))
            self._sizes[record_id] = size
        by_record = [(record_id, list(same)) for record_id, same in groupby(parts, key=itemgetter(0))]
        for window in _windows(by_record, lambda same: self.size_of(same[0])):
            self._fence()
            records = Record.objects.in_bulk([record_id for record_id, _ in window])
            for record_id, same in window:
                yield from self._make_nodes(records[record_id], same, spoken)

    def _make_nodes(
        self, record: Record, rows: Sequence[tuple[uuid.UUID, uuid.UUID, int, str]], spoken: Context
    ) -> Iterator[Node]:
        arrival = read_record(record)
        reading = choose_dialect(arrival.reading, spoken)
        if reading.dialect != "prose":
            spoken.add([Entry(kind="dialect", name=reading.dialect, value=reading.dialect)])
        ids = {part: message_id for _, message_id, part, _ in rows}
        if any(dialect != reading.dialect for *_, dialect in rows):
            with _alone(self._conversation, self._fence):
                ids = replace_parts(Arrival(record, reading, ()), self._conversation)
        self._cached_bytes += self.size_of(record.pk)
        if self._cached_bytes < CACHED_BYTES:
            self._cache[record.pk] = reading
        for message in reading.messages:
            if message.part in ids:
                yield make_node(
                    message_id=ids[message.part],
                    record=record.pk,
                    sort_key=_sort_key(record, message.part),
                    dialect=reading.dialect,
                    message=message,
                )

    def size_of(self, record_id: uuid.UUID) -> int:
        """How many bytes the record has."""
        return self._sizes[record_id]

    def find(self, record_ids: Iterable[uuid.UUID], dialects: Mapping[uuid.UUID, str]) -> dict[uuid.UUID, Reading]:
        """The readings of these records, each in the dialect that it was placed in."""
        wanted = list(record_ids)
        missing = [record_id for record_id in wanted if record_id not in self._cache]
        found = {record_id: self._cache[record_id] for record_id in wanted if record_id in self._cache}
        for record in Record.objects.filter(pk__in=missing):
            found[record.pk] = read_record(record, dialect=dialects[record.pk]).reading
        return found


def _sort_key(record: Record, part: int) -> SortKey:
    # The identity settles what is equal in everything else, so that the order is the same wherever it is computed.
    return (record.order_time, bytes(record.order_source), record.order_index, part, bytes(record.identity))


def _look_up_in(conversation: Conversation) -> Callable[[Iterable[bytes]], Mapping[bytes, Sequence[Elsewhere]]]:
    def look_up(keys: Iterable[bytes]) -> dict[bytes, list[Elsewhere]]:
        found: dict[bytes, list[Elsewhere]] = defaultdict(list)
        rows = (
            MessageRow.objects.shown()
            .filter(workspace_id=conversation.workspace_id, channel_id=conversation.channel_id, id_key__in=list(keys))
            .exclude(conversation=conversation)
            .values_list("id_key", "id", "trace_id")
        )
        with transaction.atomic():
            hold_channels([conversation.channel_id], is_shared=False)
            for key, message_id, trace in rows:
                found[bytes(key or b"")].append(Elsewhere(message_id, trace))
        return found

    return look_up


def _told_rows(
    nodes: Sequence[Node], readings: _Readings, conversation: Conversation, summary: Summary, fence: Fence
) -> Iterator[ToldRow]:
    """Each message told, in the order of the timeline. A record whose parts stand together is told once."""
    context = Context()
    runs = [list(same) for _, same in groupby(nodes, key=lambda node: node.record)]
    for window in _windows(runs, lambda run: readings.size_of(run[0].record)):
        fence()
        dialects = {run[0].record: run[0].dialect for run in window}
        found = readings.find(dialects, dialects)
        for run in window:
            reading = found[run[0].record]
            context.record, context.position = str(run[0].record), run[0].position + 1
            # The dialect was settled by the order key; told in turns, a guess must not be guessed again.
            told = tell(reading.replace(candidates=()), context)
            by_part = {message.part: message for message in told.messages}
            for node in run:
                message = by_part[node.part]
                row = make_row(
                    node=node, message=message, reading=reading, told=told, workspace_id=conversation.workspace_id
                )
                summary.take(row, message, node)
                yield row


def _known_digests(conversation: Conversation) -> dict[uuid.UUID, bytes]:
    rows = MessageRow.objects.filter(conversation=conversation, told_digest__isnull=False)
    return {message_id: bytes(digest or b"") for message_id, digest in rows.values_list("id", "told_digest")}


_TOLD_COLUMNS = (
    "id",
    "position",
    "run",
    "parent",
    "parent_key",
    "parent_basis",
    "parent_why",
    "severity",
    "is_sealed",
    "english",
    "body",
    "words",
    "atoms",
    "told_digest",
)


def _write(rows: Sequence[ToldRow]) -> None:
    values = [
        (
            row.id,
            row.position,
            row.run,
            row.parent,
            row.parent_key,
            row.parent_basis,
            make_storable(row.parent_why),
            row.severity,
            row.is_sealed,
            make_storable(row.english),
            row.body,
            make_storable(row.words),
            [make_storable(atom) for atom in row.atoms],
            row.digest(),
        )
        for row in rows
    ]
    update_rows(model=MessageRow, columns=_TOLD_COLUMNS, rows=values)


def _write_outline(conversation: Conversation, nodes: Sequence[Node]) -> None:
    rows = list(write_chunks(outline(nodes)))
    OutlineChunk.objects.filter(conversation=conversation).delete()
    OutlineChunk.objects.bulk_create(
        [OutlineChunk(conversation=conversation, number=number, nodes=text) for number, text in rows]
    )


def _write_summary(conversation: Conversation, nodes: Sequence[Node], summary: Summary) -> None:
    times = [node.sort_key[0] for node in nodes]
    Conversation.objects.filter(pk=conversation.pk).update(
        settled_generation=conversation.generation,
        settled_at=timezone.now(),
        settled_digest=summary.digest.digest(),
        state=derive_state(summary.acts),
        subject=make_storable(summary.subject)[:500],
        agents=[make_storable(name) for name in summary.agents],
        dialects=[name for name, _ in summary.dialects.most_common()],
        message_count=len(nodes),
        missing_count=len({node.ghost for node in nodes if node.ghost}),
        severity=summary.severity,
        first_at=min(times, default=None),
        last_at=max(times, default=None),
    )
