"""Links from messages to the traces that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.urls import reverse

from inspector.accounts.models import Workspace
from inspector.threads.models import Message
from inspector.threads.trees.traces import find_traces_of

from .told import shorten

MOST_TRACES: Final = 5


def link_traces(workspace: Workspace, messages: Sequence[Message]) -> list[dict[str, str]]:
    """The first traces of these messages: of a single one, to its row there."""
    query = f"?message={messages[0].pk}" if len(messages) == 1 else ""
    return [
        {
            "url": reverse("pages:trace", args=[workspace.slug, trace.pk]) + query,
            "name": shorten(trace.native_id, 40),
        }
        for trace in find_traces_of(workspace=workspace, messages=messages)[:MOST_TRACES]
    ]
