"""Cursors of keyset pages: signed, and good in one workspace only."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core import signing

Place = tuple[datetime, uuid.UUID]


class CursorError(Exception):
    """A cursor that was tampered with, or belongs to another workspace."""


def write_cursor(place: Place, workspace_id: uuid.UUID) -> str:
    """The cursor after a row, which is named by its time and id."""
    return signing.dumps([place[0].isoformat(), str(place[1])], salt=f"cursor {workspace_id}", compress=False)


def read_cursor(text: str | None, workspace_id: uuid.UUID) -> Place | None:
    """The place that a cursor names; None for no cursor.

    Raises:
        CursorError: for one that `write_cursor` did not write for this workspace.
    """
    if not text:
        return None
    try:
        time, row_id = signing.loads(text, salt=f"cursor {workspace_id}")
    except signing.BadSignature as error:
        raise CursorError("the cursor is damaged or from elsewhere: start again without it") from error
    return datetime.fromisoformat(time), uuid.UUID(row_id)


def write_key(key: Sequence[str | int | bool], workspace_id: uuid.UUID, *, of: str) -> str:
    """The cursor after a row of a list that is in another order than that of time; `of` names the list."""
    return signing.dumps(list(key), salt=f"cursor {of} {workspace_id}", compress=False)


def read_key(text: str | None, workspace_id: uuid.UUID, *, of: str) -> list[Any] | None:
    """The key that such a cursor names, its parts as they were written; None for no cursor.

    Raises:
        CursorError: for one that `write_key` did not write for this list of this workspace.
    """
    if not text:
        return None
    try:
        key: list[Any] = signing.loads(text, salt=f"cursor {of} {workspace_id}")
    except signing.BadSignature as error:
        raise CursorError("the cursor is damaged or from elsewhere: start again without it") from error
    return key
