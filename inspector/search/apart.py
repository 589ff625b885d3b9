"""Conditions on the two indexes of search, in which each word and each exact term stands with its workspace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.accounts.models import Workspace
from inspector.threads.rendering.terms import mark_workspace, quote_lexeme

from .registry import Condition


def has_terms(workspace: Workspace, wanted: Iterable[str]) -> Condition:
    """Messages that have all of these exact terms."""
    return '"threads_message"."atoms" @> %s::text[]', [_mark(workspace, wanted)]


def has_any_term(workspace: Workspace, wanted: Iterable[str]) -> Condition:
    """Messages that have at least one of these exact terms."""
    return '"threads_message"."atoms" && %s::text[]', [_mark(workspace, wanted)]


def has_words(workspace: Workspace, words: Sequence[str], *, is_prefix: bool, is_phrase: bool) -> Condition:
    """Messages with all of these folded words: at least one, the last perhaps only the beginning of a word, all of
    them perhaps behind one another."""
    wanted = map(quote_lexeme, _mark(workspace, words))
    query = (" <-> " if is_phrase else " & ").join(wanted) + (":*" if is_prefix else "")
    return '"threads_message"."words" @@ %s::tsquery', [query]


def _mark(workspace: Workspace, wanted: Iterable[str]) -> list[str]:
    mark = mark_workspace(workspace.pk)
    return [mark + each for each in wanted]
