"""Searching messages: the language's terms as SQL over the two indexes, newest first, by keyset."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime

from django.db import models
from django.db.models.expressions import RawSQL

from inspector.accounts.models import Workspace
from inspector.intake.withdrawals import has_hidden
from inspector.threads import terms
from inspector.threads.models import Message, MessageQuerySet

from . import registry
from .language import QueryError, Term, check_value, parse
from .speakers import write_speakers


def find_messages(
    *, workspace: Workspace, query: str, before: tuple[datetime, uuid.UUID] | None = None, limit: int = 50
) -> list[Message]:
    """Messages that a query means, newest first, each with its conversation.

    Args:
        workspace: whose messages.
        query: in the search language; empty for all.
        before: (order_time, id) of the last message seen.
        limit: at most this many.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    rows = _match(query, workspace).shown().select_related("conversation", "channel").defer("body", "words")
    if before:
        time, message_id = before
        rows = rows.filter(models.Q(order_time__lt=time) | models.Q(order_time=time, pk__lt=message_id))
    return list(rows.order_by("-order_time", "-id")[:limit])


def count_hidden(*, workspace: Workspace, query: str, limit: int = 1001) -> int:
    """How many messages that a query means are hidden because their deliveries were withdrawn, up to a limit.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    if not has_hidden(workspace=workspace):
        return 0
    return _match(query, workspace).hidden().values("pk")[:limit].count()


def _match(query: str, workspace: Workspace) -> MessageQuerySet:
    rows = Message.objects.filter(workspace=workspace)
    for condition, values in write_conditions(parse(query, names=registry.names()), workspace):
        rows = rows.filter(RawSQL(condition, values, output_field=models.BooleanField()))  # noqa: S611
    return rows


def write_conditions(query: Sequence[Term], workspace: Workspace) -> list[tuple[str, list[object]]]:
    """The query as SQL conditions with parameters; the values never become part of the SQL.

    The workspace's own lexeme is asked for in both indexes, so that no term walks through other workspaces' rows.
    """
    mark = terms.workspace_term(workspace.pk)
    conditions: list[tuple[str, list[object]]] = []
    for term in query:
        condition, values = _write_term(term, mark, workspace)
        conditions.append((f"(NOT COALESCE({condition}, FALSE))" if term.is_negated else f"({condition})", values))
    return conditions


def _write_term(term: Term, mark: str, workspace: Workspace) -> tuple[str, list[object]]:
    if term.name is None:
        return _write_words(term, mark)
    exact = registry.find_term(term.name)
    if exact is None:
        condition = registry.get_condition(term.name)
        if condition.values is not None:
            check_value(term, condition.values)
        return condition.write(term)
    if exact.values is not None:
        check_value(term, exact.values)
    if exact.is_agent:
        return write_speakers(exact.atom, term.values, workspace)
    wanted = [terms.term(exact.atom, value) for value in term.values]
    if len(wanted) == 1:
        return '"threads_message"."atoms" @> %s::text[]', [[mark, wanted[0]]]
    return '"threads_message"."atoms" @> %s::text[] AND "threads_message"."atoms" && %s::text[]', [[mark], wanted]


def _write_words(term: Term, mark: str) -> tuple[str, list[object]]:
    text = term.values[0]
    # A script without spaces has no words to look for: its characters are found one by one.
    words = [terms.fold(word) for word in terms.find_words(text) if not all(map(terms.is_glyph, word))]
    glyphs = sorted(terms.find_glyphs(text))
    conditions: list[str] = []
    values: list[object] = []
    if words:
        words = [terms.quote_lexeme(word) for word in words]
        if term.is_prefix:
            words[-1] += ":*"
        joint = " <-> " if term.is_phrase else " & "
        conditions.append('"threads_message"."words" @@ %s::tsquery')
        values.append(f"{terms.quote_lexeme(mark)} & ({joint.join(words)})")
    if glyphs:
        conditions.append('"threads_message"."atoms" @> %s::text[]')
        values.append([mark, *(f"glyph={glyph}" for glyph in glyphs)])
    if not conditions:
        raise QueryError(f"{text!r} has nothing that can be found by words", term.start, term.end)
    return " AND ".join(conditions), values
