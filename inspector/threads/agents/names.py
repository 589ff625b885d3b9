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
from inspector.intake.text import make_storable

from ..telling.terms import fold
from .tables import Agent, AgentTotal, key_of_name, make_agent_id

MOST_MEANINGS: Final = 200
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


@dataclass(frozen=True, slots=True)
class Meaning:
    """Whom a friendly name means on the wire: an agent of one channel, or one of a dialect in all but some channels."""

    name: str
    channel_id: uuid.UUID | None = None
    dialect: str = ""
    but_in: tuple[uuid.UUID, ...] = ()


def find_meanings(*, workspace: Workspace, name: str) -> list[Meaning]:
    """Whom a name means beside those who bear it on the wire; at most `MOST_MEANINGS`.

    Who is called so by an auditor, all who are one with them or with one who bears it, and who is called so by the
    convention of a dialect wherever no auditor says otherwise.
    """
    key = key_of_name(make_storable(name))
    agents = Agent.objects.filter(workspace=workspace)
    meant = agents.filter(Q(friendly_key=key) | Q(name_key=key))
    known_by = {same_as or pk for pk, same_as in meant.values_list("pk", "same_as")[:MOST_MEANINGS]}
    whole = agents.filter(Q(pk__in=known_by) | Q(same_as__in=known_by)) if known_by else agents.none()
    return [
        # Who bears it on the wire is found by that already.
        *(Meaning(each.name, channel_id=each.channel_id) for each in whole.exclude(name_key=key)[:MOST_MEANINGS]),
        *_find_conventional(workspace, name),
    ]


def _find_conventional(workspace: Workspace, name: str) -> list[Meaning]:
    meant = [
        (dialect, on_wire)
        for dialect, names in CONVENTIONS.items()
        for on_wire, text in names.items()
        if fold(text) == fold(name)
    ]
    if not meant:
        return []
    otherwise = defaultdict(list)
    keys = [key_of_name(on_wire) for _, on_wire in meant]
    rows = Agent.objects.filter(workspace=workspace, name_key__in=keys).exclude(friendly_name="", same_as=None)
    for on_wire, channel_id in rows.values_list("name", "channel_id"):
        otherwise[on_wire].append(channel_id)
    return [Meaning(on_wire, dialect=dialect, but_in=tuple(otherwise[on_wire])) for dialect, on_wire in meant]
