"""What changes in a stored tree: of each message how the tree has it, and how it stands now."""

from __future__ import annotations

from typing import Final, NamedTuple

from .grafting import Anchor, Shoot
from .outline import Kind

# What a top of a conversation's tree hangs on; in a trace it hangs on the heading of its conversation.
ROOT: Final[Anchor] = (b"", Kind.CONVERSATION)


class Was(NamedTuple):
    """A message as the tree has it: its time, act and conversation, and the line that it hangs on (`find_anchor`).

    Where `hangs` is None the tree says on what.
    """

    at: int
    performative: str | None
    group: bytes = b""
    hangs: Anchor | None = None


class Change(NamedTuple):
    """What becomes of a message: `was` is None where the tree does not have it, `now` where it leaves.

    `is_elsewhere` says that it stands elsewhere in the timeline among those that are not changed, though its time is
    the same.
    """

    id: bytes
    was: Was | None
    now: Shoot | None
    is_elsewhere: bool = False


def find_anchor(shoot: Shoot) -> Anchor:
    """The line that a message hangs on."""
    if shoot.ghost is not None:
        return shoot.ghost[:16], Kind.GHOST
    if shoot.parent is not None:
        return shoot.parent, Kind.MESSAGE
    return name_top(shoot.group)


def name_top(group: bytes) -> Anchor:
    """What the tops of a conversation hang on."""
    return (group, Kind.CONVERSATION) if group else ROOT
