"""Naming an agent, joining it to another, and undoing either: acts with a name and a time, on the agent's page."""

from __future__ import annotations

import uuid

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from inspector.accounts.models import Membership
from inspector.accounts.selectors import list_channels
from inspector.audit.naming import find_word, join_agents, name_agent, undo_word
from inspector.browsing.directory import find_agent
from inspector.intake.text import make_storable
from inspector.lookups import or_404
from inspector.threads.models import Agent, AgentWord, make_agent_id

from ..shell import require_auditor, within_workspace
from .forms import JoinForm, NameForm
from .views import answer_agent, get_agent, get_sum


@within_workspace("POST")
def name(request: HttpRequest, membership: Membership, agent_id: uuid.UUID) -> HttpResponse:
    """Call the agent by a name that people know it by."""
    agent = get_agent(membership, agent_id)
    require_auditor(membership)
    form = NameForm(request.POST)
    word = form.hand_to(
        lambda: name_agent(membership=membership, agent=agent, **form.cleaned_data), field="friendly_name"
    )
    if word is None:
        return answer_agent(request, membership, get_sum(membership, agent.pk), name_form=form, status=422)
    flashes.success(request, f"It is called {word.friendly_name} from now on, and you can undo it.")
    return redirect("pages:agent", membership.workspace.slug, agent.pk)


@within_workspace("POST")
def join(request: HttpRequest, membership: Membership, agent_id: uuid.UUID) -> HttpResponse:
    """Say that the agent is one with another, by whose name it is shown from then on."""
    agent = get_agent(membership, agent_id)
    require_auditor(membership)
    form = JoinForm(request.POST, channels=list(list_channels(workspace=membership.workspace)), own=agent.channel)
    word = form.hand_to(lambda: _join(membership, agent, form), field="same_as")
    if word is None:
        return answer_agent(request, membership, get_sum(membership, agent.pk), join_form=form, status=422)
    flashes.success(request, "They are shown as one agent from now on, and you can undo it.")
    return redirect("pages:agent", membership.workspace.slug, word.same_as_id)


def _join(membership: Membership, agent: Agent, form: JoinForm) -> AgentWord:
    channel, said = form.read_channel(), form.cleaned_data
    wanted = make_agent_id(membership.workspace.pk, channel.pk, make_storable(said["same_as"]))
    other = find_agent(workspace=membership.workspace, agent_id=wanted)
    if other is None:
        raise ValidationError(f"no agent of the channel {channel.name} has this name: write it as the raw messages do")
    return join_agents(membership=membership, agent=agent, same_as=other, reason=said["reason"])


@within_workspace("POST")
def undo(request: HttpRequest, membership: Membership, word_id: uuid.UUID) -> HttpResponse:
    """Undo what was said of an agent; the record of it stays."""
    word = or_404(find_word(workspace=membership.workspace, word_id=word_id))
    require_auditor(membership)
    try:
        undo_word(membership=membership, word=word)
    except ValidationError as error:
        flashes.error(request, " ".join(error.messages).capitalize())
    else:
        done = "It is called as before." if word.kind == AgentWord.Kind.NAME else "They are two agents again."
        flashes.success(request, f"Undone. {done}")
    return redirect("pages:agent", membership.workspace.slug, word.agent_id)
