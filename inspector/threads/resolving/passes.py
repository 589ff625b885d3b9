"""A pass over one block: its messages linked, assigned to their tasks, and once they are told, summed up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..agents.aggregates import Exchanges, gather_exchanges, write_counted
from ..inserting.marking import Fence
from ..models.blocks import BROKEN_OFF, Block
from ..placing.citations import Citation, Elsewhere
from ..placing.nodes import StoredNode
from ..placing.places import make_place
from ..rendering.wordings import History, Retelling
from ..tasks.rows import Tasks
from .assigning import Assigner
from .established import Established
from .linking import Linker, load_bearers, order_nodes
from .summaries import Moment, Summary, sum_up
from .view import View
from .writing import Changes


@dataclass(slots=True)
class Recut:
    """What a block changes of how its conversation is cut: `gone` are the borders of blocks that are none any more,
    `beside` other blocks that are cut anew and yet to be gone through. `is_moved`: other messages may stand before
    those behind it."""

    gone: list[bytes] = field(default_factory=list)
    beside: list[Block] = field(default_factory=list)
    is_moved: bool = False


class Pass:
    """A block that is gone through; what it adds up to is known once its messages are told. `changes` takes the rows
    that come out otherwise."""

    # What is known once it has been linked, and once it has been told.
    tasks: Tasks
    summary: Summary
    exchanges: Exchanges

    def __init__(
        self, history: History, block: Block, nodes: Sequence[StoredNode], view: View, changes: Changes
    ) -> None:
        self.history = history
        self.conversation = history.conversation
        self.block = block
        self.nodes = nodes
        self.view = view
        self.changes = changes
        self.recut = Recut()
        self.count_before = 0
        # Whether it was left in the middle of being written: then what its messages were is not known any more.
        self.is_broken_off = block.generation == BROKEN_OFF
        self._outside: Sequence[StoredNode] = ()

    def look_around(self) -> None:
        """Load who bears the ids that its messages cite, in other blocks of the conversation."""
        for slug in {slug for node in self.nodes if node.guess is not None for slug in node.guess.scores}:
            # In which dialect they are read was decided by this.
            self.view.get(("spoken", slug))
        self._outside = load_bearers(self.conversation, self.nodes)

    def list_citations(self) -> set[Citation]:
        """What its messages cite that nobody in their conversation bears."""
        return list_citations(self.nodes, {node.key for node in [*self.nodes, *self._outside] if node.key})

    def link(self, elsewhere: Mapping[Citation, Elsewhere]) -> None:
        """Link and assign its messages; `elsewhere` is who bears what they cite in other conversations."""
        conversation, view = self.conversation, self.view
        self.nodes = nodes = order_nodes(self.nodes, view)
        for position, node in enumerate(nodes):
            node.position = position
            node.place = make_place(self.block.start, position)
        Linker(conversation, nodes, view, self._outside, elsewhere).link()
        self.tasks = Tasks(conversation.pk, view)
        Assigner(conversation, nodes, view, self.tasks).assign()

    def tell(self, fence: Fence) -> Iterator[None]:
        """Tell those of its messages that do not stand as they are told, one by one, and sum all up. `fence` is called
        between loads, as a sign of life."""
        retelling = Retelling(self.nodes, Established(self.view, self.count_before), fence)
        for node, row in retelling.go_through():
            self.changes.take(self.history, node, row)
            yield
        view, nodes = self.view, self.nodes
        if not view.is_only:
            self.tasks.note()
            retelling.context.note()
            for dialect in dict.fromkeys(node.read_in for node in nodes if node.read_in != "prose"):
                if not view.get(("spoken", dialect)):
                    view.put(("spoken", dialect), True)
        self.summary = sum_up(nodes, _find_moment(nodes, view))
        self.exchanges = gather_exchanges(self.conversation, nodes)
        if not view.is_only:
            self.summary.exchanges = write_counted(self.exchanges)


def list_citations(nodes: Sequence[StoredNode], borne: set[bytes]) -> set[Citation]:
    """What these messages cite that nobody in their conversation bears, as `borne` says."""
    return {
        Citation(way.key, node.trace)
        for node in nodes
        for way in node.ways
        if way.whom in ("message-id", "request-elsewhere") and way.key is not None and way.key not in borne
    }


def _find_moment(nodes: Sequence[StoredNode], view: View) -> Moment | None:
    """The latest time before a block, where one of its messages has it too; and what the block says of its own."""
    if view.is_only or not nodes:
        return None
    held = view.get(("moment",))
    before = Moment(*held) if held is not None else None
    instants = [node.instant for node in nodes]
    latest = max(instants)
    count = instants.count(latest)
    if before is not None and before.instant == latest:
        count += before.messages
    view.put(("moment",), [latest, count])
    return before if before is not None and before.instant in instants else None
