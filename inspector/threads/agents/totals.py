"""Totals: what the appearances and exchanges of a workspace come to, kept with each settling of a conversation.

A total is the sum of its rows and nothing else, whatever came first: what a conversation adds, less what it had added
before. A first or last time that a conversation takes back is looked up among the rows that are left.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection, models

from ..models import Conversation
from .tables import Appearance, Exchange

Row = tuple[Any, ...]
Key = tuple[Any, ...]

_ADD_AGENTS: Final = """
INSERT INTO threads_agenttotal AS held
       (workspace_id, channel_id, agent_id, dialect, sent, received, failures, conversations, first_at, last_at)
SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[],
                     %s::bigint[], %s::timestamptz[], %s::timestamptz[])
ON CONFLICT (agent_id, dialect) DO UPDATE
   SET sent = held.sent + excluded.sent, received = held.received + excluded.received,
       failures = held.failures + excluded.failures, conversations = held.conversations + excluded.conversations,
       first_at = LEAST(held.first_at, excluded.first_at), last_at = GREATEST(held.last_at, excluded.last_at)
"""
_LOOK_UP_AGENTS: Final = """
UPDATE threads_agenttotal AS held SET first_at = found.first_at, last_at = found.last_at
  FROM (SELECT asked.agent_id, asked.dialect, min(row.first_at) AS first_at, max(row.last_at) AS last_at
          FROM unnest(%s::uuid[], %s::uuid[], %s::text[]) AS asked (workspace_id, agent_id, dialect)
          LEFT JOIN threads_appearance AS row
            ON row.workspace_id = asked.workspace_id AND row.agent_id = asked.agent_id
           AND (asked.dialect = '' OR row.dialect = asked.dialect)
         GROUP BY asked.agent_id, asked.dialect) AS found
 WHERE held.agent_id = found.agent_id AND held.dialect = found.dialect
"""
_ADD_PAIRS: Final = """
INSERT INTO threads_pairtotal AS held
       (workspace_id, channel_id, sender_id, receiver_id, is_broadcast, dialect, messages, failures, first_at, last_at)
SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::uuid[], %s::boolean[], %s::text[], %s::bigint[],
                     %s::bigint[], %s::timestamptz[], %s::timestamptz[])
ON CONFLICT (workspace_id, sender_id, receiver_id, is_broadcast, dialect, channel_id) DO UPDATE
   SET messages = held.messages + excluded.messages, failures = held.failures + excluded.failures,
       first_at = LEAST(held.first_at, excluded.first_at), last_at = GREATEST(held.last_at, excluded.last_at)
"""
_LOOK_UP_PAIRS: Final = """
UPDATE threads_pairtotal AS held SET first_at = found.first_at, last_at = found.last_at
  FROM (SELECT asked.workspace_id, asked.channel_id, asked.sender_id, asked.receiver_id, asked.is_broadcast,
               asked.dialect, min(row.first_at) AS first_at, max(row.last_at) AS last_at
          FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::uuid[], %s::boolean[], %s::text[])
               AS asked (workspace_id, channel_id, sender_id, receiver_id, is_broadcast, dialect)
          LEFT JOIN threads_exchange AS row
            ON row.workspace_id = asked.workspace_id AND row.channel_id = asked.channel_id
           AND row.sender_id IS NOT DISTINCT FROM asked.sender_id
           AND row.receiver_id IS NOT DISTINCT FROM asked.receiver_id
           AND row.is_broadcast = asked.is_broadcast AND row.dialect = asked.dialect
         GROUP BY 1, 2, 3, 4, 5, 6) AS found
 WHERE held.workspace_id = found.workspace_id AND held.channel_id = found.channel_id
   AND held.sender_id IS NOT DISTINCT FROM found.sender_id AND held.receiver_id IS NOT DISTINCT FROM found.receiver_id
   AND held.is_broadcast = found.is_broadcast AND held.dialect = found.dialect
