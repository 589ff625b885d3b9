"""The rows of a transcript for what is cited and stands for no message here."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from inspector.threads.models import Message
from inspector.threads.placing.citations import count_bearers
from inspector.threads.placing.links import name_cited
from inspector.threads.selectors import TreeRow

from ..agents.marks import Cast
from ..agents.rows import write_term
from ..shown.budgets import shorten_name
from ..shown.ghosts import say_fate
from ..shown.told import make_line


def find_ghost(message: Message) -> str:
    """The digest of the id that a message cites and that stands for no message here; empty where there is none."""
    return bytes(message.parent_key).hex() if message.parent_key is not None and message.parent is None else ""


def make_ghost_row(ghost: str, citing: TreeRow | None, depth: int, *, cast: Cast, slug: str) -> dict[str, Any]:
    """The row of what was cited and stands for no message here, above the one that cites it, if that is in the window.

    `fate` says whether it was never received or could be any of several; `search_url` leads to what bears its id. Who
    most likely wrote it is the one whom the message that answers it is sent to; `before` is when that was said.
    """
    message = citing.message if citing else None
    name = name_cited(citing.body["message"]) if citing and message else ""
    bearers = count_bearers(message.parent_why) if message else None
    term = write_term("id", name) if name else ""
    is_missing = bearers == 0
    line = make_line(message, cast) if message and is_missing else None
    return {
        "kind": "ghost",
        "anchor": make_ghost_anchor(ghost),
        "name": shorten_name(name or "A message"),
        "fate": say_fate(bearers),
        "cited_by": f"{(message and shorten_name(message.native_id)) or 'The message below'} cites it.",
        "search_url": f"{reverse('pages:search', args=[slug])}?{urlencode({'q': term})}" if term else "",
        "is_missing": is_missing,
        "depth": depth,
        "likely": line.receivers[0] if line and len(line.receivers) == 1 and not line.more_receivers else None,
        "before": line.at if line else None,
    }


def make_ghost_anchor(ghost: str) -> str:
    """The name of the place of a ghost, by the digest of the id that is cited, wherever it is drawn."""
    return f"ghost-{ghost[:16]}"
