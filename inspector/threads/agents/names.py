"""What agents are called by people: a name given by an auditor, else that of the agent it is one with, else a custom.

A label is for display alone. What the wire says always stands beside it, and nothing that is stored depends on it.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from django.db.models import Q

from dialects import all_dialects
from inspector.accounts.models import Workspace

from .tables import Agent, AgentTotal, make_agent_id

MOST_LABELS: Final = 10_000

# The names that agents bear by the convention of a dialect, by dialect and by the name on the wire.
CONVENTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    dialect.slug: dialect.agents for dialect in all_dialects() if dialect.agents
}


@dataclass(frozen=True, slots=True)
class Label:
    """What an agent is called, and who says so: an auditor (given, joined) or a dialect (convention)."""

    text: str
    basis: Literal["given", "joined", "convention"]


def label_agent(agent: Agent, dialects: Iterable[str]) -> Label | None:
    """The label of an agent, or None for one that is called by its own name.

    Args:
        agent: with `same_as` loaded.
        dialects: those it speaks here; the convention of the first that has one holds.
    """
    if agent.friendly_name:
        return Label(agent.friendly_name, "given")
    if agent.same_as is not None:
        principal = label_agent(agent.same_as, dialects)
        return Label(principal.text if principal else agent.same_as.name, "joined")
    return label_by_convention(agent.name, dialects)


def label_by_convention(name: str, dialects: Iterable[str]) -> Label | None:
    """The name that a dialect's convention gives, or None."""
    for dialect in dialects:
        text = CONVENTIONS.get(dialect, {}).get(name)
        if text is not None:
            return Label(text, "convention")
    return None


def list_candidates(names: Iterable[str], *, agent: Agent, label: str, limit: int = 8) -> list[str]:
    """Those of these names that may be another one of this agent: alike, or called alike by a dialect's convention.

    Args:
        names: of the agents of the workspace.
        label: what people call this one, empty where that is its name.
    """
    called = {agent.name.casefold(), label.casefold()} - {""}
    numbers = {name for customs in CONVENTIONS.values() for name, text in customs.items() if text.casefold() in called}
    alike = (name for name in names if name in numbers or name.casefold() in called)
    return sorted(name for name in alike if name != agent.name)[:limit]


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


@dataclass(frozen=True, slots=True)
class Labels:
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
    agents = {agent.pk: agent for agent in rows[:MOST_LABELS]}
    principals = (agent.same_as for agent in agents.values() if agent.same_as)
    return Labels(workspace_id, agents, frozenset(agent.name for agent in (*agents.values(), *principals)))
