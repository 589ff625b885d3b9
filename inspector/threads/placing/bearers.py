"""Bearers: who in a channel bears the ids that a conversation cites and does not hold itself."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from django.db import connection, transaction

from ..arriving.holding import hold_channels
from .citations import MOST_BEARERS, Citation, Elsewhere

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
        workspace_id: the workspace.
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
    parameters: list[Any] = [keys, traces, workspace_id, channel_id, MOST_BEARERS + 1]
    with connection.cursor() as cursor:
        cursor.execute(_BEARERS, parameters)
        for key, trace, message_id, identity, part in cursor.fetchall():
            citation = Citation(bytes(key), trace)
            found[citation].append(Elsewhere(message_id, bytes(identity) + part.to_bytes(8)))
    return found
