"""Agents and pairs as the rows of tables: marks, words and links, made of what the directory sums up."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from inspector.accounts.models import Workspace
from inspector.audit.agents import Outcome
from inspector.browsing.directory import AgentSum, Confusables, PairSum, find_customs
from inspector.search import refining
from inspector.threads.agents import label_agent
from inspector.threads.models import Agent

from ..shown.told import name_dialect
from .marks import AgentMark, find_colour, make_monogram, say_basis

MAX_ABILITIES = 4


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Ability:
    """Something that an agent says it can do, and what it means where it is a code."""

    value: str
    meaning: str


class Gallery:
    """The marks of the agents of a page, each with its colour; one statement at most, and none with their customs."""

    def __init__(
        self,
        workspace: Workspace,
        agents: Iterable[Agent | None],
        *,
        customs: Mapping[uuid.UUID, Sequence[str]] | None = None,
    ) -> None:
        self._slug = workspace.slug
        self._marks: dict[uuid.UUID, AgentMark] = {}
        named = [agent for agent in agents if agent]
        self._customs = find_customs(workspace=workspace, agents=named) if customs is None else customs

    def find(self, agent: Agent) -> AgentMark:
        """The mark of an agent: everywhere on the page the same, whatever dialect it speaks there."""
        if agent.pk not in self._marks:
            label = label_agent(agent, self._customs.get(agent.pk, ()))
            text = label.text if label and label.text != agent.name else ""
            self._marks[agent.pk] = AgentMark(
                name=agent.name,
                number=find_colour(agent.same_as.name if agent.same_as else agent.name),
                monogram=make_monogram(text or agent.name),
                label=text,
                why=say_basis(label) if label else "",
            )
        return self._marks[agent.pk]

    def make_url(self, agent: Agent) -> str:
        """The address of an agent's page."""
        return reverse("pages:agent", args=[self._slug, agent.pk])

    def make_agent(
        self,
        row: AgentSum,
        *,
        outcome: Outcome,
        abilities: Sequence[Ability],
        confusables: Confusables,
    ) -> dict[str, Any]:
        """The row of an agent."""
        return {
            "mark": self.find(row.agent),
            "sum": row,
            "dialects": name_dialects(row.dialects),
            "outcome": outcome,
            "abilities": abilities[:MAX_ABILITIES],
            "more_abilities": max(0, len(abilities) - MAX_ABILITIES),
            "doubts": list_doubts(confusables, row.every),
        }

    def make_pair(self, pair: PairSum, outcomes: Mapping[tuple[uuid.UUID, uuid.UUID], Outcome]) -> dict[str, Any]:
        """The row of a pair."""
        sender, receiver = pair.sender, pair.receiver
        return {
            "sender": self.find(sender) if sender else None,
            "receiver": self.find(receiver) if receiver else None,
            "sender_url": self.make_url(sender) if sender else "",
            "receiver_url": self.make_url(receiver) if receiver else "",
            "sum": pair,
            "is_to_itself": sender is not None and sender == receiver,
            "dialects": name_dialects(pair.dialects),
            "outcome": outcomes.get((sender.pk, receiver.pk)) if sender and receiver else None,
            "search_url": self.make_search(sender, receiver, is_broadcast=pair.is_broadcast),
        }

    def make_search(self, sender: Agent | None, receiver: Agent | None, *, is_broadcast: bool = False) -> str:
        """The address of what one said to another; empty where no query says it."""
        terms = []
        if sender:
            terms.append(write_term("from", sender.name))
        if receiver or is_broadcast:
            terms.append(write_term("to", receiver.name) if receiver else "to:*")
        # Nobody named cannot be asked for, nor a name that is too long.
        if not all(terms) or len(terms) < 2:
            return ""
        return f"{reverse('pages:search', args=[self._slug])}?{urlencode({'q': ' '.join(terms)})}"


def write_term(name: str, value: str) -> str:
    """A term of the search language; empty where the value is too long to be asked for."""
    return refining.write_term(name, (value,)) if len(value) <= 300 else ""


def list_doubts(confusables: Confusables, agents: Sequence[Agent]) -> list[dict[str, Any]]:
    """Why the names of an agent are flagged."""
    odd, alike = confusables.find(agents)
    return [
        *({"own": own, "why": each.why, "name": each.name} for own, each in alike),
        *({"name": "", "own": agents[0].name, "why": why} for why in odd if not alike),
    ]


def name_dialects(slugs: Sequence[str]) -> str:
    """Dialects as people write them, one after the other."""
    return ", ".join(name_dialect(slug) for slug in slugs)
