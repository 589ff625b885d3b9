"""Agents: the directory, and one agent with whom it talks to, what came of it, and what it says of itself.

Beside them stand what the directory and the graph have in common (filters, tabs that keep them, the ways on by keyset),
agents and pairs as the rows of tables, and what people say of an agent: its name, and that it is one with another.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dialects import all_dialects
from inspector.accounts.models import Channel, Membership, Workspace
from inspector.accounts.selectors import list_channels
from inspector.audit.agents import (
    MAX_REASON,
    Outcome,
    count_asked_between,
    count_asked_of,
    find_word,
    join_agents,
    list_candidates,
    list_words,
    name_agent,
    undo_word,
)
from inspector.browsing.directory import (
    AgentSum,
    Choice,
    Confusables,
    PairSum,
    compare_names,
    find_agent,
    find_customs,
    list_abilities,
    list_agents,
    list_conversations_of,
    list_declarations,
    sum_agents,
    survey_pairs,
)
from inspector.database import make_storable, on_replica, or_404
from inspector.search.selectors import read_key, write_key
from inspector.threads.agents import CONVENTIONS, label_agent, label_by_convention
from inspector.threads.models import MAX_FRIENDLY_NAME, Agent, AgentTotal, AgentWord, Declaration, make_agent_id
from inspector.threads.tasks import get_state, list_channels_at, measure_agent

from .lists import read_walk
from .shell import PLAIN, PageForm, attempt, list_dialects, render_page, require_auditor, within_workspace, write_query
from .shown.agents import AgentMark, find_colour, make_mark
from .shown.told import link_search, name_dialect, name_dialects, name_opened, shorten, write_elapsed, write_term

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
            colour = find_colour(agent.same_as.name if agent.same_as else agent.name)
            self._marks[agent.pk] = make_mark(agent.name, label, colour)
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
        return link_search(self._slug, " ".join(terms)) if all(terms) and len(terms) > 1 else ""


def list_doubts(confusables: Confusables, agents: Sequence[Agent]) -> list[dict[str, Any]]:
    """Why the names of an agent are flagged."""
    odd, alike = confusables.find(agents)
    return [
        *({"own": own, "why": each.why, "name": each.name} for own, each in alike),
        *({"name": "", "own": agents[0].name, "why": why} for why in odd if not alike),
    ]


class AgentFilter(PageForm):
    """Which agents are listed; unknown values filter nothing. The channel is asked for where there are several."""

    name = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"size": 14, "placeholder": "part of a name"}),
    )
    channel = forms.ChoiceField(required=False)
    dialect = forms.ChoiceField(required=False, choices=partial(list_dialects, "any"))

    def __init__(self, *args: Any, channels: Sequence[Channel], **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "filter-%s")
        super().__init__(*args, **kwargs)
        self._channels = {channel.name: channel for channel in channels}
        self.offer("channel", [("", "any"), *((name, name) for name in self._channels)])
        if len(self._channels) < 2:
            del self.fields["channel"]

    def read(self) -> Choice:
        """The filters that are set and valid."""
        self.is_valid()
        said = self.cleaned_data
        return Choice(
            name=make_storable(said.get("name") or ""),
            channel=self._channels.get(said.get("channel") or ""),
            dialect=said.get("dialect") or "",
        )


class NameForm(PageForm):
    """What an auditor calls an agent."""

    friendly_name = forms.CharField(
        label="Friendly name",
        max_length=MAX_FRIENDLY_NAME,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="For people, in this channel. The raw name stays beside it.",
    )
    reason = forms.CharField(
        label="Reason (optional)",
        required=False,
        max_length=MAX_REASON,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class JoinForm(PageForm):
    """Which agent this one is: a name as the wire has it, in a channel."""

    same_as = forms.CharField(
        label="It is the same agent as",
        max_length=2000,
        widget=forms.TextInput(attrs={**PLAIN, "list": "candidates"}),
        help_text="The other's name, exactly as in the raw messages. This agent is shown as the other from then on.",
    )
    channel = forms.ChoiceField(label="Its channel", required=False)
    reason = forms.CharField(
        label="Reason",
        max_length=MAX_REASON,
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Give the reason: later readers of this agent will see it."},
    )

    def __init__(self, *args: Any, channels: Sequence[Channel], own: Channel, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._channels = {channel.name: channel for channel in channels}
        self._own = own
        self.offer("channel", [(name, name) for name in self._channels], own.name)
        if len(self._channels) < 2:
            del self.fields["channel"]

    def read_channel(self) -> Channel:
        """The channel that is chosen; the agent's own where there is no choice."""
        return self._channels.get(self.cleaned_data.get("channel") or "", self._own)


# The views in the order of their tabs: (name of the address, what it is called).
TABS = (("agents", "Directory"), ("agents-graph", "Who talks with whom"))


