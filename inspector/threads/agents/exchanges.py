"""Who said how much to whom in a conversation, and what agents said of themselves: rows that settling writes.

They follow from the conversation's nodes alone, so that they are the same whatever came first; only rows that came out
otherwise are written.
"""

from __future__ import annotations

import uuid
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import add
from typing import Any, Final, Protocol

from django.db import models

from inspector.intake.bulk import insert_rows

from ..models import Conversation, Message
from ..placing.instants import count_microseconds, read_instant
from ..placing.nodes import StoredNode
from .tables import Agent, Appearance, Declaration, Exchange, key_of_name, make_agent_id
from .totals import Totals

# The acts that say that something did not work.
FAILING: Final = frozenset({"failure", "not-understood"})

_AGENT_COLUMNS = ("id", "workspace_id", "channel_id", "name", "name_key", "friendly_name")
_APPEARANCE_COLUMNS = ("agent_id", "dialect", "sent", "received", "failures", "first_at", "last_at")
_EXCHANGE_COLUMNS = (
    *("sender_id", "receiver_id", "is_broadcast", "dialect"),
    *("messages", "failures", "first_at", "last_at"),
)
_DECLARATION_COLUMNS = ("agent_id", "message", "dialect", "kind", "value", "name", "at")
_TABLES: Final[Mapping[type[models.Model], Sequence[str]]] = {
    Appearance: _APPEARANCE_COLUMNS,
    Exchange: _EXCHANGE_COLUMNS,
    Declaration: _DECLARATION_COLUMNS,
}

# Of the rows that count: how many of the columns say of what, and how many after them are counts; then come two times.
_COUNTS: Final[Mapping[type[models.Model], tuple[int, int]]] = {Appearance: (2, 3), Exchange: (4, 2)}

Row = tuple[Any, ...]


@dataclass(slots=True)
class _Tally:
    """What is counted of an agent, or of a pair; messages in order key, so that the first and last are at the ends."""

    sent: int = 0
    received: int = 0
    failures: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None

    def meet(self, at: datetime | None) -> None:
        """Note a time; they may come in any order."""
        if at is not None:
            self.first_at = at if self.first_at is None else min(self.first_at, at)
            self.last_at = at if self.last_at is None else max(self.last_at, at)


@dataclass(frozen=True, slots=True)
class Exchanges:
    """The rows of one conversation, by their tables, and the agents that they name, by id."""

    conversation: Conversation
    names: Mapping[uuid.UUID, str]
    rows: Mapping[type[models.Model], frozenset[Row]] = field(default_factory=dict)

    def add_to(self, stored: Mapping[type[models.Model], Iterable[Row]]) -> Exchanges:
        """These rows together with those that are stored: the counts of the same agents or pair are summed."""
        rows = dict(self.rows)
        for model, (keys, counts) in _COUNTS.items():
            held = {row[:keys]: row for row in stored[model]}
            for row in self.rows[model]:
                before = held.get(row[:keys])
                held[row[:keys]] = row if before is None else _sum_rows(before, row, keys, keys + counts)
            rows[model] = frozenset(held.values())
        return Exchanges(self.conversation, self.names, rows)


def _sum_rows(one: Row, other: Row, start: int, end: int) -> Row:
    counts = map(add, one[start:end], other[start:end])
    return (*one[:start], *counts, min(one[end], other[end]), max(one[end + 1], other[end + 1]))


def gather_exchanges(conversation: Conversation, nodes: Iterable[StoredNode]) -> Exchanges:
    """The rows of a conversation, from its nodes in any order."""
    gathering = _Gathering(conversation)
    for node in nodes:
        gathering.take(node)
    return gathering.finish()


