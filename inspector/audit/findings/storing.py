"""Storing what examining found: a finding is the same one each time; the gravest open one stands on the conversation.
And which of those that are a matter of time are due, and so count already: decided here, once, for whoever asks.

Only rows that came out otherwise are written.

Such a finding counts from its moment on. That moment is compared with the latest resolved record of its channel, and
never with a later time than now: a log of last year stands as it stood at its end, whatever order it came in. A channel
whose latest record was posted within an hour of its own time is listened to: there silence says something, and the
moment is compared with now. What was decided is noted on the finding, and pages, queues, alerts, search, reports and
the API read what is noted. It is noted when a conversation is examined, and by the sweep for what becomes due because
its channel went on elsewhere, or fell silent.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from django.db import connection
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.database import IsAny, insert_rows, update_rows
from inspector.threads.models import Conversation
from inspector.tokens import hide_tokens

from ..alerts import announce
from ..models.findings import Examination, Finding

# What counts: what is no matter of time, and what was noted to be due.
DUE: Final = Q(due_at__isnull=True) | Q(due_since__isnull=False)
# What is shown and counted of it: what still holds, and nobody has suppressed.
COUNTS: Final = DUE & Q(holds=True, is_suppressed=False)
# What waits for a decision now: what is snoozed comes back by itself when its time is over.
AWAKE: Final = Q(snoozed_until__isnull=True) | Q(snoozed_until__lte=Now())
WAITING: Final = Q(state="open") & AWAKE

# The channels that have something to note, each with its moment. A moment of its own is looked up for no other.
_MOMENTS: Final = """
WITH "latest" AS MATERIALIZED (
    SELECT "channel"."id", "channel"."workspace_id", (
        SELECT "conversation"."last_at" FROM "threads_conversation" "conversation"
        WHERE "conversation"."workspace_id" = "channel"."workspace_id"
          AND "conversation"."channel_id" = "channel"."id" AND "conversation"."last_at" IS NOT NULL
        ORDER BY "conversation"."last_at" DESC, "conversation"."id" DESC LIMIT 1
    ) AS "at" FROM "accounts_channel" "channel" WHERE {channels}
), "moment" AS MATERIALIZED (
    SELECT "id", "workspace_id", CASE WHEN EXISTS (
        SELECT FROM "threads_message" "message" JOIN "intake_record" "record" ON "record"."id" = "message"."record_id"
        WHERE "message"."workspace_id" = "latest"."workspace_id" AND "message"."order_time" = "latest"."at"
          AND "message"."channel_id" = "latest"."id" AND NOT "record"."is_from_file"
          AND "record"."created_at" - "record"."order_time" < interval '1 hour'
    ) THEN now() ELSE LEAST(now(), "at") END AS "at" FROM "latest" WHERE "at" IS NOT NULL
)
"""
_IS_WAITING: Final = '"finding"."holds" AND "finding"."due_since" IS NULL AND "finding"."due_at" < "moment"."at"'
_IS_EARLY: Final = '"finding"."holds" AND "finding"."due_since" IS NOT NULL AND "finding"."due_at" >= "moment"."at"'
_OF_CHANNEL: Final = '"finding"."workspace_id" = "moment"."workspace_id" AND "finding"."channel_id" = "moment"."id"'
# Most channels have nothing that could be due by now: they are passed over with one look into an index.
_COULD_CHANGE: Final = """(
    EXISTS (SELECT 1 FROM "audit_finding" "waiting"
            WHERE "waiting"."workspace_id" = "channel"."workspace_id" AND "waiting"."channel_id" = "channel"."id"
              AND "waiting"."holds" AND "waiting"."due_since" IS NULL AND "waiting"."due_at" < now())
 OR EXISTS (SELECT 1 FROM "audit_finding" "noted"
            WHERE "noted"."workspace_id" = "channel"."workspace_id" AND "noted"."channel_id" = "channel"."id"
              AND "noted"."holds" AND "noted"."due_since" IS NOT NULL AND "noted"."due_at" IS NOT NULL)
)"""
_FIND_CHANGED: Final = f"""{_MOMENTS.format(channels=_COULD_CHANGE)}
SELECT "changed"."workspace_id", "changed"."conversation_id" FROM "moment" CROSS JOIN LATERAL (
    (SELECT "finding"."workspace_id", "finding"."conversation_id" FROM "audit_finding" "finding"
      WHERE {_OF_CHANNEL} AND {_IS_WAITING} ORDER BY "finding"."due_at" LIMIT %(most)s)
    UNION ALL
    (SELECT "finding"."workspace_id", "finding"."conversation_id" FROM "audit_finding" "finding"
      WHERE {_OF_CHANNEL} AND {_IS_EARLY} ORDER BY "finding"."due_at" DESC LIMIT %(most)s)
) "changed" LIMIT %(most)s
"""  # noqa: S608
_HAS_WAITING: Final = f"""{_MOMENTS.format(channels='"channel"."id" = %(channel)s')}
SELECT EXISTS (SELECT 1 FROM "moment" JOIN "audit_finding" "finding" ON {_OF_CHANNEL} WHERE {_IS_WAITING})
"""  # noqa: S608
_OF_CONVERSATIONS: Final = _MOMENTS.format(
    channels='"channel"."id" IN (SELECT "channel_id" FROM "threads_conversation" WHERE "id" = ANY(%(conversations)s))'
)

_FIND_MOMENTS: Final = f"""{_OF_CONVERSATIONS} SELECT "id", "at" FROM "moment" """  # noqa: S608

# Whoever judges findings locks them in the order of their ids as well.
_NOTE: Final = f"""{_OF_CONVERSATIONS}
UPDATE "audit_finding" SET "due_since" = statement_timestamp() WHERE "id" IN (
    SELECT "finding"."id" FROM "audit_finding" "finding" JOIN "moment" ON {_OF_CHANNEL}
    WHERE "finding"."conversation_id" = ANY(%(conversations)s)
      AND ({_IS_WAITING} OR "finding"."id" = ANY(%(decided)s))
    ORDER BY "finding"."id" FOR NO KEY UPDATE OF "finding"
) RETURNING "id", "workspace_id", "rule", "severity", "is_suppressed"
"""  # noqa: S608
_TAKE_BACK: Final = f"""{_OF_CONVERSATIONS}
UPDATE "audit_finding" SET "due_since" = NULL WHERE "id" IN (
    SELECT "finding"."id" FROM "audit_finding" "finding" JOIN "moment" ON {_OF_CHANNEL}
    WHERE "finding"."conversation_id" = ANY(%(conversations)s) AND {_IS_EARLY}
    ORDER BY "finding"."id" FOR NO KEY UPDATE OF "finding"
)
"""  # noqa: S608
_NOTED: Final = ("id", "workspace_id", "rule", "severity", "is_suppressed")


def find_changed(*, most: int) -> Sequence[tuple[uuid.UUID, uuid.UUID]]:
    """(workspace, conversation) of findings that have become due, or are due no longer, and are not noted so."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND_CHANGED, {"most": most})
        return list(dict.fromkeys(cursor.fetchall()))