class Narrowing:
    """What a list is narrowed to by its address, and the key after which it goes on; None at its beginning.

    Args:
        of: the list, as its keys name it.
        address: the address name of its view.

    Raises:
        CursorError: for a cursor that was not made for this list of this workspace.
    """

    def __init__(self, request: HttpRequest, membership: Membership, *, of: str, address: str) -> None:
        channels = list(list_channels(workspace=membership.workspace))
        self._request, self._of, self._address = request, of, address
        self._workspace = membership.workspace
        self._has_several_channels = len(channels) > 1
        self._form = AgentFilter(request.GET, channels=channels)
        self.choice = self._form.read()
        self.walk = read_walk(request, membership, places=("after",))
        self.after = self.walk.after or read_key(request.GET.get("after"), self._workspace.pk, of=of)
        # Since when the rows were written, where they are the rest of a walk.
        self.since = self.walk.since if self.walk.is_rest else None

    def frame(self, *, is_empty: bool, last: Sequence[Any] | None) -> dict[str, Any]:
        """The context of the frame.

        Args:
            is_empty: whether this page of the list has no rows.
            last: the key of its last row, where the list goes on.
        """
        kept = write_query(self._request, after=None, walk=None, rest=None)
        kept = kept if kept.startswith("?") else ""
        is_narrow = self.choice.is_narrow
        next_key = write_key(last, self._workspace.pk, of=self._of) if last else None
        return {
            "form": self._form,
            "has_several_channels": self._has_several_channels,
            "has_any": bool(not is_empty or not self.walk.is_first or is_narrow),
            "next_url": self.walk.write_on(last, after=next_key) if last else None,
            "walk": self.walk,
            "views": [
                {
                    "name": name,
                    "url": f"{reverse(f'pages:{address}', args=[self._workspace.slug])}{kept}",
                    "is_current": address == self._address,
                }
                for address, name in TABS
            ],
            "is_filtered": is_narrow,
            "clear_url": self._request.path,
        }


PAGE_ROWS = 50

MAX_PAIRS = 30

MAX_CONVERSATIONS = 8

MAX_WORDS = 50


