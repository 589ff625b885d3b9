"""Carries: what a settled conversation hands on to the messages that are appended to it.

Settling is a fold over the timeline. What it knows at the end is written down: of whom who was asked what, which
statements wait for an answer, which run of turns it is in, what is established. With it, messages that come after all
others are settled without reading those, at a cost that depends on them alone (`courses`). Everything that is named
stands in its own row; a carry holds ids, and no more than a few hundred of a kind. Whatever it does not tell for
certain (`UncertainError`) is settled from the beginning of the conversation, and comes out the same.

A carry holds for one settled generation. What is late leads to that of an earlier one (`milestones`); a change that is
more than messages added (`Conversation.whole_generation`), and another decoder, lead to the beginning.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from ..models import Conversation
from ..placing.instants import read_instant
from ..placing.nodes import StoredNode, Timeline
from ..placing.places import Places
from ..telling import contexts
from .counts import Counts
from .past import Tasks

if TYPE_CHECKING:
    from .courses import Course

# The form of what is written; another one is not read, nor what another decoder wrote.
_FORM: Final = 5
# A conversation of fewer messages is settled from its beginning sooner than what it would carry is loaded.
LEAST_MESSAGES = 400
# What is larger is not carried: it would be written with every message.
MOST_BYTES: Final = 512 * 1024
MOST_UNMET: Final = 400
MOST_AWAITED: Final = 200

Written = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Start:
    """Where the settling of a conversation goes on from: its end, or a milestone before it.

    `border` is the place that the next message has at least, `row` the conversation as it stood there. `tasks` are
    those that were there and have changed since, as they stood there.
    """

    generation: int
    written: Written
    border: bytes
    row: Conversation
    tasks: Tasks = field(default_factory=dict)
    is_milestone: bool = False

    def precedes(self, node: StoredNode) -> bool:
        """Whether a message comes after everything that was settled there."""
        return is_before(self.written, node)

    @property
    def since(self) -> datetime:
        """The time of the last message up to it."""
        return read_instant(self.written["last"][0])


def name_version() -> str:
    return f"{_FORM} {contexts.DECODER_VERSION}"


def is_current(conversation: Conversation) -> bool:
    """Whether a conversation can be gone on with: it is long enough, and nothing but messages added has changed it."""
    is_long = conversation.message_count >= LEAST_MESSAGES
    return is_long and conversation.whole_generation <= conversation.settled_generation


def read_carry(data: bytes | memoryview) -> Written | None:
    """What was carried; None of what another version of the program wrote."""
    # An earlier one wrote plain text.
    if bytes(data[:1]) == b"{":
        return None
    written: Written = json.loads(zlib.decompress(data))
    return written if written["version"] == name_version() else None


def write_carry(
    course: Course, counts: Counts, timeline: Timeline, *, awaited: Sequence[Any] | None = None
) -> tuple[int, int, bytes, bytes] | None:
    """What is carried over the end of a settled conversation; None where it is not enough, or too much.

    Args:
        course: how far its settling has come.
        counts: what is carried beside its row.
        timeline: its nodes, or those since it was gone on from.
        awaited: what is carried of tasks that no message belongs to, where it is as it was.

    Returns:
        the instant of its last message, how many there are, the place that the next has at least, and what is carried.
    """
    placed, nodes = course.placed, timeline.nodes
    if placed.count < LEAST_MESSAGES:
        return None
    last = (
        _write_key(max(nodes, key=lambda node: node.rank))
        if nodes
        else course.resumed.written["last"]
        if course.resumed is not None
        else None
    )
    if awaited is None:
        awaited = [
            [task.key.hex(), task.native_id, play.state]
            for task, play in course.playing.plays.items()
            if not play.message_count
        ]
    if last is None or len(awaited) > MOST_AWAITED:
        return None
    unmet = sorted(name.hex() for name in placed.unmet)
    border = Places(timeline.blocks).border
    data = pack_carry(
        {
            "version": name_version(),
            "count": placed.count,
            "last": last,
            "earlier": placed.earlier.write(),
            "runs": {dialect: runs.write() for dialect, runs in placed.runs.items()},
            "unmet": unmet[:MOST_UNMET],
            "is_cut": placed.is_cut or len(unmet) > MOST_UNMET,
            "spoken": list(course.spoken),
            "context": course.context.write(border),
            "standing": course.membership.standing.write(),
            "awaited": awaited,
            "read": course.write_read(),
            "counts": counts.write(),
        }
    )
    return (last[0], placed.count, border, data) if data is not None else None


def pack_carry(written: Written) -> bytes | None:
    """What is carried, as it is stored; None where that is too much."""
    # What a log says may hold what only Python's JSON hands on as it is: lone surrogates, numbers of any size.
    text = json.dumps(written, separators=(",", ":")).encode()
    # It is written with every settling, and most of it are digests and ids in hexadecimal.
    return zlib.compress(text, 1) if len(text) <= MOST_BYTES else None


def is_before(written: Written, node: StoredNode) -> bool:
    """Whether a message comes after everything that was settled when this was written."""
    return _read_key(written["last"]) < _key_of(node)


def _key_of(node: StoredNode) -> tuple[int, bytes, int]:
    return node.instant, node.source, node.index


def _write_key(node: StoredNode) -> list[Any]:
    return [node.instant, node.source.hex(), node.index]


def _read_key(written: Sequence[Any]) -> tuple[int, bytes, int]:
    instant, source, index = written
    return instant, bytes.fromhex(source), index
