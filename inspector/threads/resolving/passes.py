"""A pass over one block: its messages linked, assigned to their tasks, and once they are told, summed up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..agents.aggregates import Exchanges, gather_exchanges, write_counted
from ..inserting.marking import Fence
from ..models import Conversation
from ..multiset import Multiset
from ..placing.citations import Citation, Elsewhere
from ..placing.nodes import StoredNode
from ..placing.places import make_place
from ..rendering.retelling import Retelling
from ..rendering.wordings import History
from ..tasks.rows import Tasks
from .assigning import Assigner
from .blocks import Segment
from .established import Established
from .linking import Linker, Outside
from .runs import order_nodes
from .summaries import Moment, Summary, sum_up
from .view import View
from .writing import Changes


@dataclass(slots=True)
class Pass:
    """A block that is gone through; what it adds up to is known once its messages are told.

    `changes` are the rows that come out otherwise.
    """

    conversation: Conversation
    segment: Segment
    view: View
    nodes: list[StoredNode]
    tasks: Tasks
    assigner: Assigner
    context: Established
    changes: Changes
    summary: Summary = field(default_factory=Summary)
    elements: Multiset = field(default_factory=Multiset)
    exchanges: Exchanges = field(init=False)

    def retell(self, fence: Fence) -> Retelling:
        """The telling of its messages."""
        return Retelling(self.nodes, fence, self.context)

    def tell(self, retelling: Retelling, write: Callable[[Changes], None] | None = None) -> None:
        """Tell those of its messages that do not stand as they are told, and sum all up.

        Args:
            write: writes what has changed as soon as that is much; without it everything is kept.
        """
        for node, row, established in retelling.go_through():
            self.changes.take(node, row, established)
            if write is not None and self.changes.is_window:
                write(self.changes)
                self.changes.clear()
        view, nodes = self.view, self.nodes
        if not view.is_only:
            self.tasks.note()
            self.assigner.finish()
            self.context.note()
            for dialect in dict.fromkeys(node.dialect for node in nodes if node.dialect != "prose"):
                if not view.get(("spoken", dialect)):
                    view.put(("spoken", dialect), True)
        self.summary, self.elements = sum_up(nodes, _find_moment(nodes, view))
        self.exchanges = gather_exchanges(self.conversation, nodes)
        if not view.is_only:
            self.summary.exchanges = write_counted(self.exchanges)


def begin_pass(
    conversation: Conversation,
    segment: Segment,
    view: View,
    history: History,
    *,
    outside: Outside,
    elsewhere: Mapping[Citation, Elsewhere],
    count_before: Callable[[], int],
) -> Pass:
    """Link and assign the messages of a block.

    Args:
        outside: who bears the ids that they cite, in other blocks of the conversation.
        elsewhere: who bears them in other conversations.
        count_before: how many messages come before the block.
    """
    nodes = order_nodes(segment.nodes, view)
    for position, node in enumerate(nodes):
        node.position = position
        node.place = make_place(segment.border, position)
    Linker(conversation, nodes, view, outside, elsewhere).link()
    tasks = Tasks(conversation.pk, view)
    assigner = Assigner(conversation, nodes, view, tasks)
    assigner.assign()
    context = Established(view, count_before)
    changes = Changes(conversation.pk, history)
    return Pass(conversation, segment, view, nodes, tasks, assigner, context, changes)


def list_citations(nodes: Sequence[StoredNode], borne: set[bytes]) -> set[Citation]:
    """What these messages cite that nobody in their conversation bears, as `borne` says."""
    return {
        Citation(way.key, node.trace)
        for node in nodes
        for way in node.ways
        if way.whom == "message-id" and way.key is not None and way.key not in borne
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
