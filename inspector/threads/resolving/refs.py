"""References to messages, as the facts of a block hold them: by id, with what ranks them among others."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from dialects import get_dialect

from ..placing.nodes import StoredNode

Rank = tuple[int, str, int, int]


@dataclass(slots=True, eq=False)
class Ref:
    """A message: `node` itself where it stands in the block at hand, `turn` where its dialect counts them."""

    id: uuid.UUID
    rank: Rank
    sender: str | None
    turn: int | None
    node: StoredNode | None = None

    def write(self) -> list[Any]:
        """It as JSON takes it."""
        return [self.id.hex, *self.rank, self.sender, self.turn]

    @classmethod
    def read(cls, written: list[Any]) -> Ref:
        """What `write` wrote."""
        name, instant, source, index, part, sender, turn = written
        return cls(uuid.UUID(hex=name), (instant, source, index, part), sender, turn)


def make_ref(node: StoredNode) -> Ref:
    """The reference to a node of the block, where its position ranks it."""
    turn = node.turn if node.turn is not None and get_dialect(node.dialect).orders_by_turn else None
    # Its order key, as short as it tells messages apart.
    rank = node.instant, node.source[:8].hex(), node.index, node.part
    return Ref(node.id, rank, node.sender, turn, node)


def is_after(one: Ref, other: Ref) -> bool:
    """Whether one stands later in the timeline than another."""
    if one.node is not None and other.node is not None:
        return one.node.position > other.node.position
    if (one.node is None) != (other.node is None):
        # What stands in the block comes after all that earlier blocks gave.
        return one.node is not None
    return one.rank > other.rank


def take_latest(refs: Iterable[Ref | None]) -> Ref | None:
    """The latest of these."""
    latest: Ref | None = None
    for ref in refs:
        if ref is not None and (latest is None or is_after(ref, latest)):
            latest = ref
    return latest


# The latest message of some, and the latest of anyone but its sender; or of a turn before its.
Pair = tuple[Ref | None, Ref | None]


def read_pair(written: list[Any]) -> Pair:
    """A pair as it was stored."""
    one, other = written
    return Ref.read(one), None if other is None else Ref.read(other)


def follow(pair: Pair | None, ref: Ref, *, by: Literal["sender", "turn"]) -> Pair:
    """The latest message, and the latest of anyone but its sender, or of another turn, once one more has come."""
    if pair is None or pair[0] is None:
        return ref, None
    return ref, pair[0] if getattr(pair[0], by) != getattr(ref, by) else pair[1]


def of_other(pair: Pair | None, sender: str | None) -> Ref | None:
    """The latest that this sender did not send."""
    if pair is None or pair[0] is None or pair[0].sender != sender:
        return None if pair is None else pair[0]
    return pair[1]


def before_turn(pair: Pair | None, ref: Ref) -> Ref | None:
    """The latest before a message; where turns are counted, of an earlier turn than its own."""
    if pair is None or pair[0] is None:
        return None
    return pair[1] if ref.turn is not None and pair[0].turn == ref.turn else pair[0]
