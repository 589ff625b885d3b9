"""What audit adds to the search language."""

from __future__ import annotations

from typing import Final

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Lower, Now

from inspector.accounts.models import Workspace
from inspector.accounts.selectors import list_members
from inspector.database import IsAny
from inspector.search.language import SEVERITIES, QueryError, Term, read_severity
from inspector.search.registry import IS, SIGNS, UNANSWERED, Condition, SearchableCondition, compare

from .findings.storing import COUNTS, WAITING
from .models.findings import Finding
from .models.reviews import Review, ReviewItem
from .reviews.bindings import select_stale, select_told, select_told_items
from .reviews.selectors import STALE
from .rules import RULES

_OF_CONVERSATION: Final = {"conversation": OuterRef("conversation")}
_OF_MESSAGE: Final = {name: OuterRef(name) for name in ("conversation", "record", "part")}
# What one of two said is nobody's to find before both have spoken.
_REVIEWED: Final = Exists(select_told(Review.objects.filter(**_OF_CONVERSATION)))
# The item in force: the one that was settled last; none that was settled beside a blind one.
_SETTLED: Final = (
    select_told_items(ReviewItem.objects.filter(**_OF_CONVERSATION, state=ReviewItem.State.SETTLED))
    .filter(Q(is_hidden=False))
    .order_by("-ended_at", "-pk")
)
_IN_FORCE: Final = Coalesce(Subquery(_SETTLED.values("verdict")[:1]), Value(""))
# Whether what it was given on is known to be otherwise by now.
_STALE: Final = Exists(select_stale(ReviewItem.objects.filter(**_OF_CONVERSATION)))
# `is:unanswered` is what an open finding of that rule is about; the overview counts the same.
IS[UNANSWERED] = Q(
    Exists(
        Finding.objects.filter(
            WAITING, **_OF_MESSAGE, rule=UNANSWERED, holds=True, is_suppressed=False, due_since__isnull=False
        )
    )
)


def _write_reviewed(term: Term) -> Condition:
    wanted = {value.casefold() for value in term.values}
    if wanted == {"yes", "no"}:
        return Q()
    return Q(_REVIEWED) if wanted == {"yes"} else ~Q(_REVIEWED)


def _write_review(term: Term) -> Condition:
    wanted = [value.casefold() for value in term.values]
    verdicts = [value for value in wanted if value != STALE]
    condition = Q(IsAny(_IN_FORCE, verdicts)) if verdicts else Q()
    return condition | Q(_STALE) if STALE in wanted else condition


def _write_assignee(term: Term, workspace: Workspace) -> Condition:
    names = {member.user.username.lower() for member in list_members(workspace=workspace)}
    for value in term.values:
        if value.lower() not in names:
            raise QueryError(f"{term.name}: no member of this workspace has the name {value!r}", term.start, term.end)
    return _write_any_assignee(term, workspace)


def _write_any_assignee(term: Term, workspace: Workspace) -> Condition:
    """The same without telling who is a member: a key that only reads does not learn the names of people."""
    # PostgreSQL holds no NUL, not even in a question.
    names = [value.lower() for value in term.values if "\x00" not in value]
    held = ReviewItem.objects.filter(**_OF_CONVERSATION, held_until__gt=Now()).alias(name=Lower("holder__username"))
    return Q(Exists(held.filter(IsAny("name", names))))


def _write_finding(term: Term) -> Condition:
    condition = Q()
    for value in term.values:
        if value.casefold() in Finding.State.values:
            if term.operator:
                raise QueryError(f"{term.name}: {value} cannot be compared", term.start, term.end)
            condition |= Q(state=value.casefold())
        else:
            condition |= compare("severity", SIGNS[term.operator], read_severity(value))
    return Q(Exists(_list_found().filter(condition)))


def _write_rule(term: Term) -> Condition:
    return Q(Exists(_list_found().filter(IsAny("rule", [value.casefold() for value in term.values]))))


def _tally_findings() -> Subquery:
    """How grave the findings of a message are that hold and are due."""
    names = Case(*(When(severity=rank, then=Value(name)) for rank, name in enumerate(SEVERITIES)))
    return ArraySubquery(_list_found().annotate(name=names).values("name").distinct())


def _list_found() -> QuerySet[Finding]:
    """What holds of the message, and is due."""
    return Finding.objects.filter(COUNTS, **_OF_MESSAGE).order_by()


CONDITIONS: Final = (
    SearchableCondition(
        name="reviewed",
        about="reviewed conversation: yes or no",
        values=("yes", "no"),
        write=_write_reviewed,
    ),
    SearchableCondition(
        name="review",
        about="the current verdict on its conversation, or a stale sign-off",
        values=(*Review.Verdict.values, STALE),
        write=_write_review,
    ),
    SearchableCondition(
        name="assignee",
        about="the reviewer who claimed its conversation",
        values=None,
        write=_write_assignee,
        write_masked=_write_any_assignee,
        is_of_workspace=True,
    ),
    SearchableCondition(
        name="finding",
        about="its findings, by severity or by decision",
        values=(*SEVERITIES[1:], *Finding.State.values),
        write=_write_finding,
        compares=True,
        tally=_tally_findings,
    ),
    SearchableCondition(
        name="rule",
        about="the rule of a finding on it",
        values=tuple(RULES),
        write=_write_rule,
        tally=lambda: ArraySubquery(_list_found().values("rule").distinct()),
    ),
)
