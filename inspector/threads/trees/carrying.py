"""What is carried over a point of a drawn trace, so that what comes after it can be summed up without the rest."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..multiset import Multiset, read_multiset
from .elements import Place, read_told_place, tell_place
from .outline import cut_circles
from .strands import Strand

# A trace of more conversations, or with more answers to messages that it lacks, is drawn whole each time.
MOST_CARRIED: Final = 4096
# Of more agents it is not carried where each of them appears first: nothing is patched then.
MOST_AGENTS: Final = 1024


@dataclass(frozen=True, slots=True)
class Carried:
    """What the row of a trace does not say of the messages up to a point.

    `elements` is what its digest is of. `agents_at` says where each of its agents appears first, in their order, and
    is None where they are too many; `dialects_at` says the same of the dialects. `channels` are those whose messages a
    trace across channels has, `awaited` the ids of messages that are answered in it and are not among them.
    `decided_at`, `asked_at` and `named_at` say where the message stands that decided its state, the first request with
    a topic and the first message with one. `last` is the id of the last message of the timeline.
    """

    elements: Multiset
    agents_at: Sequence[Place | None] | None
    dialects: Mapping[str, int]
    dialects_at: Mapping[str, Place]
    conversations: frozenset[bytes]
    channels: frozenset[uuid.UUID]
    awaited: frozenset[bytes]
    decided_at: Place | None
    asked_at: Place | None
    named_at: Place | None
    last: bytes


def carry(strand: Strand, before: Carried | None = None) -> Carried | None:
    """What is to be carried over the end of this strand, which may go on from another; None where it is too much.

    A circle of answers is cut where it begins in the timeline; where one may have been cut nothing is carried, for what
    stands behind the cut is an answer and the tree does not show it.
    """
    parents = [knot.parent for knot in strand.knots]
    places = list(strand.agents.values())
    found = Carried(
        elements=strand.elements,
        agents_at=places if len(places) <= MOST_AGENTS else None,
        dialects=dict(strand.dialects),
        dialects_at=strand.dialects_at,
        conversations=frozenset(strand.conversations) | (before.conversations if before else frozenset()),
        channels=strand.channels,
        awaited=frozenset(strand.awaited) | (before.awaited if before else frozenset()),
        decided_at=strand.decided_at,
        asked_at=(before.asked_at if before else None) or strand.asked_at,
        named_at=(before.named_at if before else None) or strand.named_at,
        last=strand.knots[-1].id if strand.knots else before.last if before else b"",
    )
    return None if is_much(found) or cut_circles(parents) != parents else found


def is_much(carried: Carried) -> bool:
    """Whether this is too much to be carried."""
    return max(len(carried.conversations), len(carried.awaited)) > MOST_CARRIED


def read_carried(said: Mapping[str, Any]) -> Carried:
    """What `tell_carried` told."""
    agents_at = said["agents_at"]
    return Carried(
        elements=read_multiset(bytes.fromhex(said["elements"])),
        agents_at=None if agents_at is None else [read_told_place(place) for place in agents_at],
        dialects=Counter({name: count for name, count, _ in said["dialects"]}),
        dialects_at={name: place for name, _, told in said["dialects"] if (place := read_told_place(told))},
        conversations=frozenset(map(bytes.fromhex, said["conversations"])),
        channels=frozenset(map(uuid.UUID, said["channels"])),
        awaited=frozenset(map(bytes.fromhex, said["awaited"])),
        decided_at=read_told_place(said["decided_at"]),
        asked_at=read_told_place(said["asked_at"]),
        named_at=read_told_place(said["named_at"]),
        last=bytes.fromhex(said["last"]),
    )


def tell_carried(carried: Carried) -> dict[str, Any]:
    """What is carried, as JSON has it."""
    agents_at = carried.agents_at
    return {
        "elements": carried.elements.write().hex(),
        "agents_at": None if agents_at is None else [tell_place(place) for place in agents_at],
        # In their order, which decides between those of equal number.
        "dialects": [
            [name, count, tell_place(carried.dialects_at.get(name))] for name, count in carried.dialects.items()
        ],
        "conversations": sorted(name.hex() for name in carried.conversations),
        "channels": sorted(map(str, carried.channels)),
        "awaited": sorted(name.hex() for name in carried.awaited),
        "decided_at": tell_place(carried.decided_at),
        "asked_at": tell_place(carried.asked_at),
        "named_at": tell_place(carried.named_at),
        "last": carried.last.hex(),
    }
