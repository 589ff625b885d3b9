"""Reads of agents and pairs: the directory, one agent, who said how much to whom. Sums of totals, not of messages. And
the keys that agents show: which are others than the same agent showed in another conversation of the channel.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

from django.contrib.postgres.aggregates import ArrayAgg, BoolOr
from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import Count, Exists, F, Func, Max, Min, OuterRef, Q, QuerySet, Sum, UUIDField, Value, Window
from django.db.models.functions import Coalesce, Left

from dialects import all_dialects
from inspector.accounts.models import Channel, Workspace
from inspector.characters import Likeness, find_likenesses, find_oddities
from inspector.database import HasAnyBit, WrittenSince, read_from
from inspector.threads.agents import CONVENTIONS, Label, label_agent
from inspector.threads.models import Agent, AgentTotal, Conversation, Declaration, Exchange, Message, PairTotal
from inspector.threads.models.agents import make_agent_id
from inspector.threads.selectors import count_hidden_in, opening_of
from inspector.threads.tasks import annotate_stands
from inspector.threads.terms import FLAGGED, OF_KEYS, RuleFlag

# How many of the busiest agents of a workspace are compared for confusable names.
MAX_COMPARED: Final = 2000
MAX_COMPARED_CHARACTERS: Final = 200
MAX_MATCHES: Final = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which part of a workspace is looked at; what is empty or None narrows nothing. `name` is part of a name."""

    channel: Channel | None = None
    dialect: str = ""
    name: str = ""

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.channel or self.dialect or self.name)


EVERYTHING: Final = Choice()
# What was withdrawn leaves rows that come to nothing.
SAID_SOMETHING: Final = Q(sent__gt=0) | Q(received__gt=0)
_WHO: Final = Coalesce("agent__same_as", "agent")
_SUMMED: Final = ("sent", "received", "failures", "conversations", "first_at", "last_at")


class AgentSum(NamedTuple):
    """One agent of the directory: the agent it is known by, those that are one with it, and what they did together."""

    agent: Agent
    aliases: Sequence[Agent]
    dialects: Sequence[str]
    sent: int
    received: int
    failures: int
    conversations: int
    first_at: datetime | None
    last_at: datetime | None

    @property
    def total(self) -> int:
        """Messages sent and received: by it the directory is in order."""
        return self.sent + self.received

    @property
    def label(self) -> Label | None:
        return label_agent(self.agent, self.dialects)

    @property
    def every(self) -> Sequence[Agent]:
        """All that are this one agent, the one it is known by first."""
        return (self.agent, *self.aliases)


def list_agents(
    *,
    workspace: Workspace,
    choice: Choice = EVERYTHING,
    after: tuple[int, uuid.UUID] | None = None,
    limit: int = 50,
    is_by_id: bool = False,
    since: int | None = None,
    only: Sequence[uuid.UUID] | None = None,
) -> list[AgentSum]:
    """Agents by how much they say and are told, the busiest first, by keyset; four statements at most. `after` is
    (total, id) of the last one seen. `is_by_id`: in the order of their ids, in which none moves; of `after` the id
    alone counts then. `since`: only those of which a total was written since this transaction (`WrittenSince`). `only`:
    the ids wanted, each by which an agent is known."""
    # A row for each agent: of the dialect that is chosen, else of all.
    rows: QuerySet[Any] = AgentTotal.objects.filter(SAID_SOMETHING, workspace=workspace, dialect=choice.dialect)
    if choice.channel:
        rows = rows.filter(channel=choice.channel)
    sums: QuerySet[Any] = rows.values(who=_WHO).annotate(total=Sum(F("sent") + F("received")))
    if choice.name:
        sums = sums.filter(who__in=list(find_named(workspace=workspace, name=choice.name)))
    if since is not None:
        sums = sums.annotate(is_written=BoolOr(WrittenSince(since))).filter(is_written=True)
    if only is not None:
        sums = sums.filter(who__in=only)
    if after:
        busier = Q(total__lt=after[0]) | Q(total=after[0], who__gt=after[1])
        sums = sums.filter(Q(who__gt=after[1]) if is_by_id else busier)
    ordered = sums.order_by(*(() if is_by_id else ("-total",)), "who")
    ids = list(ordered.values_list("who", flat=True)[:limit])
    found = sum_agents(workspace=workspace, agent_ids=ids, choice=choice)
    shared = _count_shared(found.values(), choice)
    return [found[pk]._replace(conversations=shared.get(pk, found[pk].conversations)) for pk in ids]


