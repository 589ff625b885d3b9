"""What audit adds to the search language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.search.language import QueryError, Term
from inspector.search.registry import Condition, SearchableCondition
from inspector.search.values import SEVERITIES, read_severity

from .findings import Finding
from .rules import RULES

_REVIEWED = (
    'EXISTS (SELECT 1 FROM "audit_review" WHERE "audit_review"."conversation_id" = "threads_message"."conversation_id")'
)
# What holds of the message, as of the latest record of its conversation's channel.
_FOUND = (
    'EXISTS (SELECT 1 FROM "audit_finding" "finding" '
    'WHERE "finding"."conversation_id" = "threads_message"."conversation_id" '
    'AND "finding"."record_id" = "threads_message"."record_id" AND "finding"."part" = "threads_message"."part" '
    'AND "finding"."holds" AND NOT "finding"."is_suppressed" '
    'AND ("finding"."due_at" IS NULL OR "finding"."due_at" <= LEAST(now(), ('
    'SELECT max("latest"."last_at") FROM "threads_conversation" "latest" '
    'WHERE "latest"."workspace_id" = "finding"."workspace_id" AND "latest"."channel_id" = "finding"."channel_id"))) '
    "AND ({}))"
)
_SIGNS = {"": "=", ">": ">", ">=": ">=", "<": "<", "<=": "<="}


def _write_reviewed(term: Term) -> Condition:
    wanted = {value.casefold() for value in term.values}
    if wanted == {"yes", "no"}:
        return "TRUE", []
    return (_REVIEWED, []) if wanted == {"yes"} else (f"NOT {_REVIEWED}", [])


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
