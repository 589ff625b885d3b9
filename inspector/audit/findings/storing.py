"""Storing what examining found: a finding is the same one each time; the gravest open one stands on the conversation.

Only rows that came out otherwise are written.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.intake.bulk import insert_rows, update_rows
from inspector.lookups import IsAny
from inspector.threads.models import Conversation
from inspector.tokens import hide_tokens

from ..alerts import announce
from ..models.findings import Examination, Finding
from .due import COUNTS, note_due


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
    *("cites", "span", "related", "sender", "at", "due_at", "is_suppressed", "state", "holds", "found_at", "version"),
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
    known = {(row[0], bytes(row[1])): row[2:] for row in _load_known(ids)}
    fresh, changed = [], []
    # What is due may have changed; and what waited for its moment, and waits no longer.
    moved, decided = set(), set()
    for each in {(one.conversation.pk, one.key): one for one in found}.values():
        row = known.pop((each.conversation.pk, each.key), None)
        if row is None:
            fresh.append(_make_row(each, now, version))
        else:
            pk, *said, holds, due_since = row
            if (*said, holds) == (*_values_of(each), True):
                continue
            # News of a finding ends its snooze.
            changed.append((pk, *_values_of(each), True, None, version, None))
            if each.due_at is None and said[_DUE_AT] is not None and due_since is None:
                decided.add(pk)
        if each.due_at is not None or row is not None:
            moved.add(each.conversation.pk)
    # What held and no longer does keeps what it said, but for tokens.
    changed += [(*map(_hide, row[:-2]), False, now, version, None) for row in known.values() if row[-2]]
    if fresh:
        insert_rows(model=Finding, columns=_COLUMNS, rows=fresh, order_by=("conversation_id", "key"))
        rows = [dict(zip(_COLUMNS, row, strict=True)) for row in fresh]
        announce([row for row in rows if row["due_at"] is None])
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


def _make_row(each: Found, now: datetime, version: str) -> tuple[Any, ...]:
    return (
        make_id(),
        each.conversation.workspace_id,
        each.conversation.channel_id,
        each.conversation.pk,
        *(each.record_id, each.part, each.rule, each.key, each.severity, each.text, each.cites, each.span),
        *(each.related, each.sender, each.at, each.due_at, each.is_suppressed),
        *(Finding.State.OPEN.value, True, now, version),
    )


def _values_of(each: Found) -> tuple[Any, ...]:
    """What a finding says, in the columns of `_SAID`."""
    return tuple(getattr(each, name) for name in _SAID)


def _load_known(conversation_ids: Sequence[uuid.UUID]) -> QuerySet[Finding, tuple[Any, ...]]:
    """(conversation, key, id, what it says, whether it holds, since when it is due) of each finding that is there."""
    rows = Finding.objects.filter(IsAny("conversation_id", conversation_ids))
    return rows.values_list("conversation_id", "key", "id", *_SAID, "holds", "due_since")
