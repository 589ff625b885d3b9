"""A query's tree as one condition on messages; and whom `from:` and `to:` mean: who bears a name on the wire, and who
is known by it to people.

The invariant: no value of a query becomes part of the SQL. Conditions are made of Django's `Q`, `Exists` and `Func`,
and where a template of SQL stands in one, it is a constant of this folder: what a query says is a `Value` in it, so a
parameter of the statement. `tests/inspector/search/test_grammar.py` asks every name for values that it then looks for
in the SQL.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from django.db.models import BooleanField, F, Func, Q, Value
from django.db.models.functions import Coalesce

from inspector.accounts.models import Workspace
from inspector.accounts.selectors import list_channels
from inspector.database import IsAny
from inspector.intake.selectors import find_delivery
from inspector.threads import terms
from inspector.threads.agents import KnownNames, find_meanings, load_labels
from inspector.threads.models import Agent, key_of_name
from inspector.threads.terms import mark_workspace

from . import registry
from .language import LITERAL, Group, Node, QueryError, Term, check_value
from .registry import KNOWN, Condition, has_any_term, has_terms, has_words, write_path


def write_speakers(atom: str, names: Sequence[str], workspace: Workspace) -> Condition:
    """Messages in which one of these names stands under this atom.

    What a name means is said in `threads.agents`.
    """
    said = has_any_term(workspace, [terms.term(atom, name) for name in names])
    return said | write_called(atom, names, workspace)


def write_called(atom: str, names: Sequence[str], workspace: Workspace) -> Condition:
    """Those who are called by one of these names and bear another on the wire; an empty condition for nobody."""
    found = Q()
    for each in find_meanings(workspace=workspace, names=names) if names else ():
        said = [terms.term(atom, each.name)]
        if each.dialect:
            said.append(terms.term("dialect", each.dialect))
        condition = has_terms(workspace, said)
        if each.channel_id is not None:
            condition &= Q(channel=each.channel_id)
        elif each.but_in:
            condition &= ~Q(IsAny("channel_id", each.but_in))
        found |= condition
    return found


def list_names(beginning: str, workspace: Workspace) -> list[str]:
    """The names that begin so and by which people call an agent that bears another."""
    return KnownNames(load_labels(workspace_id=workspace.pk)).list_beginning(beginning)


def is_known(*, workspace: Workspace, name: str) -> bool:
    """Whether an agent of the workspace bears this name, spelled so, or is called by it."""
    bearers = Agent.objects.filter(workspace=workspace, name_key=key_of_name(name))
    return name in bearers.values_list("name", flat=True) or bool(find_meanings(workspace=workspace, names=[name]))


_OF_DELIVERIES: Final = ("delivery", "stored", "duplicate")


class _HasBeginning(Func):
    """Whether a message has a term that is like a pattern."""

    template = (
        "EXISTS (SELECT FROM (SELECT %(expressions)s) AS given (atoms, pattern), unnest(atoms) AS atom"
        " WHERE atom LIKE pattern)"
    )
    output_field = BooleanField()


def as_filter(query: Node, workspace: Workspace, *, may_see_secrets: bool) -> Q:
    """The query as a condition on messages.

    No term walks through other workspaces' entries of an index: each begins with its workspace.

    Args:
        query: its tree.
        may_see_secrets: whether whoever asks, or sees what comes of it, may see masked characters: else nothing is
            compared with them.

    Raises:
        QueryError: for a value that cannot be searched for.
    """
    return _write(query, workspace, may_see_secrets)


def is_of_terms(node: Node) -> bool:
    """Whether the index of words and terms finds what a query means, and only that."""
    if node.is_negated:
        return False
    if isinstance(node, Group):
        return node.parts != () and all(map(is_of_terms, node.parts))
    is_exact = not node.is_prefix and node.operator in ("", LITERAL)
    return node.name is None or (is_exact and registry.find_term(node.name) is not None)


def _write(node: Node, workspace: Workspace, may_see_secrets: bool) -> Condition:
    """Recursion goes as deep as parentheses may stand: twelve."""
    if isinstance(node, Group):
        condition = Q()
        for part in node.parts:
            written = _write(part, workspace, may_see_secrets)
            condition = condition | written if node.is_any else condition & written
    else:
        condition = _write_term(node, workspace, may_see_secrets)
    return Q(~Coalesce(condition, Value(False), output_field=BooleanField())) if node.is_negated else condition


def _write_term(term: Term, workspace: Workspace, may_see_secrets: bool) -> Condition:
    if term.name is None:
        return _write_words(term, workspace)
    exact = registry.find_term(term.name)
    if exact is None:
        condition = registry.get_condition(term.name)
        if term.name == "channel":
            check_value(term, [channel.name.casefold() for channel in list_channels(workspace=workspace)])
        elif term.name in _OF_DELIVERIES:
            _check_deliveries(term, workspace)
        if condition.values is not None:
            check_value(term, condition.values)
        if term.operator and not condition.compares:
            _refuse_operator(term)
        write = condition.write if may_see_secrets else condition.write_masked or condition.write
        return write(term, workspace) if condition.is_of_workspace else write(term)
    _check_known(term)
    is_literal = term.operator == LITERAL
    if term.operator and not is_literal and registry.is_path(term.name):
        return write_path(term, exact.atom, workspace)
    if term.operator and not is_literal:
        _refuse_operator(term)
    if exact.values is not None:
        check_value(term, exact.values)
    if term.is_prefix:
        called = list_names(term.values[0], workspace) if exact.is_agent and not is_literal else []
        return _write_prefix(exact.atom, term, workspace) | write_called(exact.atom, called, workspace)
    if exact.is_agent and not is_literal:
        return write_speakers(exact.atom, term.values, workspace)
    wanted = [terms.term(exact.atom, value) for value in term.values]
    return has_any_term(workspace, wanted)


def _check_known(term: Term) -> None:
    """Refuse a name below one whose names are the product's to say, that is none of them: nothing has it."""
    path, dot, below = (term.name or "").partition(".")
    known = KNOWN.get(f"{path}{dot}", (below,))
    if below not in known:
        hint = f"{path}. has {', '.join(known)}; texts are found by their words"
        raise QueryError(f"unknown field “{term.name}:”", term.start, term.end, hint=hint)