@within_workspace("GET")
@on_replica
def show_agents(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The directory, the busiest first, by keyset."""
    workspace = membership.workspace
    narrowing = Narrowing(request, membership, of="agents", address="agents")
    after = narrowing.after
    found = list_agents(
        workspace=workspace,
        choice=narrowing.choice,
        after=(after[0], uuid.UUID(after[1])) if after else None,
        limit=PAGE_ROWS + 1,
        is_by_id=narrowing.walk.is_rest,
        since=narrowing.since,
    )
    page, last = narrowing.walk.cut(found, PAGE_ROWS, AgentTotal.objects.filter(workspace=workspace))
    outcomes = count_asked_of(workspace=workspace, sums=page)
    abilities = _list_abilities(membership, page)
    confusables = compare_names(workspace=workspace)
    gallery = Gallery(workspace, [row.agent for row in page])
    context = {
        "rows": [
            gallery.make_agent(
                row,
                outcome=outcomes.get(row.agent.pk, Outcome()),
                abilities=sorted({ability for each in row.every for ability in abilities.get(each.pk, ())}),
                confusables=confusables,
            )
            for row in page
        ],
        "are_all_compared": confusables.are_all_compared,
        **narrowing.frame(is_empty=not page, last=[last.total, str(last.agent.pk)] if last else None),
    }
    return render_page(request, membership, "agents/agents.html", context, section="agents")


def _list_abilities(membership: Membership, page: Sequence[AgentSum]) -> dict[uuid.UUID, set[Ability]]:
    ids = [each.pk for row in page for each in row.every]
    found: dict[uuid.UUID, set[Ability]] = {}
    for agent_id, dialect, value in list_abilities(workspace=membership.workspace, agent_ids=ids):
        meaning = _MEANINGS.get(dialect, {}).get(value, "")
        found.setdefault(agent_id, set()).add(Ability(value=value, meaning=meaning))
    return found


def find_sum(*, workspace: Workspace, agent_id: uuid.UUID) -> AgentSum | None:
    """The agent of the workspace, summed up, or None."""
    return sum_agents(workspace=workspace, agent_ids=[agent_id]).get(agent_id)


@within_workspace("GET", of=find_sum)
def show_agent(request: HttpRequest, membership: Membership, summed: AgentSum) -> HttpResponse:
    """One agent; a name that was joined to another leads to that one."""
    if summed.agent.same_as_id is not None:
        return redirect("pages:agent", membership.workspace.slug, summed.agent.same_as_id)
    return answer_agent(request, membership, summed)


def answer_agent(
    request: HttpRequest,
    membership: Membership,
    summed: AgentSum,
    *,
    name_form: NameForm | None = None,
    join_form: JoinForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page of one agent, its forms as they were filled in where they were refused."""
    workspace, agent = membership.workspace, summed.agent
    every = [each.pk for each in summed.every]
    survey = survey_pairs(workspace=workspace, agents=summed.every, limit=MAX_PAIRS)
    gallery = Gallery(workspace, (), customs=survey.customs)
    outcomes = count_asked_between(workspace=workspace, pairs=survey.pairs, known=survey.agents)
    channels, moments = list_channels_at(workspace=workspace)
    confusables = compare_names(workspace=workspace)
    names = [(each.channel_id, each.name) for each in summed.every]
    measures = measure_agent(workspace=workspace, names=names, moment=moments)
    conversations = list_conversations_of(workspace=workspace, agent_ids=every, limit=MAX_CONVERSATIONS)
    if summed.aliases:
        summed = summed._replace(conversations=vars(conversations[0])["of_all"] if conversations else 0)
    context = {
        "agent": agent,
        "mark": gallery.find(agent),
        "sum": summed,
        "dialects": name_dialects(summed.dialects),
        "doubts": list_doubts(confusables, summed.every),
        "measures": measures,
        "states": [(name.replace("-", " "), count) for name, count in measures.asked_of.states.items()],
        "acknowledge": _say_seconds(measures.asked_of.acknowledge.median),
        "finish": _say_seconds(measures.asked_of.finish.median),
        "pairs": [gallery.make_pair(pair, outcomes) for pair in survey.pairs],
        "extent": survey.extent,
        "declared": [
            {"declared": each, "meaning": _find_meaning(each), "dialect": name_dialect(each.dialect)}
            for each in list_declarations(workspace=workspace, agent_ids=every, limit=200)
        ],
        "conversations": [
            {"row": each, "title": shorten(name_opened(each), 60), "state": get_state(each)} for each in conversations
        ],
        "candidates": [
            {"name": name, "label": label.text if label else ""}
            for name in list_candidates(confusables.names, agent=agent, label=gallery.find(agent).label)
            for label in [label_by_convention(name, CONVENTIONS)]
        ],
        "words": list_words(agent=agent, limit=MAX_WORDS),
        "has_several_channels": len(channels) > 1,
        "sent_query": write_term("from", agent.name),
        "heard_query": write_term("to", agent.name),
        "name_form": name_form or NameForm(initial={"friendly_name": agent.friendly_name}),
        "join_form": join_form or JoinForm(channels=channels, own=agent.channel),
    }
    return render_page(request, membership, "agents/agent.html", context, section="agents", status=status)


def _find_meaning(declared: Declaration) -> str:
    """What a code of the dialect's glossary means, where an ability is one."""
    is_ability = declared.kind == Declaration.Kind.ABILITY
    return _MEANINGS.get(declared.dialect, {}).get(declared.value, "") if is_ability else ""


def _say_seconds(seconds: float | None) -> str:
    return "" if seconds is None else write_elapsed(timedelta(seconds=seconds))


# An ability that is a code is one of the domains of its dialect's glossary.
_MEANINGS = {
    dialect.slug: {term.code: term.meaning for term in dialect.glossary if term.kind == "domain"}
    for dialect in all_dialects()
}


@within_workspace("POST", of=find_agent)
def name(request: HttpRequest, membership: Membership, agent: Agent) -> HttpResponse:
    """Call the agent by a name that people know it by."""
    require_auditor(membership)
    form = NameForm(request.POST)
    word = form.hand_to(
        lambda: name_agent(membership=membership, agent=agent, **form.cleaned_data), field="friendly_name"
    )
    if word is None:
        return _refuse(request, membership, agent, name_form=form)
    flashes.success(request, f"It is called {word.friendly_name} from now on, and you can undo it.")
    return redirect("pages:agent", membership.workspace.slug, agent.pk)


@within_workspace("POST", of=find_agent)
def join(request: HttpRequest, membership: Membership, agent: Agent) -> HttpResponse:
    """Say that the agent is one with another, by whose name it is shown from then on."""
    require_auditor(membership)
    form = JoinForm(request.POST, channels=list(list_channels(workspace=membership.workspace)), own=agent.channel)
    word = form.hand_to(lambda: _join(membership, agent, form), field="same_as")
    if word is None:
        return _refuse(request, membership, agent, join_form=form)
    flashes.success(request, "They are shown as one agent from now on, and you can undo it.")
    return redirect("pages:agent", membership.workspace.slug, word.same_as_id)


def _refuse(request: HttpRequest, membership: Membership, agent: Agent, **form: Any) -> HttpResponse:
    """The page again, with a form as it was filled in."""
    summed = or_404(find_sum(workspace=membership.workspace, agent_id=agent.pk))
    return answer_agent(request, membership, summed, **form, status=422)


def _join(membership: Membership, agent: Agent, form: JoinForm) -> AgentWord:
    channel, said = form.read_channel(), form.cleaned_data
    wanted = make_agent_id(membership.workspace.pk, channel.pk, make_storable(said["same_as"]))
    other = find_agent(workspace=membership.workspace, agent_id=wanted)
    if other is None:
        raise ValidationError(f"no agent of the channel {channel.name} has this name: write it as the raw messages do")
    return join_agents(membership=membership, agent=agent, same_as=other, reason=said["reason"])


@within_workspace("POST", of=find_word)
def undo(request: HttpRequest, membership: Membership, word: AgentWord) -> HttpResponse:
    """Undo what was said of an agent; the record of it stays."""
    require_auditor(membership)
    done = "It is called as before." if word.kind == AgentWord.Kind.NAME else "They are two agents again."
    attempt(request, lambda: undo_word(membership=membership, word=word), f"Undone. {done}")
    return redirect("pages:agent", membership.workspace.slug, word.agent_id)
