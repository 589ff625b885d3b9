"""Pages of a list by keyset: the parameters that ask for one, the place it begins at, and the cursor of the next.

A list with pages is in an order in which no row moves, so that a walk misses and doubles none while others write. An
order that moves, such as the latest activity first, gives one page alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from django.db.models import Exists, Model, QuerySet
from rest_framework import serializers
from rest_framework.serializers import CharField, DateTimeField, Serializer

from inspector.accounts.models import Workspace
from inspector.search.selectors import Found, Place, find_meant, read_cursor, read_key, write_cursor, write_key
from inspector.threads.models import Conversation
from inspector.threads.timeline import Start, Window, name_timeline, read_edge

from .parameters import Choice, Number, Parameter
from .problems import ProblemError

FIELDS_ABOUT: Final = "only these members of each row, and its id; all where it is left out"


class ChosenMembers(serializers.Serializer[Any]):
    """Each member but the id may be left out of an answer, by the parameter `fields`."""

    def get_fields(self) -> dict[str, Any]:
        """The members; only the id is always there."""
        members = super().get_fields()
        for name, member in members.items():
            member.required = name == "id"
        return members


def choose(row: dict[str, Any], names: Set[str] | None) -> dict[str, Any]:
    """A row with only these members and its id; as it is where none are named."""
    return row if names is None else {name: value for name, value in row.items() if name == "id" or name in names}


CURSOR: Final = Parameter(name="cursor", about="`next` of the page before")
LIMIT: Final = Number(name="limit", about="rows per page", least=1, most=200, default=50)
# The older way through a conversation, which a withdrawal moves.
OFFSET: Final = Number(
    name="offset", about="how many messages come before; go on by `cursor`", default=0, most=10**9, is_deprecated=True
)
NEXT_OFFSET: Final = "deprecated: the `offset` of the page after, or null; go on by `next`, which nothing moves"
FIXED: Final = "fixed"
SEARCHED_BACK_TO: Final = (
    "how far a search came whose time was up, null where it came to an end; `next` goes on from there"
)
Row = TypeVar("Row")


def page_of(name: str, row: type[Serializer[Any]], about: str, *, is_searched: bool = False) -> type[Serializer[Any]]:
    """The shape of a page of a list, as the schema names and describes it.

    Args:
        name: of the rows: `Message` makes `MessagePage`.
        row: what each of them is.
        about: what the page is, and in which order.
        is_searched: whether the list is searched in, so that the time for that may be up.
    """
    members: dict[str, Any] = {"results": row(many=True), "next": CharField(allow_null=True)}
    if is_searched:
        members["searched_back_to"] = DateTimeField(allow_null=True, help_text=SEARCHED_BACK_TO)
    words = about if about.endswith(".") else f"{about}; `next` is the cursor of the page after, or null."
    return type(f"{name}PageSerializer", (Serializer,), {"__doc__": words, **members})


def chosen_of(name: str, row: type[Serializer[Any]], what: str) -> type[Serializer[Any]]:
    """A row of which the parameter `fields` chooses members; `what` it is, as in "A message"."""
    words = f"{what} in a list; with `fields` only its id and what was chosen."
    return type(f"Chosen{name}Serializer", (ChosenMembers, row), {"__doc__": words})


def offer_order(moving: str, *, about: str, fixed: str) -> Choice:
    """The parameter that chooses between the fixed order of a list and one that moves, such as `latest`."""
    return Choice(
        name="order",
        about=f"{FIXED}: {fixed}; no row moves in it, so that pages miss and double none; {moving}: {about}, on one "
        "page alone, of at most `limit` rows and without `next`",
        choices=(FIXED, moving),
        default=FIXED,
    )


def read_place(given: Mapping[str, Any], workspace: Workspace) -> Place | None:
    """The time and id of the row that the page comes after; None for the first page.

    Raises:
        ProblemError: 400 for a cursor that is none of this workspace's.
    """
    return read_cursor(given["cursor"], workspace.pk)


def read_row_key(given: Mapping[str, Any], workspace: Workspace, *, of: str) -> list[Any] | None:
    """The key of the row that the page comes after, in a list that is in another order than that of time.

    Raises:
        ProblemError: 400 for a cursor that is none of this list of this workspace.
    """
    return read_key(given["cursor"], workspace.pk, of=of)


def read_row_id(given: Mapping[str, Any], workspace: Workspace, *, of: str) -> uuid.UUID | None:
    """The id of the row that the page comes after, in a list that is in the order of its ids; None for the first page.

    Raises:
        ProblemError: 400 for a cursor that is none of this list of this workspace, and in an order that moves.
    """
    if given["cursor"] and given["order"] != FIXED:
        detail = f"order={given['order']} has one page alone: send the cursor without order, or order without a cursor"
        raise ProblemError(400, detail, parameter="cursor")
    key = read_row_key(given, workspace, of=of)
    return uuid.UUID(key[0]) if key else None


def cut_by_id(
    found: Sequence[Row], given: Mapping[str, Any], workspace: Workspace, id_of: Callable[[Row], uuid.UUID], *, of: str
) -> tuple[Sequence[Row], str | None]:
    """The rows of the page, and the cursor of the next or None: of a list in the order of its ids."""
    page, cursor = cut_keyed(found, given, workspace, lambda row: [str(id_of(row))], of=of)
    return page, cursor if given["order"] == FIXED else None


def cut_page(
    found: Sequence[Row], given: Mapping[str, Any], workspace: Workspace, place_of: Callable[[Row], Place]
) -> tuple[Sequence[Row], str | None]:
    """The rows of the page, and the cursor of the next or None: of a list that was asked for one row more."""
    page = found[: given["limit"]]
    has_more = len(found) > len(page)
    return page, write_cursor(place_of(page[-1]), workspace.pk) if has_more else None


def find_page(
    rows: QuerySet[Model],
    meant: Exists | None,
    given: Mapping[str, Any],
    workspace: Workspace,
    *,
    at: str,
    before: Place | None,
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The rows of the page of what a query means, and how to go on: see `find_meant` and `cut_found`.

    Raises:
        ProblemError: 503 where the search takes too long to find out anything.
    """
    found = find_meant(rows, meant, at=at, before=before, limit=given["limit"] + 1)
    return cut_found(found, given["limit"], workspace, at=at)


