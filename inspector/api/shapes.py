"""What answers look like: rows, each in one shape that the schema follows from too; pages of lists by keyset, the
parameters that ask for one, the place it begins at, and the cursor of the next.

A list with pages is in an order in which no row moves, so that a walk misses and doubles none while others write. An
order that moves, such as the latest activity first, gives one page alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, TypeVar

from django.db.models import Exists, Model, QuerySet
from django.http.response import HttpResponseBase
from rest_framework import serializers

from inspector.search.selectors import Found, Place, find_meant, read_cursor, read_key, write_cursor, write_key
from inspector.threads.models import Conversation, Message
from inspector.threads.timeline import Start, Window, name_timeline, read_edge

from .endpoints import Endpoint, operation
from .parameters import Parameter, take_choice, take_names, take_number, take_text
from .problems import ProblemError

Row = TypeVar("Row")
Shape = type[serializers.Serializer[Any]]
SEVERITIES: Final = Message.Severity.labels
CURSOR: Final = take_text("cursor", about="`next` of the page before")
LIMIT: Final = take_number("limit", about="rows per page", least=1, most=200, default=50)
# The older way through a conversation, which a withdrawal moves.
OFFSET: Final = take_number(
    "offset", about="how many messages come before; go on by `cursor`", default=0, most=10**9, is_deprecated=True
)
NEXT_OFFSET: Final = "deprecated: the `offset` of the page after, or null; go on by `next`, which nothing moves"
FIXED: Final = "fixed"
SEARCHED_BACK_TO: Final = (
    "how far a search came whose time was up, null where it came to an end; `next` goes on from there"
)


class TextOrNull(serializers.CharField):
    """A text; null where the row has an empty one."""

    def __init__(self, **names: Any) -> None:
        super().__init__(allow_null=True, **names)

    def show(self, value: Any) -> Any:
        """The text, or None."""
        return value or None


class SeverityField(serializers.ChoiceField):
    """The label of a severity, of which the row has the number."""

    def __init__(self, **names: Any) -> None:
        super().__init__(choices=SEVERITIES, **names)

    def show(self, value: int) -> str:
        """The label."""
        return str(Message.Severity(value).label)


class DigestField(serializers.CharField):
    """The hexadecimal digits of the bytes of a row; None where it has none."""

    def show(self, value: bytes | None) -> str | None:
        """The digits."""
        return bytes(value).hex() if value else None


def show(shape: Shape, row: Any, **worked_out: Any) -> dict[str, Any]:
    """A row in the shape that the schema has of it: each member by its `source` or name in the row, or worked out.

    What a `source` names by way of something that is not there is None. Members that are shapes show what is there.
    """
    shown = {}
    for name, path, convert in _plan(shape):
        if name in worked_out:
            shown[name] = worked_out[name]
            continue
        value = row
        for step in path:
            value = None if value is None else getattr(value, step)
        shown[name] = convert(value) if convert else value
    return shown


@cache
def _plan(shape: Shape) -> list[tuple[str, list[str], Callable[[Any], Any] | None]]:
    return [
        (name, (member.source or name).split("."), _find_conversion(member))
        for name, member in shape._declared_fields.items()
    ]


def _find_conversion(member: Any) -> Callable[[Any], Any] | None:
    if isinstance(member, serializers.ListSerializer):
        inner: Any = type(member.child)
        return lambda rows: [show(inner, row) for row in rows]
    if isinstance(member, serializers.Serializer):
        shape = type(member)
        return lambda row: None if row is None else show(shape, row)
    return getattr(member, "show", None)


class ChosenMembers(serializers.Serializer[Any]):
    """Each member but the id may be left out of an answer, by the parameter `fields`."""

    def get_fields(self) -> dict[str, Any]:
        """The members; only the id is always there."""
        members = super().get_fields()
        for name, member in members.items():
            member.required = name == "id"
        return members


def page_of(name: str, row: Shape, about: str, *, is_searched: bool = False) -> Shape:
    """The shape of a page of a list, as the schema names and describes it.

    Args:
        name: of the rows: `Message` makes `MessagePage`.
        row: what each of them is.
        about: what the page is, and in which order.
        is_searched: whether the list is searched in, so that the time for that may be up.
    """
    members: dict[str, Any] = {"results": row(many=True), "next": serializers.CharField(allow_null=True)}
    if is_searched:
        members["searched_back_to"] = serializers.DateTimeField(allow_null=True, help_text=SEARCHED_BACK_TO)
    words = about if about.endswith(".") else f"{about}; `next` is the cursor of the page after, or null."
    return type(f"{name}PageSerializer", (serializers.Serializer,), {"__doc__": words, **members})


def listing(
    name: str,
    row: Shape,
    about: str,
    *filters: Parameter,
    query: Parameter | None = None,
    what: str = "",
    limit: Parameter = LIMIT,
    **known: Any,
) -> Callable[[Callable[..., Any]], Callable[..., HttpResponseBase]]:
    """The operation that gives a page of a list.

    Args:
        name, row, about: as `page_of` takes them.
        filters: the parameters that narrow the list or choose its order.
        query: the one that searches in it.
        what: what a row is, as in "A message", where the parameter `fields` chooses members of it.
        limit: the parameter that says how long a page is.
        known: as `operation` takes it.
    """
    row = chosen_of(name, row, what) if what else row
    searched, chosen = [query] if query else [], [fields_of(row)] if issubclass(row, ChosenMembers) else []
    return operation(
        page_of(name, row, about, is_searched=query is not None),
        parameters=(*searched, CURSOR, limit, *filters, *chosen),
        **known,
    )


def chosen_of(name: str, row: Shape, what: str) -> Shape:
    """A row of which the parameter `fields` chooses members; `what` it is, as in "A message"."""
    words = f"{what} in a list; with `fields` only its id and what was chosen."
    return type(f"Chosen{name}Serializer", (ChosenMembers, row), {"__doc__": words})


def fields_of(row: Shape) -> Parameter:
    """The parameter that chooses members of a row."""
    about = "only these members of each row, and its id; all where it is left out"
    return take_names("fields", about=about, choices=tuple(row._declared_fields))


def choose(row: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A row with only the members that the parameter names and its id; as it is where none are named."""
    names = given["fields"]
    return row if names is None else {name: value for name, value in row.items() if name == "id" or name in names}


