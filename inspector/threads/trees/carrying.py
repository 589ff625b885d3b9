"""What is carried over the end of a drawn trace, so that what is appended to it can be summed up without the rest."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..models import Trace, TraceCarry
from .outline import cut_circles
from .strands import Strand

# A trace of more conversations, or with more answers to messages that it lacks, is drawn whole each time.
_MOST_CARRIED: Final = 4096


@dataclass(frozen=True, slots=True)
class Carried:
    """What the row of a trace does not say of the messages that were drawn.

    `channels` are those whose messages a trace across channels has, `awaited` the ids of messages that are answered in
    it and do not belong to it; `is_asked` and `is_named` say whether a request, or any message, has a topic. `last` is
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


def find_carried(trace: Trace) -> Carried | None:
    """What was carried over the end of a trace as it was drawn last, if it was."""
    row = TraceCarry.objects.filter(trace=trace, generation=trace.settled_generation).first()
    if row is None:
        return None
    said = json.loads(bytes(row.data))
    return Carried(
        dialects=Counter(dict(said["dialects"])),
        conversations=frozenset(map(bytes.fromhex, said["conversations"])),
        channels=frozenset(map(uuid.UUID, said["channels"])),
        awaited=frozenset(map(bytes.fromhex, said["awaited"])),
        is_asked=said["is_asked"],
        is_named=said["is_named"],
        last=bytes.fromhex(said["last"]),
    )


def keep_carried(carried: Sequence[tuple[Trace, Carried | None]]) -> None:
    """Keep what is carried over the ends of these traces as they are drawn now, and nothing of before."""
    TraceCarry.objects.filter(trace__in=[trace for trace, _ in carried]).delete()
    rows = [
        TraceCarry(
            trace=trace,
            workspace_id=trace.workspace_id,
            generation=trace.generation,
            data=json.dumps(_tell(each)).encode(),
        )
        for trace, each in carried
        if each is not None
    ]
    if rows:
        TraceCarry.objects.bulk_create(rows)


def _tell(carried: Carried) -> dict[str, Any]:
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
