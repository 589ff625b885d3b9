"""What a tree is, worked out plainly: all messages at hand, parents before children, siblings by the timeline."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inspector.intake.models import Record
from inspector.threads.keys import WIRE, count_microseconds, read_links
from inspector.threads.lines import ADJACENCY, ENDS, Kind, Line, Outcome, name_ghost
from inspector.threads.models import Message, Trace
from inspector.threads.states import ASKS
from inspector.threads.trees import Tree


class Knot(NamedTuple):
    """A message as its tree sees it; `parent` is the place of what it answers among the knots."""

    id: uuid.UUID
    at: int
    performative: str | None
    severity: int
    parent: int | None
    ghost: uuid.UUID | None = None
    group: uuid.UUID | None = None


def draw(knots: Sequence[Knot]) -> list[tuple[int, Line]]:
    """The lines of the tree of these knots, which stand in the order of the timeline, each with its depth.

    Where the knots name groups, the tops of each stand below its heading. A circle of parents is cut at its first.
    """
    parents = cut_circles([knot.parent for knot in knots])
    children: dict[int, list[int]] = defaultdict(list)
    below_ghosts: dict[uuid.UUID, list[int]] = defaultdict(list)
    tops: dict[uuid.UUID | None, list[int | uuid.UUID]] = defaultdict(list)
    for at, knot in enumerate(knots):
        parent = parents[at]
        if knot.ghost is not None:
            if knot.ghost not in below_ghosts:
                tops[knot.group].append(knot.ghost)
            below_ghosts[knot.ghost].append(at)
        elif parent is not None:
            children[parent].append(at)
        else:
            tops[knot.group].append(at)
    lines: list[tuple[int, Line]] = []
    for group, entries in tops.items():
        if group is not None:
            own = [knot for knot in knots if knot.group == group]
            first, last = min(knot.at for knot in own), max(knot.at for knot in own)
            gravest = max(knot.severity for knot in own)
            lines.append((0, Line(group, Kind.CONVERSATION, first, last, Outcome.NONE, gravest)))
        depth = 0 if group is None else 1
        for entry in entries:
            if isinstance(entry, uuid.UUID):
                at = knots[below_ghosts[entry][0]].at
                lines.append((depth, Line(entry, Kind.GHOST, at, at, Outcome.NONE, 0)))
                stack = [(below, depth + 1) for below in reversed(below_ghosts[entry])]
            else:
                stack = [(entry, depth)]
            while stack:
                place, deep = stack.pop()
                knot, below = knots[place], children.get(place, [])
                outcome, end = find_outcome(knot, [knots[child] for child in below])
                lines.append((deep, Line(knot.id, Kind.MESSAGE, knot.at, end, outcome, knot.severity)))
                stack.extend((child, deep + 1) for child in reversed(below))
    return lines


def find_outcome(knot: Knot, answers: Sequence[Knot]) -> tuple[Outcome, int]:
    """How a message was answered, and until when it lasted: to the first answer that ends it, else to the latest."""
    if knot.performative not in ASKS:
        return Outcome.NONE, knot.at
    for answer in answers:
        if answer.performative in ENDS:
            return ENDS[answer.performative], max(knot.at, answer.at)
    latest = max([knot.at, *(answer.at for answer in answers)])
    return (Outcome.ANSWERED if answers else Outcome.OPEN), latest


def cut_circles(parents: Sequence[int | None]) -> list[int | None]:
    """The parents of a forest, each circle of them cut at its smallest place: every tree is finite."""
    found = list(parents)
    for start in range(len(found)):
        path: list[int] = []
        at: int | None = start
        while at is not None:
            if at in path:
                found[min(path[path.index(at) :])] = None
                break
            path.append(at)
            at = found[at]
    return found


def list_members(trace: Trace) -> list[Message]:
    """The settled messages of a trace, in the order of the timeline."""
    rows = Message.objects.shown().filter(workspace=trace.workspace_id, trace_key=bytes(trace.key), place__isnull=False)
    joined = set(rows.exclude(trace_basis=WIRE).values_list("channel_id", flat=True))
    own = [row for row in rows if (None if row.channel_id in joined else row.channel_id) == trace.channel_id]
    identities = dict(Record.objects.values_list("pk", "identity"))
    return sorted(
        own,
        key=lambda row: (
            row.order_time,
            bytes(row.order_source),
            row.order_index,
            bytes(identities[row.record_id]),
            row.part,
        ),
    )


def draw_trace(trace: Trace) -> list[tuple[int, Line]]:
    """The tree of a trace, from its messages alone."""
    members = list_members(trace)
    places = {message.pk: at for at, message in enumerate(members)}
    return draw([_make_knot(message, places) for message in members])


def _make_knot(message: Message, places: dict[uuid.UUID, int]) -> Knot:
    links = read_links(message.links) if message.links else None
    is_ghost = message.parent is None and message.parent_key is not None and message.parent_basis
    tree = bytes(message.trace_key or b"") + message.channel_id.bytes
    return Knot(
        id=message.pk,
        at=count_microseconds(message.order_time),
        performative=None if links and links.work.is_public else message.performative,
        severity=message.severity,
        parent=places.get(message.parent) if message.parent and message.parent_basis != ADJACENCY else None,
        ghost=name_ghost(tree, bytes(message.parent_key or b"")) if is_ghost else None,
        group=message.conversation_id,
    )


def fold(lines: Sequence[tuple[int, Line]], is_open: object) -> Iterator[tuple[uuid.UUID, int]]:
    """What is shown of a tree: each line, and how many below it are hidden. `is_open` takes a line's id and depth."""
    closed: int | None = None
    shown: list[tuple[uuid.UUID, int]] = []
    for depth, line in lines:
        if closed is not None and depth > closed:
            shown[-1] = (shown[-1][0], shown[-1][1] + 1)
            continue
        closed = None if is_open(line.id, depth) else depth  # type: ignore[operator]
        shown.append((line.id, 0))
    yield from shown


def read_lines(tree: Tree) -> Iterator[tuple[int, Line]]:
    """Every line of a tree with its depth, window by window."""
    window = tree.read_window(limit=1000)
    while True:
        yield from ((row.depth, row.line) for row in window.rows)
        if window.next is None:
            return
        window = tree.read_window(at=window.next, limit=1000)
