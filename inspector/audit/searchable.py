"""What audit adds to the search language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.search.language import QueryError, Term
from inspector.search.registry import Condition, SearchableCondition
from inspector.search.values import SEVERITIES, read_severity

from .findings.tables import Finding
from .reviews.tables import Review
from .rules import RULES

# As `standings.select_told` has it: what one of two said is nobody's to find before both have spoken.
_REVIEWED = (
    'EXISTS (SELECT 1 FROM "audit_review" "review" '
    'WHERE "review"."conversation_id" = "threads_message"."conversation_id" AND "review"."withdrawn_at" IS NULL '
    'AND NOT EXISTS (SELECT 1 FROM "audit_reviewitem" "blind" '
    'WHERE "blind"."conversation_id" = "review"."conversation_id" AND "blind"."needed" > 1 '
    'AND "blind"."state" IN (\'waiting\', \'second\') AND "blind"."added_at" <= "review"."created_at"))'
)
# The verdict in force: of the item that was settled last; none of what was settled beside a blind one.
_IN_FORCE = (
    'COALESCE((SELECT "settled"."verdict" FROM "audit_reviewitem" "settled" '
    'WHERE "settled"."conversation_id" = "threads_message"."conversation_id" AND "settled"."state" = \'settled\' '
    'AND NOT EXISTS (SELECT 1 FROM "audit_reviewitem" "blind" '
    'WHERE "blind"."conversation_id" = "settled"."conversation_id" AND "blind"."needed" > 1 '
    'AND "blind"."state" IN (\'waiting\', \'second\') AND "blind"."added_at" <= "settled"."ended_at") '
    'ORDER BY "settled"."ended_at" DESC, "settled"."id" DESC LIMIT 1), \'\')'
)
_HELD = (
    'EXISTS (SELECT 1 FROM "audit_reviewitem" "held" '
    'JOIN "accounts_user" "holder" ON "holder"."id" = "held"."holder_id" '
    'WHERE "held"."conversation_id" = "threads_message"."conversation_id" AND "held"."held_until" > now() '
    'AND lower("holder"."username") = ANY(%s))'
)
# What holds of the message, and is due: as `dueness.DUE` has it.
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
    return f"{_IN_FORCE} = ANY(%s)", [[value.casefold() for value in term.values]]


def _write_assignee(term: Term) -> Condition:
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


REVIEWED = SearchableCondition(
    name="reviewed",
    about="whether its conversation has a review: yes or no",
    values=("yes", "no"),
    write=_write_reviewed,
)
REVIEW = SearchableCondition(
    name="review",
    about="the verdict in force on its conversation",
    values=tuple(Review.Verdict.values),
    write=_write_review,
)
ASSIGNEE = SearchableCondition(
    name="assignee",
    about="who holds its conversation to review it",
    values=None,
    write=_write_assignee,
)
FINDING = SearchableCondition(
    name="finding",
    about="what the rules found of it: how grave, or what people made of it",
    values=(*SEVERITIES[1:], *Finding.State.values),
    write=_write_finding,
    compares=True,
)
RULE = SearchableCondition(
    name="rule",
    about="which rule found something of it",
    values=tuple(RULES),
    write=_write_rule,
)
