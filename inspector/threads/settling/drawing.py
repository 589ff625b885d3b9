"""Drawing: the trees of settled conversations, whole or grown from where settling went on."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from ..models import Conversation
from ..placing.nodes import Timeline
from ..trees.growing import Base
from .carries import Start
from .hindsight import Hindsight
from .milestones import list_digests, list_held, read_trees
from .writing import Appended, grow_outlines, write_outlines


def draw_trees(
    starts: Mapping[Conversation, Start | None],
    timelines: Mapping[uuid.UUID, Timeline],
    hindsights: Mapping[Conversation, Hindsight],
    *,
    workspace_id: uuid.UUID,
) -> dict[uuid.UUID, Base]:
    """Write the trees of these conversations; call inside the transaction that holds them.

    Args:
        starts: where each is gone on from, None where it is settled from its beginning.
        timelines: their nodes since there, placed and told.
        hindsights: milestones that were found among them.
        workspace_id: their workspace.

    Returns:
        the trees at those milestones, of conversations that are gone on with, by their ids.

    Raises:
        UncertainError: where a tree must be drawn whole.
    """
    whole = [each.pk for each, start in starts.items() if start is None]
    write_outlines([(pk, timelines[pk].nodes) for pk in whole], workspace_id=workspace_id)
    grown = {each: start for each, start in starts.items() if start is not None}
    held = list_held([each.pk for each in grown])
    nearer = {each: found for each, found in hindsights.items() if each in grown}
    trees: dict[uuid.UUID, Base] = {}
    if nearer:
        # They grow up to there first. Who has read a directory that is stored now still finds its blocks.
        stored = read_trees([each.pk for each in nearer])
        held |= {pk: held.get(pk, frozenset()) | list_digests(tree) for pk, tree in stored.items()}
        firsts = [
            Appended(each.pk, found.nodes, grown[each].tree, held.get(each.pk, frozenset()))
            for each, found in nearer.items()
        ]
        grow_outlines(firsts, workspace_id=workspace_id)
        trees = read_trees([each.pk for each in nearer])
    rest = []
    for each, start in grown.items():
        nodes, tree = timelines[each.pk].nodes, start.tree
        if each in nearer:
            nodes, tree = nodes[len(nearer[each].nodes) :], None
        rest.append(Appended(each.pk, nodes, tree, held.get(each.pk, frozenset())))
    grow_outlines(rest, workspace_id=workspace_id)
    return trees
