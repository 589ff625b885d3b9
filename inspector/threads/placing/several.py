"""Several bearers: how a message says that what it cites could be any of some messages in other conversations.

Which of them is meant is not known, and none is taken for its parent. Nothing is missing for that: whatever tells of
messages that were not received leaves those that cite so out. It is said in `parent_why` and read back from there.
"""

from __future__ import annotations

import re
from typing import Final

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
