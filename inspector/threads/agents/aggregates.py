"""Aggregates of agents and pairs: who said how much to whom, in each conversation and in all, and what they declared. A
first or last time that a conversation takes back is looked up among the rows that are left."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Final, NamedTuple

from django.db import connection, models

from inspector.intake.bulk import insert_rows, update_rows

from ..models import Agent, AgentTotal, Conversation, Declaration, Exchange, Message, PairTotal
from ..models.agents import key_of_name, make_agent_id
from ..placing.nodes import StoredNode
from ..placing.places import count_microseconds, read_instant
from ..tasks.events import FAILING

Row = tuple[Any, ...]
# By what is counted: the counts, and the first and the last time.
Sums = dict[Row, list[Any]]
_KEYS: Final = ("sender_id", "receiver_id", "is_broadcast", "dialect")
_COLUMNS: Final = (*_KEYS, "messages", "failures", "sent", "failed", "first_at", "last_at")
_DECLARED: Final = ("agent_id", "message", "dialect", "kind", "value", "name", "at")


class _Total(NamedTuple):
    """A table of totals: its key, what it counts, and which exchanges a row of it is the sum of; two times follow."""

    keys: tuple[str, ...]
    counts: tuple[str, ...]
    unique: str
    same: str


_TOTALS: Final[Mapping[type[models.Model], _Total]] = {
    AgentTotal: _Total(
        ("workspace_id", "channel_id", "agent_id", "dialect"),
        ("sent", "received", "failures", "conversations"),
        "agent_id, dialect",
        "(row.sender_id = held.agent_id OR row.receiver_id = held.agent_id) AND held.dialect IN ('', row.dialect)",
    ),
    PairTotal: _Total(
        ("workspace_id", "channel_id", *_KEYS),
        ("messages", "failures"),
        "workspace_id, sender_id, receiver_id, is_broadcast, dialect, channel_id",
        # A null compares with nothing, and no index serves IS NOT DISTINCT FROM.
        "(row.sender_id = held.sender_id OR (row.sender_id IS NULL AND held.sender_id IS NULL"
        " AND row.receiver_id = held.receiver_id)) AND row.receiver_id IS NOT DISTINCT FROM held.receiver_id"
        " AND row.is_broadcast = held.is_broadcast AND row.dialect = held.dialect",
    ),
}


class Exchanges(NamedTuple):
    """What is counted of one conversation, and what is declared in it: rows; and the agents that they name, by id."""

    conversation: Conversation
    rows: frozenset[Row]
    names: Mapping[uuid.UUID, str]
    declared: frozenset[Row]


def _count(sums: Sums, key: Row, counts: Sequence[int], first_at: datetime | None, last_at: datetime | None) -> None:
    held = sums.get(key)
    if held is None:
        sums[key] = [*counts, first_at, last_at]
        return
    for place, number in enumerate(counts):
        held[place] += number
    held[-2], held[-1] = min(held[-2], first_at), max(held[-1], last_at)


def gather_exchanges(conversation: Conversation, nodes: Iterable[StoredNode]) -> Exchanges:
    """The rows of a conversation from its nodes in any order. A message counts with each agent that it names, and among
    what its sender `sent` once, with the first of them."""
    ids: dict[str, uuid.UUID] = {}
    pairs: Sums = {}
    declared: set[Row] = set()

    def identify(name: str) -> uuid.UUID:
        if name not in ids:
            ids[name] = make_agent_id(conversation.workspace_id, conversation.channel_id, name)
        return ids[name]

    for node in nodes:
        is_failure = int(node.performative in FAILING)
        sender = identify(node.sender) if node.sender else None
        receivers: list[uuid.UUID | None] = [*dict.fromkeys(identify(name) for name in node.receivers if name)]
        if sender is not None:
            for kind, value, name in node.declared:
                declared.add((sender, node.id, node.dialect, kind, value, name, node.at))
        elif not receivers:
            continue
        is_first = int(sender is not None)
        for receiver in receivers or [None]:
            key = (sender, receiver, receiver is None and node.is_broadcast, node.dialect)
            _count(pairs, key, (1, is_failure, is_first, is_first and is_failure), node.at, node.at)
            is_first = 0
    rows = frozenset((*key, *held) for key, held in pairs.items())
    return Exchanges(conversation, rows, {agent: name for name, agent in ids.items()}, frozenset(declared))


def write_counted(gathered: Exchanges) -> list[list[Any]]:
    """The rows that count, as JSON takes them; times in microseconds since 1970."""
    return [
        [*(part.hex if isinstance(part, uuid.UUID) else part for part in row[:-2]), *map(count_microseconds, row[-2:])]
        for row in gathered.rows
    ]


def add_rows(conversation: Conversation, blocks: Iterable[Iterable[Sequence[Any]]]) -> Exchanges:
    """The rows that count of a conversation, from those of its blocks as `write_counted` wrote them."""
    sums: Sums = {}
    for sender, receiver, is_broadcast, dialect, *counts, first_at, last_at in chain.from_iterable(blocks):
        ids = (None if name is None else uuid.UUID(hex=name) for name in (sender, receiver))
        _count(sums, (*ids, is_broadcast, dialect), counts, read_instant(first_at), read_instant(last_at))
    return Exchanges(conversation, frozenset((*key, *held) for key, held in sums.items()), {}, frozenset())


def write_declarations(gathered: Exchanges, messages: Sequence[uuid.UUID]) -> None:
    """Write what these messages declare, in the place of what they declared before, and the agents they name."""
    _insert_agents([gathered])
    _write_declared([gathered], gathered.conversation.declarations.filter(message__in=messages))


def _write_declared(gathered: Sequence[Exchanges], stored: models.QuerySet[Declaration]) -> None:
    known = {tuple(row): pk for pk, *row in stored.values_list("pk", "conversation_id", *_DECLARED)}
    rows = {(each.conversation.pk, *row): each for each in gathered for row in each.declared}
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
    heads = {each.conversation.pk: (each.conversation.workspace_id, each.conversation.channel_id) for each in gathered}
    stored = Exchange.objects.filter(conversation_id__in=list(heads))
    known = {tuple(row): pk for pk, *row in stored.values_list("pk", "conversation_id", *_COLUMNS)}
    rows = {(each.conversation.pk, *row) for each in gathered for row in each.rows}
    gone, fresh = known.keys() - rows, rows - known.keys()
    if fresh:
        _insert_agents(gathered)
    columns, key = ("conversation_id", *_COLUMNS), slice(1 + len(_KEYS))
    # Where nothing of a pair has changed but what is counted, its row stays.
    was = {row[key]: known[row] for row in gone}
    changed = {row: was.pop(row[key]) for row in fresh if row[key] in was}
    if was:
        Exchange.objects.filter(pk__in=list(was.values())).delete()
    update_rows(model=Exchange, columns=("id", *columns), rows=[(pk, *row) for row, pk in changed.items()])
    insert_rows(
        model=Exchange,
        columns=("workspace_id", *columns),
        rows=[(heads[row[0]][0], *row) for row in fresh - changed.keys()],
        order_by=columns[:3],
    )
    if has_declared:
        _write_declared(gathered, Declaration.objects.filter(conversation_id__in=list(heads)))
    new, old = _sum_totals(fresh, heads), _sum_totals(gone, heads)
    # In how many conversations an agent is named.
    named, was_named = _list_named(rows), _list_named(known)
    for sums, names in ((new, named - was_named), (old, was_named - named)):
        for conversation, agent, dialect in names:
            sums[AgentTotal][*heads[conversation], agent, dialect][3] += 1
    # The last rows that resolving locks, in one order: many conversations share them.
    for model in _TOTALS:
        _write_totals(model, new[model], old[model])


def _sum_totals(rows: Iterable[Row], heads: Mapping[uuid.UUID, Row]) -> dict[type[models.Model], Sums]:
    agents: Sums = {}
    pairs: Sums = {}
    for conversation, *key, messages, failures, sent, failed, first_at, last_at in rows:
        head = heads[conversation]
        _count(pairs, (*head, *key), (messages, failures), first_at, last_at)
        for agent, counts in zip(key[:2], ((sent, 0, failed, 0), (0, messages, 0, 0)), strict=True):
            for dialect in ("", key[-1]) if agent is not None else ():
                _count(agents, (*head, agent, dialect), counts, first_at, last_at)
    return {AgentTotal: agents, PairTotal: pairs}


def _list_named(rows: Iterable[Row]) -> set[Row]:
    """The agents of each conversation, in a dialect and in all ("")."""
    return {(row[0], agent, dialect) for row in rows for agent in row[1:3] if agent for dialect in ("", row[4])}


def _write_totals(model: type[models.Model], new: Sums, old: Sums) -> None:
    """Bring totals up to date, in one order so that nobody deadlocks; inside the transaction of the resolving."""
    table = _TOTALS[model]
    columns = (*table.keys, *table.counts, "first_at", "last_at")
    types = {field.column: field.db_type(connection) for field in model._meta.fields}
    nothing = [*[0] * len(table.counts), None, None]
    rows = []
    # Those of which a time has gone that may have been the first or the last, with none in its stead.
    stale = set[Row]()
    for key in sorted(new.keys() | old.keys(), key=lambda key: [str(part or "") for part in key]):
        now, was = new.get(key, nothing), old.get(key, nothing)
        rows.append((*key, *(one - other for one, other in zip(now[:-2], was[:-2], strict=True)), *now[-2:]))
        if key in old and (key not in new or was[-2] < now[-2] or was[-1] > now[-1]):
            stale.add(key)
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO {model._meta.db_table} AS held ({", ".join(columns)})
            SELECT * FROM unnest({", ".join(f"%s::{types[column]}[]" for column in columns)})
            ON CONFLICT ({table.unique}) DO UPDATE
               SET {", ".join(f"{name} = held.{name} + excluded.{name}" for name in table.counts)},
                   first_at = LEAST(held.first_at, excluded.first_at),
                   last_at = GREATEST(held.last_at, excluded.last_at)
            RETURNING id, {", ".join(table.keys)}""",  # noqa: S608
            [list(column) for column in zip(*rows, strict=True)],
        )
        found = [pk for pk, *key in cursor.fetchall() if tuple(key) in stale]
        if found:
            cursor.execute(
                f"""
                UPDATE {model._meta.db_table} AS held SET (first_at, last_at) = (
                    SELECT min(row.first_at), max(row.last_at) FROM threads_exchange AS row WHERE {table.same})
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
    columns = ("id", "workspace_id", "channel_id", "name", "name_key", "friendly_name")
    insert_rows(model=Agent, columns=columns, rows=wanted.values(), order_by=("id",))
