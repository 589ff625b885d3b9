"""Cited messages that were received and are withdrawn: every member may know so much, as their own pages say it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

from inspector.database import read_from
from inspector.threads.models import Message
from inspector.threads.nodes import count_bearers


class Cited(NamedTuple):
    """An id that is cited, as the key that messages are looked up by, and its channel."""

    channel_id: uuid.UUID
    key: bytes


class Withdrawn(NamedTuple):
    """What bears a cited id and is withdrawn: the message, None where several bear it; who withdrew it, and when."""

    message: uuid.UUID | None
    by: str
    at: datetime


def find_cited(message: Message) -> Cited | None:
    """The id that a message cites and that no message bears which is shown, or None."""
    if message.parent_key is None or message.parent is not None or count_bearers(message.parent_why):
        return None
    return Cited(message.channel_id, bytes(message.parent_key))


# Of many withdrawn messages of one id no more are looked at than it takes to see that there are several.
_FIND: Final = """
SELECT asked.channel_id, asked.key, bearer.id, act.username, act.at
FROM unnest(%s::uuid[], %s::bytea[]) AS asked (channel_id, key)
CROSS JOIN LATERAL (
    SELECT message.id, message.record_id
    FROM threads_message AS message
    JOIN intake_hiddenrecord AS hidden ON hidden.record_id = message.record_id
    WHERE message.workspace_id = %s AND message.channel_id = asked.channel_id
        AND (message.id_key = asked.key OR message.call_key = asked.key)
    LIMIT 2
) AS bearer
CROSS JOIN LATERAL (
    SELECT person.username, withdrawal.at
    FROM intake_sighting AS sighting
    JOIN intake_withdrawal AS withdrawal
        ON withdrawal.delivery_id = sighting.delivery_id AND withdrawal.taken_back_at IS NULL
    JOIN accounts_user AS person ON person.id = withdrawal.by_id
    WHERE sighting.record_id = bearer.record_id
    ORDER BY withdrawal.at DESC
    LIMIT 1
) AS act
"""


def find_withdrawn(*, workspace_id: uuid.UUID, cited: Iterable[Cited | None]) -> dict[Cited, Withdrawn]:
    """Those of these ids that withdrawn messages bear; one statement, and none where nothing is cited.

    Args:
        workspace_id: whose they are.
        cited: ids that no message bears which is shown, as `find_cited` gives them.
    """
    asked = sorted({each for each in cited if each is not None})
    if not asked:
        return {}
    found: dict[Cited, Withdrawn] = {}
    with read_from().cursor() as cursor:
        cursor.execute(_FIND, [[each.channel_id for each in asked], [each.key for each in asked], workspace_id])
        for channel_id, key, message_id, by, at in cursor.fetchall():
            cited_id = Cited(channel_id, bytes(key))
            is_first = cited_id not in found
            found[cited_id] = Withdrawn(message_id if is_first else None, by, at)
    return found
