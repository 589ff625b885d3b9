"""Whom `from:` and `to:` mean: who bears a name on the wire, and who is known by it to people."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from inspector.accounts.models import Workspace
from inspector.lookups import IsAny
from inspector.threads.agents.names import KnownNames, find_meanings, load_labels
from inspector.threads.models import Agent, key_of_name
from inspector.threads.rendering import terms

from .registry import Condition, has_any_term, has_terms


def write_speakers(atom: str, names: Sequence[str], workspace: Workspace) -> Condition:
    """Messages in which one of these names stands under this atom.

    What a name means is said in `threads.agents.names`.
    """
    said = has_any_term(workspace, [terms.term(atom, name) for name in names])
    return said | write_called(atom, names, workspace)


def write_called(atom: str, names: Sequence[str], workspace: Workspace) -> Condition:
    """Those who are called by one of these names and bear another on the wire; an empty condition for nobody."""
    found = Q()
    for each in find_meanings(workspace=workspace, names=names) if names else ():
        said = [terms.term(atom, each.name)]
        if each.dialect:
            said.append(terms.term("dialect", each.dialect))
        condition = has_terms(workspace, said)
        if each.channel_id is not None:
            condition &= Q(channel=each.channel_id)
        elif each.but_in:
            condition &= ~Q(IsAny("channel_id", each.but_in))
        found |= condition
    return found


def list_names(beginning: str, workspace: Workspace) -> list[str]:
    """The names that begin so and by which people call an agent that bears another."""
    return KnownNames(load_labels(workspace_id=workspace.pk)).list_beginning(beginning)


def is_known(*, workspace: Workspace, name: str) -> bool:
    """Whether an agent of the workspace bears this name, spelled so, or is called by it."""
    bearers = Agent.objects.filter(workspace=workspace, name_key=key_of_name(name))
    return name in bearers.values_list("name", flat=True) or bool(find_meanings(workspace=workspace, names=[name]))
