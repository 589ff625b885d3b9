"""Cuts: where a timeline falls into stretches, and what is known before the first message of each.

A cut is clean where nothing reaches across it: everything before it has a lesser order key, no part of a record stands
on either side, no turns are put in order over it, and nothing before it answers what comes after it. What is known
there is then all that the messages after it need of those before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ..reads import Reads

if TYPE_CHECKING:
    from .placer import AnyNode, Node

# A stretch has at least so many messages.
SPACING: Final = 1024


@dataclass(slots=True, eq=False)
class Cut:
    """A clean cut: how many messages are before it, what the stretch after it reads, and what is known there.

    `placed` is what placing knows, `assigned` what the assigning of tasks does; both as JSON takes them.
    """

    position: int
    reads: Reads
    placed: dict[str, Any] = field(default_factory=dict)
    assigned: dict[str, Any] = field(default_factory=dict)


class Cuts:
    """The cuts that are made while messages are placed and then assigned to tasks.

    Args:
        candidates: positions at which a cut may be made, ascending: what comes before has a lesser order key.
        reads: of the stretch that goes on where the messages begin.
        spacing: a stretch is to have at least so many messages.
    """

    def __init__(self, candidates: Iterable[int], reads: Reads, *, spacing: int = SPACING) -> None:
        self._candidates = list(candidates)
        self._spacing = spacing
        self.reads = reads
        self.made: list[Cut] = []

    def find_clean(self, nodes: Sequence[Node], by_rank: Sequence[Node], first: int) -> Iterator[int]:
        """Before how many of these nodes a cut may be made, as far as their order says.

        Args:
            nodes: in the order of the timeline.
            by_rank: the same by order key.
            first: the position of the first of them.
        """
        at, greatest = 0, -1
        for position in self._candidates:
            end = position - first
            if not end and nodes:
                # All that was placed before comes before these.
                yield end
            if not 0 < end < len(nodes):
                continue
            greatest = max(greatest, max((node.rank for node in nodes[at:end]), default=-1))
            at = end
            # The same ones come first in both orders where none of those here comes later there.
            if (
                greatest == by_rank[end - 1].rank
                and not _is_one_record(nodes, end)
                and not _is_one_record(by_rank, end)
            ):
                yield end

    def is_far(self, position: int) -> bool:
        """Whether the stretch that goes on would be long enough if it ended here."""
        return position - (self.made[-1].position if self.made else self.reads.start) >= self._spacing

    def cut(self, nodes: Sequence[AnyNode]) -> Iterator[tuple[Cut | None, Reads, Sequence[AnyNode]]]:
        """These nodes, cut as it was made: each cut (None before the first), what is read after it, and what comes.

        Args:
            nodes: all that were placed with these cuts, in one of the two orders.
        """
        first = min((node.position for node in nodes), default=0)
        starts = [0, *(cut.position - first for cut in self.made), len(nodes)]
        for at, cut in enumerate((None, *self.made)):
            yield cut, self.reads if cut is None else cut.reads, nodes[starts[at] : starts[at + 1]]


def _is_one_record(nodes: Sequence[Node], at: int) -> bool:
    return nodes[at - 1].record == nodes[at].record
