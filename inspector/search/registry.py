"""What can be searched by name: exact terms of messages, of which search collects a table; conditions on times,
numbers, severities, what a message has and is, its English, its wire; and what other apps register.

In the two indexes of search each word and each exact term stands with its workspace.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import BinaryField, BooleanField, Exists, F, Func, IntegerField, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, Least, Lower, Now, NullIf

from dialects import PERFORMATIVES, all_dialects
from inspector.accounts.models import Channel, Workspace
from inspector.database import IsAny
from inspector.intake.models import Record, Sighting
from inspector.threads import terms
from inspector.threads.dependencies import DECODER_VERSION
from inspector.threads.models import MaskedWire, Message, Task
from inspector.threads.selectors import select_maybe_answered
from inspector.threads.states import ASKS, State
from inspector.threads.tasks import annotate_state, latest_in_channel
from inspector.threads.terms import PRESENT, mark_workspace, quote_lexeme

from .language import SEVERITIES, QueryError, Term, is_number, read_number, read_severity, read_time


@dataclass(frozen=True, slots=True)
class SearchableTerm:
    """A name of the search language that is an exact term of each message.

    `atom` is the record's name under which the term is indexed; `values`, where given, are all that exist. Where it
    `is_agent`, what people call the agent is found too (`names`).
    """

    name: str
    atom: str
    about: str
    values: tuple[str, ...] | None = None
    is_agent: bool = False


SEARCHABLE: tuple[SearchableTerm, ...] = (
    SearchableTerm(
        "dialect", "dialect", "the dialect it was written in", tuple(dialect.slug for dialect in all_dialects())
    ),
    SearchableTerm(
        "carrier",
        "carrier",
        "the dialect of the message that it stands in",
        tuple(dialect.slug for dialect in all_dialects() if dialect.is_carrier),
    ),
    SearchableTerm("from", "sender", "the sender, by its own or its friendly name", is_agent=True),
    SearchableTerm("to", "receiver", "a recipient; * for a broadcast", is_agent=True),
    SearchableTerm("performative", "performative", "the act", (*PERFORMATIVES, "malformed")),
    SearchableTerm("conversation", "conversation_id", "the conversation's id in the message"),
    SearchableTerm("trace", "trace_id", "the trace's id"),
    SearchableTerm("task", "task_id", "the task's id"),
    SearchableTerm("id", "message_id", "the message's id"),
    SearchableTerm("topic", "topic", "its topic"),
    SearchableTerm("status", "status", "the status in the message"),
    SearchableTerm("act", "native_act", "the dialect's own word for the act"),
    SearchableTerm("tool", "attributes.tool", "the tool that it calls"),
    SearchableTerm("version", "version", "the version of the dialect, where the message names it"),
    SearchableTerm("vocabulary", "vocabulary", "the vocabulary it was read with"),
    SearchableTerm("parent", "parent_id", "the id of its parent message"),
    SearchableTerm("correlation", "correlation_id", "the correlation id"),
    SearchableTerm("parent-task", "parent_task_id", "the id of the task above its task"),
    SearchableTerm("object", "object_id", "the id of its object"),
    SearchableTerm("target", "target", "its target"),
    SearchableTerm("path", "path", "an agent that it passed"),
    SearchableTerm("modifier", "modifier", "a modifier of the act"),
    SearchableTerm("delegation", "delegation", "the mode of a delegation: transfer, fork, assist"),
    SearchableTerm("capability", "capability", "a capability that its sender declared"),
    SearchableTerm("frame", "frame", "its frame"),
    SearchableTerm("result", "result_id", "the id of a result"),
    SearchableTerm("defines", "defines", "a term that it defines"),
    SearchableTerm("reference", "reference", "a path or address that it refers to"),
    SearchableTerm("note", "note", "the code of a note of the decoder"),
    SearchableTerm(
        "group",
        "group",
        "the group of a note of the decoder",
        ("malformed", "undecoded", "protocol", "sequence", "assumption", "security", "deprecated"),
    ),
)

# The record's names for what has a shorter one above, and what stands below a name: `attributes.det`.
ALIASES = {
    "sender": "from",
    "references": "reference",
    "notes": "note",
    "receivers": "to",
    "native_act": "act",
    "modifiers": "modifier",
    "capabilities": "capability",
    "object_id": "object",
    "message_id": "id",
    "conversation_id": "conversation",
    "trace_id": "trace",
    "parent_id": "parent",
    "task_id": "task",
    "parent_task_id": "parent-task",
    "correlation_id": "correlation",
    "result_id": "result",
}
PATHS = ("attributes.", "content.", "error.", "security.")
# What stands below these is the product's to say: any other name finds nothing, and is refused.
_SECURITY = ("encrypted", "opened", "session", "verified", "claim")
KNOWN = {"error.": ("code", "retryable", "cause"), "security.": _SECURITY}

# A condition on messages. Only `compare` and the expressions beside it have SQL of their own, which holds no value.
Condition = Q


def compare(left: Any, sign: str, right: Any, *, cast: str = "") -> Condition:
    """A comparison by an operator of PostgreSQL that lookups do not have, or not without another plan.

    Args:
        left: an expression; of a text the column of that name.
        sign: the operator, never from a query.
        right: a value, which becomes a parameter, or an expression.
        cast: the type to which PostgreSQL casts what stands on the right, as `::text[]`.
    """
    value = right if hasattr(right, "resolve_expression") else Value(right)
    template = f"(%(expressions)s{cast})"
    return Q(Func(left, value, template=template, arg_joiner=f" {sign} ", output_field=BooleanField()))


def has_terms(workspace: Workspace, wanted: Iterable[str]) -> Condition:
    """Messages that have all of these exact terms."""
    return compare("atoms", "@>", _mark(workspace, wanted), cast="::text[]")


def has_any_term(workspace: Workspace, wanted: Iterable[str]) -> Condition:
    """Messages that have at least one of these exact terms."""
    return compare("atoms", "&&", _mark(workspace, wanted), cast="::text[]")


def has_words(workspace: Workspace, words: Sequence[str], *, is_prefix: bool, is_phrase: bool) -> Condition:
    """Messages with all of these folded words: at least one, the last perhaps only the beginning of a word, all of
    them perhaps behind one another."""
    wanted = map(quote_lexeme, _mark(workspace, words))
    query = (" <-> " if is_phrase else " & ").join(wanted) + (":*" if is_prefix else "")
    return compare("words", "@@", query, cast="::tsquery")


def _mark(workspace: Workspace, wanted: Iterable[str]) -> list[str]:
    mark = mark_workspace(workspace.pk)
    return [mark + each for each in wanted]


@dataclass(frozen=True, slots=True)
class SearchableCondition:
    """A name with a condition on messages, which `write` gives.

    `values`, where given, are all that exist. One whose values have an order `compares` with `>` and `<` too. Where
    facets are to count it, `tally` gives the expression of a message's values: an array of texts that find it. One that
    compares with what may be masked has `write_masked`, which is asked in its place for whoever may not see secrets. Of
    one whose values are things of the workspace (`is_of_workspace`), both take that too.
    """

    name: str
    about: str
    values: tuple[str, ...] | None
    write: Callable[..., Condition]
    compares: bool = False
    tally: Callable[[], Subquery] | None = None
    write_masked: Callable[..., Condition] | None = None
    is_of_workspace: bool = False


_TERMS: dict[str, SearchableTerm] = {term.name: term for term in SEARCHABLE}
_CONDITIONS: dict[str, SearchableCondition] = {}


def register(condition: SearchableCondition) -> None:
    """Add a name, also from an app above search.

    Raises:
        ValueError: for a name that exists; a mistake that stops the start.
    """
    if condition.name in _TERMS or condition.name in _CONDITIONS:
        raise ValueError(f"{condition.name}: is already a name of the search language")
    _CONDITIONS[condition.name] = condition


def find_term(name: str) -> SearchableTerm | None:
    """The exact term of that name, by the record's own name too, or of a path such as `attributes.det`; else None."""
    name = ALIASES.get(name, name)
    if is_path(name):
        return SearchableTerm(name, name, "")
    return _TERMS.get(name)


