"""GET agents: the directory by keyset, and one agent with whom it talks to and what it declares."""

from __future__ import annotations

import uuid
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from inspector.audit.agents import Outcome, count_asked_of
from inspector.browsing import directory
from inspector.browsing.directory import AgentSum, PairSum, find_customs, list_pairs
from inspector.database import make_storable, on_replica
from inspector.threads.agents import Label, label_agent
from inspector.threads.models import Agent, Declaration

from .endpoints import Endpoint, operation
from .parameters import SLUGS, find_named_channel, take_choice, take_text
from .shapes import FIXED, choose, cut_by_id, listing, offer_order, read_row_id, show

MAX_PAIRS, MAX_DECLARED = 200, 200


class NameSerializer(serializers.Serializer[Any]):
    """An agent by its raw name, in its channel."""

    id = serializers.UUIDField()
    name = serializers.CharField(help_text="as the message or its envelope says")
    channel = serializers.CharField(source="channel.name")


class CalledSerializer(NameSerializer):
    """An agent with its friendly name."""

    friendly_name = serializers.CharField(allow_null=True, help_text="a name given by people; for display alone")
    friendly_name_basis = serializers.ChoiceField(
        choices=["given", "joined", "convention"],
        allow_null=True,
        help_text="who says so: an auditor of it, an auditor of the agent it is one with, or its dialect",
    )


class AskedSerializer(serializers.Serializer[Any]):
    """Requests to an agent, by the tasks of its conversations."""

    asked = serializers.IntegerField()
    done = serializers.IntegerField()
    failed = serializers.IntegerField()
    reversed = serializers.IntegerField(
        help_text="that stand as done, but after an earlier end or denied by their data; not among `done`"
    )


class AgentSerializer(CalledSerializer):
    """An agent of the directory; joined names count as one."""

    aliases = NameSerializer(many=True, help_text="other names that an auditor says are the same agent")
    dialects = serializers.ListField(child=serializers.CharField())
    sent = serializers.IntegerField()
    received = serializers.IntegerField(help_text="messages sent to it by name")
    failures = serializers.IntegerField(help_text="messages it sent that report a failure")
    conversations = serializers.IntegerField()
    asked_of_it = AskedSerializer()
    first_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)


class PairSerializer(serializers.Serializer[Any]):
    """How much one agent said to another; a message to three counts with each of them."""

    sender = CalledSerializer(allow_null=True, help_text="null: nobody is named")
    receiver = CalledSerializer(allow_null=True, help_text="null: everyone, or no recipient")
    is_broadcast = serializers.BooleanField()
    dialects = serializers.ListField(child=serializers.CharField())
    messages = serializers.IntegerField()
    failures = serializers.IntegerField()
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()


class DeclarationSerializer(serializers.Serializer[Any]):
    """One thing that an agent says of itself, with the latest message that says it."""

    kind = serializers.ChoiceField(
        choices=Declaration.Kind.values, help_text="more: so many further things of one message are not kept here"
    )
    value = serializers.CharField()
    name = serializers.CharField(allow_blank=True, help_text="the name under which a key is shown")
    dialect = serializers.CharField()
    message = serializers.UUIDField()
    at = serializers.DateTimeField()


class AgentDetailSerializer(AgentSerializer):
    """An agent in full; the first 200 of each list."""

    pairs = PairSerializer(many=True, help_text="whom it talks with, the most first")
    declared = DeclarationSerializer(many=True)


def show_called(agent: Agent, label: Label | None) -> dict[str, Any]:
    """An agent with its friendly name."""
    text, basis = (label.text, label.basis) if label else (None, None)
    return show(CalledSerializer, agent, friendly_name=text, friendly_name_basis=basis)


def show_agent(row: AgentSum, outcome: Outcome) -> dict[str, Any]:
    """An agent as the directory has it."""
    return show(AgentSerializer, row, **show_called(row.agent, row.label), asked_of_it=show(AskedSerializer, outcome))


def show_pair(pair: PairSum, customs: dict[uuid.UUID, list[str]]) -> dict[str, Any]:
    """A pair, its sides with what people call them."""
    sides = {
        name: show_called(side, label_agent(side, customs.get(side.pk, ()))) if side else None
        for name, side in (("sender", pair.sender), ("receiver", pair.receiver))
    }
    return show(PairSerializer, pair, **sides)


class Agents(Endpoint):
    """The directory of agents."""

    @listing(
        "Agent",
        AgentSerializer,
        "Agents",
        offer_order("busiest", about="busiest first", fixed="by their ids"),
        take_text("name", about="filter by part of a name, raw or friendly", default=""),
        take_text("channel", about="filter by channel", default=""),
        take_choice("dialect", about="filter by dialect", choices=SLUGS, default=""),
        what="An agent",
    )
    @on_replica
    def list_agents(self, request: Request) -> dict[str, Any]:
        """A page of the directory; a channel or a dialect narrows the counts as well."""
        workspace = self.workspace
        after = read_row_id(self, "agents")
        choice = directory.Choice(
            channel=find_named_channel(workspace, self.given["channel"]),
            dialect=self.given["dialect"],
            name=make_storable(self.given["name"]),
        )
        found = directory.list_agents(
            workspace=workspace,
            choice=choice,
            after=(0, after) if after else None,
            limit=self.given["limit"] + 1,
            is_by_id=self.given["order"] == FIXED,
        )
        page, cursor = cut_by_id(self, found, lambda row: row.agent.pk, "agents")
        outcomes = count_asked_of(workspace=workspace, sums=page)
        shown = [show_agent(row, outcomes.get(row.agent.pk, Outcome())) for row in page]
        return {"results": [choose(row, self.given) for row in shown], "next": cursor}

    @operation(AgentDetailSerializer)
    def get_agent(self, request: Request, agent_id: uuid.UUID) -> dict[str, Any]:
        """The agent with whom it talks and what it declares; a joined name gives the agent it is known by."""
        workspace = self.workspace
        agent = self.find(directory.find_agent, agent_id=agent_id)
        known = directory.find_agent(workspace=workspace, agent_id=agent.same_as_id) if agent.same_as_id else agent
        agent = known or agent
        found = directory.list_agents(workspace=workspace, only=[agent.pk], limit=1)
        row = found[0] if found else AgentSum(agent, (), (), 0, 0, 0, 0, None, None)
        pairs = list_pairs(workspace=workspace, agent=agent, limit=MAX_PAIRS)
        sides = [side for pair in pairs for side in (pair.sender, pair.receiver) if side]
        customs = find_customs(workspace=workspace, agents=sides)
        outcomes = count_asked_of(workspace=workspace, sums=[row])
        declared = directory.list_declarations(
            workspace=workspace, agent_ids=[each.pk for each in row.every], limit=MAX_DECLARED
        )
        return {
            **show_agent(row, outcomes.get(agent.pk, Outcome())),
            "pairs": [show_pair(pair, customs) for pair in pairs],
            "declared": [show(DeclarationSerializer, each) for each in declared],
        }