def offer_order(moving: str, *, about: str, fixed: str) -> Parameter:
    """The parameter that chooses between the fixed order of a list and one that moves, such as `latest`."""
    return take_choice(
        "order",
        about=f"{FIXED}: {fixed}; no row moves in it, so that pages miss and double none; {moving}: {about}, on one "
        "page alone, of at most `limit` rows and without `next`",
        choices=(FIXED, moving),
        default=FIXED,
    )


def _bind(view: Endpoint, of: str = "") -> str:
    """What a cursor holds for: the list, by its address where it has no other name, and the query."""
    return f"{of or view.request.path_info} {view.given.get('q') or ''}".rstrip()


def read_place(view: Endpoint) -> Place | None:
    """The time and id of the row that the page comes after; None for the first page.

    Raises:
        CursorError: for a cursor that is none of this list of this workspace, or of another query.
    """
    return read_cursor(view.given["cursor"], view.workspace.pk, of=_bind(view))


def read_row_key(view: Endpoint, of: str) -> list[Any] | None:
    """The key of the row that the page comes after, in a list that is in another order than that of time.

    Raises:
        CursorError: for a cursor that is none of this list of this workspace.
    """
    return read_key(view.given["cursor"], view.workspace.pk, of=_bind(view, of))


def read_row_id(view: Endpoint, of: str) -> uuid.UUID | None:
    """The id of the row that the page comes after, in a list that is in the order of its ids; None for the first page.

    Raises:
        CursorError: for a cursor that is none of this list of this workspace.
        ProblemError: 400 for a cursor in an order that moves.
    """
    order = view.given.get("order", FIXED)
    if view.given["cursor"] and order != FIXED:
        detail = f"order={order} has one page alone: send the cursor without order, or order without a cursor"
        raise ProblemError(400, detail, parameter="cursor")
    key = read_row_key(view, of)
    return uuid.UUID(key[0]) if key else None


def cut_page(
    view: Endpoint, found: Sequence[Row], key_of: Callable[[Row], Any], of: str = ""
) -> tuple[Sequence[Row], str | None]:
    """The rows of the page, and the cursor of the next or None, of a list that was asked for one row more.

    Args:
        view: whose parameters say how long a page is.
        found: the rows.
        key_of: the time and id of a row; with `of` its key in another order.
        of: the list, where it is in another order than that of time.
    """
    page = found[: view.given["limit"]]
    if len(found) == len(page):
        return page, None
    key, workspace_id, bound = key_of(page[-1]), view.workspace.pk, _bind(view, of)
    return page, write_key(key, workspace_id, of=bound) if of else write_cursor(key, workspace_id, of=bound)


