"""`state:`, the messages that asked for something which stands so, as of the latest record of its channel."""

from __future__ import annotations

from typing import Final

from inspector.threads.tasks.events import ASKS
from inspector.threads.tasks.measures import STALLED_AFTER
from inspector.threads.tasks.states import STANDING, State

from .language import QueryError, Term
from .registry import Condition, SearchableCondition, register

# The same as `measures.state_at` says of a task, in the SQL of a message's row.
_MOMENT: Final = (
    'SELECT LEAST("latest"."last_at", now()) FROM "threads_conversation" "latest" '
    'WHERE "latest"."workspace_id" = "task"."workspace_id" AND "latest"."channel_id" = "task"."channel_id" '
    'AND "latest"."last_at" IS NOT NULL ORDER BY "latest"."last_at" DESC, "latest"."id" DESC LIMIT 1'
)
_STANDS: Final = (
    'CASE WHEN "task"."state" <> ALL(%s) THEN "task"."state" '
    f'WHEN "task"."deadline_at" < ({_MOMENT}) THEN %s '
    f'WHEN "task"."last_at" < ({_MOMENT}) - %s THEN %s ELSE "task"."state" END'
)


_ASKED: Final = " ".join(
    (
        '"threads_message"."performative" = ANY(%s) AND EXISTS (SELECT 1 FROM "threads_task" "task"',
        'WHERE "task"."workspace_id" = "threads_message"."workspace_id" AND "task"."request" = "threads_message"."id"',
        "AND",
        _STANDS,
        "= ANY(%s))",
    )
)


def _write_state(term: Term) -> Condition:
    if term.operator:
        raise QueryError(f"{term.name}: cannot be compared with {term.operator}", term.start, term.end)
    standing = [state.value for state in STANDING]
    wanted = [value.casefold() for value in term.values]
    return _ASKED, [sorted(ASKS), standing, State.TIMED_OUT.value, STALLED_AFTER, State.STALLED.value, wanted]


STATE: Final = SearchableCondition(
    name="state",
    about="the state of its request, question or offer, as of the latest record of its channel",
    values=tuple(state.value for state in State),
    write=_write_state,
)

register(STATE)
