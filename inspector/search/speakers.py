"""Whom `from:` and `to:` mean: who bears a name on the wire, and who is known by it to people."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.accounts.models import Workspace
from inspector.threads.agents.names import find_meanings
from inspector.threads.telling import terms

_SAID, _CHANNEL = '"threads_message"."atoms" @> %s::text[]', '"threads_message"."channel_id"'


def write_speakers(atom: str, names: Sequence[str], workspace: Workspace) -> tuple[str, list[object]]:
    """The SQL and its parameters for messages in which one of these names stands under this atom.

    A name means those who bear it on the wire, those whom an auditor calls so in their channel, those who are one with
    either, and those who are called so by the convention of a dialect.
    """
    mark = terms.workspace_term(workspace.pk)
    # Each with the workspace's own term: so the index finds both at once, and never goes through all of the workspace.
    conditions = [_SAID] * len(names)
    values: list[object] = [[mark, terms.term(atom, name)] for name in names]
    for each in [meaning for name in names for meaning in find_meanings(workspace=workspace, name=name)]:
        said = [mark, terms.term(atom, each.name)]
        if each.channel_id is not None:
            conditions.append(f"{_SAID} AND {_CHANNEL} = %s")
            values += [said, each.channel_id]
        else:
            conditions.append(f"{_SAID} AND {_CHANNEL} <> ALL(%s)")
            values += [[*said, terms.term("dialect", each.dialect)], list(each.but_in)]
    return " OR ".join(f"({condition})" for condition in conditions), values
