"""Conditions that are no exact term: times, numbers, severities, what a message has and is, its English, its wire."""

from __future__ import annotations

import re
import uuid
from typing import Final

from django.db.models.functions import Lower

from inspector.accounts.models import Channel, Workspace
from inspector.intake.models import Sighting
from inspector.threads.rendering import terms
from inspector.threads.rendering.dependencies import DECODER_VERSION
from inspector.threads.rendering.terms import PRESENT, mark_workspace
from inspector.threads.tasks.events import ASKS
from inspector.threads.tasks.measures import STALLED_AFTER, select_maybe_answered
from inspector.threads.tasks.states import STANDING, State

from .language import QueryError, Term
from .registry import Condition, SearchableCondition, has_terms, register
from .values import SEVERITIES, is_number, read_number, read_severity, read_time

_MESSAGE = '"threads_message"'
_ANSWER = (
    'EXISTS (SELECT 1 FROM "threads_message" "answer" '
    'WHERE "answer"."conversation_id" = "threads_message"."conversation_id" '
    """AND "answer"."parent" = "threads_message"."id" AND "answer"."parent_basis" <> 'adjacency')"""
)
HAS = {
    "reply": _ANSWER,
    "parent": f'{_MESSAGE}."parent" IS NOT NULL AND {_MESSAGE}."parent_basis" <> \'adjacency\'',
    "ghost": f'{_MESSAGE}."parent_key" IS NOT NULL AND {_MESSAGE}."parent" IS NULL',
    "note": f'{_MESSAGE}."severity" > 0',
    "trace": f"{_MESSAGE}.\"trace_id\" <> ''",
    "task": f"{_MESSAGE}.\"task_id\" <> ''",
}
_THINGS = (*HAS, *(name for name in PRESENT if name not in HAS))
# `is:unanswered` is what an open finding of that rule is about; the overview counts the same.
_UNANSWERED = (
    'EXISTS (SELECT 1 FROM "audit_finding" "unanswered" '
    'WHERE "unanswered"."conversation_id" = "threads_message"."conversation_id" '
    'AND "unanswered"."record_id" = "threads_message"."record_id" '
    'AND "unanswered"."part" = "threads_message"."part" AND "unanswered"."rule" = \'unanswered\' '
    'AND "unanswered"."holds" AND NOT "unanswered"."is_suppressed" AND "unanswered"."state" = \'open\' '
    'AND ("unanswered"."snoozed_until" IS NULL OR "unanswered"."snoozed_until" <= now()) '
    'AND "unanswered"."due_since" IS NOT NULL)'
)
IS = {
    "sealed": f'{_MESSAGE}."is_sealed"',
    "broadcast": f'{_MESSAGE}."is_broadcast"',
    "malformed": f'{_MESSAGE}."performative" IS NULL',
    "unanswered": _UNANSWERED,
}
_MAYBE_ANSWERED: Final = "maybe-answered"
# Of what is sealed at rest there is no wire to look into.
_WIRE: Final = (
    '(SELECT COALESCE("intake_record"."wire", "intake_record"."source") FROM "intake_record" '
    'WHERE "intake_record"."id" = "threads_message"."record_id" AND "intake_record"."sealed_with_id" IS NULL)'
)
_MASKED_WIRE: Final = (
    '(SELECT "masked"."text" FROM "threads_maskedwire" "masked" '
    'WHERE "masked"."record_id" = "threads_message"."record_id" AND "masked"."dialect" ='
    ' COALESCE(NULLIF("threads_message"."carrier", \'\'), "threads_message"."dialect"))'
)
_DAY: Final = re.compile(r"\d{4}-\d\d")
_SIGNS = {"": "=", ">": ">", ">=": ">=", "<": "<", "<=": "<="}


def _refuse_comparison(term: Term) -> None:
    if term.operator:
        raise QueryError(f"{term.name}: cannot be compared with {term.operator}", term.start, term.end)


def _write_any(term: Term, workspace: Workspace, conditions: dict[str, str]) -> Condition:
    _refuse_comparison(term)
    found: list[str] = []
    values: list[object] = []
    for value in dict.fromkeys(value.casefold() for value in term.values):
        if value in conditions:
            found.append(f"({conditions[value]})")
        elif value == _MAYBE_ANSWERED:
            requests = select_maybe_answered(workspace=workspace).values("request")
            condition, given = requests.query.sql_with_params()
            found.append(f'{_MESSAGE}."id" IN ({condition})')
            values += given
        else:
            condition, wanted = has_terms(workspace, [terms.term("has", value)])
            found.append(condition)
            values += wanted
    return " OR ".join(found), values


