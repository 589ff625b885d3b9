"""GET traces, and windows of trees: of a trace or a conversation, as rows or as bars over time."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.search.selectors import mean_traces
from inspector.threads.models import Conversation, Message, Trace
from inspector.threads.placing.places import read_instant
from inspector.threads.selectors import find_conversation
from inspector.threads.trees.lines import Kind
from inspector.threads.trees.traces import filter_traces, find_trace, list_namesakes, read_ghosts, select_traces
from inspector.threads.trees.walking import Fold
from inspector.threads.trees.windows import MAX_TOGGLED, Band, Place, Window, WindowRow, load_tree, read_place

from .endpoints import Endpoint
from .masking import may_see_secrets
from .messages import ORDER, show_linked
from .narrowing import FILTERS, read_filters
from .paging import CURSOR, FIELDS_ABOUT, LIMIT, choose, find_either
from .parameters import Names, Number, Parameter
from .problems import ProblemError
from .shapes import show
from .tree_shapes import (
    HeadingSerializer,
    TraceDetailSerializer,
    TracePageSerializer,
    TraceSerializer,
    TreeSerializer,
    WaterfallSerializer,
)

MAX_ROWS: Final = 1000
WINDOW: Final = (
    Parameter(name="at", about="the place of the first row, such as `next` of the window before", default=""),
    Number(name="limit", about="how many rows a window has", least=1, most=MAX_ROWS, default=200),
    Number(name="level", about="rows are open above this depth; left out, everywhere", most=10**6),
    Parameter(
        name="toggled",
        about=f"places of rows that are open or closed the other way round, commas between, {MAX_TOGGLED} at most",
        default="",
        max_characters=3000,
    ),
)


def show_trace(trace: Trace) -> dict[str, Any]:
    """A trace as the list shows it."""
    return show(TraceSerializer, trace, severity=Message.Severity(trace.severity).label)


class TracesView(Endpoint):
    """Traces, the newest made first."""

    reads = "traces"
    parameters: ClassVar = {
        "GET": (
            Parameter(name="q", about="only those with a message that this means, in the search language", default=""),
            CURSOR,
            LIMIT,
            ORDER,
            *FILTERS,
            Names(name="fields", about=FIELDS_ABOUT, choices=tuple(TraceSerializer().fields)),
        )
    }

    @extend_schema(operation_id="list_traces", responses=TracePageSerializer)
    def get(self, request: Request) -> Response:
        """A page of traces."""
        workspace, given = self.workspace, self.given
        wanted = read_filters(given, workspace)
        meant = mean_traces(workspace=workspace, query=given["q"], may_see_secrets=may_see_secrets(self.key))
        fixed = filter_traces(workspace=workspace, **wanted)
        moving = select_traces(workspace=workspace, before=None, **wanted)
        page, on = find_either(fixed, moving, meant, given, workspace, of="traces")
        shown = [choose(show_trace(row), given["fields"]) for row in page]
        return Response({"results": shown, **on})


class TraceView(Endpoint):
    """One trace, summed up."""

    reads = "traces"

    @extend_schema(operation_id="get_trace", responses=TraceDetailSerializer)
    def get(self, request: Request, trace_id: uuid.UUID) -> Response:
        """The trace, and the traces of the same id that nothing joins to it."""
        trace = self.find(find_trace, trace_id=trace_id)
        return Response(
            {**show_trace(trace), "same_id_elsewhere": [show_trace(other) for other in list_namesakes(trace=trace)]}
        )


class WindowView(Endpoint):
    """A window of a tree."""

    reads = "conversations"
    parameters: ClassVar = {"GET": WINDOW}
    refusals: ClassVar = {"GET": (410,)}


class TraceTreeView(WindowView):
    """A window of the tree of a trace."""

    reads = "traces"

    @extend_schema(operation_id="get_trace_tree", responses=TreeSerializer)
    def get(self, request: Request, trace_id: uuid.UUID) -> Response:
        """The rows from `at` on, folded as asked for: headings of conversations, messages, ghosts."""
        return Response(show_tree(self.find(find_trace, trace_id=trace_id), self.given))


class TraceWaterfallView(WindowView):
    """A window of the bars of a trace."""

    reads = "traces"

    @extend_schema(operation_id="get_trace_waterfall", responses=WaterfallSerializer)
    def get(self, request: Request, trace_id: uuid.UUID) -> Response:
        """When each row of the same window was said and until when it lasted, and a map of the whole."""
        return Response(show_waterfall(self.find(find_trace, trace_id=trace_id), self.given))


class ConversationTreeView(WindowView):
    """A window of the tree of a conversation."""

    @extend_schema(operation_id="get_conversation_tree", responses=TreeSerializer)
    def get(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """The rows from `at` on, folded as asked for: messages and ghosts."""
        return Response(show_tree(self.find(find_conversation, conversation_id=conversation_id), self.given))


class ConversationWaterfallView(WindowView):
    """A window of the bars of a conversation."""

    @extend_schema(operation_id="get_conversation_waterfall", responses=WaterfallSerializer)
    def get(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """When each row of the same window was said and until when it lasted, and a map of the whole."""
        return Response(show_waterfall(self.find(find_conversation, conversation_id=conversation_id), self.given))


def read_window(owner: Conversation | Trace, given: Mapping[str, Any]) -> tuple[int, Window]:
    """How many rows a tree has, and the window that the parameters ask for; nothing where none is settled.

    Raises:
        ProblemError: 400 for places that are none, 410 for one whose row the tree has no more.
    """
    toggled = [read_place(piece) for piece in given["toggled"].split(",") if piece]
    if len(toggled) > MAX_TOGGLED or None in toggled:
        allowed = f"at most {MAX_TOGGLED} places with commas between"
        raise ProblemError(400, f"toggled is {allowed}", parameter="toggled", allowed=allowed)
    # 0 is the beginning too, as places were once numbers.
    at = read_place(given["at"]) if given["at"] not in ("", "0") else None
    if at is None and given["at"] not in ("", "0"):
        raise ProblemError(400, "at is no place of a row", parameter="at", allowed="the place of a row")
    tree = load_tree(owner)
    if tree is None:
        return 0, Window(())
    if at is not None and not tree.find_held([at.line]):
        raise ProblemError(410, "the row of this place is in the tree no more: begin again without it", parameter="at")
    fold = Fold(given["level"], frozenset(place.line for place in toggled if place))
    return tree.count(), tree.read_window(at=at, limit=given["limit"], fold=fold)


def show_tree(owner: Conversation | Trace, given: Mapping[str, Any]) -> dict[str, Any]:
    """A window of a tree."""
    count, window = read_window(owner, given)
    rows = window.rows
    messages = (
        Message.objects.shown().defer("body", "words", "links", "established").in_bulk(_ids_of(rows, Kind.MESSAGE))
    )
    conversations = Conversation.objects.only("id", "native_id", "subject").in_bulk(_ids_of(rows, Kind.CONVERSATION))
    headings = {pk: show(HeadingSerializer, conversation) for pk, conversation in conversations.items()}
    ghosts = read_ghosts(rows)
    linked = show_linked(messages.values())
    return {
        "rows": [
            {
                **_show_row(row),
                "kind": row.line.kind.name.lower(),
                "message": linked.get(row.line.id),
                "conversation": headings.get(row.line.id),
                "missing": (ghost and ghost.name) or None,
                "bearers": ghost.bearers if ghost else None,
                "is_open": row.is_open if row.is_parent else None,
                "hidden": row.hidden,
                "is_more_hidden": row.is_more,
            }
            for row, ghost in ((row, ghosts.get(row.place)) for row in rows)
        ],
        **_show_place(window, count),
    }


def _ids_of(rows: Sequence[WindowRow], kind: Kind) -> list[uuid.UUID]:
    return [row.line.id for row in rows if row.line.kind is kind]


def _show_row(row: WindowRow) -> dict[str, Any]:
    return {"place": Place(row.place, row.depth).write(), "depth": row.depth, "is_critical": row.is_critical}


def _show_place(window: Window, count: int) -> dict[str, Any]:
    return {
        "count": count,
        "next": window.next and window.next.write(),
        "previous": window.previous and window.previous.write(),
    }


def show_waterfall(owner: Conversation | Trace, given: Mapping[str, Any]) -> dict[str, Any]:
    """A window of bars, and a map of the whole over time."""
    count, window = read_window(owner, given)
    tree = load_tree(owner)
    bands: Sequence[Band] = tree.list_bands() if tree is not None else ()
    return {
        "first_at": owner.first_at,
        "last_at": owner.last_at,
        "bars": [
            {
                **_show_row(row),
                "starts_at": read_instant(row.line.start),
                "ends_at": read_instant(row.line.end),
                "outcome": row.line.outcome.name.lower(),
                "severity": Message.Severity(row.line.severity).label,
            }
            for row in window.rows
        ],
        "map": [
            {
                "rows": band.messages,
                "first_at": read_instant(band.first),
                "last_at": read_instant(band.last),
                "severity": Message.Severity(band.severity).label,
            }
            for band in bands
        ],
        **_show_place(window, count),
    }
