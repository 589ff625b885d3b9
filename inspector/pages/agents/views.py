"""Agents: the directory, and one agent with whom it talks to, what came of it, and what it says of itself."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dialects import all_dialects
from inspector.accounts.models import Membership
from inspector.audit.naming import list_candidates, list_words
from inspector.audit.outcomes import Outcome, count_asked_between, count_asked_of
from inspector.browsing.directory import (
    AgentSum,
    compare_names,
    find_agent,
    list_abilities,
    list_agents,
    list_conversations_of,
    list_declarations,
    sum_agents,
    survey_pairs,
)
from inspector.lookups import or_404
from inspector.replica import on_replica
from inspector.threads.agents.names import CONVENTIONS, label_by_convention
from inspector.threads.models import Agent, AgentTotal, Declaration
from inspector.threads.tasks.measures import get_state, list_channels_at, measure_agent

from ..shell import cut_page, render_page, within_workspace
from ..shown.told import name_dialect, name_opened, shorten, write_elapsed
from .forms import JoinForm, NameForm
from .frame import frame_agents, read_narrowing
from .rows import Ability, Gallery, list_doubts, name_dialects, write_term

PAGE_ROWS = 50
MAX_PAIRS = 30
MAX_CONVERSATIONS = 8
MAX_WORDS = 50
_LIST = "agents"


@within_workspace("GET")
@on_replica
def show_agents(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The directory, the busiest first, by keyset."""
    workspace = membership.workspace
    narrowing = read_narrowing(request, membership, of=_LIST)
    after = narrowing.after
    found = list_agents(
        workspace=workspace,
        choice=narrowing.choice,
        after=(after[0], uuid.UUID(after[1])) if after else None,
        limit=PAGE_ROWS + 1,
        is_by_id=narrowing.walk.is_rest,
        since=narrowing.since,
    )
    page, last = cut_page(found, PAGE_ROWS)
    totals = AgentTotal.objects.filter(workspace=workspace)
    rest_url = narrowing.walk.find_rest(totals, has_more=last is not None)
    if rest_url and not page:
        return redirect(rest_url)
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
        **frame_agents(
            request,
            membership,
            narrowing,
            current="agents",
            of=_LIST,
            is_empty=not page,
            last=[last.total, str(last.agent.pk)] if last else None,
            rest_url=rest_url,
        ),
    }
    return render_page(request, membership, "agents/agents.html", context, section="agents")


def _list_abilities(membership: Membership, page: Sequence[AgentSum]) -> dict[uuid.UUID, set[Ability]]:
    ids = [each.pk for row in page for each in row.every]
    found: dict[uuid.UUID, set[Ability]] = {}
    for agent_id, dialect, value in list_abilities(workspace=membership.workspace, agent_ids=ids):
        meaning = _MEANINGS.get(dialect, {}).get(value, "")
        found.setdefault(agent_id, set()).add(Ability(value=value, meaning=meaning))
    return found


@within_workspace("GET")
def show_agent(request: HttpRequest, membership: Membership, agent_id: uuid.UUID) -> HttpResponse:
    """One agent; a name that was joined to another leads to that one."""
    summed = get_sum(membership, agent_id)
    if summed.agent.same_as_id is not None:
        return redirect("pages:agent", membership.workspace.slug, summed.agent.same_as_id)
    return answer_agent(request, membership, summed)


def get_sum(membership: Membership, agent_id: uuid.UUID) -> AgentSum:
    """The agent of the reader's workspace, summed up. Http404 where there is none."""
    return or_404(sum_agents(workspace=membership.workspace, agent_ids=[agent_id]).get(agent_id))


def get_agent(membership: Membership, agent_id: uuid.UUID) -> Agent:
    """The agent of the reader's workspace. Http404 where there is none."""
    return or_404(find_agent(workspace=membership.workspace, agent_id=agent_id))


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
        "declared": [_describe(each) for each in list_declarations(workspace=workspace, agent_ids=every, limit=200)],
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


def _describe(declared: Declaration) -> dict[str, Any]:
    return {
        "declared": declared,
        "meaning": _find_meaning(declared),
        "dialect": name_dialect(declared.dialect),
    }


def _find_meaning(declared: Declaration) -> str:
    """What a code of the dialect's glossary means, where an ability is one."""
    if declared.kind != Declaration.Kind.ABILITY:
        return ""
    return _MEANINGS.get(declared.dialect, {}).get(declared.value, "")


def _say_seconds(seconds: float | None) -> str:
    return "" if seconds is None else write_elapsed(timedelta(seconds=seconds))


# An ability that is a code is one of the domains of its dialect's glossary.
_MEANINGS = {
    dialect.slug: {term.code: term.meaning for term in dialect.glossary if term.kind == "domain"}
    for dialect in all_dialects()
}
