"""Keys that agents show: which of them are others than the same agent showed in another conversation of the channel."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import connection

from dialects import all_dialects
from inspector.lookups import HasAnyBit
from inspector.threads.messages import count_hidden_in
from inspector.threads.models import Conversation, Message
from inspector.threads.models.agents import make_agent_id
from inspector.threads.rendering.rule_flags import FLAGGED, OF_KEYS, RuleFlag

# The dialects in which an agent shows keys.
KEYED: Final = frozenset(each.slug for each in all_dialects() if each.key_names)
# Of so many messages of a conversation that show keys the newest are looked at.
_MAX_SHOWN: Final = 2000

# A key is its sender's own where the decoder established it as that, which stands with the first part of the record,
# and not where somebody passes it on.
_KINDS: Final = " ".join(f"WHEN '{name}' THEN '[\"{kind}\",'" for name, kind in OF_KEYS.items())
_SAID: Final = """"threads_declaration" "said" JOIN "threads_message" "message" ON "message"."id" = "said"."message"
      JOIN "intake_record" "record" ON "record"."id" = "message"."record_id"
      JOIN "threads_message" "opening" ON "opening"."record_id" = "record"."id" AND "opening"."part" = 1"""
# Of several messages that show one key at one time the first by what it holds is named, however they came.
_FIRST: Final = '"said"."value", "record"."identity", "message"."part"'
_IS_OWN: Final = f"""strpos("opening"."established", CASE "said"."name" {_KINDS} ELSE '?' END) > 0
       AND NOT EXISTS (SELECT FROM "intake_hiddenrecord" "hidden" WHERE "hidden"."record_id" = "message"."record_id")"""
# The first key that each agent shows in a conversation, beside the one that it showed last in any other before: one
# look into the index of what an agent declared. Of two keys shown at one time either is another one than the other.
_CHANGED: Final = f"""
WITH "first" AS MATERIALIZED (
    SELECT DISTINCT ON ("said"."conversation_id", "said"."agent_id", "said"."name") "said".*, "message"."sender",
           "message"."part", "record"."identity"
      FROM {_SAID}
     WHERE "said"."conversation_id" = ANY(%(conversations)s) AND "said"."kind" = 'key' AND {_IS_OWN}
     ORDER BY "said"."conversation_id", "said"."agent_id", "said"."name", "said"."at", {_FIRST}
)
SELECT "first"."conversation_id", "first"."message", "first"."dialect", "first"."sender", "first"."name",
       "first"."value", "before"."message", "before"."record_id", "before"."value", "before"."at",
       "conversation"."native_id"
  FROM "first" CROSS JOIN LATERAL (
    SELECT "said".*, "message"."record_id" FROM {_SAID}
     WHERE "said"."workspace_id" = "first"."workspace_id" AND "said"."agent_id" = "first"."agent_id"
       AND "said"."kind" = 'key' AND "said"."name" = "first"."name" AND "said"."at" <= "first"."at"
       AND ("said"."at" < "first"."at" OR "said"."value" <> "first"."value")
       AND "said"."conversation_id" <> "first"."conversation_id" AND {_IS_OWN}
     ORDER BY "said"."at" DESC, {_FIRST} LIMIT 1
 ) "before" JOIN "threads_conversation" "conversation" ON "conversation"."id" = "before"."conversation_id"
 WHERE "before"."value" <> "first"."value"
 ORDER BY "first"."at", "first"."identity", "first"."part", "first"."name"
"""  # noqa: S608
_NEXT: Final = f"""
SELECT DISTINCT "next"."conversation_id"
  FROM unnest(%(agents)s::uuid[], %(times)s::timestamptz[]) "asked" ("agent", "at")
 CROSS JOIN unnest(%(names)s::text[]) "shown" ("name")
 CROSS JOIN LATERAL (
    SELECT "said"."conversation_id" FROM {_SAID}
     WHERE "said"."workspace_id" = %(workspace)s AND "said"."agent_id" = "asked"."agent" AND "said"."kind" = 'key'
       AND "said"."name" = "shown"."name" AND "said"."at" > "asked"."at"
       AND "said"."conversation_id" <> ALL(%(conversations)s) AND {_IS_OWN}
     ORDER BY "said"."at" FETCH FIRST 1 ROW WITH TIES
 ) "next"
"""  # noqa: S608


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
    other_record: uuid.UUID
    other_value: str
    other_at: datetime
    other_conversation: str


def find_changed_keys(conversation_ids: Collection[uuid.UUID]) -> list[ChangedKey]:
    """The keys of these conversations that are others than their agents showed before, or at the same time, in another
    one of the channel, in the order of time; one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_CHANGED, {"conversations": list(conversation_ids)})
        return [ChangedKey._make(row) for row in cursor.fetchall()]


def find_next_shown(conversations: Sequence[Conversation]) -> list[uuid.UUID]:
    """The conversations in which agents showed a key next, at the time of each that they showed in these and after it,
    of one workspace; what was withdrawn counts as well, for those are compared with others then. Two statements;
    none where no dialect of keys is spoken and nothing is hidden."""
    heads = {each.pk: each for each in conversations if KEYED & {*each.dialects} or count_hidden_in(conversation=each)}
    if not heads:
        return []
    rows = Message.objects.filter(FLAGGED, HasAnyBit("sights", RuleFlag.AGREEING.value), dialect__in=KEYED)
    shown = rows.filter(conversation__in=list(heads)).exclude(sender="").order_by("-order_time")
    asked = {
        (make_agent_id(heads[pk].workspace_id, heads[pk].channel_id, sender), at - before)
        for pk, sender, at in shown.values_list("conversation", "sender", "order_time")[:_MAX_SHOWN]
        for before in (timedelta(), timedelta.resolution)
    }
    if not asked:
        return []
    given: dict[str, Any] = {"agents": [agent for agent, _ in asked], "times": [at for _, at in asked]}
    given |= {"workspace": conversations[0].workspace_id, "conversations": list(heads), "names": list(OF_KEYS)}
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, given)
        return [pk for (pk,) in cursor.fetchall()]