def find_either(
    fixed: QuerySet[Model],
    moving: QuerySet[Model],
    meant: Exists | None,
    given: Mapping[str, Any],
    workspace: Workspace,
    *,
    of: str,
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The same of a list in the order of its ids, in which no row moves; or its one page by the latest activity.

    Raises:
        ProblemError: 400 as in `read_row_id`; 503 where the search takes too long to find out anything.
    """
    after = read_row_id(given, workspace, of=of)
    if given["order"] != FIXED:
        page, on = find_page(moving, meant, given, workspace, at="last_at", before=None)
        return page, on | {"next": None}
    place: Any = (after, after) if after else None
    found = find_meant(fixed.order_by("-pk"), meant, at="id", before=place, limit=given["limit"] + 1)
    page, place = found.rows[: given["limit"]], found.searched_back_to
    last = page[-1].pk if len(found.rows) > len(page) else place[1] if place else None
    return page, {
        "next": write_key([str(last)], workspace.pk, of=of) if last else None,
        # As an id says, a UUIDv7.
        "searched_back_to": datetime.fromtimestamp((place[1].int >> 80) / 1000, tz=UTC) if place else None,
    }


def cut_found(found: Found[Any], limit: int, workspace: Workspace, *, at: str) -> tuple[Sequence[Any], dict[str, Any]]:
    """The rows of the page of a search that was asked for one row more; and `next` and `searched_back_to`.

    Where its time was up before it came to the end of the list, it says how far it came, and `next` goes on from there.
    """
    page, place = found.rows[:limit], found.searched_back_to
    if len(found.rows) > limit:
        place = getattr(page[-1], at), page[-1].pk
    back = found.searched_back_to
    on = {"next": write_cursor(place, workspace.pk) if place else None, "searched_back_to": back[0] if back else None}
    return page, on


def cut_keyed(
    found: Sequence[Row],
    given: Mapping[str, Any],
    workspace: Workspace,
    key_of: Callable[[Row], Sequence[str | int | bool]],
    *,
    of: str,
) -> tuple[Sequence[Row], str | None]:
    """The same of a list that is in another order than that of time."""
    page = found[: given["limit"]]
    has_more = len(found) > len(page)
    return page, write_key(key_of(page[-1]), workspace.pk, of=of) if has_more else None


def walk_by_id(
    rows: QuerySet[Model], given: Mapping[str, Any], workspace: Workspace, *, of: str, is_newest_first: bool = False
) -> tuple[Sequence[Any], str | None]:
    """The rows of the page, and the cursor of the next or None: of a list in the order of its ids.

    Raises:
        ProblemError: 400 for a cursor that is none of this list of this workspace.
    """
    if key := read_row_key(given, workspace, of=of):
        rows = rows.filter(**{f"pk__{'lt' if is_newest_first else 'gt'}": uuid.UUID(key[0])})
    found = list(rows.order_by("-pk" if is_newest_first else "pk")[: given["limit"] + 1])
    return cut_keyed(found, given, workspace, lambda row: [str(row.pk)], of=of)


def read_start(given: Mapping[str, Any], workspace: Workspace, conversation: Conversation) -> Start:
    """Where in the timeline of a conversation the page begins.

    Raises:
        ProblemError: 400 for a cursor that is none of this conversation, and for one beside an offset.
    """
    if given["cursor"] and given["offset"]:
        raise ProblemError(400, "offset and cursor exclude each other: send the cursor alone", parameter="offset")
    said = read_row_key(given, workspace, of=name_timeline(conversation))
    return Start(after=read_edge(said) if said else None, offset=given["offset"])


def show_next(window: Window[Any], conversation: Conversation) -> dict[str, Any]:
    """`next`, the cursor of the page after a window of the timeline or None, and its older form."""
    edge, of = window.later, name_timeline(conversation)
    return {
        "next": write_key(edge.write(), conversation.workspace_id, of=of) if edge else None,
        "next_offset": window.last if edge else None,
    }
