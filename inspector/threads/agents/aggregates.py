"""Aggregates of agents and pairs: who said how much to whom, in each conversation and in all, and what they declared.

A block counts its messages; a conversation's rows are the sum of its blocks, and a total is the sum of the rows of all
conversations. So the same records give the same counts in whatever order they came, and only rows that came out
otherwise are written. A first or last time that a conversation takes back is looked up among the rows that are left.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import add
from typing import Any, Final, NamedTuple, Protocol

from django.db import connection, models

from inspector.intake.bulk import insert_rows

from ..models import (
    Agent,
    AgentTotal,
    Appearance,
    Conversation,
    Declaration,
    Exchange,
    Message,
    PairTotal,
    key_of_name,
    make_agent_id,
)
from ..placing.nodes import StoredNode
from ..placing.places import count_microseconds, read_instant
from ..tasks.events import FAILING

Row = tuple[Any, ...]
Table = type[models.Model]


class _Counted(NamedTuple):
    """A table of counts: the columns that say of what, those that count, and its totals; two times follow."""

    keys: tuple[str, ...]
    counts: tuple[str, ...]
    total: Table
    # The key of a total, and which rows it is the sum of.
    total_key: str
    same: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.keys, *self.counts, "first_at", "last_at")

    def add(self, one: Row | None, other: Row) -> Row:
        """Two rows of one key as one."""
        if one is None:
            return other
        start, end = len(self.keys), -2
        counts = map(add, one[start:end], other[start:end])
        return (*one[:start], *counts, min(one[-2], other[-2]), max(one[-1], other[-1]))


_COUNTED: Final[Mapping[Table, _Counted]] = {
    Appearance: _Counted(
        ("agent_id", "dialect"),
        ("sent", "received", "failures"),
        AgentTotal,
        "agent_id, dialect",
        "row.agent_id = held.agent_id AND held.dialect IN ('', row.dialect)",
    ),
    Exchange: _Counted(
        ("sender_id", "receiver_id", "is_broadcast", "dialect"),
        ("messages", "failures"),
        PairTotal,
        "workspace_id, sender_id, receiver_id, is_broadcast, dialect, channel_id",
        "row.channel_id = held.channel_id AND row.sender_id IS NOT DISTINCT FROM held.sender_id"
        " AND row.receiver_id IS NOT DISTINCT FROM held.receiver_id"
        " AND row.is_broadcast = held.is_broadcast AND row.dialect = held.dialect",
    ),
}
_DECLARED: Final = ("agent_id", "message", "dialect", "kind", "value", "name", "at")


@dataclass(frozen=True, slots=True)
class Exchanges:
    """The rows of one conversation, by their tables, and the agents that they name, by id."""

    conversation: Conversation
    names: Mapping[uuid.UUID, str]
    rows: Mapping[Table, frozenset[Row]]


def gather_exchanges(conversation: Conversation, nodes: Iterable[StoredNode]) -> Exchanges:
    """The rows of a conversation from its nodes in any order: a message counts for its sender, and for each named."""
    ids: dict[str, uuid.UUID] = {}
    agents: dict[Row, list[Any]] = {}
    pairs: dict[Row, list[Any]] = {}
    declared: set[Row] = set()

    def identify(name: str) -> uuid.UUID:
        if name not in ids:
            ids[name] = make_agent_id(conversation.workspace_id, conversation.channel_id, name)
        return ids[name]

    def count(counts: dict[Row, list[Any]], key: Row, at: datetime | None, *more: int) -> None:
        held = counts.get(key)
        if held is None:
            counts[key] = [*more, at, at]
            return
        for place, number in enumerate(more):
            held[place] += number
        held[-2], held[-1] = min(held[-2], at), max(held[-1], at)

    for node in nodes:
        is_failure = int(node.performative in FAILING)
        sender = identify(node.sender) if node.sender else None
        receivers: list[uuid.UUID | None] = [*dict.fromkeys(identify(name) for name in node.receivers if name)]
        if sender is not None:
            count(agents, (sender, node.dialect), node.at, 1, 0, is_failure)
            for kind, value, name in node.declared:
                declared.add((sender, node.id, node.dialect, kind, value, name, node.at))
        for receiver in receivers or [None]:
            if receiver is not None:
                count(agents, (receiver, node.dialect), node.at, 0, 1, 0)
            if sender is not None or receiver is not None:
                is_broadcast = receiver is None and node.is_broadcast
                count(pairs, (sender, receiver, is_broadcast, node.dialect), node.at, 1, is_failure)
    rows: dict[Table, frozenset[Row]] = {
        model: frozenset((*key, *held) for key, held in counts.items())
        for model, counts in ((Appearance, agents), (Exchange, pairs))
    }
    names = {agent: name for name, agent in ids.items()}
    return Exchanges(conversation, names, {**rows, Declaration: frozenset(declared)})


class Summed(Protocol):
    """What a block adds up to of agents and pairs."""

    appearances: list[list[Any]]
    exchanges: list[list[Any]]


def write_counted(gathered: Exchanges, model: Table) -> list[list[Any]]:
    """The rows of a table that count, as JSON takes them; times in microseconds since 1970."""
    return [
        [*(part.hex if isinstance(part, uuid.UUID) else part for part in row[:-2]), *map(count_microseconds, row[-2:])]
        for row in gathered.rows[model]
    ]


def add_rows(conversation: Conversation, summaries: Iterable[Summed]) -> Exchanges:
    """The rows that count of a conversation, from those of its blocks as `write_counted` wrote them."""
    held: dict[Table, dict[Row, Row]] = {model: {} for model in _COUNTED}
    for summary in summaries:
        for model, written in ((Appearance, summary.appearances), (Exchange, summary.exchanges)):
            table = _COUNTED[model]
            names = sum(name.endswith("_id") for name in table.keys)
            for each in written:
                ids = (None if name is None else uuid.UUID(hex=name) for name in each[:names])
                row = (*ids, *each[names:-2], *map(read_instant, each[-2:]))
                key = row[: len(table.keys)]
                held[model][key] = table.add(held[model].get(key), row)
    rows = {model: frozenset(each.values()) for model, each in held.items()}
    return Exchanges(conversation, {}, {**rows, Declaration: frozenset()})


def write_declarations(gathered: Exchanges, messages: Sequence[uuid.UUID]) -> None:
    """Write what these messages declare, in the place of what they declared before, and the agents they name."""
    _insert_agents([gathered])
    stored = Declaration.objects.filter(conversation=gathered.conversation, message__in=messages)
    _write_declared([gathered], stored)


def _write_declared(gathered: Sequence[Exchanges], stored: models.QuerySet[Declaration]) -> None:
    known = {tuple(row): pk for pk, *row in stored.values_list("pk", "conversation_id", *_DECLARED)}
    rows = {(each.conversation.pk, *row): each for each in gathered for row in each.rows[Declaration]}
    if stale := [pk for row, pk in known.items() if row not in rows]:
        Declaration.objects.filter(pk__in=stale).delete()
    insert_rows(
        model=Declaration,
        columns=("workspace_id", "conversation_id", *_DECLARED),
        rows=[(each.conversation.workspace_id, *row) for row, each in rows.items() if row not in known],
        order_by=("conversation_id", *_DECLARED[:2]),
    )


def prune_declarations(conversation: Conversation) -> None:
    """Delete what messages of a conversation declared that are not shown any more."""
    shown = Message.objects.shown().filter(conversation=conversation).values("pk")
    Declaration.objects.filter(conversation=conversation).exclude(message__in=shown).delete()


def write_exchanges(gathered: Sequence[Exchanges], *, has_declared: bool = True) -> None:
    """Write the rows of these conversations that came out otherwise; call inside the transaction that holds them."""
    conversations = {each.conversation.pk: each.conversation for each in gathered}
    has_agents = False
    changed: list[tuple[_Counted, dict[Row, _Change]]] = []
    for model, table in _COUNTED.items():
        stored = model._default_manager.filter(conversation_id__in=list(conversations))
        known = {tuple(row): pk for pk, *row in stored.values_list("pk", "conversation_id", *table.columns)}
        rows = {(each.conversation.pk, *row) for each in gathered for row in each.rows[model]}
        gone, fresh = known.keys() - rows, rows - known.keys()
        if fresh and not has_agents:
            _insert_agents(gathered)
            has_agents = True
        if gone:
            model._default_manager.filter(pk__in=[known[row] for row in gone]).delete()
        heads = {pk: (each.workspace_id, each.channel_id) for pk, each in conversations.items()}
        insert_rows(
            model=model,
            columns=("workspace_id", "channel_id", "conversation_id", *table.columns),
            rows=[(*heads[row[0]], *row) for row in fresh],
            order_by=("conversation_id", *table.keys[:2]),
        )
        changes: dict[Row, _Change] = defaultdict(_Change)
        for pk, *row in gone:
            _count_change(changes, table, heads[pk], row, -1)
        for pk, *row in fresh:
            _count_change(changes, table, heads[pk], row, 1)
        if model is Appearance:
            # In how many conversations an agent is named, whatever the dialects.
            named, was_named = {row[:2] for row in rows}, {row[:2] for row in known}
            for pk, agent in named ^ was_named:
                changes[*heads[pk], agent, ""].counts[-1] += 1 if (pk, agent) in named else -1
        changed.append((table, changes))
    if has_declared:
        _write_declared(gathered, Declaration.objects.filter(conversation_id__in=list(conversations)))
    # The last rows that resolving locks, in one order: many conversations share them.
    for table, changes in changed:
        _write_totals(table, changes)


class _Change:
    """What a total changes by: its counts, and the first and last times that come and go."""

    def __init__(self) -> None:
        self.counts = [0, 0, 0, 0]
        self.times: dict[int, tuple[datetime, datetime]] = {}

    def add(self, counts: Sequence[int], first_at: datetime, last_at: datetime, sign: int) -> None:
        """A row that is there now, or is there no more."""
        for place, number in enumerate(counts):
            self.counts[place] += sign * number
        first, last = self.times.get(sign, (first_at, last_at))
        self.times[sign] = min(first, first_at), max(last, last_at)

    @property
    def must_look_up(self) -> bool:
        """Whether a time has gone that may have been the first or the last, with none in its stead."""
        gone, new = self.times.get(-1), self.times.get(1)
        return gone is not None and (new is None or gone[0] < new[0] or gone[1] > new[1])


def _count_change(changes: dict[Row, _Change], table: _Counted, head: Row, row: Sequence[Any], sign: int) -> None:
    key, (*counts, first_at, last_at) = tuple(row[: len(table.keys)]), row[len(table.keys) :]
    if table.total is PairTotal:
        changes[*head, *key].add(counts, first_at, last_at, sign)
        return
    changes[*head, *key].add((*counts, 1), first_at, last_at, sign)
    changes[*head, key[0], ""].add(counts, first_at, last_at, sign)


def _write_totals(table: _Counted, changes: Mapping[Row, _Change]) -> None:
    """Bring totals up to date, in one order so that nobody deadlocks; inside the transaction of the resolving."""
    if not changes:
        return
    counts = table.counts if table.total is PairTotal else (*table.counts, "conversations")
    keys = ("workspace_id", "channel_id", *table.keys)
    columns = (*keys, *counts, "first_at", "last_at")
    types = {field.column: field.db_type(connection) for field in table.total._meta.fields}
    ordered = sorted(changes.items(), key=lambda item: [str(part or "") for part in item[0]])
    rows = [(*key, *change.counts[: len(counts)], *change.times.get(1, (None, None))) for key, change in ordered]
    stale = {key for key, change in ordered if change.must_look_up}
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO {table.total._meta.db_table} AS held ({", ".join(columns)})
            SELECT * FROM unnest({", ".join(f"%s::{types[column]}[]" for column in columns)})
            ON CONFLICT ({table.total_key}) DO UPDATE
               SET {", ".join(f"{name} = held.{name} + excluded.{name}" for name in counts)},
                   first_at = LEAST(held.first_at, excluded.first_at),
                   last_at = GREATEST(held.last_at, excluded.last_at)
            RETURNING id, {", ".join(keys)}""",  # noqa: S608
            [list(column) for column in zip(*rows, strict=True)],
        )
        found = [pk for pk, *key in cursor.fetchall() if tuple(key) in stale]
        if found:
            source = next(model for model, each in _COUNTED.items() if each is table)._meta.db_table
            cursor.execute(
                f"""
                UPDATE {table.total._meta.db_table} AS held SET (first_at, last_at) = (
                    SELECT min(row.first_at), max(row.last_at) FROM {source} AS row
                     WHERE row.workspace_id = held.workspace_id AND {table.same})
                 WHERE id = ANY(%s)""",  # noqa: S608
                [found],
            )


def _insert_agents(gathered: Sequence[Exchanges]) -> None:
    """Make the rows of agents that have none; those of other workers that make the same are waited for in one order."""
    wanted = {
        agent: (agent, each.conversation.workspace_id, each.conversation.channel_id, name, key_of_name(name), "")
        for each in gathered
        for agent, name in each.names.items()
    }
    known = set(Agent.objects.filter(pk__in=list(wanted)).values_list("pk", flat=True))
    insert_rows(
        model=Agent,
        columns=("id", "workspace_id", "channel_id", "name", "name_key", "friendly_name"),
        rows=[row for agent, row in wanted.items() if agent not in known],
        order_by=("id",),
    )