def is_noted(*, channel_id: uuid.UUID) -> bool:
    """Whether every finding of a channel that has become due is noted as such, and so is counted."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_WAITING, {"channel": channel_id})
        (has_waiting,) = cursor.fetchone()
    return not has_waiting


def find_moments(*, conversations: Collection[uuid.UUID]) -> dict[uuid.UUID, datetime]:
    """The moment that findings are compared with, by channel, of the channels of these conversations."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND_MOMENTS, {"conversations": sorted(conversations)})
        return dict(cursor.fetchall())


def note_due(*, conversations: Collection[uuid.UUID], decided: Collection[uuid.UUID] = ()) -> None:
    """Note which findings of these conversations are due, and announce those that have just become so.

    Call it in a transaction that holds the conversations, which are of one workspace.

    Args:
        conversations: their ids.
        decided: findings of theirs that waited for their moment and are a matter of time no longer.
    """
    given: dict[str, Any] = {"conversations": sorted(conversations), "decided": sorted(decided)}
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_BACK, given)
        cursor.execute(_NOTE, given)
        noted = [dict(zip(_NOTED, row, strict=True)) for row in cursor.fetchall()]
    announce(noted)


def grade_conversations(conversations: Collection[uuid.UUID]) -> None:
    """Note how grave the gravest finding that stands open is in each of these conversations.

    Call it after whatever changes how their findings stand, in the transaction that holds them.

    Args:
        conversations: their ids.
    """
    stand = Finding.objects.filter(COUNTS, conversation=OuterRef("pk"), state=Finding.State.OPEN)
    gravest = Coalesce(Subquery(stand.order_by("-severity").values("severity")[:1]), 0)
    rows = Conversation.objects.filter(IsAny("id", conversations)).annotate(gravest=gravest)
    rows.exclude(open_severity=F("gravest")).update(open_severity=F("gravest"))


_COLUMNS: Final = (
    *("id", "workspace_id", "channel_id", "conversation_id", "record_id", "part", "rule", "key", "severity", "text"),
    *("cites", "span", "related", "sender", "at", "due_at", "is_suppressed", "state", "holds", "found_at"),
    *("version", "due_since"),
)
_SAID: Final = (
    *("record_id", "part", "severity", "text", "cites", "span", "related", "sender", "at", "due_at", "is_suppressed"),
)
_CHANGING: Final = (*_SAID, "holds", "ended_at", "version", "snoozed_until")
_DUE_AT: Final = _SAID.index("due_at")


