"""What auditors say of agents: what one is called, and that it is one with another; with who, when and why, undone. And
what was asked of agents and what came of it: their tasks counted, for the rows of the directory and the graph.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple, TypeVar

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Count, F, Min, Q, QuerySet
from django.utils import timezone

from inspector.accounts.models import Membership, Workspace
from inspector.browsing.directory import AgentSum, Choice, PairSum
from inspector.characters import find_oddities
from inspector.database import make_storable
from inspector.threads.agents import CONVENTIONS
from inspector.threads.models import MAX_FRIENDLY_NAME, Agent, AgentWord, Task, key_of_name
from inspector.threads.states import STANDING
from inspector.threads.tasks import IS_SENT, is_one_of

from .findings.selectors import is_doubted

MAX_REASON = 2000


def list_candidates(names: Iterable[str], *, agent: Agent, label: str, limit: int = 8) -> list[str]:
    """Those of these names that may be another one of this agent: alike, or called alike by a dialect's convention."""
    called = {agent.name.casefold(), label.casefold()} - {""}
    numbers = {name for customs in CONVENTIONS.values() for name, text in customs.items() if text.casefold() in called}
    alike = (name for name in names if name in numbers or name.casefold() in called)
    return sorted(name for name in alike if name != agent.name)[:limit]


def list_words(*, agent: Agent, limit: int = 50) -> Sequence[AgentWord]:
    """What auditors said of an agent and of those that are one with it, the latest first, undone ones included."""
    rows = AgentWord.objects.select_related("by", "undone_by", "agent", "agent__channel", "same_as")
    about = Q(agent=agent) | Q(same_as=agent) | Q(agent__same_as=agent)
    return list(rows.filter(about, workspace_id=agent.workspace_id).order_by("-at", "-pk")[:limit])


def find_word(*, workspace: Workspace, word_id: uuid.UUID) -> AgentWord | None:
    """What was said of an agent under that id in this workspace, or None."""
    return AgentWord.objects.select_related("agent").filter(workspace=workspace, pk=word_id).first()


@transaction.atomic
def name_agent(*, membership: Membership, agent: Agent, friendly_name: str, reason: str = "") -> AgentWord:
    """Call an agent by a name that people know it by, in its channel; an earlier name is undone by it. A
    PermissionDenied for anyone but an auditor, a ValidationError says why a name cannot be given."""
    membership.require_auditor(agent.workspace_id, "says who an agent is")
    agent = _hold(agent.pk)[agent.pk]
    text = " ".join(make_storable(friendly_name).split())
    _check_name(agent, text)
    _end(membership, agent, AgentWord.Kind.NAME)
    agent.friendly_name, agent.friendly_key = text, key_of_name(text)
    agent.save(update_fields=["friendly_name", "friendly_key"])
    return _keep_word(membership, agent, reason, kind=AgentWord.Kind.NAME, friendly_name=text)


def _check_name(agent: Agent, text: str) -> None:
    if not text:
        raise ValidationError("type the name that people know it by")
    if len(text) > MAX_FRIENDLY_NAME:
        raise ValidationError(f"a name has at most {MAX_FRIENDLY_NAME} characters")
    if oddities := find_oddities(text):
        raise ValidationError(f"it {oddities[0]}: a friendly name must be easy to tell from others")
    if text == agent.friendly_name:
        raise ValidationError("it is called so already")
    key = key_of_name(text)
    others = Agent.objects.filter(workspace_id=agent.workspace_id, channel_id=agent.channel_id).exclude(pk=agent.pk)
    if others.filter(Q(name_key=key) | Q(friendly_key=key)).exists():
        raise ValidationError(f"another agent of this channel is called {text}: a name that means two would mislead")


@transaction.atomic
def join_agents(*, membership: Membership, agent: Agent, same_as: Agent, reason: str) -> AgentWord:
    """Say that an agent is one with another, by whose name it is known from now on, in any channel of the workspace. It
    raises as `name_agent` does."""
    membership.require_auditor(agent.workspace_id, "says who an agent is")
    if same_as.workspace_id != agent.workspace_id:
        raise PermissionDenied("both agents belong to one workspace")
    if not reason.strip():
        raise ValidationError("give the reason: later readers of this page will see it")
    known_by = same_as.same_as_id or same_as.pk
    held = _hold(agent.pk, known_by)
    agent, principal = held[agent.pk], held[known_by]
    if agent.pk == principal.pk:
        raise ValidationError("it is that agent already")
    if agent.same_as_id is not None:
        raise ValidationError("it is joined to another agent already: undo that first")
    if principal.same_as_id is not None:
        raise ValidationError("the other agent was joined to a third one meanwhile: look again")
    if agent.aliases.exists():
        raise ValidationError("others are joined to it: join this way round instead, or undo them first")
    agent.same_as = principal
    agent.save(update_fields=["same_as"])
    return _keep_word(membership, agent, reason, kind=AgentWord.Kind.SAME, same_as=principal)


@transaction.atomic
def undo_word(*, membership: Membership, word: AgentWord) -> AgentWord:
    """Undo what an auditor said of an agent; it raises as `name_agent` does."""
    membership.require_auditor(word.agent.workspace_id, "says who an agent is")
    agent = _hold(word.agent_id)[word.agent_id]
    if not AgentWord.objects.filter(pk=word.pk, undone_at__isnull=True).exists():
        raise ValidationError("it was undone already")
    _end(membership, agent, word.kind)
    if word.kind == AgentWord.Kind.NAME:
        agent.friendly_name, agent.friendly_key = "", None
    else:
        agent.same_as = None
    agent.save(update_fields=["friendly_name", "friendly_key", "same_as"])
    word.refresh_from_db()
    return word


def _end(membership: Membership, agent: Agent, kind: str) -> None:
    agent.words.filter(kind=kind, undone_at__isnull=True).update(undone_by=membership.user, undone_at=timezone.now())


def _hold(*agent_ids: uuid.UUID) -> dict[uuid.UUID, Agent]:
    """Lock agents until the transaction ends, in the order of their ids so that nobody deadlocks."""
    rows = Agent.objects.select_for_update(no_key=True).filter(pk__in=agent_ids).order_by("pk")
    return {agent.pk: agent for agent in rows}


def _keep_word(membership: Membership, agent: Agent, reason: str, **said: Any) -> AgentWord:
    reason = make_storable(reason.strip())
    if len(reason) > MAX_REASON:
        raise ValidationError(f"a reason has at most {MAX_REASON:,} characters")
    return agent.words.create(workspace_id=agent.workspace_id, reason=reason, by=membership.user, **said)


Key = TypeVar("Key")

# Who waits is counted in so many open requests.
_MAX_OPEN: Final = 10_000


class Outcome(NamedTuple):
    """How many things were asked, and how many of them are done, failed and open (cancelled ones are none of these).
    `reversed` are done after an earlier end that who did them took back, or by a message whose data deny it; they are
    not among `done`. A request that was not received is not counted."""

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
    names, channels = {name for _, name in who}, {each for each, _ in who}
    asked = Task.objects.filter(IS_SENT, is_one_of("performer", names), workspace=workspace, channel__in=channels)
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
        IS_SENT, is_one_of("requester", names), is_one_of("performer", names), workspace=workspace
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
    done, is_reversed = Q(state=Task.State.DONE), is_doubted()
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
