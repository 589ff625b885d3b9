"""The runs of a conversation id that starts over, and the order of turns, in a dialect that counts turns.

A sender's turn that is said again after a later turn, in other bytes, opens a new run; the same bytes are repeated.
Within a run its messages stand in the order of their turns, as far as they stand in one block; what comes later than
that stands by its time, and says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from dialects import get_dialect

from ..placing.nodes import StoredNode
from .view import View

LATE = "it came long after later turns, so it stands where its time puts it"


def order_nodes(nodes: Sequence[StoredNode], view: View) -> list[StoredNode]:
    """The nodes of a block in the order of the timeline, each with its run."""
    runs: dict[tuple[str, int], list[int]] = defaultdict(list)
    counting = [node for node in nodes if node.turn is not None and get_dialect(node.dialect).orders_by_turn]
    if not counting:
        return list(nodes)
    view.expect(("run", dialect) for dialect in {node.dialect for node in counting})
    # Nearly all of them go on in the run that is under way.
    under_way = {node.dialect: view.get(("run", node.dialect)) or (1, -1) for node in counting}
    view.expect(("turn", node.dialect, under_way[node.dialect][0], node.turn or 0, node.sender) for node in counting)
    for at, node in enumerate(nodes):
        if node.turn is not None and get_dialect(node.dialect).orders_by_turn:
            node.run = _number(node, view)
            runs[node.dialect, node.run].append(at)
            run, latest = under_way[node.dialect]
            node.is_late = node.run == run and node.turn < latest
    ordered = list(nodes)
    for places in runs.values():
        by_turn = sorted((nodes[at] for at in places), key=lambda node: node.turn or 0)
        for at, node in zip(places, by_turn, strict=True):
            ordered[at] = node
    return ordered


def _number(node: StoredNode, view: View) -> int:
    turn = node.turn or 0
    run, latest = view.get(("run", node.dialect)) or (1, -1)
    key = ("turn", node.dialect, run, turn, node.sender)
    said = view.get(key)
    is_repeated = bool(node.said) and said is not None and node.said.hex() in said
    if said is not None and not is_repeated and turn < latest:
        run, latest, said, node.opens_run = run + 1, -1, None, True
        key = ("turn", node.dialect, run, turn, node.sender)
    if not is_repeated:
        view.put(key, [*(said or ()), node.said.hex()])
    view.put(("run", node.dialect), (run, max(latest, turn)))
    return int(run)