def get_condition(name: str) -> SearchableCondition:
    """The registered condition of that name."""
    return _CONDITIONS[name]


def is_path(name: str) -> bool:
    """Whether a name leads below one of the record's names, and may be searched by though it is listed nowhere."""
    return any(name.startswith(path) and len(name) > len(path) for path in PATHS)


def is_name(name: str) -> bool:
    """Whether a name that is not listed may be searched by."""
    return is_path(name) or name in ALIASES


def names() -> dict[str, str]:
    """Every name with what it means, in the order of their registration."""
    terms = {term.name: term.about for term in _TERMS.values()}
    return terms | {condition.name: condition.about for condition in _CONDITIONS.values()}


def list_values(name: str) -> tuple[str, ...] | None:
    """All values of a name, where it has a closed list of them."""
    term = find_term(name)
    if term is not None:
        return term.values
    condition = _CONDITIONS.get(name)
    return condition.values if condition else None


def list_tallies() -> dict[str, Subquery]:
    """The names of conditions that facets count, each with the expression of a message's values."""
    return {name: condition.tally() for name, condition in _CONDITIONS.items() if condition.tally is not None}


def list_literals() -> frozenset[str]:
    """The names that take `=`: those of agents, whom people may call by other names than their own."""
    agents = {name for name, term in _TERMS.items() if term.is_agent}
    return frozenset(agents | {alias for alias, name in ALIASES.items() if name in agents})


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
