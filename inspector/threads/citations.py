"""Citations: ids that messages name as what they answer, who bears them elsewhere, and what several messages show."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.models import F, Q, QuerySet

from inspector.database import IsAny

from .models import Message
from .terms import CLOCK_SKEW, RuleFlag


class Citation(NamedTuple):
    """An id that is cited, as its key, and the trace of the message that cites it ("" where it has none)."""

    key: bytes
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What bears a cited id in other conversations: the one message that can be meant, which `content` stands for
    whatever its id is, else only how many do. `count` is not exact above `MAX_BEARERS`."""

    id: uuid.UUID | None
    content: bytes = b""
    count: int = 1


# Of more it is only said that there are more.
MAX_BEARERS: Final = 10
# What a reason holds where several bear the id, in whatever else it says, for conditions of SQL.
SEVERAL: Final = "messages bear that id"
HERE: Final = "in this conversation "
# What a reason holds where its number, or its turn, was its sender's before, for other content.
REUSED: Final = "was used before by its sender, with other content"
_SAID: Final = re.compile(rf"; ({HERE})?(more than )?([0-9]+) {SEVERAL}")


def say_several(why: str, count: int, *, is_here: bool = False) -> str:
    """The reason of a link whose id so many messages bear, here or elsewhere; not exact above `MAX_BEARERS`."""
    return f"{why}; {HERE if is_here else ''}{write_bearers(count)} {SEVERAL}"


def are_here(why: str) -> bool:
    """Whether those that a reason counts are messages of the conversation itself."""
    said = _SAID.search(why)
    return bool(said and said[1])


def count_bearers(why: str) -> int:
    """How many messages bear an id that stands for none, as a reason says it: one above `MAX_BEARERS` for more."""
    said = _SAID.search(why)
    return int(said[3]) + bool(said[2]) if said else 0


def find_reuse(why: str) -> str:
    """What a reason says of a number or turn that was used before; empty where it does not."""
    return next((said for said in why.split("; ") if said.endswith(REUSED)), "") if REUSED in why else ""


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
    WHERE message.workspace_id = %s AND message.channel_id = %s
        AND (message.id_key = asked.key OR message.call_key = asked.key)
        AND (asked.trace = '' OR message.trace_id = asked.trace)
        AND NOT EXISTS (SELECT FROM intake_hiddenrecord AS hidden WHERE hidden.record_id = message.record_id)
    LIMIT %s
) AS bearer
"""


def find_bearers(
    workspace_id: uuid.UUID, channel_id: uuid.UUID, citations: Iterable[Citation]
) -> Mapping[Citation, Elsewhere]:
    """Who bears each cited id in the channel, among the messages of the citing one's trace, else among all; without
    those that nobody bears. What comes meanwhile is missed unless the channel is held (`hold_channels`)."""
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


# By what wire says that a message answers another.
_SAID_ELSEWHERE: Final = ("explicit", "correlation")

# Of those that bear one id all but the first to be written are found: the others are looked up by them. Hidden ones
# count, for they may be shown again. Each is looked up by itself, by index, whatever estimates say (LATERAL and LIMIT).
_ADD: Final = """
WITH "written" AS MATERIALIZED (
    SELECT "message".* FROM unnest(%(messages)s::uuid[]) AS "asked" ("id") CROSS JOIN LATERAL (
        SELECT "id", "workspace_id", "channel_id", "conversation_id", "record_id", "id_key", "sender", "parent",
               "parent_basis", "parent_why", "order_time"
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
    UNION ALL
    SELECT "id", %(reused)s FROM "written" WHERE strpos("parent_why", %(reuse)s) > 0
), "sum" AS (
    SELECT "id", bit_or("sight")::smallint AS "sights" FROM "found" GROUP BY "id"
)
UPDATE "threads_message" "message" SET "sights" = "message"."sights" | "sum"."sights"
  FROM "sum" WHERE "message"."id" = "sum"."id" AND "message"."sights" & "sum"."sights" <> "sum"."sights"
"""


def look_across(*, messages: Sequence[uuid.UUID]) -> None:
    """Add to the flags of these messages what it takes others to see; call it where their conversations are held."""
    given: dict[str, Any] = {"messages": list(messages), "said": list(_SAID_ELSEWHERE), "skew": CLOCK_SKEW}
    given |= {"double": RuleFlag.DOUBLE.value, "early": RuleFlag.EARLY.value, "strange": RuleFlag.STRANGE.value}
    given |= {"reused": RuleFlag.REUSED.value, "reuse": REUSED}
    with connection.cursor() as cursor:
        cursor.execute(_ADD, given)


def suspect_answers(*, moved: QuerySet[Message], among: Collection[uuid.UUID]) -> None:
    """Have the answers to messages looked at that are about to be moved, as they may be earlier than these by then,
    among the conversations that are held."""
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
