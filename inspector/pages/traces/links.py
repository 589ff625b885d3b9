"""Links from messages to the traces that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.urls import reverse

from inspector.accounts.models import Workspace
from inspector.threads.models import Message
from inspector.threads.trees.traces import find_traces_of

from ..shown.told import shorten

MAX_TRACES: Final = 5


def link_traces(workspace: Workspace, messages: Sequence[Message]) -> list[dict[str, str]]:
    """The first traces of these messages."""
    return [
        {
            "url": reverse("pages:trace", args=[workspace.slug, trace["id"]]),
            "name": shorten(trace["name"], 40),
            "id": trace["name"],
        }
        for trace in find_traces_of(messages=messages)[:MAX_TRACES]
    ]


def link_trace(workspace: Workspace, message: Message) -> list[dict[str, str]]:
    """The trace of a message that `find_message` found, to its row there; nothing where it has none."""
    trace = getattr(message, "trace", None)
    if trace is None:
        return []
    url = reverse("pages:trace", args=[workspace.slug, trace["id"]])
    return [{"url": f"{url}?message={message.pk}", "name": shorten(trace["name"], 40)}]
