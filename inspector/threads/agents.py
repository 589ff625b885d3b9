"""Agents: what people call one, whom a name means, and by which names one is found; and aggregates of agents and pairs.

An agent is called by the name that an auditor gave it, else by that of the agent it is one with, else by the convention
of its dialect; nothing stored depends on it. A name means, in any letter case, who bears it on the wire, whom an
auditor calls so, who is one with either, and who is called so by convention wherever no auditor says otherwise.

Aggregates say who sent how much to whom, in each conversation and in all, and what agents declared. A first or last
time that a conversation takes back is looked up among the rows that are left.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

from django.db import connection, models
from django.db.models import Q

from dialects import all_dialects
from inspector.accounts.models import Workspace
from inspector.database import insert_rows, make_storable, update_rows

from .keys import count_microseconds, read_instant
from .models import (
    Agent,
    AgentTotal,
    Conversation,
    Declaration,
    Exchange,
    Message,
    PairTotal,
    key_of_name,
    make_agent_id,
)
from .nodes import StoredNode
from .states import FAILING
from .terms import fold

MAX_LABELS: Final = 10_000
MAX_MEANINGS: Final = 200

# The names that agents bear by the convention of a dialect, by dialect and by the name on the wire.
CONVENTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    dialect.slug: dialect.agents for dialect in all_dialects() if dialect.agents
}


class Label(NamedTuple):
    """What an agent is called, and who says so: an auditor (given, joined) or a dialect (convention)."""

    text: str
    basis: Literal["given", "joined", "convention"]


def label_agent(agent: Agent, dialects: Iterable[str]) -> Label | None:
    """The label of an agent (with `same_as` loaded) that speaks these dialects; None where it has its own name."""
    if agent.friendly_name:
        return Label(agent.friendly_name, "given")
    if agent.same_as is not None:
        principal = label_agent(agent.same_as, dialects)
        return Label(principal.text if principal else agent.same_as.name, "joined")
    return label_by_convention(agent.name, dialects)


def label_by_convention(name: str, dialects: Iterable[str]) -> Label | None:
    """The name that a dialect's convention gives, or None."""
    texts = (CONVENTIONS.get(dialect, {}).get(name) for dialect in dialects)
    return next((Label(text, "convention") for text in texts if text is not None), None)


class Labels(NamedTuple):
    """The labels of the agents of a page."""

    workspace_id: uuid.UUID
    agents: Mapping[uuid.UUID, Agent]
    # Those that the agents bear on the wire: all others need no look-up.
    names: frozenset[str]

    def find(self, channel_id: uuid.UUID, name: str, dialects: Iterable[str] = ()) -> Label | None:
        """The label of the agent of this name in a channel, as one who speaks these dialects; None for none."""
        agent = self.agents.get(self.identify(channel_id, name)) if name in self.names else None
        return label_agent(agent, dialects) if agent else label_by_convention(name, dialects)

    def identify(self, channel_id: uuid.UUID, name: str) -> uuid.UUID:
        """The agent's own id."""
        return make_agent_id(self.workspace_id, channel_id, name)

    def who(self, channel_id: uuid.UUID, name: str) -> uuid.UUID:
        """The id of the agent that the agent of this name is known by: its own, or that of the one it is joined to."""
        agent_id = self.identify(channel_id, name)
        agent = self.agents.get(agent_id)
        return (agent.same_as_id if agent else None) or agent_id


def load_labels(*, workspace_id: uuid.UUID) -> Labels:
    """The labels of the workspace's agents, in one statement: auditors give them one by one, so that they are few."""
    spoken_of = Q(friendly_key__isnull=False) | Q(same_as__isnull=False)
    rows = Agent.objects.select_related("same_as").filter(spoken_of, workspace_id=workspace_id).order_by("pk")
    agents = {agent.pk: agent for agent in rows[:MAX_LABELS]}
    principals = (agent.same_as for agent in agents.values() if agent.same_as)
    return Labels(workspace_id, agents, frozenset(agent.name for agent in (*agents.values(), *principals)))


class Meaning(NamedTuple):
    """Whom a name means on the wire: an agent of one channel, or of a dialect in all but some channels, or of both."""

    name: str
    channel_id: uuid.UUID | None = None
    dialect: str = ""
    but_in: tuple[uuid.UUID, ...] = ()


def find_meanings(*, workspace: Workspace, names: Collection[str]) -> list[Meaning]:
    """Whom these names mean beside those who bear them on the wire, some `MAX_MEANINGS`; one statement."""
    return KnownNames(load_labels(workspace_id=workspace.pk)).find_meanings(names)