def _check_deliveries(term: Term, workspace: Workspace) -> None:
    """Refuse the id of a delivery that is not there; what is no id is refused by the condition."""
    for value in term.values:
        with suppress(ValueError):
            if find_delivery(workspace=workspace, delivery_id=uuid.UUID(value)) is None:
                raise QueryError(f"{term.name}: there is no delivery {value!r}", term.start, term.end)


def _refuse_operator(term: Term) -> None:
    without = ",".join(term.values)
    raise QueryError(
        f"{term.name}: cannot be compared; leave {term.operator} away, or put the value in quotes if it begins so",
        term.start,
        term.end,
        f"{'-' if term.is_negated else ''}{term.name}:{without}",
    )


def _write_prefix(atom: str, term: Term, workspace: Workspace) -> Condition:
    """Values that begin so. No index holds beginnings: each message is looked at that the rest of the query leaves."""
    if len(term.values) > 1:
        raise QueryError(f"{term.name}: takes * behind one value alone", term.start, term.end)
    beginning = mark_workspace(workspace.pk) + terms.term(atom, term.values[0])
    pattern = beginning.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return Q(_HasBeginning(F("atoms"), Value(f"{pattern}%")))


def _write_words(term: Term, workspace: Workspace) -> Condition:
    text = term.values[0]
    # A script without spaces has no words to look for: its characters are found one by one.
    words = [terms.fold(word) for word in terms.find_words(text) if not all(map(terms.is_glyph, word))]
    glyphs = sorted(terms.find_glyphs(text))
    if not words and not glyphs:
        raise QueryError(f"{text!r} has nothing that can be found by words", term.start, term.end)
    condition = Q()
    if words:
        condition &= has_words(workspace, words, is_prefix=term.is_prefix, is_phrase=term.is_phrase)
    if glyphs:
        condition &= has_terms(workspace, [f"glyph={glyph}" for glyph in glyphs])
    return condition