class _Gathering:
    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._ids: dict[str, uuid.UUID] = {}
        self._agents: dict[tuple[uuid.UUID, str], _Tally] = {}
        self._pairs: dict[tuple[uuid.UUID | None, uuid.UUID | None, bool, str], _Tally] = {}
        self._declared: set[Row] = set()

    def take(self, node: StoredNode) -> None:
        """Count a message: once for its sender, once for each whom it names."""
        is_failure = node.performative in FAILING
        sender = self._find(node.sender) if node.sender else None
        receivers: list[uuid.UUID | None] = [*dict.fromkeys(self._find(name) for name in node.receivers if name)]
        if sender is not None:
            tally = self._agents.setdefault((sender, node.dialect), _Tally())
            tally.sent += 1
            tally.failures += is_failure
            tally.meet(node.at)
            for kind, value, name in node.declared:
                self._declared.add((sender, node.id, node.dialect, kind, value, name, node.at))
        for receiver in receivers or [None]:
            if receiver is not None:
                tally = self._agents.setdefault((receiver, node.dialect), _Tally())
                tally.received += 1
                tally.meet(node.at)
            tally = self._pairs.setdefault(
                (sender, receiver, receiver is None and node.is_broadcast, node.dialect), _Tally()
            )
            tally.sent += 1
            tally.failures += is_failure
            tally.meet(node.at)

    def _find(self, name: str) -> uuid.UUID:
        if name not in self._ids:
            conversation = self._conversation
            self._ids[name] = make_agent_id(conversation.workspace_id, conversation.channel_id, name)
        return self._ids[name]

    def finish(self) -> Exchanges:
        """The rows; a message of which neither side has a name leaves none."""
        return Exchanges(
            self._conversation,
            {agent: name for name, agent in self._ids.items()},
            {
                Appearance: frozenset(
                    (*key, tally.sent, tally.received, tally.failures, tally.first_at, tally.last_at)
                    for key, tally in self._agents.items()
                ),
                Exchange: frozenset(
                    (*key, tally.sent, tally.failures, tally.first_at, tally.last_at)
                    for key, tally in self._pairs.items()
                    if key[0] or key[1]
                ),
                Declaration: frozenset(self._declared),
            },
        )


class Counted(Protocol):
    """What a block adds up to of agents and pairs."""

    appearances: list[list[Any]]
    exchanges: list[list[Any]]


def write_counted(gathered: Exchanges, model: type[models.Model]) -> list[list[Any]]:
    """The rows of a table that count, as JSON takes them; times in microseconds since 1970."""
    return [
        [*(part.hex if isinstance(part, uuid.UUID) else part for part in row[:-2]), *map(count_microseconds, row[-2:])]
        for row in gathered.rows[model]
    ]


def add_rows(conversation: Conversation, summaries: Iterable[Counted]) -> Exchanges:
    """The rows that count of a conversation, from those of its blocks as `write_counted` wrote them."""
    held: dict[type[models.Model], dict[Row, Row]] = {model: {} for model in _COUNTS}
    for summary in summaries:
        for model, written in ((Appearance, summary.appearances), (Exchange, summary.exchanges)):
            keys, counts = _COUNTS[model]
            for each in written:
                row = _read_counted(each, model)
                before = held[model].get(row[:keys])
                held[model][row[:keys]] = row if before is None else _sum_rows(before, row, keys, keys + counts)
    rows = {model: frozenset(each.values()) for model, each in held.items()}
    return Exchanges(conversation, {}, {**rows, Declaration: frozenset()})


def _read_counted(written: Sequence[Any], model: type[models.Model]) -> Row:
    names = 1 if model is Appearance else 2
    ids = (None if name is None else uuid.UUID(hex=name) for name in written[:names])
    return (*ids, *written[names:-2], *map(read_instant, written[-2:]))


def write_declarations(gathered: Exchanges, messages: Sequence[uuid.UUID]) -> None:
    """Write what these messages declare, in the place of what they declared before, and the agents they name."""
    conversation = gathered.conversation
    columns = _TABLES[Declaration]
    stored = {
        tuple(row): pk
        for pk, *row in Declaration.objects.filter(conversation=conversation, message__in=messages).values_list(
            "pk", *columns
        )
    }
    rows = gathered.rows[Declaration]
    stale = [pk for row, pk in stored.items() if row not in rows]
    fresh = [(conversation.workspace_id, conversation.pk, *row) for row in rows if row not in stored]
    _insert_agents([gathered])
    if stale:
        Declaration.objects.filter(pk__in=stale).delete()
    insert_rows(
        model=Declaration,
        columns=("workspace_id", "conversation_id", *columns),
        rows=fresh,
        order_by=("conversation_id", *columns[:2]),
    )