def _write_has(term: Term, workspace: Workspace) -> Condition:
    return _write_any(term, workspace, HAS)


def _write_is(term: Term, workspace: Workspace) -> Condition:
    return _write_any(term, workspace, IS)


def _write_after(term: Term) -> Condition:
    _refuse_comparison(term)
    return f'{_MESSAGE}."order_time" >= %s', [read_time(term)]


def _write_before(term: Term) -> Condition:
    _refuse_comparison(term)
    return f'{_MESSAGE}."order_time" < %s', [read_time(term)]


def _write_severity(term: Term) -> Condition:
    if not term.operator:
        return f'{_MESSAGE}."severity" = ANY(%s)', [[read_severity(value) for value in term.values]]
    if len(term.values) > 1:
        raise QueryError(f"{term.name}:{term.operator} takes one value", term.start, term.end)
    return f'{_MESSAGE}."severity" {_SIGNS[term.operator]} %s', [read_severity(term.values[0])]


def _write_column(term: Term) -> Condition:
    return f'{_MESSAGE}."{term.name}" {_SIGNS[term.operator]} %s::numeric', [read_number(term)]


def _write_number(term: Term, workspace: Workspace) -> Condition:
    # An index serves that there is one at all.
    has, values = has_terms(workspace, [terms.term("has", term.name)])
    read_number(term)
    compared, more = write_path(term, term.name or "", workspace)
    return f"({has} AND {compared})", [*values, *more]


def write_path(term: Term, path: str, workspace: Workspace) -> Condition:
    """A comparison of what stands below a name of the record, as `attributes.offer:>3`: numbers by their size, days and
    times as they are written. What is no number is not larger or smaller than one.

    Args:
        term: with an operator and one value.
        path: the name under which the exact terms hold it.

    Raises:
        QueryError: for a value that has no order.
    """
    if len(term.values) > 1:
        raise QueryError(f"{term.name}:{term.operator} takes one value", term.start, term.end)
    value = terms.fold(term.values[0])
    is_time = _DAY.match(value) is not None
    if not is_time and not is_number(value):
        raise QueryError(
            f"{term.name}: {term.values[0]!r} has no order; compare with a number, or with a day as 2026-11-21, "
            f"or leave {term.operator} away",
            term.start,
            term.end,
            f"{'-' if term.is_negated else ''}{term.name}:{term.values[0]}",
        )
    held = "substr(atom, %s)"
    shape = r"^\d{4}-\d\d" if is_time else r"^-?\d{1,30}(\.\d{1,30})?(e[+-]?\d{1,3})?$"
    sign = _SIGNS[term.operator]
    compared = f'{held} COLLATE "C" {sign} %s' if is_time else f"{held}::numeric {sign} %s::numeric"
    beginning = f"{mark_workspace(workspace.pk)}{path}="
    any_atom = f'EXISTS (SELECT 1 FROM unnest({_MESSAGE}."atoms") AS atom WHERE starts_with(atom, %s) AND '  # noqa: S608
    return (
        any_atom + f"CASE WHEN {held} ~ %s THEN {compared} ELSE FALSE END)",
        [beginning, len(beginning) + 1, shape, len(beginning) + 1, value],
    )


def _write_broadcast(term: Term) -> Condition:
    _refuse_comparison(term)
    wanted = [value.casefold() == "true" for value in term.values]
    return f'{_MESSAGE}."is_broadcast" = ANY(%s)', [wanted]


def _write_channel(term: Term, workspace: Workspace) -> Condition:
    """The channels are looked up first: of one, an index has the messages in their order."""
    _refuse_comparison(term)
    named = Channel.objects.filter(workspace=workspace).annotate(low=Lower("name"))
    ids = list(named.filter(low__in=[value.lower() for value in term.values]).values_list("pk", flat=True))
    if len(ids) == 1:
        return f'{_MESSAGE}."channel_id" = %s', [ids[0]]
    return f'{_MESSAGE}."channel_id" = ANY(%s)', [ids]


