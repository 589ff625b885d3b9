"""What was asked of agents and what came of it: their tasks counted, for the rows of the directory and the graph."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple, TypeVar

from django.db.models import Count, F, Min, Q, QuerySet

from inspector.accounts.models import Workspace
from inspector.browsing.directory import AgentSum, Choice, PairSum
from inspector.threads.models import Agent, Task
from inspector.threads.tasks.measures import is_one_of
from inspector.threads.tasks.states import STANDING

from .findings.selectors import took_back

Key = TypeVar("Key")

# Who waits is counted in so many open requests.
_MAX_OPEN: Final = 10_000


class Outcome(NamedTuple):
    """How many things were asked, and how many of them are done, failed and open (cancelled ones are none of these).
    `reversed` are done in a conversation where who did them took back an earlier end; they are not among `done`."""

    asked: int = 0
    done: int = 0
    failed: int = 0
    reversed: int = 0
    open: int = 0


class Waiting(NamedTuple):
    """Who waits for whom: how many of its requests are open, the oldest of them since `since`."""

    requester: Agent
    performer: Agent
    requests: int
    since: datetime


def count_asked_of(*, workspace: Workspace, sums: Sequence[AgentSum]) -> dict[uuid.UUID, Outcome]:
    """What was asked of each of these agents and how it ended, by the id it is known by; one statement."""
    who = {(each.channel_id, each.name): row.agent.pk for row in sums for each in row.every}
    asked = Task.objects.filter(
        is_one_of("performer", {name for _, name in who}), workspace=workspace, channel__in={each for each, _ in who}
    )
    rows = _count_tasks(asked, "channel", "performer") if who else ()
    return _sum_by((who.get((row["channel"], row["performer"])), row) for row in rows)


def count_asked_between(
    *, workspace: Workspace, pairs: Sequence[PairSum], known: Iterable[Agent] | None = None
) -> dict[tuple[uuid.UUID, uuid.UUID], Outcome]:
    """What the first of each pair asked of the second and how it ended; two statements, one where all are known."""
    if known is None:
        agents = {agent.pk for pair in pairs for agent in (pair.sender, pair.receiver) if agent}
        known = Agent.objects.filter(Q(pk__in=agents) | Q(same_as__in=agents), workspace=workspace)
    who = {(agent.channel_id, agent.name): agent.same_as_id or agent.pk for agent in known}
    names = {name for _, name in who}
    asked_of_all = Task.objects.filter(
        is_one_of("requester", names), is_one_of("performer", names), workspace=workspace
    )
    rows = _count_tasks(asked_of_all, "channel", "requester", "performer") if names else ()

    def find_pair(row: Mapping[str, Any]) -> tuple[uuid.UUID, uuid.UUID] | None:
        asking, asked = (who.get((row["channel"], row[side])) for side in ("requester", "performer"))
        return (asking, asked) if asking is not None and asked is not None else None

    return _sum_by((find_pair(row), row) for row in rows)


def list_waiting(*, workspace: Workspace, choice: Choice, limit: int) -> list[Waiting]:
    """Who waits for whom, the most open requests first; two statements. Of very many, those that moved last count."""
    tasks = Task.objects.filter(workspace=workspace, state__in=STANDING, request__isnull=False)
    tasks = tasks.exclude(requester="").exclude(performer="").exclude(requester=F("performer"))
    if choice.channel is not None:
        tasks = tasks.filter(channel=choice.channel)
    if choice.name:
        tasks = tasks.filter(Q(requester__icontains=choice.name) | Q(performer__icontains=choice.name))
    latest = tasks.order_by("-last_at").values("pk")[:_MAX_OPEN]
    counted = Task.objects.filter(pk__in=latest).values("channel", "requester", "performer")
    rows = counted.annotate(requests=Count("pk"), since=Min("first_at")).order_by("-requests", "since", "requester")
    found = list(rows[:limit])
    named = [Q(channel=row["channel"], name=row[side]) for row in found for side in ("requester", "performer")]
    agents = Agent.objects.select_related("same_as").filter(reduce(or_, named), workspace=workspace) if named else []
    who = {(agent.channel_id, agent.name): agent for agent in agents}
    waiting = [
        (who.get((row["channel"], row["requester"])), who.get((row["channel"], row["performer"])), row) for row in found
    ]
    return [Waiting(asking, asked, row["requests"], row["since"]) for asking, asked, row in waiting if asking and asked]


def _count_tasks(tasks: QuerySet[Task], *by: str) -> QuerySet[Any]:
    done, is_reversed = Q(state=Task.State.DONE), took_back()
    counted: QuerySet[Any] = tasks.values(*by).annotate(
        asked=Count("pk"),
        done=Count("pk", filter=done & ~Q(is_reversed)),
        reversed=Count("pk", filter=done & Q(is_reversed)),
        failed=Count("pk", filter=Q(state__in=[Task.State.FAILED, Task.State.TIMED_OUT])),
        open=Count("pk", filter=Q(state__in=STANDING)),
    )
    return counted


def _sum_by(rows: Iterable[tuple[Key | None, Mapping[str, Any]]]) -> dict[Key, Outcome]:
    found: dict[Key, Outcome] = {}
    for key, row in rows:
        if key is not None:
            held = found.get(key, Outcome())
            found[key] = Outcome._make(count + row[name] for name, count in zip(Outcome._fields, held, strict=True))
    return found
