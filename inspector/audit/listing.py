"""Reads of findings: the lists, the counts, and when one is due.

A finding that is a matter of time holds from its moment on. That moment is compared with the latest record of its
channel, and never with a later time than now: a log of last year stands as it stood at its end.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, Q, QuerySet

from inspector.accounts.models import Workspace
from inspector.threads.measures import find_moments
from inspector.threads.models import Conversation, Message

from .findings import Finding
from .rules import RULES, Rule

Key = tuple[datetime, uuid.UUID]


@dataclass(frozen=True, slots=True)
class RuleCount:
    """What a rule has found that holds: how much stands in each state, how grave, and when last."""

    rule: Rule
    severity: int
    states: Mapping[str, int]
    latest: datetime

    @property
    def open(self) -> int:
        """How many nobody has judged."""
        return self.states.get(Finding.State.OPEN, 0)

    @property
    def total(self) -> int:
        """How many there are, whatever people made of them."""
        return sum(self.states.values())


def list_holding(*, workspace: Workspace, with_suppressed: bool = False) -> QuerySet[Finding]:
    """The findings of a workspace that hold, those that are a matter of time as of their channel's latest record."""
    rows = Finding.objects.filter(workspace=workspace, holds=True).filter(_is_due(find_moments(workspace=workspace)))
    return rows if with_suppressed else rows.filter(is_suppressed=False)


def _is_due(moments: Mapping[uuid.UUID, datetime]) -> Q:
    due = Q(due_at__isnull=True)
    for channel_id, moment in moments.items():
        due |= Q(channel=channel_id, due_at__lte=moment)
    return due


def count_by_rule(*, workspace: Workspace) -> list[RuleCount]:
    """The rules that have found something that holds, the gravest and busiest first."""
    rows = (
        list_holding(workspace=workspace)
        .values("rule", "state")
        .annotate(count=Count("pk"), severity=Max("severity"), latest=Max("at"))
        .order_by()
    )
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["rule"] in RULES:
            each = found.setdefault(row["rule"], {"states": {}, "severity": 0, "latest": row["latest"]})
            each["states"][row["state"]] = row["count"]
            each["severity"] = max(each["severity"], row["severity"])
            each["latest"] = max(each["latest"], row["latest"])
    counts = [RuleCount(RULES[code], each["severity"], each["states"], each["latest"]) for code, each in found.items()]
    return sorted(counts, key=lambda count: (count.open == 0, -count.severity, -count.open, count.rule.code))


def count_open_by_severity(*, workspace: Workspace) -> dict[int, int]:
    """How many findings stand open, by severity."""
    rows = list_holding(workspace=workspace).filter(state=Finding.State.OPEN)
    return dict(rows.values_list("severity").annotate(count=Count("pk")).order_by("-severity"))


def list_findings(
    *,
    workspace: Workspace,
    rule: str = "",
    state: str = "",
    least: int = 0,
    conversation: Conversation | None = None,
    with_suppressed: bool = False,
    after: Key | None = None,
    limit: int = 50,
) -> list[Finding]:
    """Findings that hold, the newest message first, by keyset, each with its conversation.

    Args:
        rule, state, least: only those of a rule, in a state, of at least this severity.
        after: (time, id) of the last one seen.
    """
    rows = list_holding(workspace=workspace, with_suppressed=with_suppressed).select_related("conversation")
    if rule:
        rows = rows.filter(rule=rule)
    if state:
        rows = rows.filter(state=state)
    if least:
        rows = rows.filter(severity__gte=least)
    if conversation is not None:
        rows = rows.filter(conversation=conversation)
    if after is not None:
        at, pk = after
        rows = rows.filter(Q(at__lt=at) | Q(at=at, pk__lt=pk))
    return list(rows.order_by(F("at").desc(), F("pk").desc())[:limit])


def find_finding(*, workspace: Workspace, finding_id: uuid.UUID) -> Finding | None:
    """The finding of that id in this workspace, also one that no longer holds, or None."""
    return Finding.objects.select_related("conversation").filter(workspace=workspace, pk=finding_id).first()


def list_of_message(*, message: Message) -> list[Finding]:
    """The findings about a message that hold, the gravest first."""
    rows = list_holding(workspace=message.workspace).filter(
        conversation=message.conversation_id, record=message.record_id, part=message.part
    )
    return list(rows.order_by("-severity", "rule", "key"))


def find_messages(findings: Sequence[Finding]) -> dict[uuid.UUID, Message]:
    """The message of each of these findings by the finding's id; one whose message is gone is left out."""
    wanted = {(finding.record_id, finding.part): finding for finding in findings}
    rows = Message.objects.shown().filter(record__in={record for record, _ in wanted})
    by_place = {(message.record_id, message.part): message for message in rows}
    return {
        finding.pk: by_place[finding.record_id, finding.part]
        for finding in findings
        if (finding.record_id, finding.part) in by_place
    }
