"""Citations: ids that messages name as what they answer, and who bears them in other conversations."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.db import connection, transaction

from ..inserting.marking import hold_channels


class Citation(NamedTuple):
    """An id that is cited, as its key, and the trace of the message that cites it ("" where it has none)."""

    key: bytes
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What bears a cited id in other conversations: the one message that can be meant, else only how many do.

    `content` stands for that message whatever its id is. `count` is not exact above `MAX_BEARERS`.
    """

    id: uuid.UUID | None
    content: bytes = b""
    count: int = 1


# Of more it is only said that there are more.
MAX_BEARERS: Final = 10
# What a reason holds where several bear the id, in whatever else it says, for conditions of SQL.
SEVERAL: Final = "messages bear that id"
_SAID: Final = re.compile(rf"; (more than )?([0-9]+) {SEVERAL}")


def say_several(why: str, count: int) -> str:
    """The reason of a link whose id so many messages bear; `count` is not exact above `MAX_BEARERS`."""
    return f"{why}; {write_bearers(count)} {SEVERAL}"


def count_bearers(why: str) -> int:
    """How many messages elsewhere bear the id, as a reason says it: one above `MAX_BEARERS` for more, 0 for none."""
    said = _SAID.search(why)
    return int(said[2]) + bool(said[1]) if said else 0


def write_bearers(count: int) -> str:
    """The number in words: `3`, `more than 10`."""
    return f"more than {MAX_BEARERS}" if count > MAX_BEARERS else str(count)


# Each id finds its few bearers by the index, however many there are; one more is asked for than is counted.
_BEARERS = """
SELECT asked.key, asked.trace, bearer.id, bearer.identity, bearer.part
FROM unnest(%s::bytea[], %s::text[]) AS asked (key, trace)
CROSS JOIN LATERAL (
    SELECT message.id, record.identity, message.part
    FROM threads_message AS message
    JOIN intake_record AS record ON record.id = message.record_id
    WHERE message.workspace_id = %s AND message.channel_id = %s AND message.id_key = asked.key
        AND (asked.trace = '' OR message.trace_id = asked.trace)
        AND NOT EXISTS (SELECT FROM intake_hiddenrecord AS hidden WHERE hidden.record_id = message.record_id)
    LIMIT %s
) AS bearer
"""


def find_bearers(
    workspace_id: uuid.UUID, channel_id: uuid.UUID, citations: Iterable[Citation]
) -> Mapping[Citation, Elsewhere]:
    """Who bears each cited id in the channel: among the messages of the citing one's trace, else among all.

    What comes meanwhile is missed unless the channel is held (`hold_channels`).

    Args:
        channel_id: the channel; ids mean nothing outside it.
        citations: ids that no message of the citing conversation bears.

    Returns:
        what was found, without those that nobody bears.
    """
    every = sorted(set(citations))
    if not every:
        return {}
    ask = (workspace_id, channel_id)
    in_channel = _find(*ask, [Citation(key) for key in {citation.key for citation in every}])
    # The trace decides only between several.
    unclear = [each for each in every if each.trace and len(in_channel.get(Citation(each.key), ())) > 1]
    in_trace = _find(*ask, unclear) if unclear else {}
    found = {}
    for citation in every:
        bearers = in_trace.get(citation) or in_channel.get(Citation(citation.key))
        if bearers:
            found[citation] = bearers[0] if len(bearers) == 1 else Elsewhere(None, count=len(bearers))
    return found


def find_bearers_alone(
    workspace_id: uuid.UUID, channel_id: uuid.UUID, citations: Set[Citation]
) -> Mapping[Citation, Elsewhere]:
    """The same while nothing arrives in the channel, so that whoever brings one of these ids finds who cites it."""
    if not citations:
        return {}
    with transaction.atomic():
        hold_channels([channel_id], is_shared=False)
        return find_bearers(workspace_id, channel_id, citations)


def _find(
    workspace_id: uuid.UUID, channel_id: uuid.UUID, citations: Sequence[Citation]
) -> Mapping[Citation, Sequence[Elsewhere]]:
    keys, traces = [citation.key for citation in citations], [citation.trace for citation in citations]
    found: dict[Citation, list[Elsewhere]] = defaultdict(list)
    parameters: list[Any] = [keys, traces, workspace_id, channel_id, MAX_BEARERS + 1]
    with connection.cursor() as cursor:
        cursor.execute(_BEARERS, parameters)
        for key, trace, message_id, identity, part in cursor.fetchall():
            citation = Citation(bytes(key), trace)
            found[citation].append(Elsewhere(message_id, bytes(identity) + part.to_bytes(8)))
    return found
