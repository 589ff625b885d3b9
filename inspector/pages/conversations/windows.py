"""The way through a long conversation: from window to window, to its ends, and to a message by its number."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest

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


def make_pager(
    *, start: int, previous_start: int | None, next_start: int | None, size: int, shown: int, total: int, **kept: str
) -> Pager:
    """The pager of a window of the timeline.

    Args:
        start: its first position.
        previous_start, next_start: the first positions of its neighbours, None at the ends.
        size: how many positions a window has.
        shown: how many messages this one has.
        total: how many the conversation has.
        kept: parameters that every link takes along.
    """

    def write(position: int) -> str:
        return "?" + urlencode({**kept, **({"offset": position} if position else {})})

    last = max(0, total - 1) // size * size
    return Pager(
        words=f"Messages {start + 1:,}–{start + shown:,} of {total:,}" if shown else f"None of {total:,} messages here",
        first_url=write(0) if previous_start else "",
        previous_url=write(previous_start) if previous_start is not None else "",
        next_url=write(next_start) if next_start is not None else "",
        last_url=write(last) if next_start is not None and last > next_start else "",
        kept=tuple(kept.items()),
        most=total,
    )


def read_jump(request: HttpRequest, *, total: int) -> int | None:
    """The position of the message whose number (`at`, counted from 1) the address asks for; None where it does not."""
    number = read_number(request, "at")
    return min(number, max(total, 1)) - 1 if number else None
