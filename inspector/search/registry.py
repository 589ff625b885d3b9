"""What can be searched by name: exact terms of messages, of which search collects a table, conditions on them, and what
other apps register.

In the two indexes of search each word and each exact term stands with its workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, Func, Q, Subquery, Value

from dialects import PERFORMATIVES, all_dialects
from inspector.accounts.models import Workspace
from inspector.threads.rendering.terms import mark_workspace, quote_lexeme


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
