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
from inspector.browsing.activity import Days, find_newest, split_days
from inspector.browsing.directory import count_agents
from inspector.threads.models import Conversation, Task
from inspector.threads.selectors import select_maybe_answered
from inspector.threads.trees import select_traces

from .findings.selectors import grade_of, list_holding
from .findings.storing import WAITING
from .models import ReviewItem
from .models.reviews import OPEN_STATES, Comment
from .reviews.bindings import select_stale
from .rules import RULES, Rule
from .rules.work import UNANSWERED

# The navigation says "10,000+" of what is more.
MAX_COUNTED: Final = 10_000
# In the place of a severity, which is no negative number.
_STALE, _WAITING, _MAYBE_ANSWERED = -1, -2, -3


@dataclass(frozen=True, slots=True)
class OpenOfRule:
    """A rule, how many of its findings stand open, and how grave the gravest of them is."""

    rule: Rule
    count: int
    severity: int


@dataclass(frozen=True, slots=True)
class Overview:
    """What stands open in a workspace, as `count_standing` counts it.

    How many requests are `maybe_answered`, at most `MAX_COUNTED` and one: their reply may be sealed, so that they are
    in no other number.
    `findings` by severity and `rules`, both the gravest first; how many sign-offs are known to be `stale`; how many
    conversations are `waiting` for review, and since when the `oldest` of them waits. `lately` are the open findings
    by the time of their messages.
    """

    findings: Mapping[int, int]
    rules: Sequence[OpenOfRule]
    stale: int
    waiting: int
    oldest: datetime | None
    maybe_answered: int
    lately: Days

    @property
    def unanswered(self) -> int:
        """How many requests nobody answered: the open findings of that rule."""
        return next((each.count for each in self.rules if each.rule.code == UNANSWERED), 0)


def count_standing(*, workspace: Workspace, channel: Channel | None = None) -> Overview:
    """What is open, stale, waiting for review or maybe answered, in a workspace or a channel of it; one statement."""
    found = list_holding(workspace=workspace).filter(WAITING).order_by()
    never = Cast(Value(None), DateTimeField())
    latest, before = split_days("at", find_newest(workspace=workspace, channel=channel))
    items = ReviewItem.objects.filter(workspace=workspace)
    if channel is not None:
        found, items = found.filter(channel=channel), items.filter(conversation__channel=channel)
    numbers = {"number": Count("pk"), "latest": Count("pk", filter=latest), "before": Count("pk", filter=before)}
    by_rule = found.values("severity", "rule").annotate(**numbers, oldest=never)
    waiting = items.filter(state__in=OPEN_STATES).order_by()
    unjudged = select_maybe_answered(workspace=workspace, channel=channel).values("pk")[: MAX_COUNTED + 1]
    rows = by_rule.values_list("severity", "rule", *numbers, "oldest").union(
        _sum(select_stale(items).order_by(), _STALE, never),
        _sum(waiting, _WAITING, Min("added_at")),
        _sum(Task.objects.filter(pk__in=unjudged), _MAYBE_ANSWERED, never),
        all=True,
    )
    by_severity: Counter[int] = Counter()
    rules: dict[str, OpenOfRule] = {}
    others: dict[int, tuple[int, datetime | None]] = {}
    lately = Days(0, 0)
    for severity, code, number, latest_number, before_number, oldest in rows:
        if severity < 0:
            others[severity] = number, oldest
            continue
        by_severity[severity] += number
        lately = Days(lately.latest + latest_number, lately.before + before_number)
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
        maybe_answered=others.get(_MAYBE_ANSWERED, (0, None))[0],
        lately=lately,
    )


def _sum(rows: QuerySet[Any], kind: int, oldest: Cast | Min) -> QuerySet[Any, Any]:
    """How many these are, as a row of the statement above: the place of the severity says what they are."""
    named = rows.annotate(of=Value(kind), no_rule=Value("", output_field=CharField())).values("of", "no_rule")
    counts = {"number": Count("pk"), "latest": Value(0), "before": Value(0), "since": oldest}
    counted: QuerySet[Any, Any] = named.annotate(**counts)
    return counted.values_list("of", "no_rule", *counts)


SECTIONS: Final = ("conversations", "traces", "findings", "reviews", "comments", "agents")


def count_sections(*, workspace: Workspace, names: Collection[str] = SECTIONS) -> dict[str, int]:
    """How much each list of the navigation holds as it opens, by the name of its page: at most `MAX_COUNTED` and one.

    No count walks through more rows than that, however many there are.
    """
    lists: dict[str, QuerySet[Any]] = {
        "conversations": Conversation.objects.filter(workspace=workspace, last_at__isnull=False),
        "traces": select_traces(workspace=workspace),
        "findings": list_holding(workspace=workspace).filter(WAITING),
        "reviews": ReviewItem.objects.filter(workspace=workspace, state__in=OPEN_STATES),
        "comments": Comment.objects.filter(workspace=workspace, state=Comment.State.OPEN),
    }
    most = MAX_COUNTED + 1
    counts = {name: lists[name].order_by().values("pk")[:most].count() for name in names if name in lists}
    return counts | ({"agents": count_agents(workspace=workspace, most=most)} if "agents" in names else {})
