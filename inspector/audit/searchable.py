"""What audit adds to the search language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, OuterRef, QuerySet, Subquery, Value, When

from inspector.accounts.models import Workspace
from inspector.accounts.selectors import list_members
from inspector.search.language import QueryError, Term
from inspector.search.registry import Condition, SearchableCondition
from inspector.search.values import SEVERITIES, read_severity

from .findings.due import COUNTS
from .models.findings import Finding
from .models.reviews import Review
from .reviews.selectors import STALE
from .rules import RULES

# As `standings.select_told` has it: what one of two said is nobody's to find before both have spoken.
_REVIEWED = (
    'EXISTS (SELECT 1 FROM "audit_review" "review" '
    'WHERE "review"."conversation_id" = "threads_message"."conversation_id" AND "review"."withdrawn_at" IS NULL '
    'AND NOT EXISTS (SELECT 1 FROM "audit_reviewitem" "blind" '
    'WHERE "blind"."conversation_id" = "review"."conversation_id" AND "blind"."needed" > 1 '
    'AND "blind"."state" IN (\'waiting\', \'second\') AND "blind"."added_at" <= "review"."created_at"))'
)
# The item in force: the one that was settled last; none that was settled beside a blind one.
_SETTLED = (
    'FROM "audit_reviewitem" "settled" '
    'WHERE "settled"."conversation_id" = "threads_message"."conversation_id" AND "settled"."state" = \'settled\' '
    'AND NOT EXISTS (SELECT 1 FROM "audit_reviewitem" "blind" '
    'WHERE "blind"."conversation_id" = "settled"."conversation_id" AND "blind"."needed" > 1 '
    'AND "blind"."state" IN (\'waiting\', \'second\') AND "blind"."added_at" <= "settled"."ended_at") '
    'ORDER BY "settled"."ended_at" DESC, "settled"."id" DESC LIMIT 1'
)
_IN_FORCE = f'COALESCE((SELECT "settled"."verdict" {_SETTLED}), \'\')'
# Whether what it was given on is known to be otherwise by now: `standings.select_stale` says the same.
_STALE = (
    'EXISTS (SELECT 1 FROM "audit_review" "signed" '  # noqa: S608
    'LEFT JOIN "audit_binding" "bound" ON "bound"."id" = "signed"."binding_id" '
    'JOIN "threads_conversation" "judged" ON "judged"."id" = "signed"."conversation_id" '
    f'WHERE "signed"."item_id" = (SELECT "settled"."id" {_SETTLED}) AND "signed"."withdrawn_at" IS NULL '
    f'AND "signed"."verdict" = {_IN_FORCE} AND ("bound"."changes" <> \'\' '
    'OR ("bound"."id" IS NULL AND "signed"."seen_digest" IS DISTINCT FROM "judged"."settled_digest")))'
)
_HELD = (
    'EXISTS (SELECT 1 FROM "audit_reviewitem" "held" '
    'JOIN "accounts_user" "holder" ON "holder"."id" = "held"."holder_id" '
    'WHERE "held"."conversation_id" = "threads_message"."conversation_id" AND "held"."held_until" > now() '
    'AND lower("holder"."username") = ANY(%s))'
)
# What holds of the message, and is due: as `due.DUE` has it.
_FOUND = (
    'EXISTS (SELECT 1 FROM "audit_finding" "finding" '
    'WHERE "finding"."conversation_id" = "threads_message"."conversation_id" '
    'AND "finding"."record_id" = "threads_message"."record_id" AND "finding"."part" = "threads_message"."part" '
    'AND "finding"."holds" AND NOT "finding"."is_suppressed" '
    'AND ("finding"."due_at" IS NULL OR "finding"."due_since" IS NOT NULL) AND ({}))'
)
_SIGNS = {"": "=", ">": ">", ">=": ">=", "<": "<", "<=": "<="}


def _write_reviewed(term: Term) -> Condition:
    wanted = {value.casefold() for value in term.values}
    if wanted == {"yes", "no"}:
        return "TRUE", []
    return (_REVIEWED, []) if wanted == {"yes"} else (f"NOT {_REVIEWED}", [])


def _write_review(term: Term) -> Condition:
    wanted = [value.casefold() for value in term.values]
    verdicts = [value for value in wanted if value != STALE]
    in_force = f"{_IN_FORCE} = ANY(%s)"
    if STALE not in wanted:
        return in_force, [verdicts]
    return (f"({in_force} OR {_STALE})", [verdicts]) if verdicts else (_STALE, [])


def _write_assignee(term: Term, workspace: Workspace) -> Condition:
    names = {member.user.username.lower() for member in list_members(workspace=workspace)}
    for value in term.values:
        if value.lower() not in names:
            raise QueryError(f"{term.name}: no member of this workspace has the name {value!r}", term.start, term.end)
    return _write_any_assignee(term, workspace)


def _write_any_assignee(term: Term, workspace: Workspace) -> Condition:
    """The same without telling who is a member: a key that only reads does not learn the names of people."""
    # PostgreSQL holds no NUL, not even in a question.
    return _HELD, [[value.lower() for value in term.values if "\x00" not in value]]


def _write_finding(term: Term) -> Condition:
    values: list[Any] = []
    conditions: list[str] = []
    for value in term.values:
        if value.casefold() in Finding.State.values:
            if term.operator:
                raise QueryError(f"{term.name}: {value} cannot be compared", term.start, term.end)
            conditions.append('"finding"."state" = %s')
            values.append(value.casefold())
        else:
            conditions.append(f'"finding"."severity" {_SIGNS[term.operator]} %s')
            values.append(read_severity(value))
    return _FOUND.format(" OR ".join(conditions)), values


def _write_rule(term: Term) -> Condition:
    values: Sequence[str] = [value.casefold() for value in term.values]
    return _FOUND.format('"finding"."rule" = ANY(%s)'), [values]


def _tally_findings() -> Subquery:
    """How grave the findings of a message are that hold and are due, as `_FOUND` has it."""
    names = Case(*(When(severity=rank, then=Value(name)) for rank, name in enumerate(SEVERITIES)))
    return ArraySubquery(_list_found().annotate(name=names).values("name").distinct())


def _tally_rules() -> Subquery:
    return ArraySubquery(_list_found().values("rule").distinct())


def _list_found() -> QuerySet[Finding]:
    of_message = {name: OuterRef(name) for name in ("conversation", "record", "part")}
    return Finding.objects.filter(COUNTS, **of_message).order_by()


REVIEWED = SearchableCondition(
    name="reviewed",
    about="reviewed conversation: yes or no",
    values=("yes", "no"),
    write=_write_reviewed,
)
REVIEW = SearchableCondition(
    name="review",
    about="the current verdict on its conversation, or a stale sign-off",
    values=(*Review.Verdict.values, STALE),
    write=_write_review,
)
ASSIGNEE = SearchableCondition(
    name="assignee",
    about="the reviewer who claimed its conversation",
    values=None,
    write=_write_assignee,
    write_masked=_write_any_assignee,
    is_of_workspace=True,
)
FINDING = SearchableCondition(
    name="finding",
    about="its findings, by severity or by decision",
    values=(*SEVERITIES[1:], *Finding.State.values),
    write=_write_finding,
    compares=True,
    tally=_tally_findings,
)
RULE = SearchableCondition(
    name="rule",
    about="the rule of a finding on it",
    values=tuple(RULES),
    write=_write_rule,
    tally=_tally_rules,
)