def select_naming(*, workspace: Workspace, name: str) -> Q:
    """The condition for conversations or traces that name an agent who is called by this name in their channel."""
    named = Q(agents__contains=[name])
    for each in find_meanings(workspace=workspace, names=[name]):
        called = Q(agents__contains=[each.name])
        called &= Q(dialects__contains=[each.dialect]) if each.dialect else Q()
        if each.channel_id:
            called &= Q(channel=each.channel_id) | Q(channel=None)
        elif each.but_in:
            called &= ~Q(channel__in=each.but_in)
        named |= called
    return named


class KnownNames:
    """Whom a name means, and by which names an agent is found: one meaning, told from either end, by loaded labels."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._found: dict[tuple[uuid.UUID, str, str], frozenset[str]] = {}
        # By the agent that all of them are known by: they, and what any of them is called.
        self._every: dict[uuid.UUID, dict[uuid.UUID, Agent]] = defaultdict(dict)
        self._texts: dict[uuid.UUID, set[str]] = defaultdict(set)
        self._bearers: dict[tuple[uuid.UUID, str], set[uuid.UUID]] = defaultdict(set)
        # Where an auditor says otherwise than a convention; and who is called as one whom a convention may name.
        self._said_otherwise: dict[str, list[uuid.UUID]] = defaultdict(list)
        self._joined: dict[str, list[Agent]] = defaultdict(list)
        for agent in labels.agents.values():
            principal = agent.same_as or agent
            for each in (agent, principal):
                self._every[principal.pk][each.pk] = each
                self._texts[principal.pk].update(fold(text) for text in (each.name, each.friendly_name) if text)
                self._bearers[each.channel_id, fold(each.name)].add(principal.pk)
            self._said_otherwise[agent.name].append(agent.channel_id)
            if agent.same_as is not None and not agent.friendly_name and not agent.same_as.friendly_name:
                self._joined[agent.same_as.name].append(agent)

    def find_meanings(self, names: Collection[str]) -> list[Meaning]:
        """Whom these names mean beside those who bear them on the wire, some `MAX_MEANINGS`."""
        folded = {fold(make_storable(name)) for name in names}
        meant = [self._every[pk] for pk, texts in self._texts.items() if texts & folded]
        others = {pk: each for every in meant for pk, each in every.items() if fold(each.name) not in folded}
        found = [Meaning(others[pk].name, channel_id=others[pk].channel_id) for pk in sorted(others)[:MAX_MEANINGS]]
        for dialect, customs in CONVENTIONS.items():
            for on_wire in (name for name, text in customs.items() if fold(text) in folded):
                found.append(Meaning(on_wire, dialect=dialect, but_in=tuple(self._said_otherwise.get(on_wire, ()))))
                found += [Meaning(each.name, each.channel_id, dialect) for each in self._joined.get(on_wire, ())]
        return found

    def find(self, channel_id: uuid.UUID, dialect: str, name: str) -> frozenset[str]:
        """The names, folded, by which a search finds what the agent of this name says in a channel and a dialect."""
        if (channel_id, dialect, name) not in self._found:
            self._found[channel_id, dialect, name] = frozenset(self._gather(channel_id, dialect, name))
        return self._found[channel_id, dialect, name]

    def _gather(self, channel_id: uuid.UUID, dialect: str, name: str) -> set[str]:
        borne = (channel_id, fold(name))
        found = {borne[1]}.union(*(self._texts[principal] for principal in self._bearers.get(borne, ())))
        for on_wire, text in CONVENTIONS.get(dialect, {}).items():
            is_meant = name == on_wire and channel_id not in self._said_otherwise.get(name, ())
            if is_meant or any((each.channel_id, fold(each.name)) == borne for each in self._joined.get(on_wire, ())):
                found.add(fold(text))
        return found

    def list_beginning(self, beginning: str) -> list[str]:
        """The names that begin so by which somebody is found who bears another on the wire."""
        texts = {text for names in self._texts.values() for text in names}
        texts |= {fold(text) for names in CONVENTIONS.values() for text in names.values()}
        return sorted(text for text in texts if text.startswith(fold(beginning)))[:MAX_MEANINGS]

    def show(self, channel_id: uuid.UUID, dialect: str, name: str) -> str:
        """What the agent is called on a page; it is found by that name."""
        label = self._labels.find(channel_id, name, (dialect,))
        return label.text if label else name


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
