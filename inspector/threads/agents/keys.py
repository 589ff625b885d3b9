"""Keys that agents show: which of them are others than the same agent showed in another conversation of the channel."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.models import Min

from dialects import all_dialects

from ..models import Conversation, Message
from ..models.agents import make_agent_id

# The dialects in which an agent shows keys.
KEYED: Final = frozenset(each.slug for each in all_dialects() if each.key_names)
# So many agents of a conversation are looked up.
_MAX_AGENTS: Final = 100

# A key is its sender's own where the decoder established it as that, and not where somebody passes it on.
_IS_OWN: Final = """strpos("message"."established", CASE "said"."name" WHEN 'pubkey' THEN '["public-key",'
    ELSE '["' || "said"."name" || '",' END) > 0"""
# The first key that each agent shows in a conversation, beside the one that it showed last in any other before: one
# look into the index of what an agent declared.
_CHANGED: Final = f"""
WITH "first" AS MATERIALIZED (
    SELECT DISTINCT ON ("said"."conversation_id", "said"."agent_id", "said"."name") "said".*, "message"."sender"
      FROM "threads_declaration" "said" JOIN "threads_message" "message" ON "message"."id" = "said"."message"
     WHERE "said"."conversation_id" = ANY(%(conversations)s) AND "said"."kind" = 'key' AND {_IS_OWN}
     ORDER BY "said"."conversation_id", "said"."agent_id", "said"."name", "said"."at", "said"."value"
)
SELECT "first"."conversation_id", "first"."message", "first"."dialect", "first"."sender", "first"."name",
       "first"."value", "before"."message", "before"."value", "before"."at", "conversation"."native_id"
  FROM "first" CROSS JOIN LATERAL (
    SELECT "said".* FROM "threads_declaration" "said"
      JOIN "threads_message" "message" ON "message"."id" = "said"."message"
     WHERE "said"."workspace_id" = "first"."workspace_id" AND "said"."agent_id" = "first"."agent_id"
       AND "said"."kind" = 'key' AND "said"."name" = "first"."name" AND "said"."at" <= "first"."at"
       AND "said"."conversation_id" <> "first"."conversation_id" AND {_IS_OWN}
       AND NOT EXISTS (SELECT FROM "intake_hiddenrecord" "hidden" WHERE "hidden"."record_id" = "message"."record_id")
     ORDER BY "said"."at" DESC, "said"."value" LIMIT 1
 ) "before" JOIN "threads_conversation" "conversation" ON "conversation"."id" = "before"."conversation_id"
 WHERE "before"."value" <> "first"."value"
 ORDER BY "first"."at", "first"."message", "first"."name"
"""  # noqa: S608
_NEXT: Final = """
SELECT DISTINCT "next"."conversation_id"
  FROM unnest(%(agents)s::uuid[], %(times)s::timestamptz[]) "asked" ("agent", "at")
 CROSS JOIN LATERAL (
    SELECT "said"."conversation_id" FROM "threads_declaration" "said"
     WHERE "said"."workspace_id" = %(workspace)s AND "said"."agent_id" = "asked"."agent" AND "said"."kind" = 'key'
       AND "said"."at" >= "asked"."at" AND "said"."conversation_id" <> ALL(%(conversations)s)
     ORDER BY "said"."at" LIMIT 1
 ) "next"
"""


class ChangedKey(NamedTuple):
    """A message that shows a key of its sender under a name, and the message of another conversation, of that native
    id, that showed another one before."""

    conversation: uuid.UUID
    message: uuid.UUID
    dialect: str
    sender: str
    name: str
    value: str
    other: uuid.UUID
    other_value: str
    other_at: datetime
    other_conversation: str


def find_changed_keys(conversation_ids: Collection[uuid.UUID]) -> list[ChangedKey]:
    """The keys of these conversations that are others than their agents showed before in another one of the channel,
    in the order of time; one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_CHANGED, {"conversations": list(conversation_ids)})
        return [ChangedKey._make(row) for row in cursor.fetchall()]


def find_next_shown(conversations: Sequence[Conversation]) -> list[uuid.UUID]:
    """The conversations, of one workspace as these are, in which agents of these showed a key next."""
    named = [
        (each, name, each.first_at)
        for each in conversations
        if not KEYED.isdisjoint(each.dialects)
        for name in each.agents[:_MAX_AGENTS]
    ]
    # Of one that was withdrawn as a whole its row says nothing any more.
    if empty := {each.pk: each for each in conversations if each.first_at is None}:
        rows = Message.objects.filter(conversation__in=list(empty), dialect__in=KEYED).values_list(
            "conversation", "sender"
        )
        named += [(empty[pk], name, at) for pk, name, at in rows.annotate(at=Min("order_time"))[:_MAX_AGENTS]]
    asked = [(make_agent_id(each.workspace_id, each.channel_id, name), at) for each, name, at in named]
    if not asked:
        return []
    given: dict[str, Any] = {"agents": [agent for agent, _ in asked], "times": [at for _, at in asked]}
    given |= {"workspace": conversations[0].workspace_id, "conversations": [each.pk for each in conversations]}
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, given)
        return [pk for (pk,) in cursor.fetchall()]
