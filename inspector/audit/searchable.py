"""What audit adds to the search language."""

from __future__ import annotations

from inspector.search.language import Term
from inspector.search.registry import Condition, SearchableCondition

_REVIEWED = (
    'EXISTS (SELECT 1 FROM "audit_review" WHERE "audit_review"."conversation_id" = "threads_message"."conversation_id")'
)


def _write_reviewed(term: Term) -> Condition:
    wanted = {value.casefold() for value in term.values}
    if wanted == {"yes", "no"}:
        return "TRUE", []
    return (_REVIEWED, []) if wanted == {"yes"} else (f"NOT {_REVIEWED}", [])


REVIEWED = SearchableCondition(
    name="reviewed",
    about="whether its conversation has a review: yes or no",
    values=("yes", "no"),
    write=_write_reviewed,
)
