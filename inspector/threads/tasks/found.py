"""A task as membership sees it: what makes it this one, who asked for it, and how it stands as far as acts tell."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import Final

# How a task stands by its acts: it goes on; it failed and may go on; it failed and ended; it ended.
GOES_ON: Final = ""
FAILED_FOR_NOW: Final = "failed-for-now"
FAILED: Final = "failed"
ENDED: Final = "ended"


@dataclass(slots=True, eq=False)
class Found:
    """A task: what makes it this one, the message that asked for it, and the task that it is part of.

    `request` is the id of the message that asked, `requester` and `act` what it says; the first is None where no
    message of the conversation did. `ends` counts how often it has ended by its acts. `is_stored` says that messages
    which are placed already belong to it; `is_awaited` that none does, and that tasks which are stored are part of it.
    """

    key: bytes
    id: uuid.UUID
    native_id: str = ""
    request: uuid.UUID | None = None
    requester: str = ""
    act: str = ""
    asked_elsewhere: uuid.UUID | None = None
    within: Found | None = None
    ends: int = 0
    ending: str = GOES_ON
    is_stored: bool = False
    is_awaited: bool = False

    @property
    def said(self) -> tuple[object, ...]:
        """All that membership knows of it."""
        within = self.within.key if self.within is not None else None
        return self.request, self.requester, self.act, self.asked_elsewhere, within, self.ends, self.ending

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, and was not asked for again since."""
        return self.ending in (FAILED, ENDED)

    @property
    def has_failed(self) -> bool:
        """Whether the latest end of it was a failure."""
        return self.ending in (FAILED_FOR_NOW, FAILED)

    def go_on(self) -> None:
        """It is asked for again."""
        self.ending = GOES_ON

    def fail(self, *, is_end: bool) -> None:
        """It failed, and may be tried again unless that was its end."""
        self._end(FAILED if is_end or self.has_ended else FAILED_FOR_NOW)

    def end(self) -> None:
        """It has ended otherwise than by failing."""
        self._end(ENDED)

    def _end(self, ending: str) -> None:
        had_ended = self.has_ended
        self.ending = ending
        self.ends += self.has_ended and not had_ended


def make_key(*parts: str) -> bytes:
    """The key of a task within its conversation, from what makes it this one; 32 bytes."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


def key_of_id(run: int, native_id: str) -> bytes:
    """The key of a task that has an id on the wire."""
    return make_key("id", str(run), native_id)


def make_task_id(conversation_id: uuid.UUID, key: bytes) -> uuid.UUID:
    """The id of a task: it follows from what makes it this one, so that an address of it holds when it changes."""
    return uuid.UUID(bytes=hashlib.sha256(conversation_id.bytes + key).digest()[:16], version=5)