"""


@dataclass(slots=True)
class _Change:
    """What is added to a total, and the times that come and go; `counts` are those of its columns."""

    counts: list[int]
    first_at: datetime | None = None
    last_at: datetime | None = None
    first_gone: datetime | None = None
    last_gone: datetime | None = None

    def add(self, counts: Iterable[int], first_at: datetime, last_at: datetime) -> None:
        """A row that is there now."""
        self.counts = [held + count for held, count in zip(self.counts, counts, strict=True)]
        self.first_at = first_at if self.first_at is None else min(self.first_at, first_at)
        self.last_at = last_at if self.last_at is None else max(self.last_at, last_at)

    def take_away(self, counts: Iterable[int], first_at: datetime, last_at: datetime) -> None:
        """A row that is there no more."""
        self.counts = [held - count for held, count in zip(self.counts, counts, strict=True)]
        self.first_gone = first_at if self.first_gone is None else min(self.first_gone, first_at)
        self.last_gone = last_at if self.last_gone is None else max(self.last_gone, last_at)

    @property
    def must_look_up(self) -> bool:
        """Whether a time has gone that may have been the first or the last, with none in its stead."""
        if self.first_gone is None or self.last_gone is None:
            return False
        if self.first_at is None or self.last_at is None:
            return True
        return self.first_gone < self.first_at or self.last_gone > self.last_at


class Totals:
    """What several conversations change of the totals, gathered and then written in one order."""

    def __init__(self) -> None:
        self._agents: dict[Key, _Change] = defaultdict(lambda: _Change([0, 0, 0, 0]))
        self._pairs: dict[Key, _Change] = defaultdict(lambda: _Change([0, 0]))

    def take(
        self, model: type[models.Model], conversation: Conversation, *, before: Collection[Row], after: Collection[Row]
    ) -> None:
        """The rows of a table that a conversation had and has, as `exchanges` makes them."""
        whose = (conversation.workspace_id, conversation.channel_id)
        gone = [row for row in before if row not in after]
        new = [row for row in after if row not in before]
        if model is Exchange:
            for row in gone:
                self._pairs[*whose, *row[:4]].take_away(row[4:6], row[6], row[7])
            for row in new:
                self._pairs[*whose, *row[:4]].add(row[4:6], row[6], row[7])
        if model is not Appearance:
            return
        for agent, dialect, *counts, first_at, last_at in gone:
            self._agents[*whose, agent, dialect].take_away((*counts, 1), first_at, last_at)
            self._agents[*whose, agent, ""].take_away((*counts, 0), first_at, last_at)
        for agent, dialect, *counts, first_at, last_at in new:
            self._agents[*whose, agent, dialect].add((*counts, 1), first_at, last_at)
            self._agents[*whose, agent, ""].add((*counts, 0), first_at, last_at)
        named, was_named = {row[0] for row in after}, {row[0] for row in before}
        for agent in named ^ was_named:
            self._agents[*whose, agent, ""].counts[3] += 1 if agent in named else -1

    def write(self) -> None:
        """Bring the rows up to date, in one order so that nobody deadlocks; inside the transaction of the settling."""
        _write(self._agents, _ADD_AGENTS, _LOOK_UP_AGENTS, lambda key: (key[0], key[2], key[3]))
        _write(self._pairs, _ADD_PAIRS, _LOOK_UP_PAIRS, lambda key: key)


def _write(changes: Mapping[Key, _Change], add: str, look_up: str, name: Callable[[Key], Key]) -> None:
    if not changes:
        return
    ordered = sorted(changes.items(), key=lambda item: [_sortable(part) for part in item[0]])
    stale = [name(key) for key, change in ordered if change.must_look_up]
    with connection.cursor() as cursor:
        rows = [(*key, *change.counts, change.first_at, change.last_at) for key, change in ordered]
        cursor.execute(add, [list(column) for column in zip(*rows, strict=True)])
        if stale:
            cursor.execute(look_up, [list(column) for column in zip(*stale, strict=True)])


def _sortable(part: Any) -> str:
    return part.hex if isinstance(part, uuid.UUID) else str(part or "")