def prune_declarations(conversation: Conversation) -> None:
    """Delete what messages of a conversation declared that are not shown any more."""
    shown = Message.objects.shown().filter(conversation=conversation).values("pk")
    Declaration.objects.filter(conversation=conversation).exclude(message__in=shown).delete()


def write_exchanges(
    gathered: Sequence[Exchanges], *, resumed: Container[uuid.UUID] = (), has_declared: bool = True
) -> None:
    """Write the rows of these conversations that came out otherwise; call inside the transaction that holds them.

    Args:
        gathered: the rows of each conversation.
        resumed: the ids of those whose rows come to what is stored, each of them a sum of messages added.
        has_declared: whether what was declared is written with them.
    """
    totals = Totals()
    known = {model: _read_rows(model, [each.conversation.pk for each in gathered]) for model in _COUNTS}
    # What was declared belongs to one message each: what is added stands there for the first time.
    known[Declaration] = _read_rows(
        Declaration,
        [each.conversation.pk for each in gathered if has_declared and each.conversation.pk not in resumed],
    )
    gathered = [
        each.add_to({model: known[model].get(each.conversation.pk, {}) for model in _COUNTS})
        if each.conversation.pk in resumed
        else each
        for each in gathered
    ]
    fresh: dict[type[models.Model], list[Row]] = {model: [] for model in _TABLES}
    stale: dict[type[models.Model], list[int]] = {model: [] for model in _TABLES}
    for each in gathered:
        conversation = each.conversation
        for model, rows in each.rows.items():
            stored = known[model].get(conversation.pk, {})
            totals.take(model, conversation, before=stored.keys(), after=rows)
            stale[model] += [pk for row, pk in stored.items() if row not in rows]
            head: Row = (conversation.workspace_id, conversation.pk)
            if model is not Declaration:
                head = (*head, conversation.channel_id)
            fresh[model] += [(*head, *row) for row in rows if row not in stored]
    if fresh[Appearance] or fresh[Exchange]:
        _insert_agents(gathered)
    for model, columns in _TABLES.items():
        if stale[model]:
            model._default_manager.filter(pk__in=stale[model]).delete()
        if fresh[model]:
            head_columns = ("workspace_id", "conversation_id", *(() if model is Declaration else ("channel_id",)))
            insert_rows(
                model=model,
                columns=(*head_columns, *columns),
                rows=fresh[model],
                order_by=("conversation_id", columns[0], columns[1]),
            )
    # The last rows that settling locks, in one order: many conversations share them.
    totals.write()


def _read_rows(model: type[models.Model], conversation_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, dict[Row, int]]:
    found: dict[uuid.UUID, dict[Row, int]] = {}
    rows = model._default_manager.filter(conversation_id__in=list(conversation_ids))
    for conversation_id, pk, *row in rows.values_list("conversation_id", "pk", *_TABLES[model]):
        found.setdefault(conversation_id, {})[tuple(row)] = pk
    return found


def _insert_agents(gathered: Sequence[Exchanges]) -> None:
    """Make the rows of agents that have none; those of other workers that make the same are waited for in one order."""
    wanted = {
        agent: (agent, each.conversation.workspace_id, each.conversation.channel_id, name, key_of_name(name), "")
        for each in gathered
        for agent, name in each.names.items()
    }
    known = set(Agent.objects.filter(pk__in=list(wanted)).values_list("pk", flat=True))
    rows = [row for agent, row in wanted.items() if agent not in known]
    if rows:
        insert_rows(model=Agent, columns=_AGENT_COLUMNS, rows=rows, order_by=("id",))
