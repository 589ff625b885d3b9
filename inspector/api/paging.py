"""Pages of a list by keyset: the parameters that ask for one, the place it begins at, and the cursor of the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from inspector.accounts.models import Workspace
from inspector.search.cursors import CursorError, Place, read_cursor, read_key, write_cursor, write_key

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
