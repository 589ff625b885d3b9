"""What an overview and the navigation say of findings, of sign-offs, and of what there is at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import CharField, Count, DateTimeField, Min, QuerySet, Value
from django.db.models.functions import Cast

from inspector.accounts.models import Channel, Workspace
from inspector.threads.agents.directory import count_agents
from inspector.threads.models import Conversation
from inspector.threads.trees.traces import select_traces

from .comments.tables import Comment
from .findings.listing import grade_of, list_holding
from .models import Finding, ReviewItem
from .reviews.standings import select_stale
from .reviews.tables import OPEN_STATES
from .rules import RULES, Rule
from .rules.work import UNANSWERED

# The navigation says "10,000+" of what is more.
MOST_COUNTED: Final = 10_000
# In the place of a severity, which is no negative number.
_STALE, _WAITING = -1, -2


@dataclass(frozen=True, slots=True)
class OpenOfRule:
    """A rule, how many of its findings stand open, and how grave the gravest of them is."""

    rule: Rule
    count: int
    severity: int


@dataclass(frozen=True, slots=True)
class Overview:
    """What stands open in a workspace, as `count_standing` counts it.

    `findings` by severity and `rules`, both the gravest first; how many sign-offs are known to be `stale`; how many
    conversations are `waiting` for review, and since when the `oldest` of them waits.
    """

    findings: Mapping[int, int]
    rules: Sequence[OpenOfRule]
    stale: int
    waiting: int
    oldest: datetime | None

    @property
    def unanswered(self) -> int:
        """How many requests nobody answered: the open findings of that rule."""
        return next((each.count for each in self.rules if each.rule.code == UNANSWERED), 0)


def count_standing(*, workspace: Workspace, channel: Channel | None = None) -> Overview:
    """The open findings, the stale sign-offs and what waits for review, in all or in a channel; one statement."""
    names = ("severity", "rule", "number", "oldest")
    found = list_holding(workspace=workspace).filter(state=Finding.State.OPEN).order_by()
    never = Cast(Value(None), DateTimeField())
    items = ReviewItem.objects.filter(workspace=workspace)
    if channel is not None:
        found, items = found.filter(channel=channel), items.filter(conversation__channel=channel)
    by_rule = found.values("severity", "rule").annotate(number=Count("pk"), oldest=never)
    waiting = items.filter(state__in=OPEN_STATES).order_by()
    rows = by_rule.values_list(*names).union(
        _sum(select_stale(items).order_by(), _STALE).annotate(oldest=never).values_list(*names),
        _sum(waiting, _WAITING).annotate(oldest=Min("added_at")).values_list(*names),
        all=True,
    )
    by_severity: Counter[int] = Counter()
    rules: dict[str, OpenOfRule] = {}
    others: dict[int, tuple[int, datetime | None]] = {}
    for severity, code, number, oldest in rows:
        if severity < 0:
            others[severity] = number, oldest
            continue
        by_severity[severity] += number
        if code in RULES:
            known = rules.get(code, OpenOfRule(RULES[code], 0, 0))
            rules[code] = OpenOfRule(known.rule, known.count + number, max(known.severity, severity))
    return Overview(
        findings={severity: by_severity[severity] for severity in sorted(by_severity, reverse=True)},
        rules=sorted(
            rules.values(), key=lambda each: (-grade_of(each.rule.code, each.severity), -each.count, each.rule.code)
        ),
        stale=others.get(_STALE, (0, None))[0],
        waiting=others.get(_WAITING, (0, None))[0],
        oldest=others.get(_WAITING, (0, None))[1],
    )


def _sum(items: QuerySet[ReviewItem], kind: int) -> QuerySet[ReviewItem, Any]:
    """How many these are, as a row of the statement above."""
    named = items.annotate(severity=Value(kind), rule=Value("", output_field=CharField()))
    return named.values("severity", "rule").annotate(number=Count("pk"))


SECTIONS: Final = ("conversations", "traces", "findings", "reviews", "comments", "agents")


def count_sections(*, workspace: Workspace, names: Collection[str] = SECTIONS) -> dict[str, int]:
    """How much each list of the navigation holds as it opens, by the name of its page: at most `MOST_COUNTED` and one.

    No count walks through more rows than that, however many there are.
    """
    lists: dict[str, QuerySet[Any]] = {
        "conversations": Conversation.objects.filter(workspace=workspace, last_at__isnull=False),
        "traces": select_traces(workspace=workspace),
        "findings": list_holding(workspace=workspace).filter(state=Finding.State.OPEN),
        "reviews": ReviewItem.objects.filter(workspace=workspace, state__in=OPEN_STATES),
        "comments": Comment.objects.filter(workspace=workspace, state=Comment.State.OPEN),
    }
    most = MOST_COUNTED + 1
    counts = {name: lists[name].order_by().values("pk")[:most].count() for name in names if name in lists}
    return counts | ({"agents": count_agents(workspace=workspace, most=most)} if "agents" in names else {})
