"""The two indexes of search, in which each word and each exact term stands with its workspace.

A word that is common elsewhere costs nobody time, so that no search tells how often strangers use it: the workspace is
part of each entry (`words_of_workspace` and `terms_of_workspace`, which the migrations define), and not one more
condition beside it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence

from inspector.accounts.models import Workspace
from inspector.threads.telling.terms import quote_lexeme

from .registry import Condition

_WORDS = 'words_of_workspace("threads_message"."workspace_id", "threads_message"."words")'
_TERMS = 'terms_of_workspace("threads_message"."workspace_id", "threads_message"."atoms")'


def name_workspace(workspace: Workspace) -> str:
    """The four characters that begin each entry of a workspace: the last three bytes of its id, in base 64.

    Two workspaces may have the same; what is found is then still that of one of them, by the query set's own filter.
    """
    return base64.b64encode(workspace.pk.bytes[13:]).decode()


def has_terms(workspace: Workspace, wanted: Iterable[str]) -> Condition:
    """Messages that have all of these exact terms."""
    mark = name_workspace(workspace)
    return f"{_TERMS} @> %s::text[]", [[mark + term for term in wanted]]


def has_any_term(workspace: Workspace, wanted: Iterable[str]) -> Condition:
    """Messages that have at least one of these exact terms."""
    mark = name_workspace(workspace)
    return f"{_TERMS} && %s::text[]", [[mark + term for term in wanted]]


def has_words(workspace: Workspace, words: Sequence[str], *, is_prefix: bool, is_phrase: bool) -> Condition:
    """Messages with all of these folded words.

    Args:
        workspace: whose messages.
        words: at least one.
        is_prefix: whether the last one is the beginning of a word.
        is_phrase: whether they stand behind one another. The index has no places: those are asked of what it finds.
    """
    end = ":*" if is_prefix else ""
    mark = name_workspace(workspace)
    condition = f"{_WORDS} @@ %s::tsquery"
    values: list[object] = [" & ".join(quote_lexeme(mark + word) for word in words) + end]
    if is_phrase and len(words) > 1:
        condition += ' AND "threads_message"."words" @@ %s::tsquery'
        values.append(" <-> ".join(map(quote_lexeme, words)) + end)
    return condition, values
