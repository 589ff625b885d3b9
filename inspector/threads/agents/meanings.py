"""Whom a name means, and by which names an agent is found: one meaning, told from either end.

A name means who bears it on the wire, whom an auditor calls so in their channel, who is one with either, and who is
called so by the convention of a dialect wherever no auditor says otherwise. In any letter case.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from inspector.accounts.models import Workspace
from inspector.intake.text import make_storable

from ..telling.terms import fold
from .names import CONVENTIONS, Labels
from .tables import Agent, AgentTotal, key_of_name

MOST_MEANINGS: Final = 200


@dataclass(frozen=True, slots=True)
class Meaning:
    """Whom a name means on the wire: an agent of one channel, or of a dialect in all but some channels, or of both."""

    name: str
    channel_id: uuid.UUID | None = None
    dialect: str = ""
    but_in: tuple[uuid.UUID, ...] = ()


def find_meanings(*, workspace: Workspace, names: Collection[str]) -> list[Meaning]:
    """Whom these names mean beside those who bear them on the wire, some `MOST_MEANINGS`; at most three statements."""
    keys = {key_of_name(make_storable(name)) for name in names}
    agents = Agent.objects.filter(workspace=workspace)
    meant = agents.filter(Q(friendly_key__in=keys) | Q(name_key__in=keys)).order_by("pk")
    known_by = {same_as or pk for pk, same_as in meant.values_list("pk", "same_as")[:MOST_MEANINGS]}
    whole = agents.filter(Q(pk__in=known_by) | Q(same_as__in=known_by)) if known_by else agents.none()
    # Who bears one of the names on the wire is found by that already.
    others = whole.exclude(name_key__in=keys).order_by("pk")[:MOST_MEANINGS]
    return [
        *(Meaning(each.name, channel_id=each.channel_id) for each in others),
        *_find_conventional(workspace, {fold(name) for name in names}),
    ]


def select_naming(*, workspace: Workspace, name: str) -> Q:
    """The condition for rows of conversations or traces that name an agent who bears or is called by this name.

    A trace across channels does not say in which of them an agent of it speaks: it is one of those meant.
    """
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


def _find_conventional(workspace: Workspace, folded: Collection[str]) -> list[Meaning]:
    meant = [
        (dialect, on_wire)
        for dialect, names in CONVENTIONS.items()
        for on_wire, text in names.items()
        if fold(text) in folded
    ]
    if not meant:
        return []
    keys = [key_of_name(on_wire) for _, on_wire in meant]
    rows = Agent.objects.filter(workspace=workspace).filter(
        (Q(name_key__in=keys) & ~Q(friendly_name="", same_as=None))
        | Q(friendly_name="", same_as__friendly_name="", same_as__name_key__in=keys)
    )
    otherwise: dict[str, list[uuid.UUID]] = defaultdict(list)
    joined: dict[str, list[tuple[str, uuid.UUID]]] = defaultdict(list)
    for agent in rows.select_related("same_as").order_by("pk"):
        otherwise[agent.name].append(agent.channel_id)
        if agent.same_as is not None and not agent.friendly_name and not agent.same_as.friendly_name:
            joined[agent.same_as.name].append((agent.name, agent.channel_id))
    found = [Meaning(on_wire, dialect=dialect, but_in=tuple(otherwise[on_wire])) for dialect, on_wire in meant]
    # Who is one with an agent that a convention names is called by that name too, where it speaks that dialect.
    found += [Meaning(name, channel, dialect) for dialect, on_wire in meant for name, channel in joined[on_wire]]
    return found


class KnownNames:
    """By which names each agent is found, from loaded labels: what `find_meanings` means, the other way round."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._found: dict[tuple[uuid.UUID, str, str], frozenset[str]] = {}
        self._by_principal: dict[uuid.UUID, set[str]] = defaultdict(set)
        self._bearers: dict[tuple[uuid.UUID, str], set[uuid.UUID]] = defaultdict(set)
        self._said_otherwise: set[tuple[uuid.UUID, str]] = set()
        self._joined: dict[tuple[uuid.UUID, str], set[str]] = defaultdict(set)
        for agent in labels.agents.values():
            principal = agent.same_as or agent
            for each in (agent, principal):
                texts = (each.name, each.friendly_name) if each.friendly_name else (each.name,)
                self._by_principal[principal.pk].update(fold(text) for text in texts)
                self._bearers[each.channel_id, fold(each.name)].add(principal.pk)
            self._said_otherwise.add((agent.channel_id, agent.name))
            if agent.same_as is not None and not agent.friendly_name and not agent.same_as.friendly_name:
                self._joined[agent.channel_id, fold(agent.name)].add(agent.same_as.name)

    def find(self, channel_id: uuid.UUID, dialect: str, name: str) -> frozenset[str]:
        """The names, folded, by which a search finds what the agent of this name says in a channel and a dialect."""
        if (channel_id, dialect, name) not in self._found:
            self._found[channel_id, dialect, name] = frozenset(self._gather(channel_id, dialect, name))
        return self._found[channel_id, dialect, name]

    def _gather(self, channel_id: uuid.UUID, dialect: str, name: str) -> set[str]:
        folded = fold(name)
        found = {folded}
        for principal in self._bearers.get((channel_id, folded), ()):
            found |= self._by_principal[principal]
        customs = CONVENTIONS.get(dialect, {})
        if name in customs and (channel_id, name) not in self._said_otherwise:
            found.add(fold(customs[name]))
        found |= {fold(customs[one]) for one in self._joined.get((channel_id, folded), ()) if one in customs}
        return found

    def list_beginning(self, beginning: str) -> list[str]:
        """The names that begin so by which somebody is found who bears another on the wire."""
        texts = {text for names in self._by_principal.values() for text in names}
        texts |= {fold(text) for names in CONVENTIONS.values() for text in names.values()}
        return sorted(text for text in texts if text.startswith(fold(beginning)))[:MOST_MEANINGS]

    def show(self, channel_id: uuid.UUID, dialect: str, name: str) -> str:
        """What the agent is called on a page; it is found by that name."""
        label = self._labels.find(channel_id, name, (dialect,))
        return label.text if label else name