@dataclass(frozen=True, slots=True)
class Found:
    """A finding as it is to be stored; the names are those of its columns."""

    conversation: Conversation
    key: bytes
    rule: str
    severity: int
    text: str
    cites: str
    span: str
    related: str
    record_id: uuid.UUID
    part: int
    sender: str
    at: datetime
    due_at: datetime | None
    is_suppressed: bool


def write_findings(
    found: Sequence[Found],
    *,
    conversations: Sequence[Conversation],
    version: str,
    told_otherwise: Mapping[uuid.UUID, str] = MappingProxyType({}),
) -> None:
    """Keep what was found in these conversations; call it in a transaction that holds them.

    Args:
        found: all that the rules find in them now.
        conversations: of one workspace.
        version: by which decoders and rules.
        told_otherwise: those of the conversations that other decoders told, and by which: they do not count as examined
            by this version, so that they are told and examined anew.
    """
    now = timezone.now()
    ids = [each.pk for each in conversations]
    stored = Finding.objects.filter(IsAny("conversation_id", ids))
    columns = ("conversation_id", "key", "id", *_SAID, "holds", "due_since", "snoozed_until")
    known = {(row[0], bytes(row[1])): row[2:] for row in stored.values_list(*columns)}
    new, changed = [], []
    # What is due may have changed; and what waited for its moment, and waits no longer.
    moved, decided = set(), set()
    for each in {(one.conversation.pk, one.key): one for one in found}.values():
        row = known.pop((each.conversation.pk, each.key), None)
        if row is None:
            new.append(each)
        else:
            pk, *said, holds, due_since, snoozed_until = row
            values = _values_of(each)
            if (*said, holds) == (*values, True):
                continue
            # News of a finding ends its snooze. One that comes back as it was is no news: what did not hold for a while
            # kept what it said, but for tokens.
            is_news = [*said] != [*values] if holds else [*map(_hide, said)] != [*map(_hide, values)]
            changed.append((pk, *values, True, None, version, None if is_news else snoozed_until))
            if each.due_at is None and said[_DUE_AT] is not None and due_since is None:
                decided.add(pk)
            moved.add(each.conversation.pk)
    # What held and no longer does keeps what it said, but for tokens.
    changed += [
        (*map(_hide, said), False, now, version, snoozed_until)
        for *said, holds, _, snoozed_until in known.values()
        if holds
    ]
    if new:
        # What is due already is written once, as such.
        timed = {each.conversation.pk for each in new if each.due_at is not None}
        moments = find_moments(conversations=timed) if timed else {}
        fresh = [_make_row(each, now, version, moments.get(each.conversation.channel_id)) for each in new]
        insert_rows(model=Finding, columns=_COLUMNS, rows=fresh, order_by=("conversation_id", "key"))
        rows = [dict(zip(_COLUMNS, row, strict=True)) for row in fresh]
        announce([row for row in rows if row["due_at"] is None or row["due_since"] is not None])
    if changed:
        update_rows(model=Finding, columns=("id", *_CHANGING), rows=changed)
    if moved:
        note_due(conversations=moved, decided=decided)
    # Also of those in which nothing changed: how a rule is graded may have.
    grade_conversations(ids)
    Examination.objects.bulk_create(
        [
            Examination(
                conversation=each,
                workspace_id=each.workspace_id,
                settled_digest=each.settled_digest,
                version=told_otherwise.get(each.pk, version),
                at=now,
            )
            for each in conversations
        ],
        update_conflicts=True,
        unique_fields=["conversation"],
        update_fields=["settled_digest", "version", "at"],
    )


def _hide(value: Any) -> Any:
    return hide_tokens(value) if isinstance(value, str) else value


def _make_row(each: Found, now: datetime, version: str, moment: datetime | None) -> tuple[Any, ...]:
    is_due = each.due_at is not None and moment is not None and each.due_at < moment
    return (
        make_id(),
        each.conversation.workspace_id,
        each.conversation.channel_id,
        each.conversation.pk,
        *(each.record_id, each.part, each.rule, each.key, each.severity, each.text, each.cites, each.span),
        *(each.related, each.sender, each.at, each.due_at, each.is_suppressed),
        *(Finding.State.OPEN.value, True, now, version, now if is_due else None),
    )


def _values_of(each: Found) -> tuple[Any, ...]:
    """What a finding says, in the columns of `_SAID`."""
    return tuple(getattr(each, name) for name in _SAID)
