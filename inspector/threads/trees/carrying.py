"""What is carried over a point of a drawn trace, so that what comes after it can be summed up without the rest."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .outline import cut_circles
from .strands import Strand

# A trace of more conversations, or with more answers to messages that it lacks, is drawn whole each time.
_MOST_CARRIED: Final = 4096


@dataclass(frozen=True, slots=True)
class Carried:
    """What the row of a trace does not say of the messages up to a point.

    `channels` are those whose messages a trace across channels has, `awaited` the ids of messages that are answered in
    it and are not among them; `is_asked` and `is_named` say whether a request, or any message, has a topic. `last` is
    the id of the last message of the timeline.
    """

    dialects: Mapping[str, int]
    conversations: frozenset[bytes]
    channels: frozenset[uuid.UUID]
    awaited: frozenset[bytes]
    is_asked: bool
    is_named: bool
    last: bytes


def carry(strand: Strand, before: Carried | None = None) -> Carried | None:
    """What is to be carried over the end of this strand, which may go on from another; None where it is too much.

    A circle of answers is cut where it begins in the timeline; where one may have been cut nothing is carried, for what
    stands behind the cut is an answer and the tree does not show it.
    """
    parents = [knot.parent for knot in strand.knots]
    found = Carried(
        dialects=dict(strand.dialects),
        conversations=frozenset(strand.conversations) | (before.conversations if before else frozenset()),
        channels=strand.channels,
        awaited=frozenset(strand.awaited) | (before.awaited if before else frozenset()),
        is_asked=strand.asked_of is not None or (before is not None and before.is_asked),
        is_named=strand.named_of is not None or (before is not None and before.is_named),
        last=strand.knots[-1].id if strand.knots else before.last if before else b"",
    )
    is_much = max(len(found.conversations), len(found.awaited)) > _MOST_CARRIED
    return None if is_much or cut_circles(parents) != parents else found


def read_carried(said: Mapping[str, Any]) -> Carried:
    """What `tell_carried` told."""
    return Carried(
        dialects=Counter(dict(said["dialects"])),
        conversations=frozenset(map(bytes.fromhex, said["conversations"])),
        channels=frozenset(map(uuid.UUID, said["channels"])),
        awaited=frozenset(map(bytes.fromhex, said["awaited"])),
        is_asked=said["is_asked"],
        is_named=said["is_named"],
        last=bytes.fromhex(said["last"]),
    )


def tell_carried(carried: Carried) -> dict[str, Any]:
    """What is carried, as JSON has it."""
    return {
        # In their order, which decides between those of equal number.
        "dialects": list(carried.dialects.items()),
        "conversations": sorted(name.hex() for name in carried.conversations),
        "channels": sorted(map(str, carried.channels)),
        "awaited": sorted(name.hex() for name in carried.awaited),
        "is_asked": carried.is_asked,
        "is_named": carried.is_named,
        "last": carried.last.hex(),
    }
