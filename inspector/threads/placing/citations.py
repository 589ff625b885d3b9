"""Citations: ids that messages name as what they answer, and who bears them in other conversations."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Final, NamedTuple


class Citation(NamedTuple):
    """An id that is cited, as its key, and the trace of the message that cites it ("" where it has none)."""

    key: bytes
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What bears a cited id in other conversations: the one message that can be meant, else only how many do.

    `content` stands for that message whatever its id is. `count` is not exact above `MOST_BEARERS`.
    """

    id: uuid.UUID | None
    content: bytes = b""
    count: int = 1


# Of more it is only said that there are more.
MOST_BEARERS: Final = 10
# What a reason holds where several bear the id, in whatever else it says, for conditions of SQL.
SEVERAL: Final = "messages bear that id"
_SAID: Final = re.compile(rf"; (more than )?([0-9]+) {SEVERAL}")


def say_several(why: str, count: int) -> str:
    """The reason of a link whose id so many messages bear; `count` is not exact above `MOST_BEARERS`."""
    return f"{why}; {write_bearers(count)} {SEVERAL}"


def count_bearers(why: str) -> int:
    """How many messages elsewhere bear the id, as a reason says it: one above `MOST_BEARERS` for more, 0 for none."""
    said = _SAID.search(why)
    return int(said[2]) + bool(said[1]) if said else 0


def write_bearers(count: int) -> str:
    """The number in words: `3`, `more than 10`."""
    return f"more than {MOST_BEARERS}" if count > MOST_BEARERS else str(count)
