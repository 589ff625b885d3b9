"""Conditions that are no exact term: times, numbers, severities, what a message has and is, its English, its wire."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Final

from django.db.models import (
    BinaryField,
    BooleanField,
    Exists,
    F,
    Func,
    IntegerField,
    OuterRef,
    Q,
    Subquery,
    Value,
)
from django.db.models.functions import Coalesce, Least, Lower, Now, NullIf

from inspector.accounts.models import Channel, Workspace
from inspector.intake.models import Record, Sighting
from inspector.lookups import IsAny
from inspector.threads.models import MaskedWire, Message, Task
from inspector.threads.rendering import terms
from inspector.threads.rendering.dependencies import DECODER_VERSION
from inspector.threads.rendering.terms import PRESENT, mark_workspace
from inspector.threads.tasks.events import ASKS
from inspector.threads.tasks.measures import annotate_state, latest_in_channel, select_maybe_answered
from inspector.threads.tasks.states import State

from .language import QueryError, Term
from .registry import Condition, SearchableCondition, compare, has_terms, register
from .values import SEVERITIES, is_number, read_number, read_severity, read_time

HAS: Final[dict[str, Q]] = {
    "reply": Q(
        Exists(
            Message.objects.filter(
                ~Q(parent_basis="adjacency"), conversation=OuterRef("conversation"), parent=OuterRef("pk")
            )
        )
    ),
    "parent": Q(parent__isnull=False) & ~Q(parent_basis="adjacency"),
    "ghost": Q(parent_key__isnull=False, parent__isnull=True),
    "note": Q(severity__gt=0),
    "trace": ~Q(trace_id=""),
    "task": ~Q(task_id=""),
}
_THINGS = (*HAS, *(name for name in PRESENT if name not in HAS))
IS: Final[dict[str, Q]] = {
    "sealed": Q(is_sealed=True),
    "broadcast": Q(is_broadcast=True),
    "malformed": Q(performative__isnull=True),
}
# The values of `is:` that other apps look up.
UNANSWERED: Final = "unanswered"
_MAYBE_ANSWERED: Final = "maybe-answered"
# Of what is sealed at rest there is no wire to look into.
_WIRE: Final = Subquery(
    Record.objects.filter(pk=OuterRef("record"), sealed_with__isnull=True).values_list(
        Coalesce("wire", "source", output_field=BinaryField())
    )
)
_MASKED_WIRE: Final = Subquery(
    MaskedWire.objects.filter(
        record=OuterRef("record"), dialect=Coalesce(NullIf(OuterRef("carrier"), Value("")), OuterRef("dialect"))
    ).values("text")
)
_DAY: Final = re.compile(r"\d{4}-\d\d")
SIGNS = {"": "=", ">": ">", ">=": ">=", "<": "<", "<=": "<="}


def _refuse_comparison(term: Term) -> None:
    if term.operator:
        raise QueryError(f"{term.name}: cannot be compared with {term.operator}", term.start, term.end)


def _write_any(term: Term, workspace: Workspace, conditions: Mapping[str, Q]) -> Condition:
    _refuse_comparison(term)
    found = Q()
    for value in dict.fromkeys(value.casefold() for value in term.values):
        if value in conditions:
            found |= conditions[value]
        elif value == _MAYBE_ANSWERED:
            found |= Q(pk__in=select_maybe_answered(workspace=workspace).values("request"))
        else:
            found |= has_terms(workspace, [terms.term("has", value)])
    return found


def _write_has(term: Term, workspace: Workspace) -> Condition:
    return _write_any(term, workspace, HAS)


def _write_is(term: Term, workspace: Workspace) -> Condition:
    return _write_any(term, workspace, IS)


def _write_after(term: Term) -> Condition:
    _refuse_comparison(term)
    return Q(order_time__gte=read_time(term))


def _write_before(term: Term) -> Condition:
    _refuse_comparison(term)
    return Q(order_time__lt=read_time(term))


def _write_severity(term: Term) -> Condition:
    if not term.operator:
        return Q(IsAny("severity", [read_severity(value) for value in term.values]))
    if len(term.values) > 1:
        raise QueryError(f"{term.name}:{term.operator} takes one value", term.start, term.end)
    return compare("severity", SIGNS[term.operator], read_severity(term.values[0]))


def _write_column(term: Term) -> Condition:
    return compare(str(term.name), SIGNS[term.operator], read_number(term), cast="::numeric")


def _write_number(term: Term, workspace: Workspace) -> Condition:
    # An index serves that there is one at all.
    has = has_terms(workspace, [terms.term("has", str(term.name))])
    read_number(term)
    return has & write_path(term, str(term.name), workspace)


class _HasPath(Func):
    """Whether a message has a term that begins so, and behind that a value of this shape that compares so."""

    template = (
        "EXISTS (SELECT FROM (SELECT %(expressions)s) AS given (atoms, beginning, shape, wanted), unnest(atoms) AS atom"
        " WHERE starts_with(atom, beginning) AND CASE WHEN substr(atom, length(beginning) + 1) ~ shape"
        " THEN substr(atom, length(beginning) + 1)%(cast)s %(sign)s wanted%(cast)s ELSE FALSE END)"
    )
    output_field = BooleanField()


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
    shape = r"^\d{4}-\d\d" if is_time else r"^-?\d{1,30}(\.\d{1,30})?(e[+-]?\d{1,3})?$"
    given = map(Value, (f"{mark_workspace(workspace.pk)}{path}=", shape, value))
    cast = ' COLLATE "C"' if is_time else "::numeric"
    return Q(_HasPath(F("atoms"), *given, sign=SIGNS[term.operator], cast=cast))


def _write_broadcast(term: Term) -> Condition:
    _refuse_comparison(term)
    wanted = [value.casefold() == "true" for value in term.values]
    return Q(IsAny("is_broadcast", wanted))


def _write_channel(term: Term, workspace: Workspace) -> Condition:
    """The channels are looked up first: of one, an index has the messages in their order."""
    _refuse_comparison(term)
    named = Channel.objects.filter(workspace=workspace).annotate(low=Lower("name"))
    ids = list(named.filter(low__in=[value.lower() for value in term.values]).values_list("pk", flat=True))
    return Q(channel=ids[0]) if len(ids) == 1 else Q(IsAny("channel_id", ids))


def _write_delivery(term: Term) -> Condition:
    """What a delivery brought, or what of it was new or known: it is looked up, and not asked message by message."""
    _refuse_comparison(term)
    try:
        ids = [uuid.UUID(value) for value in term.values]
    except ValueError:
        hint = "it is found by the id that its receipt says"
        raise QueryError(f"{term.name}: {term.text!r} is no delivery; {hint}", term.start, term.end) from None
    seen = Sighting.objects.filter(IsAny("delivery_id", ids))
    if outcome := {"stored": Sighting.Outcome.STORED, "duplicate": Sighting.Outcome.DUPLICATE}.get(str(term.name)):
        seen = seen.filter(outcome=outcome)
    return Q(record__in=seen.values("record"))


def _write_english(term: Term) -> Condition:
    """The English itself, and not the names and codes beside it: any letter case, as it stands."""
    _refuse_comparison(term)
    pattern = term.text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return compare("english", "ILIKE", f"%{pattern.replace(chr(0), chr(0x2400))}%")


def _write_raw(term: Term) -> Condition:
    """Characters of the wire, exactly."""
    _refuse_comparison(term)
    return _holds(_WIRE, term)


def _write_masked_raw(term: Term) -> Condition:
    """Characters of the wire as it is shown to who may not see secrets. Where something is masked in it, the wire
    itself is not looked at: COALESCE asks for it only where there is no masked text. That was written when the message
    was read, and holds for the decoders that read it; what others have read is not found until it is read anew."""
    _refuse_comparison(term)
    is_current = Func(F("told_in"), Value(f"{DECODER_VERSION} "), function="starts_with", output_field=BooleanField())
    return Q(is_current) & _holds(Coalesce(_MASKED_WIRE, _WIRE), term)


def _holds(text: Func | Subquery, term: Term) -> Condition:
    wanted = Value(term.text.encode("utf-8", "surrogatepass"))
    place = Func(wanted, text, function="position", arg_joiner=" in ", output_field=IntegerField())
    return compare(place, ">", 0)


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
        (*IS, UNANSWERED, _MAYBE_ANSWERED),
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


def _write_state(term: Term) -> Condition:
    if term.operator:
        raise QueryError(f"{term.name}: cannot be compared with {term.operator}", term.start, term.end)
    tasks = Task.objects.filter(workspace=OuterRef("workspace"), request=OuterRef("pk"))
    stands = annotate_state(tasks, Least(latest_in_channel(), Now()))
    wanted = [value.casefold() for value in term.values]
    return Q(IsAny("performative", sorted(ASKS))) & Q(Exists(stands.filter(IsAny("stands", wanted))))


STATE: Final = SearchableCondition(
    name="state",
    about="the state of its request, question or offer, as of the latest record of its channel",
    values=tuple(state.value for state in State),
    write=_write_state,
)

register(STATE)