@dataclass(frozen=True, slots=True)
class Called:
    """An agent that people call by another name than its own: the one, the other, and by whose word.

    `dialect` is whose convention says so; empty where an auditor does.
    """

    text: str
    name: str
    dialect: str = ""


def list_called(*, workspace: Workspace, labels: Labels, beginning: str, is_sender: bool) -> list[Called]:
    """The agents that said something, or were told something, and are called by a name that begins so.

    One statement, which tells the conventions that are in use.
    """
    folded = fold(beginning)
    found = [
        Called(agent.friendly_name, agent.name)
        for agent in labels.agents.values()
        if agent.friendly_name and fold(agent.friendly_name).startswith(folded)
    ]
    spoken = Q(sent__gt=0) if is_sender else Q(received__gt=0)
    used = _list_conventional(folded)
    totals = AgentTotal.objects.filter(spoken, workspace=workspace, dialect__in={dialect for dialect, _, _ in used})
    rows = totals.filter(agent__name__in={on_wire for _, on_wire, _ in used}) if used else totals.none()
    seen = set(rows.filter(agent__friendly_name="", agent__same_as=None).values_list("dialect", "agent__name"))
    found += [Called(text, on_wire, dialect) for dialect, on_wire, text in used if (dialect, on_wire) in seen]
    return sorted(found, key=lambda called: (fold(called.text), called.dialect, called.name))[:MOST_MEANINGS]


def _list_conventional(folded: str) -> list[tuple[str, str, str]]:
    return [
        (dialect, on_wire, text)
        for dialect, names in CONVENTIONS.items()
        for on_wire, text in names.items()
        if fold(text).startswith(folded)
    ]
