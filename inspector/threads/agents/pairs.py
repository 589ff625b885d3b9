"""Reads of pairs: who said how much to whom. Sums over their totals, never over messages."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.postgres.aggregates import ArrayAgg, BoolOr
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BigIntegerField, Count, Func, Max, Min, OuterRef, Q, QuerySet, Sum, UUIDField, Value
from django.db.models.functions import Coalesce

from inspector.accounts.models import Workspace
from inspector.lookups import WrittenSince

from ..models import Agent, AgentTotal, PairTotal
from .directory import EVERYTHING, SAID_SOMETHING, Choice, choose_rows, find_named
from .names import CONVENTIONS

# Stands for nobody, where a key of a page has to say so.
NOBODY: Final = uuid.UUID(int=0)


@dataclass(frozen=True, slots=True)
class PairSum:
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
    """Pairs by how much was said, the most first, by keyset.

    Args:
        choice: its name narrows to pairs one side of which bears it.
        agent: only the pairs of this agent, and of all who are one with it.
        after: the key of the last one seen.
        since: only those of which a total was written since this transaction, see `WrittenSince`, in the order of
            their ids, in which none moves; of `after` the ids alone count then.
    """
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
    return PairSum(
        sender=agents.get(row["source"]),
        receiver=agents.get(row["target"]),
        is_broadcast=row["is_broadcast"],
        dialects=row["spoken"],
        messages=row["total"],
        failures=row["failed"],
        first_at=row["since"],
        last_at=row["until"],
    )


@dataclass(frozen=True, slots=True)
class Extent:
    """How many pairs there are in all, and how many messages between them."""

    pairs: int
    messages: int


def measure_pairs(*, workspace: Workspace, choice: Choice = EVERYTHING) -> Extent:
    """How much `list_pairs` would list without a limit; a message to three counts with each of them."""
    pairs = _sum_pairs(workspace, choice, None)
    sums = pairs.aggregate(pairs=Count("total"), messages=Sum("total"))
    return Extent(sums["pairs"] or 0, int(sums["messages"] or 0))


@dataclass(frozen=True, slots=True)
class Survey:
    """The pairs of an agent that say most, the extent of all, and all who are one with a side, with their customs."""

    pairs: Sequence[PairSum]
    extent: Extent
    agents: Sequence[Agent]
    customs: Mapping[uuid.UUID, Sequence[str]]


def survey_pairs(*, workspace: Workspace, agents: Sequence[Agent], limit: int) -> Survey:
    """The pairs of an agent, with which it and those that are one with it are named; two statements."""
    pairs = _sum_pairs(workspace, EVERYTHING, [agent.pk for agent in agents]).annotate(
        # Of the pairs that are found, also beyond the limit.
        all_pairs=Func(Count("pk"), template="COUNT(%(expressions)s) OVER ()", output_field=BigIntegerField()),
        all_messages=Func(Sum("messages"), template="SUM(%(expressions)s) OVER ()", output_field=BigIntegerField()),
    )
    found = list(pairs.order_by("-total", "source", "target", "is_broadcast")[:limit])
    ids = _list_sides(found) | {agent.pk for agent in agents}
    spoken = AgentTotal.objects.filter(SAID_SOMETHING, agent=OuterRef("pk"), dialect__in=list(CONVENTIONS))
    rows = Agent.objects.select_related("channel", "same_as").filter(Q(pk__in=ids) | Q(same_as__in=ids))
    rows = rows.annotate(customs=ArraySubquery(spoken.order_by("dialect").values("dialect")))
    known = {agent.pk: agent for agent in rows.filter(workspace=workspace)}
    first = found[0] if found else {"all_pairs": 0, "all_messages": 0}
    return Survey(
        pairs=[_make_pair(row, known) for row in found],
        extent=Extent(int(first["all_pairs"]), int(first["all_messages"])),
        agents=list(known.values()),
        customs={pk: vars(agent)["customs"] for pk, agent in known.items()},
    )


def _sum_pairs(workspace: Workspace, choice: Choice, own: Sequence[uuid.UUID] | None) -> QuerySet[Any]:
    nobody = Value(NOBODY, output_field=UUIDField())
    rows = choose_rows(PairTotal.objects.filter(workspace=workspace, messages__gt=0), choice)
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
