"""Pages of a list by keyset: the parameters that ask for one, the place it begins at, and the cursor of the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from django.db.models import Model, QuerySet
from django.db.models.expressions import RawSQL

from inspector.accounts.models import Workspace
from inspector.search.conversations import find_meant
from inspector.search.cursors import CursorError, Place, read_cursor, read_key, write_cursor, write_key
from inspector.search.selectors import Found, SlowQueryError

from .parameters import Number, Parameter
from .problems import ProblemError

CURSOR: Final = Parameter(name="cursor", about="`next` of the page before")
LIMIT: Final = Number(name="limit", about="how many rows a page has", least=1, most=200, default=50)
Row = TypeVar("Row")


def read_place(given: Mapping[str, Any], workspace: Workspace) -> Place | None:
    """The time and id of the row that the page comes after; None for the first page.

    Raises:
        ProblemError: 400 for a cursor that is none of this workspace's.
    """
    try:
        return read_cursor(given["cursor"], workspace.pk)
    except CursorError as error:
        raise ProblemError(400, str(error), parameter="cursor") from error


def read_row_key(given: Mapping[str, Any], workspace: Workspace, *, of: str) -> list[Any] | None:
    """The key of the row that the page comes after, in a list that is in another order than that of time.

    Raises:
        ProblemError: 400 for a cursor that is none of this list of this workspace.
    """
    try:
        return read_key(given["cursor"], workspace.pk, of=of)
    except CursorError as error:
        raise ProblemError(400, str(error), parameter="cursor") from error


def cut_page(
    found: Sequence[Row], given: Mapping[str, Any], workspace: Workspace, place_of: Callable[[Row], Place]
) -> tuple[Sequence[Row], str | None]:
    """The rows of the page, and the cursor of the next or None: of a list that was asked for one row more."""
    page = found[: given["limit"]]
    has_more = len(found) > len(page)
    return page, write_cursor(place_of(page[-1]), workspace.pk) if has_more else None


def find_page(
    rows: QuerySet[Model],
    meant: RawSQL | None,
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
    try:
        found = find_meant(rows, meant, at=at, before=before, limit=given["limit"] + 1)
    except SlowQueryError as error:
        raise ProblemError(503, str(error), retry_after=5) from error
    return cut_found(found, given["limit"], workspace, at=at)


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
