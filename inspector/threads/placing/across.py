"""Across: what messages show that it takes others to see, added to their rule flags when they are placed.

One that bears the id of another record, one that answers what is later than itself, and one that came by a key whose
agents have other names. Each is looked up for the messages that are written, by index, so that a conversation costs
what comes to it and not what it holds.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from typing import Any, Final

from django.db import connection
from django.db.models import F, Q, QuerySet

from inspector.lookups import IsAny

from ..models import Message
from ..rendering.rule_flags import CLOCK_SKEW, RuleFlag

# By what wire says that a message answers another.
_SAID: Final = ("explicit", "correlation")

# Of those that bear one id all but the first to be written are found: the others are looked up by them. Hidden ones
# count, for they may be shown again. Each is looked up by itself, by index, whatever estimates say (LATERAL and LIMIT).
_ADD: Final = """
WITH "written" AS MATERIALIZED (
    SELECT "message".* FROM unnest(%(messages)s::uuid[]) AS "asked" ("id") CROSS JOIN LATERAL (
        SELECT "id", "workspace_id", "channel_id", "conversation_id", "record_id", "id_key", "sender", "parent",
               "parent_basis", "order_time"
          FROM "threads_message" "message" WHERE "message"."id" = "asked"."id" LIMIT 1
    ) "message"
), "name" AS MATERIALIZED (
    SELECT DISTINCT ON ("conversation_id", "id_key") * FROM "written" WHERE "id_key" IS NOT NULL
), "shared" AS MATERIALIZED (
    SELECT "name"."conversation_id", "name"."id_key" FROM "name" CROSS JOIN LATERAL (
        SELECT FROM "threads_message" "bearer"
         WHERE "bearer"."workspace_id" = "name"."workspace_id" AND "bearer"."channel_id" = "name"."channel_id"
           AND "bearer"."id_key" = "name"."id_key" AND "bearer"."conversation_id" = "name"."conversation_id"
           AND "bearer"."record_id" <> "name"."record_id" LIMIT 1
    ) "other"
), "found" AS (
    SELECT "written"."id", %(double)s AS "sight" FROM "written" JOIN "shared" USING ("conversation_id", "id_key")
    UNION ALL
    SELECT "written"."id", %(early)s FROM "written" CROSS JOIN LATERAL (
        SELECT "order_time" FROM "threads_message" "message" WHERE "message"."id" = "written"."parent" LIMIT 1
    ) "parent"
     WHERE "written"."parent_basis" = ANY(%(said)s) AND "parent"."order_time" > "written"."order_time" + %(skew)s
    UNION ALL
    SELECT "written"."id", %(strange)s FROM "written" CROSS JOIN LATERAL (
        SELECT FROM "intake_sighting" "sighting"
          JOIN "intake_delivery" "delivery" ON "delivery"."id" = "sighting"."delivery_id"
          JOIN "accounts_apikey" "key" ON "key"."id" = "delivery"."sent_by_key_id"
         WHERE "sighting"."record_id" = "written"."record_id" AND "sighting"."outcome" = 'stored'
           AND "key"."agents" <> '{}' AND "written"."sender" <> ALL("key"."agents") LIMIT 1
    ) "strange" WHERE "written"."sender" <> '' AND EXISTS (SELECT FROM "accounts_apikey" WHERE "agents" <> '{}')
), "sum" AS (
    SELECT "id", bit_or("sight")::smallint AS "sights" FROM "found" GROUP BY "id"
)
UPDATE "threads_message" "message" SET "sights" = "message"."sights" | "sum"."sights"
  FROM "sum" WHERE "message"."id" = "sum"."id" AND "message"."sights" & "sum"."sights" <> "sum"."sights"
"""


def look_across(*, messages: Sequence[uuid.UUID]) -> None:
    """Add to the flags of these messages what it takes others to see; call it where their conversations are held."""
    given: dict[str, Any] = {
        "messages": list(messages),
        "double": RuleFlag.DOUBLE.value,
        "early": RuleFlag.EARLY.value,
        "strange": RuleFlag.STRANGE.value,
        "said": list(_SAID),
        "skew": CLOCK_SKEW,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ADD, given)


def suspect_answers(*, moved: QuerySet[Message], among: Collection[uuid.UUID]) -> None:
    """Have the answers to messages looked at that are about to be moved: they may be earlier than these by then.

    Args:
        moved: the messages, as they still stand.
        among: the conversations that are held, theirs among them.
    """
    rows = list(moved.values_list("id", "conversation_id", "workspace_id", "channel_id", "id_key"))
    beside = Q(conversation_id__in={row[1] for row in rows})
    elsewhere = Q(
        workspace_id__in={row[2] for row in rows},
        channel_id__in={row[3] for row in rows},
        parent_key__in=[key for *_, key in rows if key],
    )
    answers = Message.objects.filter(beside | elsewhere, parent__in=[row[0] for row in rows])
    answers = answers.filter(IsAny("conversation_id", among))
    answers.update(sights=F("sights").bitor(RuleFlag.EARLY.value))