def count_agents(*, workspace: Workspace, most: int) -> int:
    """How many agents `list_agents` lists of everything, at most so many."""
    rows = AgentTotal.objects.filter(SAID_SOMETHING, workspace=workspace, dialect=EVERYTHING.dialect)
    return rows.values(who=_WHO).distinct()[:most].count()


def sum_agents(
    *, workspace: Workspace, agent_ids: Sequence[uuid.UUID], choice: Choice = EVERYTHING
) -> dict[uuid.UUID, AgentSum]:
    """The agents of these ids, each summed up with those that are one with it; one statement. A conversation of several
    of its names counts for each of them here."""
    rows = Agent.objects.select_related("channel", "same_as", "same_as__channel").annotate(
        of_dialect=F("totals__dialect"), **{f"of_{name}": F(f"totals__{name}") for name in _SUMMED}
    )
    found: dict[uuid.UUID, dict[uuid.UUID, Agent]] = {pk: {} for pk in agent_ids}
    said: dict[uuid.UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.filter(Q(pk__in=agent_ids) | Q(same_as__in=agent_ids), workspace=workspace).order_by("name", "pk"):
        values = vars(row)
        is_chosen = choice.channel is None or row.channel_id == choice.channel.pk
        for pk in found.keys() & {row.pk, row.same_as_id or row.pk}:
            found[pk][row.pk] = row
            if is_chosen and (values["of_sent"] or values["of_received"]):
                said[pk].append(values)
    return {pk: _sum_agent(agents, pk, said[pk], choice.dialect) for pk, agents in found.items() if pk in agents}


def _sum_agent(
    agents: dict[uuid.UUID, Agent], pk: uuid.UUID, said: Sequence[Mapping[str, Any]], dialect: str
) -> AgentSum:
    sums = [row for row in said if row["of_dialect"] == dialect]
    dialects = {row["of_dialect"] for row in said} - {""}
    return AgentSum(
        agents[pk],
        [each for each in agents.values() if each.pk != pk],
        dialects=sorted(dialects & {dialect} if dialect else dialects),
        first_at=min((row["of_first_at"] for row in sums if row["of_first_at"]), default=None),
        last_at=max((row["of_last_at"] for row in sums if row["of_last_at"]), default=None),
        **{name: sum(row[f"of_{name}"] for row in sums) for name in _SUMMED[:4]},
    )


def _count_shared(sums: Iterable[AgentSum], choice: Choice) -> dict[uuid.UUID, int]:
    """The conversations of those that have several names: one that holds two of them counts once."""
    who = {
        each.pk: row.agent.pk
        for row in sums
        if row.aliases
        for each in row.every
        if choice.channel is None or each.channel_id == choice.channel.pk
    }
    if not who:
        return {}
    with read_from().cursor() as cursor:
        cursor.execute(
            """
            SELECT who, count(DISTINCT conversation_id)
              FROM unnest(%s::uuid[], %s::uuid[]) AS named (agent, who)
              JOIN threads_exchange AS row ON (row.sender_id = agent OR row.receiver_id = agent)
             WHERE %s IN ('', dialect) GROUP BY who
            """,
            [list(who), list(who.values()), choice.dialect],
        )
        return dict(cursor.fetchall())


def find_named(*, workspace: Workspace, name: str) -> set[uuid.UUID]:
    """The agents in whose name or friendly name this stands, in any case: each by the id that it is known by."""
    agents = Agent.objects.filter(workspace=workspace)
    meant = Q(name__icontains=name) | Q(friendly_name__icontains=name)
    for dialect, names in CONVENTIONS.items():
        on_wire = [one for one, text in names.items() if name.casefold() in text]
        if on_wire:
            meant |= Q(name__in=on_wire, friendly_name="", same_as=None, totals__dialect=dialect)
    found = agents.filter(meant).annotate(who=Coalesce("same_as", "pk")).values_list("who", flat=True)
    return set(found.distinct()[:MAX_MATCHES])


def find_customs(*, workspace: Workspace, agents: Iterable[Agent]) -> dict[uuid.UUID, list[str]]:
    """Which of these agents speak a dialect in which their name has a meaning by convention; at most one statement."""
    names = {name for names in CONVENTIONS.values() for name in names}
    ids = [agent.pk for agent in agents if agent.name in names]
    rows = AgentTotal.objects.filter(workspace=workspace, agent__in=ids, dialect__in=list(CONVENTIONS))
    rows = rows.filter(Q(sent__gt=0) | Q(received__gt=0))
    found: dict[uuid.UUID, list[str]] = defaultdict(list)
    for agent_id, dialect in rows.values_list("agent", "dialect").order_by("dialect") if ids else ():
        found[agent_id].append(dialect)
    return found


def find_agent(*, workspace: Workspace, agent_id: uuid.UUID) -> Agent | None:
    """The agent of that id in this workspace, with its channel and the agent it is known by, or None."""
    rows = Agent.objects.select_related("channel", "same_as", "same_as__channel")
    return rows.filter(workspace=workspace, pk=agent_id).first()


def list_declarations(*, workspace: Workspace, agent_ids: Iterable[uuid.UUID], limit: int = 200) -> list[Declaration]:
    """What these agents declared: each different thing once, with the latest message that said it, abilities first."""
    rows = Declaration.objects.select_related("agent").filter(workspace=workspace, agent__in=list(agent_ids))
    thing = ("kind", "dialect", "name", "value")
    return list(rows.order_by(*thing, "-at", "-message").distinct(*thing)[:limit])


def list_abilities(*, workspace: Workspace, agent_ids: Iterable[uuid.UUID]) -> list[tuple[uuid.UUID, str, str]]:
    """The abilities that these agents declared: (the agent's own id, dialect, ability), each once."""
    rows = Declaration.objects.filter(workspace=workspace, agent__in=list(agent_ids), kind=Declaration.Kind.ABILITY)
    return list(rows.values_list("agent", "dialect", "value").distinct().order_by("agent", "value", "dialect"))


class Confusables(NamedTuple):
    """Which names of a workspace can be taken for which; of more than `MAX_COMPARED` the busiest are compared."""

    likenesses: Mapping[str, Sequence[Likeness]]
    are_all_compared: bool
    names: frozenset[str]

    def find(self, agents: Iterable[Agent]) -> tuple[list[str], list[tuple[str, Likeness]]]:
        """What is odd about the names of one agent, and what they can be taken for: those it bears itself excepted."""
        own = {agent.name for agent in agents}
        odd = [oddity for name in sorted(own) for oddity in find_oddities(name)]
        alike = [(name, each) for name in sorted(own) for each in self.likenesses.get(name, ()) if each.name not in own]
        return odd, alike


def compare_names(*, workspace: Workspace) -> Confusables:
    """Compare the names of the workspace's agents, the busiest first; one statement."""
    rows = AgentTotal.objects.filter(SAID_SOMETHING, workspace=workspace, dialect="")
    busiest = rows.order_by((F("sent") + F("received")).desc(), "agent")
    # Nobody takes a name of hundreds of characters for another's.
    begun = Left("agent__name", MAX_COMPARED_CHARACTERS + 1)
    found = list(busiest.values_list(begun, flat=True)[: MAX_COMPARED + 1])
    names = frozenset(name for name in found[:MAX_COMPARED] if len(name) <= MAX_COMPARED_CHARACTERS)
    return Confusables(_find_likenesses(names), len(found) <= MAX_COMPARED, names)


# The names of a workspace are nearly always those of the page before.
_find_likenesses = lru_cache(maxsize=8)(find_likenesses)


def list_conversations_of(*, workspace: Workspace, agent_ids: Iterable[uuid.UUID], limit: int) -> list[Conversation]:
    """The conversations that name one of these agents, latest activity first, with their `opening`; one statement.
    Those of several agents say in `of_all` how many there are: one that holds two of them counts once."""
    ids = list(agent_ids)
    named = Exchange.objects.filter(Q(sender__in=ids) | Q(receiver__in=ids), conversation=OuterRef("pk"))
    rows: Any = Conversation.objects.select_related("channel").filter(Exists(named), workspace=workspace)
    rows = annotate_stands(rows.annotate(opening=opening_of()))
    if len(ids) > 1:
        rows = rows.annotate(of_all=Window(Count("pk")))
    return list(rows.order_by("-last_at", "-pk")[:limit])


# Stands for nobody, where a key of a page has to say so.
NOBODY: Final = uuid.UUID(int=0)


class PairSum(NamedTuple):
    """Who said how much to whom; None as sender is nobody named, as receiver everyone or nobody by name."""

    sender: Agent | None
    receiver: Agent | None
    is_broadcast: bool
    dialects: Sequence[str]
    messages: int
    failures: int
    first_at: datetime
    last_at: datetime

    @property
    def key(self) -> PairKey:
        """Where the pair stands in the order of its page."""
        ids = (self.sender.pk if self.sender else NOBODY, self.receiver.pk if self.receiver else NOBODY)
        return self.messages, *ids, self.is_broadcast


PairKey = tuple[int, uuid.UUID, uuid.UUID, bool]


def list_pairs(
    *,
    workspace: Workspace,
    choice: Choice = EVERYTHING,
    agent: Agent | None = None,
    after: PairKey | None = None,
    limit: int = 50,
    since: int | None = None,
) -> list[PairSum]:
    """Pairs by how much was said, the most first, by keyset. The name of the choice narrows to pairs one side of which
    bears it, `agent` to those of this agent and of all who are one with it. `since`: only those of which a total was
    written since this transaction (`WrittenSince`), in the order of their ids, in which none moves; of `after` the ids
    alone count then."""
    own = None if agent is None else [agent.pk, *agent.aliases.values_list("pk", flat=True)]
    pairs = _sum_pairs(workspace, choice, own)
    if since is not None:
        pairs = pairs.annotate(is_written=BoolOr(WrittenSince(since))).filter(is_written=True)
    if after:
        total, source, target, is_broadcast = after
        later = Q(source__gt=source) | Q(source=source, target__gt=target)
        later |= Q(source=source, target=target, is_broadcast__gt=is_broadcast)
        pairs = pairs.filter(Q(total__lt=total) | (Q(total=total) & later) if since is None else later)
    ranks = ("-total",) if since is None else ()
    found = list(pairs.order_by(*ranks, "source", "target", "is_broadcast")[:limit])
    ids = _list_sides(found)
    rows = Agent.objects.select_related("channel", "same_as").filter(workspace=workspace)
    agents = rows.in_bulk(ids) if ids else {}
    return [_make_pair(row, agents) for row in found]


def _list_sides(rows: Iterable[Mapping[str, Any]]) -> set[uuid.UUID]:
    return {row[side] for row in rows for side in ("source", "target")} - {NOBODY}


def _make_pair(row: Mapping[str, Any], agents: Mapping[uuid.UUID, Agent]) -> PairSum:
    said = (row[name] for name in ("is_broadcast", "spoken", "total", "failed", "since", "until"))
    return PairSum(agents.get(row["source"]), agents.get(row["target"]), *said)


class Extent(NamedTuple):
    """How many pairs there are in all, and how many messages between them."""

    pairs: int = 0
    messages: int = 0


def measure_pairs(*, workspace: Workspace, choice: Choice = EVERYTHING) -> Extent:
    """How much `list_pairs` would list without a limit; a message to three counts with each of them."""
    pairs = _sum_pairs(workspace, choice, None)
    return Extent(*(int(each or 0) for each in pairs.aggregate(pairs=Count("total"), messages=Sum("total")).values()))


class Survey(NamedTuple):
    """The pairs of an agent that say most, the extent of all, and all who are one with a side, with their customs."""

    pairs: Sequence[PairSum]
    extent: Extent
    agents: Sequence[Agent]
    customs: Mapping[uuid.UUID, Sequence[str]]


def survey_pairs(*, workspace: Workspace, agents: Sequence[Agent], limit: int) -> Survey:
    """The pairs of an agent, with which it and those that are one with it are named; two statements."""
    pairs = _sum_pairs(workspace, EVERYTHING, [agent.pk for agent in agents]).annotate(
        # Of the pairs that are found, also beyond the limit.
        all_pairs=Func(Count("pk"), template="COUNT(%(expressions)s) OVER ()"),
        all_messages=Func(Sum("messages"), template="SUM(%(expressions)s) OVER ()"),
    )
    found = list(pairs.order_by("-total", "source", "target", "is_broadcast")[:limit])
    ids = _list_sides(found) | {agent.pk for agent in agents}
    spoken = AgentTotal.objects.filter(SAID_SOMETHING, agent=OuterRef("pk"), dialect__in=list(CONVENTIONS))
    rows = Agent.objects.select_related("channel", "same_as").filter(Q(pk__in=ids) | Q(same_as__in=ids))
    rows = rows.annotate(customs=ArraySubquery(spoken.order_by("dialect").values("dialect")))
    known = {agent.pk: agent for agent in rows.filter(workspace=workspace)}
    extent = Extent(int(found[0]["all_pairs"]), int(found[0]["all_messages"])) if found else Extent()
    customs = {pk: vars(agent)["customs"] for pk, agent in known.items()}
    return Survey([_make_pair(row, known) for row in found], extent, list(known.values()), customs)


def _sum_pairs(workspace: Workspace, choice: Choice, own: Sequence[uuid.UUID] | None) -> QuerySet[Any]:
    nobody = Value(NOBODY, output_field=UUIDField())
    rows = PairTotal.objects.filter(workspace=workspace, messages__gt=0)
    if choice.channel:
        rows = rows.filter(channel=choice.channel)
    if choice.dialect:
        rows = rows.filter(dialect=choice.dialect)
    if own is not None:
        rows = rows.filter(Q(sender__in=own) | Q(receiver__in=own))
    pairs: QuerySet[Any] = rows.values(
        "is_broadcast",
        source=Coalesce("sender__same_as", "sender", nobody),
        target=Coalesce("receiver__same_as", "receiver", nobody),
    ).annotate(
        total=Sum("messages"),
        failed=Sum("failures"),
        since=Min("first_at"),
        until=Max("last_at"),
        spoken=ArrayAgg("dialect", distinct=True),
    )
    if choice.name:
        named = find_named(workspace=workspace, name=choice.name)
        pairs = pairs.filter(Q(source__in=named) | Q(target__in=named))
    return pairs


# The dialects in which an agent shows keys.
KEYED: Final = frozenset(each.slug for each in all_dialects() if each.key_names)
# Of so many messages of a conversation that show keys the newest are looked at.
_MAX_SHOWN: Final = 2000

# A key is its sender's own where the decoder established it as that, which stands with the first part of the record,
# and not where somebody passes it on.
_KINDS: Final = " ".join(f"WHEN '{name}' THEN '[\"{kind}\",'" for name, kind in OF_KEYS.items())
_SAID: Final = """"threads_declaration" "said" JOIN "threads_message" "message" ON "message"."id" = "said"."message"
      JOIN "intake_record" "record" ON "record"."id" = "message"."record_id"
      JOIN "threads_message" "opening" ON "opening"."record_id" = "record"."id" AND "opening"."part" = 1"""
# Of several messages that show one key at one time the first by what it holds is named, however they came.
_FIRST: Final = '"said"."value", "record"."identity", "message"."part"'
_IS_OWN: Final = f"""strpos("opening"."established", CASE "said"."name" {_KINDS} ELSE '?' END) > 0
       AND NOT EXISTS (SELECT FROM "intake_hiddenrecord" "hidden" WHERE "hidden"."record_id" = "message"."record_id")"""
# The first key that each agent shows in a conversation, beside the one that it showed last in any other before: one
# look into the index of what an agent declared. Of two keys shown at one time either is another one than the other.
_CHANGED: Final = f"""
WITH "first" AS MATERIALIZED (
    SELECT DISTINCT ON ("said"."conversation_id", "said"."agent_id", "said"."name") "said".*, "message"."sender",
           "message"."part", "record"."identity"
      FROM {_SAID}
     WHERE "said"."conversation_id" = ANY(%(conversations)s) AND "said"."kind" = 'key' AND {_IS_OWN}
     ORDER BY "said"."conversation_id", "said"."agent_id", "said"."name", "said"."at", {_FIRST}
)
SELECT "first"."conversation_id", "first"."message", "first"."dialect", "first"."sender", "first"."name",
       "first"."value", "before"."message", "before"."record_id", "before"."value", "before"."at",
       "conversation"."native_id"
  FROM "first" CROSS JOIN LATERAL (
    SELECT "said".*, "message"."record_id" FROM {_SAID}
     WHERE "said"."workspace_id" = "first"."workspace_id" AND "said"."agent_id" = "first"."agent_id"
       AND "said"."kind" = 'key' AND "said"."name" = "first"."name" AND "said"."at" <= "first"."at"
       AND ("said"."at" < "first"."at" OR "said"."value" <> "first"."value")
       AND "said"."conversation_id" <> "first"."conversation_id" AND {_IS_OWN}
     ORDER BY "said"."at" DESC, {_FIRST} LIMIT 1
 ) "before" JOIN "threads_conversation" "conversation" ON "conversation"."id" = "before"."conversation_id"
 WHERE "before"."value" <> "first"."value"
 ORDER BY "first"."at", "first"."identity", "first"."part", "first"."name"
"""  # noqa: S608
_NEXT: Final = f"""
SELECT DISTINCT "next"."conversation_id"
  FROM unnest(%(agents)s::uuid[], %(times)s::timestamptz[]) "asked" ("agent", "at")
 CROSS JOIN unnest(%(names)s::text[]) "shown" ("name")
 CROSS JOIN LATERAL (
    SELECT "said"."conversation_id" FROM {_SAID}
     WHERE "said"."workspace_id" = %(workspace)s AND "said"."agent_id" = "asked"."agent" AND "said"."kind" = 'key'
       AND "said"."name" = "shown"."name" AND "said"."at" > "asked"."at"
       AND "said"."conversation_id" <> ALL(%(conversations)s) AND {_IS_OWN}
     ORDER BY "said"."at" FETCH FIRST 1 ROW WITH TIES
 ) "next"
"""  # noqa: S608


class ChangedKey(NamedTuple):
    """A message that shows a key of its sender under a name, and the message of another conversation, of that native
    id, that showed another one before."""

    conversation: uuid.UUID
    message: uuid.UUID
    dialect: str
    sender: str
    name: str
    value: str
    other: uuid.UUID
    other_record: uuid.UUID
    other_value: str
    other_at: datetime
    other_conversation: str


def find_changed_keys(conversation_ids: Collection[uuid.UUID]) -> list[ChangedKey]:
    """The keys of these conversations that are others than their agents showed before, or at the same time, in another
    one of the channel, in the order of time; one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_CHANGED, {"conversations": list(conversation_ids)})
        return [ChangedKey._make(row) for row in cursor.fetchall()]


def find_next_shown(conversations: Sequence[Conversation]) -> list[uuid.UUID]:
    """The conversations in which agents showed a key next, at the time of each that they showed in these and after it,
    of one workspace; what was withdrawn counts as well, for those are compared with others then. Two statements;
    none where no dialect of keys is spoken and nothing is hidden."""
    heads = {each.pk: each for each in conversations if KEYED & {*each.dialects} or count_hidden_in(conversation=each)}
    if not heads:
        return []
    rows = Message.objects.filter(FLAGGED, HasAnyBit("sights", RuleFlag.AGREEING.value), dialect__in=KEYED)
    shown = rows.filter(conversation__in=list(heads)).exclude(sender="").order_by("-order_time")
    asked = {
        (make_agent_id(heads[pk].workspace_id, heads[pk].channel_id, sender), at - before)
        for pk, sender, at in shown.values_list("conversation", "sender", "order_time")[:_MAX_SHOWN]
        for before in (timedelta(), timedelta.resolution)
    }
    if not asked:
        return []
    given: dict[str, Any] = {"agents": [agent for agent, _ in asked], "times": [at for _, at in asked]}
    given |= {"workspace": conversations[0].workspace_id, "conversations": list(heads), "names": list(OF_KEYS)}
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, given)
        return [pk for (pk,) in cursor.fetchall()]
