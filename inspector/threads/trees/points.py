"""Points: instants of a trace's timeline that drawing it can go back to, each with all that stood there.

What is late, or changed, at some instant is drawn from the newest point before it: messages up to the point are not
read, and those after it, old and new alike, are put into the tree as it was there. So it costs what comes after the
point. The newest one is the end of what was drawn; the older ones stand the farther apart the farther back they are.

A point tells of all members up to its instant, ties included, and of nothing after it. So it holds until one of those
changes or one more comes among them, whatever happens later in the timeline: `Trace.fresh_at` says since when anything
has changed, and points from then on are dropped. None is made that a message before it reaches beyond (`lengthening`).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ..models import Trace, TraceCarry
from .blocks import list_digests
from .carrying import Carried, read_carried, tell_carried
from .growing import Base
from .stored import find_outlines
from .sums import Sum, read_sum, tell_sum

# Of the points so many messages before the end and nearer one is kept, and one for each doubling of that up to the
# farthest: eight in all.
NEAREST: Final = 32
FARTHEST: Final = 4096
# So many messages before the late one a point is made to go back to: what is late next may be so by a little more.
SLACK: Final = 64


@dataclass(frozen=True, slots=True)
class Point:
    """What stood at one instant of a trace: what was carried over it, what the row said, and the tree."""

    carried: Carried
    said: Sum
    base: Base


def load_points(trace: Trace) -> list[TraceCarry]:
    """The points of a trace as it was drawn last, the newest first."""
    rows = TraceCarry.objects.filter(trace=trace, generation=trace.settled_generation)
    return list(rows.defer("data").order_by("-last_at"))


def read_point(row: TraceCarry) -> Point:
    """The point that a row holds."""
    said = json.loads(bytes(row.data))
    return Point(read_carried(said["carried"]), read_sum(said["said"]), Base(bytes(row.directory), row.latest))


def choose_kept(rows: Sequence[TraceCarry], end: int) -> list[TraceCarry]:
    """Those of these points that are worth keeping, of rows that stand newest first.

    Of those equally far back, to within a factor of two, the oldest is: it is the first to be as far as the next.

    Args:
        rows: the points.
        end: how many messages the trace has.
    """
    kept: dict[int, TraceCarry] = {}
    for row in rows:
        far = end - row.message_count
        if far < FARTHEST:
            kept[(far // NEAREST).bit_length()] = row
    return list(kept.values())


def find_bases(traces: Sequence[Trace]) -> dict[uuid.UUID, Base]:
    """The trees of these traces as they are stored now."""
    found = find_outlines("trace", [trace.pk for trace in traces]) if traces else {}
    return {pk: Base(outline.directory, outline.latest) for pk, outline in found.items()}


def list_held(directories: Iterable[bytes]) -> frozenset[bytes]:
    """The digests of the blocks that these directories name."""
    return frozenset(digest for directory in directories for digest in list_digests(directory))


def keep_points(trace: Trace, points: Sequence[Point], rows: Collection[TraceCarry] = ()) -> None:
    """Keep these points of a trace as it is drawn now, beside those rows of the earlier ones, and nothing else."""
    made = {at: _make_row(trace, point, at) for point in points if (at := point.said.last_at) is not None}
    kept = [row.pk for row in rows if row.last_at not in made]
    TraceCarry.objects.filter(trace=trace).exclude(pk__in=kept).delete()
    if kept:
        TraceCarry.objects.filter(pk__in=kept).update(generation=trace.generation)
    if made:
        TraceCarry.objects.bulk_create(made.values())


def forget_points(traces: Sequence[Trace]) -> int:
    """Drop every point of these traces.

    Returns:
        how many there were.
    """
    return TraceCarry.objects.filter(trace__in=traces).delete()[0]


def _make_row(trace: Trace, point: Point, last_at: datetime) -> TraceCarry:
    said: dict[str, Any] = {"carried": tell_carried(point.carried), "said": tell_sum(point.said)}
    return TraceCarry(
        trace=trace,
        workspace_id=trace.workspace_id,
        generation=trace.generation,
        last_at=last_at,
        message_count=point.said.message_count,
        data=json.dumps(said).encode(),
        directory=point.base.directory,
        latest=point.base.latest,
    )
