"""The way through a long conversation: from window to window, to its ends, and to a message by its number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from inspector.search.cursors import read_key, write_key
from inspector.threads.models import Conversation
from inspector.threads.timeline import Edge, Start, Window, name_timeline, read_edge

from ..shell import read_number


@dataclass(frozen=True, kw_only=True, slots=True)
class Pager:
    """The links around a window; an empty one leads nowhere. `most` is the number of the last message, 0 if unknown.

    `kept` are the parameters that a jump takes along.
    """

    words: str
    first_url: str = ""
    previous_url: str = ""
    next_url: str = ""
    last_url: str = ""
    kept: tuple[tuple[str, str], ...] = ()
    most: int = 0

    @property
    def is_needed(self) -> bool:
        """Whether there is more than this window."""
        return bool(self.previous_url or self.next_url)


def read_start(request: HttpRequest, conversation: Conversation) -> Start:
    """Where the address says that a window lies: after one, before one, or from a message on (`offset`).

    Raises:
        Http404: for what no page of this conversation wrote.
    """
    of = name_timeline(conversation)
    said = [read_key(request.GET.get(name), conversation.workspace_id, of=of) for name in ("after", "before")]
    after, before = (read_edge(each) if each else None for each in said)
    return Start(after, before, read_number(request, "offset"))


def write_edge(conversation: Conversation, edge: Edge) -> str:
    """An end of a window as an address has it, under `after` or `before`."""
    return write_key(edge.write(), conversation.workspace_id, of=name_timeline(conversation))


def make_pager(conversation: Conversation, window: Window[Any], *, size: int, **kept: str) -> Pager:
    """The pager of a window of so many messages; `kept` are parameters that every link takes along."""

    def write(**place: str | int) -> str:
        return "?" + urlencode({**kept, **place})

    total = conversation.message_count
    words = f"Messages {window.first:,}–{window.last:,} of {total:,}"
    return Pager(
        words=words if window.rows else f"None of {total:,} messages here",
        first_url=write() if window.first > size or (total and not window.rows) else "",
        previous_url=write(before=write_edge(conversation, window.earlier)) if window.earlier else "",
        next_url=write(after=write_edge(conversation, window.later)) if window.later else "",
        last_url=write(offset=(total - 1) // size * size) if window.later and total - window.last > size else "",
        kept=tuple(kept.items()),
        most=total,
    )


def read_jump(request: HttpRequest, *, total: int) -> int | None:
    """The position of the message whose number (`at`, counted from 1) the address asks for; None where it does not."""
    number = read_number(request, "at")
    return min(number, max(total, 1)) - 1 if number else None
