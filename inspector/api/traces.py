"""GET traces, and windows of trees: of a trace or a conversation, as rows or as bars over time; with their shapes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rest_framework import serializers
from rest_framework.request import Request

from inspector.database import on_replica
from inspector.search.selectors import mean_traces
from inspector.threads.keys import read_instant
from inspector.threads.lines import Fold, Kind, Outcome
from inspector.threads.models import Conversation, Message, Trace
from inspector.threads.nodes import MAX_BEARERS
from inspector.threads.selectors import find_conversation
from inspector.threads.trees import (
    MAX_TOGGLED,
    Band,
    Place,
    Window,
    WindowRow,
    filter_traces,
    find_trace,
    list_namesakes,
    load_tree,
    read_ghosts,
    read_place,
    select_traces,
)

from .authentication import may_see_secrets
from .endpoints import Endpoint, operation
from .messages import LinkedMessageSerializer, show_linked
from .parameters import FILTERS, read_filters, take_number, take_text
from .problems import ProblemError
from .shapes import SeverityField, choose, find_either, listing, offer_order, show

ORDER: Final = offer_order("latest", about="the latest activity first", fixed="the newest made first")
BEARERS_HELP: Final = (
    f"how many messages elsewhere bear the cited id, so that none is the parent; 0: none, {MAX_BEARERS + 1}: more"
)


class TraceSerializer(serializers.Serializer[Any]):
    """A trace: the messages that carry one trace id."""

    id = serializers.UUIDField()
    native_id = serializers.CharField(help_text="the trace id in the message or its envelope")
    channel = serializers.CharField(
        source="channel.name", allow_null=True, help_text="the channel that scopes the id; null across channels"
    )
    subject = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(choices=Conversation.State.values)
    agents = serializers.ListField(child=serializers.CharField())
    dialects = serializers.ListField(child=serializers.CharField())
    message_count = serializers.IntegerField()
    conversation_count = serializers.IntegerField()
    missing_count = serializers.IntegerField(help_text="messages that are cited and were not received or are withdrawn")
    open_count = serializers.IntegerField(help_text="requests without an answer")
    severity = SeverityField()
    first_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)
    is_settled = serializers.BooleanField()


class TraceDetailSerializer(TraceSerializer):
    """A trace, and those of the same id that nothing joins to it."""

    same_id_elsewhere = TraceSerializer(many=True)


class HeadingSerializer(serializers.Serializer[Any]):
    """The conversation that a row is the heading of."""

    id = serializers.UUIDField()
    native_id = serializers.CharField(allow_blank=True)
    subject = serializers.CharField(allow_blank=True)


class InstantField(serializers.DateTimeField):
    """An instant, of which a line of a tree has the number."""

    def show(self, value: Any) -> Any:
        """The instant."""
        return read_instant(value)


class PlaceSerializer(serializers.Serializer[Any]):
    """A row of a window: its place in the tree, as `at` takes it, and its depth."""

    place = serializers.CharField()
    depth = serializers.IntegerField()
    is_critical = serializers.BooleanField(help_text="whether the latest message stands at or not far below it")


class WindowSerializer(serializers.Serializer[Any]):
    """Where a window stands: `next` and `previous` are the `at` of its neighbours, null at the ends."""

    count = serializers.IntegerField(help_text="rows of the whole tree")
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


class TreeWindowRowSerializer(PlaceSerializer):
    """A row of a tree: of `message` and `conversation` one is there, or neither for a ghost."""

    kind = serializers.ChoiceField(choices=[kind.name.lower() for kind in Kind])
    message = LinkedMessageSerializer(allow_null=True)
    conversation = HeadingSerializer(allow_null=True)
    missing = serializers.CharField(allow_null=True, help_text="of a ghost: the id that is cited, where it is known")
    bearers = serializers.IntegerField(allow_null=True, help_text=f"of a ghost: {BEARERS_HELP}; null: not known")
    is_open = serializers.BooleanField(allow_null=True, help_text="null where there is nothing below")
    hidden = serializers.IntegerField(help_text="how many rows below are not shown")
    is_more_hidden = serializers.BooleanField(help_text="whether these are more than `hidden`: not all were counted")


class TreeSerializer(WindowSerializer):
    """A window of a tree."""

    rows = TreeWindowRowSerializer(many=True)


class BarSerializer(PlaceSerializer):
    """When a row was said, and until when it lasted: a request until its answer, anything else an instant."""

    starts_at = InstantField(source="line.start")
    ends_at = InstantField(source="line.end")
    outcome = serializers.ChoiceField(choices=[outcome.name.lower() for outcome in Outcome])
    severity = SeverityField(source="line.severity")


class StretchSerializer(serializers.Serializer[Any]):
    """A stretch of time of the whole tree: the number of its messages, and the most severe finding."""

    rows = serializers.IntegerField(source="messages")
    first_at = InstantField(source="first")
    last_at = InstantField(source="last")
    severity = SeverityField()


class WaterfallSerializer(WindowSerializer):
    """A window of bars, and a map of the whole."""

    first_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)
    bars = BarSerializer(many=True)
    map = StretchSerializer(many=True)


MAX_ROWS: Final = 1000
WINDOW: Final = (
    take_text("at", about="the place of the first row, such as `next` of the window before", default=""),
    take_number("limit", about="how many rows a window has", least=1, most=MAX_ROWS, default=200),
    take_number("level", about="rows are open above this depth; left out, everywhere", most=10**6),
    take_text(
        "toggled",
        about=f"places of rows that are open or closed the other way round, commas between, {MAX_TOGGLED} at most",
        default="",
        max_characters=3000,
    ),
)


class Traces(Endpoint):
    """Traces, and windows of trees."""

    @listing(
        "Trace",
        TraceSerializer,
        "Traces",
        ORDER,
        *FILTERS,
        query=take_text("q", about="only those with a message that this means, in the search language", default=""),
        what="A trace",
        reads="traces",
    )
    @on_replica
    def list_traces(self, request: Request) -> dict[str, Any]:
        """A page of traces."""
        workspace, given = self.workspace, self.given
        wanted = read_filters(given, workspace)
        meant = mean_traces(workspace=workspace, query=given["q"], may_see_secrets=may_see_secrets(self.key))
        fixed = filter_traces(workspace=workspace, **wanted)
        moving = select_traces(workspace=workspace, before=None, **wanted)
        page, on = find_either(self, fixed, moving, meant, "traces")
        shown = [choose(show(TraceSerializer, row), given) for row in page]
        return {"results": shown, **on}

    @operation(TraceDetailSerializer, reads="traces")
    def get_trace(self, request: Request, trace_id: uuid.UUID) -> dict[str, Any]:
        """The trace, and the traces of the same id that nothing joins to it."""
        trace = self.find(find_trace, trace_id=trace_id)
        others = [show(TraceSerializer, other) for other in list_namesakes(trace=trace)]
        return show(TraceDetailSerializer, trace, same_id_elsewhere=others)

    @operation(TreeSerializer, parameters=WINDOW, refusals=(410,), reads="traces")
    def get_trace_tree(self, request: Request, trace_id: uuid.UUID) -> dict[str, Any]:
        """The rows from `at` on, folded as asked for: headings of conversations, messages, ghosts."""
        return show_tree(self.find(find_trace, trace_id=trace_id), self.given)

    @operation(WaterfallSerializer, parameters=WINDOW, refusals=(410,), reads="traces")
    def get_trace_waterfall(self, request: Request, trace_id: uuid.UUID) -> dict[str, Any]:
        """When each row of the same window was said and until when it lasted, and a map of the whole."""
        return show_waterfall(self.find(find_trace, trace_id=trace_id), self.given)

    @operation(TreeSerializer, parameters=WINDOW, refusals=(410,), reads="conversations")
    def get_conversation_tree(self, request: Request, conversation_id: uuid.UUID) -> dict[str, Any]:
        """The rows from `at` on, folded as asked for: messages and ghosts."""
        return show_tree(self.find(find_conversation, conversation_id=conversation_id), self.given)

    @operation(WaterfallSerializer, parameters=WINDOW, refusals=(410,), reads="conversations")
    def get_conversation_waterfall(self, request: Request, conversation_id: uuid.UUID) -> dict[str, Any]:
        """When each row of the same window was said and until when it lasted, and a map of the whole."""
        return show_waterfall(self.find(find_conversation, conversation_id=conversation_id), self.given)


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
    bars = [show(BarSerializer, row, **_show_row(row), outcome=row.line.outcome.name.lower()) for row in window.rows]
    shown = [show(StretchSerializer, band) for band in bands]
    times = {"first_at": owner.first_at, "last_at": owner.last_at}
    return {**times, "bars": bars, "map": shown, **_show_place(window, count)}
