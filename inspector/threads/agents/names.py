"""Names of agents: what people call one, whom a name means, and by which names an agent is found.

An agent is called by the name that an auditor gave it, else by that of the agent it is one with, else by the convention
of its dialect; nothing stored depends on it. A name means, in any letter case, who bears it on the wire, whom an
auditor calls so, who is one with either, and who is called so by convention wherever no auditor says otherwise.
"""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from django.db.models import Q

from dialects import all_dialects
from inspector.accounts.models import Workspace
from inspector.intake.text import make_storable

from ..models import Agent, AgentTotal, key_of_name, make_agent_id
from ..rendering.terms import fold

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


def is_known(*, workspace: Workspace, name: str) -> bool:
    """Whether an agent of the workspace bears this name, spelled so, or is called by it."""
    bearers = Agent.objects.filter(workspace=workspace, name_key=key_of_name(name))
    return name in bearers.values_list("name", flat=True) or bool(find_meanings(workspace=workspace, names=[name]))


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


class Called(NamedTuple):
    """An agent that people call by another name than its own, and the dialect whose convention says so, if any."""

    text: str
    name: str
    dialect: str = ""


def list_called(*, workspace: Workspace, labels: Labels, beginning: str, is_sender: bool) -> list[Called]:
    """The agents that said or were told something and are called by a name that begins so; one statement."""
    folded = fold(beginning)
    found = [
        Called(agent.friendly_name, agent.name)
        for agent in labels.agents.values()
        if agent.friendly_name and fold(agent.friendly_name).startswith(folded)
    ]
    spoken = Q(sent__gt=0) if is_sender else Q(received__gt=0)
    customs = ((dialect, *custom) for dialect, names in CONVENTIONS.items() for custom in names.items())
    used = [(dialect, on_wire, text) for dialect, on_wire, text in customs if fold(text).startswith(folded)]
    totals = AgentTotal.objects.filter(spoken, workspace=workspace, dialect__in={dialect for dialect, _, _ in used})
    rows = totals.filter(agent__name__in={on_wire for _, on_wire, _ in used}) if used else totals.none()
    seen = set(rows.filter(agent__friendly_name="", agent__same_as=None).values_list("dialect", "agent__name"))
    found += [Called(text, on_wire, dialect) for dialect, on_wire, text in used if (dialect, on_wire) in seen]
    return sorted(found, key=lambda called: (fold(called.text), called.dialect, called.name))[:MAX_MEANINGS]
