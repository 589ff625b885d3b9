"""Chat transcripts: what users, models and tools said, as files and APIs of models have it.

Specification: OpenAI's Chat Completions, Responses and Agents SDK traces, Anthropic's Messages; the session files of
Claude Code and Codex, ShareGPT and LangChain are not specified anywhere and are read as they are found. A role is no
sender: who speaks is for a `name`, for an agent's span or for the log to say. A call of a tool is a request by its
id, its result the answer to it. What the record cannot hold: images, sounds and files, which stay in the text and are
named by kind and size, and counts of tokens. A streamed text is put together in the sentence of its last piece, and no
further dialect is looked for in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from .._carrier import Carrier, make_dialect
from .._dialect import Reply
from .._draft import Draft
from .._json import Path
from .._record import Message
from .._turns import NOTES
from .messages import draft_file, draft_message, score_file, score_message
from .responses import draft_item, draft_response, score_item, score_response
from .sessions import draft_line, score_line
from .streams import draft_stream, score_stream
from .tables import GLOSSARY, LABELS, NOT_OFFERED, SPECIFICATION
from .traces import draft_trace, score_trace

_HINT = re.compile(
    r'"(?:role|type|messages|conversations|choices|object|input|lc|sessionId|session_id|payload|system|event)"\s*+:'
)
Score = tuple[float, str] | None
# Each family by what says that an object is its own, and what makes drafts of it; the first that knows it reads it.
_FAMILIES: Final[tuple[tuple[Callable[[Any], Score], Callable[[Any], list[Draft]]], ...]] = (
    (score_trace, draft_trace),
    (score_line, draft_line),
    (score_stream, draft_stream),
    (score_response, draft_response),
    (score_file, draft_file),
)


def _find(data: Any) -> tuple[Score, Callable[[Any], list[Draft]]]:
    for score, draft in _FAMILIES if isinstance(data, dict) else ():
        found = score(data)
        if found:
            return found, draft
    return (score_item(data), draft_item) if isinstance(data, dict) else (None, draft_item)


def _recognise(data: Any) -> Score:
    """A list is a transcript where each of its items is one."""
    if not isinstance(data, list):
        return _find(data)[0]
    scores = [_score_entry(item) for item in data]
    return min((score for score in scores if score), default=None) if all(scores) else None


def _score_entry(item: Any) -> Score:
    return (score_trace(item) or score_item(item)) if isinstance(item, dict) else None


def _make(data: Any) -> Sequence[Draft]:
    if isinstance(data, list):
        drafts = [draft for index, item in enumerate(data) for draft in _draft_entry(item, (index,))]
    else:
        drafts = _find(data)[1](data)
    return [draft.say(".") for draft in drafts]


def _draft_entry(item: dict[str, Any], path: Path) -> list[Draft]:
    if score_trace(item):
        return draft_trace(item, path)
    return draft_item(item, path) if score_item(item) != score_message(item) else draft_message(item, path)


def _reply(message: Message) -> Sequence[Reply]:
    # The span around that of an agent says where it ran, and a handoff before it why.
    taken = Reply(whom="latest-to-me", basis="turn", why="its agent works after it was handed over to it")
    over = (taken,) if message.native_act == "agent" and message.sender is not None else ()
    if message.parent_id is None:
        return (*over, Reply(whom="previous", basis="adjacency", why="it follows in the same conversation"))
    why = "it bears the id of that call"
    # A result within a span names its call beside that span.
    called = message.correlation_id or message.parent_id
    by_call = Reply(whom="correlation-id", basis="correlation", why=why, value=called)
    by_id = Reply(whom="message-id", basis="explicit", why="it names its parent", value=message.parent_id)
    if message.performative in ("accept", "reject"):
        return (by_call,)
    return (by_call, by_id) if message.performative in ("done", "failure") else (*over, by_id)


DIALECT = make_dialect(
    Carrier(
        slug="chat",
        title="Chat transcript",
        summary="What users, models and tools said, as files and APIs of models have it.",
        specification=SPECIFICATION,
        hint=_HINT,
        recognise=_recognise,
        make=_make,
        replies=_reply,
        labels=LABELS,
        notes=NOTES,
        not_offered=NOT_OFFERED,
        glossary=GLOSSARY,
        rank=24,
    )
)
