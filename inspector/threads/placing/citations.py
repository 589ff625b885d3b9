"""Citations: ids that messages name as what they answer, and who bears them in other conversations."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import NamedTuple


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