def _write_delivery(term: Term) -> Condition:
    """What a delivery brought, or what of it was new or known: it is looked up, and not asked message by message."""
    _refuse_comparison(term)
    try:
        ids = [uuid.UUID(value) for value in term.values]
    except ValueError:
        hint = "it is found by the id that its receipt says"
        raise QueryError(f"{term.name}: {term.text!r} is no delivery; {hint}", term.start, term.end) from None
    seen = 'SELECT "record_id" FROM "intake_sighting" WHERE "delivery_id" = ANY(%s)'
    outcomes = {"stored": Sighting.Outcome.STORED.value, "duplicate": Sighting.Outcome.DUPLICATE.value}
    if (outcome := outcomes.get(term.name or "")) is None:
        return f'{_MESSAGE}."record_id" IN ({seen})', [ids]
    return f'{_MESSAGE}."record_id" IN ({seen} AND "outcome" = %s)', [ids, outcome]


def _write_english(term: Term) -> Condition:
    """The English itself, and not the names and codes beside it: any letter case, as it stands."""
    _refuse_comparison(term)
    pattern = term.text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f'{_MESSAGE}."english" ILIKE %s', [f"%{pattern.replace(chr(0), chr(0x2400))}%"]


def _write_raw(term: Term) -> Condition:
    """Characters of the wire, exactly."""
    _refuse_comparison(term)
    return f"position(%s::bytea in {_WIRE}) > 0", [term.text.encode("utf-8", "surrogatepass")]


def _write_masked_raw(term: Term) -> Condition:
    """Characters of the wire as it is shown to who may not see secrets. Where something is masked in it, the wire
    itself is not looked at: COALESCE asks for it only where there is no masked text. That was written when the message
    was read, and holds for the decoders that read it; what others have read is not found until it is read anew."""
    _refuse_comparison(term)
    return (
        f'starts_with({_MESSAGE}."told_in", %s) AND position(%s::bytea in COALESCE({_MASKED_WIRE}, {_WIRE})) > 0',
        [f"{DECODER_VERSION} ", term.text.encode("utf-8", "surrogatepass")],
    )


CONDITIONS = (
    SearchableCondition(
        "after", "at this time or later in the timeline: 2026-11-21, or 7d for within a week", None, _write_after
    ),
    SearchableCondition(
        "before", "earlier in the timeline: 2026-11-21T09:30, or 7d for longer ago", None, _write_before
    ),
    SearchableCondition(
        "has",
        "messages with: an answer, a parent, a missing parent, a note, a deadline …",
        _THINGS,
        _write_has,
        is_of_workspace=True,
    ),
    SearchableCondition(
        "is",
        "messages that are sealed, broadcast, malformed, unanswered, or maybe-answered: a reply may be sealed",
        (*IS, _MAYBE_ANSWERED),
        _write_is,
        is_of_workspace=True,
    ),
    SearchableCondition(
        "severity",
        "the most severe note of the decoder; >=warning for that and worse",
        SEVERITIES,
        _write_severity,
        compares=True,
    ),
    SearchableCondition("turn", "the number of its turn; also >5 or <=9", None, _write_column, compares=True),
    SearchableCondition("part", "its part of the record; also >1", None, _write_column, compares=True),
    SearchableCondition("broadcast", "sent to everyone: true or false", ("true", "false"), _write_broadcast),
    SearchableCondition("run", "the run of its conversation id; also >1", None, _write_column, compares=True),
    SearchableCondition(
        "progress", "the reported progress; also >=50", None, _write_number, compares=True, is_of_workspace=True
    ),
    SearchableCondition(
        "score", "a judgement's score; also <0.5", None, _write_number, compares=True, is_of_workspace=True
    ),
    SearchableCondition(
        "priority",
        "its priority, 1 is most urgent; also <=2",
        None,
        _write_number,
        compares=True,
        is_of_workspace=True,
    ),
    SearchableCondition("channel", "its channel", None, _write_channel, is_of_workspace=True),
    SearchableCondition("delivery", "the id of a delivery that contained it", None, _write_delivery),
    SearchableCondition("stored", "the id of the delivery that first contained it", None, _write_delivery),
    SearchableCondition("duplicate", "the id of a delivery that contained it again", None, _write_delivery),
    SearchableCondition("en", "exact characters of the English, in any case", None, _write_english),
    SearchableCondition("raw", "exact characters of the raw message", None, _write_raw, write_masked=_write_masked_raw),
)

for _condition in CONDITIONS:
    register(_condition)


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
