"""The four characters with which each word and each exact term of a workspace begins, in the rows and in the indexes.

A word that is common elsewhere costs nobody time, so that no search tells how often strangers use it: the workspace is
part of each entry of the indexes of search, and not one more condition beside it.
"""

from __future__ import annotations

import base64
import uuid
from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db.models import F, Func, Q, TextField, Value

MARK_CHARACTERS: Final = 4


def mark_workspace(workspace_id: uuid.UUID) -> str:
    """The last three bytes of a workspace's id in base 64.

    Two workspaces may have the same; what is found is then still that of one of them, by the query set's own filter.
    """
    return base64.b64encode(workspace_id.bytes[13:]).decode()


class _Marked(Func):
    """An array of one term with the mark of the row's workspace, as `mark_workspace` makes it."""

    template = "ARRAY[ENCODE(SUBSTRING(UUID_SEND(%(expressions)s]"
    arg_joiner = ") FROM 14), 'base64') || "
    output_field = ArrayField(TextField())


def has_term(term: str) -> Q:
    """Messages that have this exact term, of whichever workspace; no index serves it."""
    return Q(atoms__contains=_Marked(F("workspace_id"), Value(term)))
