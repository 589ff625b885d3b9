"""Reads of trees and traces, all within one workspace: windows, and what the rows of one stand for.

A window is what a reader sees of a tree at once, folded as the reader wants it: open or closed by the depth of a row
(`level`), and the other way round where it is `toggled`. It costs the same in a tree of any size.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.models import Case, JSONField, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, JSONObject, Left

from inspector.accounts.models import Workspace
from inspector.database import IsAny, go_on

from .agents import select_naming
from .keys import RANDOM, count_microseconds, name_cited, read_links
from .lines import (
    ADJACENCY,
    ENDS,
    MAX_DEPTH,
    OPEN,
    ORDERS,
    ROOT,
    STOP,
    Climbed,
    Column,
    Fold,
    Kind,
    Line,
    Outcome,
    Step,
    climb,
    count_below,
    walk,
)
from .models import Block, Conversation, Message, MessageQuerySet, Trace, TreeGroup
from .nodes import count_bearers
from .states import ASKS
from .summaries import read_summary

MAX_TOGGLED: Final = 50
# So many lines below closed rows are counted for one window, of each row at most and at least so many.
MAX_BELOW: Final = 1000
MIN_BELOW: Final = 20
MAX_COUNTED: Final = 10_000
# So many messages are gone back from the latest to mark what it answers.
MAX_CRITICAL: Final = 1000
# Whether a request has ended is looked for among so many of its first answers.
MAX_ANSWERS: Final = 1000
# So many climbs in a row are made before a window comes without rows.
_MAX_CLIMBS: Final = 10
# In how many bands of time a tree is shown as a whole, and of how many messages these are counted one by one.
BANDS: Final = 60
_MAX_PLOTTED: Final = 2000


class Place(NamedTuple):
    """Where a window begins: at a line of this `depth` (None: to be found out); or, where one has to be climbed out of
    for long, after all below it."""

    line: uuid.UUID
    depth: int | None = None
    is_after: bool = False

    def write(self) -> str:
        """The place as an address has it."""
        depth = "" if self.depth is None else f".{self.depth}"
        return f"{'after.' if self.is_after else ''}{self.line.hex}{depth}"


def read_place(text: str) -> Place | None:
    """The place that `Place.write` wrote, or None."""
    is_after = text.startswith("after.")
    name, _, depth = text.removeprefix("after.").partition(".")
    try:
        line = uuid.UUID(name)
    except ValueError:
        return None
    if depth and not (depth.isascii() and depth.isdigit() and len(depth) < 9):
        return None
    return Place(line, int(depth) if depth else None, is_after)


class WindowRow(NamedTuple):
    """A row of a window: what it is known by in the tree, its line, and what is below it: `hidden` rows are not shown,
    at least so many where `is_more`."""

    place: uuid.UUID
    depth: int
    line: Line
    is_parent: bool
    is_open: bool
    hidden: int
    is_more: bool
    is_critical: bool


class Window(NamedTuple):
    """A stretch of a folded tree; `next` and `previous` are places of other windows, None at the ends. `critical` is
    how many messages the critical path of the tree has, and how long it takes; None where it is longer than is climbed.
    """

    rows: Sequence[WindowRow]
    next: Place | None = None
    previous: Place | None = None
    critical: tuple[int, timedelta] | None = None


class Band(NamedTuple):
    """A stretch of time of a tree: how many messages, from when to when, and the gravest severity."""

    messages: int
    first: int
    last: int
    severity: int


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of a conversation or of a trace, as it is read window by window."""

    owner: Conversation | Trace

    @property
    def column(self) -> Column:
        return "above" if isinstance(self.owner, Conversation) else "trace_above"

    @property
    def messages(self) -> MessageQuerySet:
        if isinstance(self.owner, Conversation):
            return Message.objects.filter(conversation=self.owner, above__isnull=False)
        rows = Message.objects.filter(workspace_id=self.owner.workspace_id, trace_key=bytes(self.owner.key))
        rows = rows.filter(trace_above__isnull=False)
        return rows if self.owner.channel_id is None else rows.filter(channel_id=self.owner.channel_id)

    @property
    def _groups(self) -> QuerySet[TreeGroup]:
        if isinstance(self.owner, Conversation):
            return TreeGroup.objects.filter(above=self.owner.pk)
        return TreeGroup.objects.filter(trace=self.owner)

    def count(self) -> int:
        """How many rows it has, folded or not."""
        return self.owner.message_count + self._groups.exclude(kind=TreeGroup.Kind.PART).count()

    def read_window(self, *, at: Place | None = None, limit: int = 200, fold: Fold = OPEN) -> Window:
        """The rows from a place on, at most `limit` of them; without one from the beginning. A place that is no row of
        the tree gives the beginning, one that is hidden the row that hides it."""
        start = self._find_start(at, fold) if at is not None else None
        is_after = start is not None and at is not None and at.is_after
        previous = self._find_previous(start, limit, fold)
        begin = start or Step(self.owner.pk, ROOT, -1)
        for _ in range(_MAX_CLIMBS):
            steps = walk(self.column, begin, limit=limit + 1, fold=fold, is_after=is_after)
            if not steps or steps[0].kind != STOP:
                break
            begin, is_after = steps[0]._replace(kind=Kind.MESSAGE), True
        if not steps:
            return Window((), None, previous)
        stop = steps.pop() if steps[-1].kind == STOP else None
        following = steps[limit] if len(steps) > limit else None
        shown = steps[:limit]
        path = climb(self.column, self._select_latest(), most=MAX_CRITICAL) if shown else []
        rows = list(self._read_rows(shown, following, fold, {each.id for each in path})) if shown else []
        on = Place(following.id, following.depth) if following else Place(stop.id, stop.depth, True) if stop else None
        return Window(rows, on, previous, _measure(path))

    def _find_previous(self, start: Step | None, limit: int, fold: Fold) -> Place | None:
        before = walk(self.column, start, limit=limit, fold=fold, is_back=True) if start is not None else []
        return Place(before[-1].id, before[-1].depth) if before else None

    def find_before(self, line: uuid.UUID, count: int, fold: Fold = OPEN) -> Place:
        """The place of the row that is shown so many rows before a line, or of the first."""
        start = self._find_start(Place(line), fold)
        found = self._find_previous(start, count, fold)
        return found or (Place(start.id, start.depth) if start is not None else Place(line))

    def read_path(self, line: uuid.UUID) -> list[Step]:
        """The lines that a line stands below, the outermost first, and itself; empty where the tree has it not. Of one
        deeper than `MAX_DEPTH` these are the nearest, as if it stood so deep."""
        climbed = climb(self.column, line)
        depth = len(climbed) - 1
        if not climbed or (depth < MAX_DEPTH and climbed[-1].above != self.owner.pk):
            return []
        return [Step(each.id, each.kind, depth - at) for at, each in enumerate(climbed)][::-1]

    def is_hidden(self, line: uuid.UUID, fold: Fold) -> bool:
        """Whether a row that is closed hides this one."""
        return fold != OPEN and any(not fold.is_open(step.id, step.depth) for step in self.read_path(line)[:-1])

    def _find_start(self, at: Place, fold: Fold) -> Step | None:
        """The row that shows a place: itself, or the outermost that is closed around it; None where it is none."""
        if at.depth is not None and self.find_held([at.line]):
            kind = TreeGroup.objects.filter(pk=at.line).values_list("kind", flat=True).first()
            return Step(at.line, kind or Kind.MESSAGE, at.depth)
        path = self.read_path(at.line)
        closed = (step for step in path[:-1] if not fold.is_open(step.id, step.depth))
        return next(closed, path[-1] if path else None)

    def find_held(self, lines: Collection[uuid.UUID]) -> frozenset[uuid.UUID]:
        """Those of these lines that are in the tree."""
        found = (rows.filter(pk__in=lines).values_list("pk", flat=True) for rows in (self.messages, self._groups))
        return frozenset().union(*found)

    def find_opening(self, message: uuid.UUID) -> Place:
        """Where a window begins that begins with a message: at the ghost above it, where it is the first below that."""
        for line in climb(self.column, message, most=1)[1:]:
            below = Message.objects.filter(**{self.column: line.id}).order_by(*ORDERS[self.column], "pk")
            if line.kind == Kind.GHOST and below.values_list("pk", flat=True).first() == message:
                return Place(line.id)
        return Place(message)

    def find_at(self, moment: datetime) -> uuid.UUID | None:
        """The first message of the tree that is not before a time, else the last one."""
        rows = self.messages.order_by("order_time", "order_source", "order_index")
        later = rows.filter(order_time__gte=moment).values_list("pk", flat=True).first()
        return later or self.find_latest()

    def find_latest(self) -> uuid.UUID | None:
        """The message that is the last one by order key."""
        return self._select_latest().first()

    def _select_latest(self) -> QuerySet[Message, uuid.UUID]:
        order = [f"-{name}" for name in ORDERS[self.column]]
        return self.messages.order_by(*order).values_list("pk", flat=True)[:1]

    def _read_rows(
        self, steps: Sequence[Step], following: Step | None, fold: Fold, critical: Collection[uuid.UUID]
    ) -> Iterator[WindowRow]:
        closed = [step for step in steps if not fold.is_open(step.id, step.depth)]
        most = min(MAX_BELOW, max(MIN_BELOW, MAX_COUNTED // max(1, len(closed))))
        below = count_below(self.column, [step.id for step in closed], most=most + 1)
        lines = self._read_lines(steps)
        depths = [step.depth for step in steps[1:]] + [following.depth if following else -1]
        for step, next_depth in zip(steps, depths, strict=True):
            hidden, is_open = below.get(step.id, 0), fold.is_open(step.id, step.depth)
            head = (step.id, step.depth, lines[step.id], hidden > 0 or next_depth > step.depth)
            yield WindowRow(*head, is_open, min(hidden, most), hidden > most, step.id in critical)

    def _read_lines(self, steps: Sequence[Step]) -> dict[uuid.UUID, Line]:
        found: dict[uuid.UUID, Line] = {}
        with connection.cursor() as cursor:
            cursor.execute(_write_lines(self.column), {**_OUTCOMES, "ids": [step.id for step in steps]})
            for pk, kind, home, at, last_at, severity, performative, links, *answers in cursor.fetchall():
                start, end = count_microseconds(at), count_microseconds(last_at)
                if kind == Kind.MESSAGE:
                    found[pk] = _make_line(pk, start, severity, performative, links, *answers)
                else:
                    found[pk] = Line(home or pk, Kind(kind), start, end, Outcome.NONE, severity)
        return found

    def list_bands(self) -> list[Band]:
        """The whole tree in at most `BANDS` stretches of time: from what is known of its parts, where it is long."""
        owner = self.owner
        if owner.first_at is None or owner.last_at is None:
            return []
        first, last = count_microseconds(owner.first_at), count_microseconds(owner.last_at)
        if owner.message_count <= _MAX_PLOTTED:
            rows = self.messages.values_list("order_time", "severity")
            masses = [(1, at, at, severity) for time, severity in rows for at in (count_microseconds(time),)]
        else:
            masses = self._list_masses()
        bands: dict[int, Band] = {}
        span = max(1, last - first)
        for count, start, end, severity in masses:
            number = min(BANDS - 1, max(0, (start - first) * BANDS // span))
            held = bands.get(number, Band(0, start, end, 0))
            bands[number] = Band(
                held.messages + count, min(held.first, start), max(held.last, end), max(held.severity, severity)
            )
        return [bands[number] for number in sorted(bands)]

    def _list_masses(self) -> list[tuple[int, int, int, int]]:
        """What is known of stretches of a long tree: how many messages, from when to when, the gravest severity."""
        if isinstance(self.owner, Trace):
            parts = self._groups.filter(kind=TreeGroup.Kind.PART)
            return [
                (size, count_microseconds(first_at), count_microseconds(last_at), severity)
                for size, first_at, last_at, severity in parts.values_list("size", "first_at", "last_at", "severity")
                if first_at is not None and last_at is not None
            ]
        found = []
        texts = Block.objects.filter(conversation=self.owner).order_by("border").values_list("summary", flat=True)
        for summary in (read_summary(text) for text in texts if text):
            if summary.first_at is not None and summary.last_at is not None:
                gravest = max(summary.severities, default=0)
                found.append((summary.count, summary.first_at, summary.last_at, gravest))
        return found


_OUTCOMES: Final[dict[str, Any]] = {"asking": sorted(ASKS), "ends": sorted(ENDS), "most": MAX_ANSWERS}


def _write_lines(column: Column) -> str:
    """The statement that reads lines, and of messages that ask what ended them first, and when they were answered."""
    order = ", ".join(ORDERS[column])
    back = ", ".join(f"{name} DESC" for name in ORDERS[column])
    return f"""
        SELECT message.id, {Kind.MESSAGE}, NULL::uuid, message.order_time, message.order_time, message.severity,
               message.performative,
               CASE WHEN message.performative = 'request' AND message.receivers = '{{}}' AND NOT message.is_broadcast
                    THEN message.links END,
               ending.performative, ending.answered_at, latest.answered_at
          FROM threads_message AS message
          LEFT JOIN LATERAL (
            SELECT performative, answered_at FROM (
                SELECT performative, order_time AS answered_at, {order}, id FROM threads_message
                 WHERE {column} = message.id ORDER BY {order}, id LIMIT %(most)s) AS answer
             WHERE performative = ANY(%(ends)s) ORDER BY {order}, id LIMIT 1
          ) AS ending ON message.performative = ANY(%(asking)s)
          LEFT JOIN LATERAL (
            SELECT max(order_time) AS answered_at FROM (
                SELECT order_time FROM threads_message
                 WHERE {column} = message.id ORDER BY {back}, id DESC LIMIT %(most)s) AS answer
          ) AS latest ON message.performative = ANY(%(asking)s)
         WHERE message.id = ANY(%(ids)s)
        UNION ALL
        SELECT id, kind, CASE WHEN kind = {Kind.CONVERSATION} THEN conversation_id END, coalesce(first_at, order_time),
               coalesce(last_at, order_time), severity, NULL, NULL, NULL, NULL, NULL
          FROM threads_treegroup WHERE id = ANY(%(ids)s)"""  # noqa: S608


def _make_line(
    pk: uuid.UUID,
    start: int,
    severity: int,
    performative: str | None,
    links: str | None,
    ended: str | None,
    ended_at: datetime | None,
    answered_at: datetime | None,
) -> Line:
    is_public = read_links(links).work.is_public if links else False
    if performative not in ASKS or is_public:
        return Line(pk, Kind.MESSAGE, start, start, Outcome.NONE, severity)
    outcome = ENDS[ended] if ended else Outcome.ANSWERED if answered_at else Outcome.OPEN
    end = ended_at or answered_at
    return Line(pk, Kind.MESSAGE, start, max(start, count_microseconds(end)) if end else start, outcome, severity)


def load_tree(owner: Conversation | Trace) -> Tree | None:
    """The tree of a conversation or a trace, or None where nothing of it is resolved yet."""
    return Tree(owner) if owner.last_at is not None else None


def _measure(path: Sequence[Climbed]) -> tuple[int, timedelta] | None:
    times = [each.at for each in path if each.at is not None]
    return (len(times), max(times) - min(times)) if 0 < len(path) <= MAX_CRITICAL else None


MAX_SENTENCE: Final = 300
MAX_FOUND: Final = 1000


def find_trace(*, workspace: Workspace, trace_id: uuid.UUID) -> Trace | None:
    """The trace of that id in this workspace, or None."""
    return Trace.objects.select_related("channel").filter(workspace=workspace, pk=trace_id).first()


def select_traces(
    *, workspace: Workspace, before: tuple[datetime, uuid.UUID] | None = None, **filters: str
) -> QuerySet[Trace]:
    """What `filter_traces` gives, latest activity first, by keyset; `before` is (last_at, id) of the last one seen."""
    rows = filter_traces(workspace=workspace, **filters)
    return go_on(rows, "last_at", before).order_by("-last_at", "-id")


def filter_traces(*, workspace: Workspace, dialect: str = "", agent: str = "", state: str = "") -> QuerySet[Trace]:
    """Traces with at least one resolved message, in no order: of a dialect, an agent, a state; with their channels."""
    rows = Trace.objects.select_related("channel").filter(workspace=workspace, last_at__isnull=False)
    if dialect:
        rows = rows.filter(dialects__contains=[dialect])
    if agent:
        rows = rows.filter(select_naming(workspace=workspace, name=agent))
    if state:
        rows = rows.filter(state=state)
    return rows


def list_namesakes(*, trace: Trace, limit: int = 20) -> list[Trace]:
    """Other traces of the same id: nothing says that they are the same work, or that they are not."""
    rows = Trace.objects.select_related("channel").filter(
        workspace_id=trace.workspace_id, key=bytes(trace.key), last_at__isnull=False
    )
    return list(rows.exclude(pk=trace.pk).order_by("-last_at", "-id")[:limit])


def select_trace() -> Case:
    """`id` and `name` of the trace of the message in a row, or nothing. What a trace of its channel does not hold is in
    the one across channels, as is an id that is random by its form."""
    held = Trace.objects.filter(workspace=OuterRef("workspace_id"), key=OuterRef("trace_key"), last_at__isnull=False)
    said = held.values(said=JSONObject(id="pk", name="native_id"))
    across = Subquery(said.filter(channel=None))
    return Case(
        When(trace_basis=RANDOM, then=across),
        default=Coalesce(Subquery(said.filter(channel=OuterRef("channel_id"))), across),
        output_field=JSONField(),
    )


def find_traces_of(*, messages: Sequence[Message]) -> list[dict[str, str]]:
    """`id` and `name` of the traces that these messages belong to, in their order; those not drawn yet are left out."""
    named = [message.pk for message in messages if message.trace_key]
    rows = Message.objects.filter(IsAny("id", named)).order_by().values_list("pk", select_trace()) if named else ()
    held = dict(rows)
    found = {trace["id"]: trace for message in messages if (trace := held.get(message.pk))}
    return list(found.values())


def find_matching(
    *, owner: Conversation | Trace, text: str, limit: int = MAX_FOUND
) -> list[tuple[datetime, uuid.UUID]]:
    """The times and ids of messages whose English or names hold this text, the earliest first; at most `limit`."""
    rows = Tree(owner).messages.filter(_holds(text)).order_by("order_time", "pk")
    return list(rows.values_list("order_time", "pk")[:limit])


def match_rows(*, rows: Sequence[WindowRow], text: str) -> frozenset[uuid.UUID]:
    """Those rows of a window whose messages `find_matching` finds: no other message is looked at."""
    messages = [row.line.id for row in rows if row.line.kind is Kind.MESSAGE]
    return frozenset(Message.objects.filter(_holds(text), pk__in=messages).values_list("pk", flat=True))


def _holds(text: str) -> Q:
    condition = Q(english__icontains=text) | Q(native_id=text) | Q(native_act__iexact=text)
    return condition | Q(topic__icontains=text) | Q(sender__iexact=text) | Q(performative=text.lower())


class Answered(NamedTuple):
    """A message that a top of the tree answers: what it is called, and whether the tree holds it."""

    native_id: str
    is_inside: bool


class Ghost(NamedTuple):
    """What is cited and stands for no message here: its name, if known, how many messages elsewhere bear its id, and
    which message of the window cites it."""

    name: str
    bearers: int
    citing: uuid.UUID


class Contents(NamedTuple):
    """What the rows of a window stand for: messages, with the beginning of their English, conversations, and ghosts."""

    said: dict[uuid.UUID, Message]
    conversations: dict[uuid.UUID, Conversation]
    ghosts: dict[uuid.UUID, Ghost]
    # What tops of the tree answer: it stands elsewhere, or was cut off because answers go round in a circle.
    answered: dict[uuid.UUID, Answered]
    carrying: dict[uuid.UUID, uuid.UUID]


def load_contents(*, owner: Conversation | Trace, rows: Sequence[WindowRow]) -> Contents:
    """What the rows of a window stand for, in five statements at most, whatever their number."""
    messages = Message.objects.shown().filter(
        IsAny("id", [row.line.id for row in rows if row.line.kind is Kind.MESSAGE])
    )
    said = messages.light().annotate(sentence=Left("english", MAX_SENTENCE)).in_bulk()
    for message in said.values():
        message.english = vars(message)["sentence"]
    conversation_ids = {each.conversation_id for each in said.values()}
    conversation_ids |= {row.line.id for row in rows if row.line.kind is Kind.CONVERSATION}
    fields = ("id", "native_id", "title", "subject", "message_count")
    own = {owner.pk: owner} if isinstance(owner, Conversation) else {}
    conversations = own | Conversation.objects.only(*fields).in_bulk(list(conversation_ids - own.keys()))
    answered = _find_answered(owner, rows, said)
    return Contents(said, conversations, read_ghosts(rows), answered, find_carrying(said.values()))


def find_carrying(messages: Iterable[Message]) -> dict[uuid.UUID, uuid.UUID]:
    """The messages of another conversation within which these stand, by the ids of these; one statement, and none where
    no message is carried."""
    carried = [each for each in messages if each.carrier]
    if not carried:
        return {}
    rows = Message.objects.filter(IsAny("record_id", {each.record_id for each in carried}), carrier="")
    parts: dict[uuid.UUID, list[tuple[int, uuid.UUID, uuid.UUID]]] = defaultdict(list)
    for record_id, part, pk, home in rows.values_list("record_id", "part", "pk", "conversation_id"):
        parts[record_id].append((part, pk, home))
    found = {}
    for each in carried:
        # What a message carries stands behind it, before the next that nothing carries.
        outer = max((row for row in parts[each.record_id] if row[0] < each.part), default=None)
        if outer is not None and outer[2] != each.conversation_id:
            found[each.pk] = outer[1]
    return found


def read_ghosts(rows: Sequence[WindowRow]) -> dict[uuid.UUID, Ghost]:
    """The ghosts by their rows, each as the message below, which cites it, has it; of the last none."""
    citing = {
        below.line.id: row.place
        for row, below in pairwise(rows)
        if row.line.kind is Kind.GHOST and below.line.kind is Kind.MESSAGE
    }
    if not citing:
        return {}
    messages = Message.objects.filter(pk__in=list(citing))
    return {
        citing[pk]: Ghost(name_cited(json.loads(body)["message"]) if body else "", count_bearers(why), pk)
        for pk, body, why in messages.values_list("pk", "body", "parent_why")
    }


def _find_answered(
    owner: Conversation | Trace, rows: Sequence[WindowRow], said: dict[uuid.UUID, Message]
) -> dict[uuid.UUID, Answered]:
    top = 1 if isinstance(owner, Trace) else 0
    tops = [said[row.line.id] for row in rows if row.depth == top and row.line.id in said]
    parents = {each.parent for each in tops if each.parent is not None and each.parent_basis != ADJACENCY}
    if not parents:
        return {}
    found = Message.objects.filter(pk__in=parents).values_list("pk", "native_id", "conversation_id", "trace_key")
    if isinstance(owner, Conversation):
        return {pk: Answered(name, conversation_id == owner.pk) for pk, name, conversation_id, _ in found}
    return {pk: Answered(name, bytes(key or b"") == bytes(owner.key)) for pk, name, _, key in found}