def cut_by_id(
    view: Endpoint, found: Sequence[Row], id_of: Callable[[Row], uuid.UUID], of: str
) -> tuple[Sequence[Row], str | None]:
    """The same of a list in the order of its ids; one in an order that moves goes no further."""
    page, cursor = cut_page(view, found, lambda row: [str(id_of(row))], of)
    return page, cursor if view.given.get("order", FIXED) == FIXED else None


def walk_by_id(
    view: Endpoint, rows: QuerySet[Model], of: str, *, is_newest_first: bool = False
) -> tuple[Sequence[Any], str | None]:
    """The same of all rows, of which those of the page are found by their ids.

    Raises:
        CursorError: for a cursor that is none of this list of this workspace.
    """
    if after := read_row_id(view, of):
        rows = rows.filter(**{f"pk__{'lt' if is_newest_first else 'gt'}": after})
    found = list(rows.order_by("-pk" if is_newest_first else "pk")[: view.given["limit"] + 1])
    return cut_by_id(view, found, lambda row: row.pk, of)


def find_page(
    view: Endpoint, rows: QuerySet[Model], meant: Exists | None, *, at: str, before: Place | None
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The rows of the page of what a query means, and how to go on: see `find_meant` and `cut_found`.

    Raises:
        ProblemError: 503 where the search takes too long to find out anything.
    """
    return cut_found(view, find_meant(rows, meant, at=at, before=before, limit=view.given["limit"] + 1), at)


def find_either(
    view: Endpoint, fixed: QuerySet[Model], moving: QuerySet[Model], meant: Exists | None, of: str
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The same of a list in the order of its ids, in which no row moves; or its one page by the latest activity.

    Raises:
        ProblemError: 400 as in `read_row_id`; 503 where the search takes too long to find out anything.
    """
    after = read_row_id(view, of)
    if view.given["order"] != FIXED:
        page, on = find_page(view, moving, meant, at="last_at", before=None)
        return page, on | {"next": None}
    place: Any = (after, after) if after else None
    found = find_meant(fixed.order_by("-pk"), meant, at="id", before=place, limit=view.given["limit"] + 1)
    page, place = found.rows[: view.given["limit"]], found.searched_back_to
    last = page[-1].pk if len(found.rows) > len(page) else place[1] if place else None
    return page, {
        "next": write_key([str(last)], view.workspace.pk, of=_bind(view, of)) if last else None,
        # As an id says, a UUIDv7.
        "searched_back_to": datetime.fromtimestamp((place[1].int >> 80) / 1000, tz=UTC) if place else None,
    }


def cut_found(view: Endpoint, found: Found[Any], at: str) -> tuple[Sequence[Any], dict[str, Any]]:
    """The rows of the page of a search that was asked for one row more; and `next` and `searched_back_to`.

    Where its time was up before it came to the end of the list, it says how far it came, and `next` goes on from there.
    """
    page, back = found.rows[: view.given["limit"]], found.searched_back_to
    place = (getattr(page[-1], at), page[-1].pk) if len(found.rows) > len(page) else back
    cursor = write_cursor(place, view.workspace.pk, of=_bind(view)) if place else None
    return page, {"next": cursor, "searched_back_to": back[0] if back else None}


def read_start(view: Endpoint, conversation: Conversation) -> Start:
    """Where in the timeline of a conversation the page begins.

    Raises:
        CursorError: for a cursor that is none of this conversation.
        ProblemError: 400 for a cursor beside an offset.
    """
    if view.given["cursor"] and view.given["offset"]:
        raise ProblemError(400, "offset and cursor exclude each other: send the cursor alone", parameter="offset")
    said = read_row_key(view, name_timeline(conversation))
    return Start(after=read_edge(said) if said else None, offset=view.given["offset"])


def show_next(window: Window[Any], conversation: Conversation) -> dict[str, Any]:
    """`next`, the cursor of the page after a window of the timeline or None, and its older form."""
    edge, of = window.later, name_timeline(conversation)
    return {
        "next": write_key(edge.write(), conversation.workspace_id, of=of) if edge else None,
        "next_offset": window.last if edge else None,
    }
