"""The kinds of content of a chat, why a model stopped, and what the field tree calls the keys."""

from __future__ import annotations

from typing import Final

from .._dialect import Term
from .._record import NoteKind
from .._turns import CALLS, MEDIA, OTHER_ROLES, RESULTS, TEXTS, THOUGHTS

SPECIFICATION: Final = (
    "OpenAI Chat Completions, Responses and Agents SDK traces; Anthropic Messages; "
    "the session files of Claude Code and Codex, ShareGPT and LangChain as found"
)

BLOCKS: Final = frozenset({*TEXTS, *MEDIA, *THOUGHTS, *CALLS, *RESULTS, "tool_reference", "search_result"})

# Why a model stopped, where it did not come to its end.
STOPS: Final = {
    "length": "cut off at the limit of tokens",
    "max_tokens": "cut off at the limit of tokens",
    "max_output_tokens": "cut off at the limit of tokens",
    "content_filter": "cut off by a filter of contents",
    "refusal": "ended by a refusal",
}

# What Anthropic calls its errors.
ERROR_TYPES: Final = frozenset(
    (
        *("invalid_request_error", "authentication_error", "permission_error", "not_found_error", "request_too_large"),
        *("rate_limit_error", "api_error", "overloaded_error", "timeout_error", "billing_error"),
    )
)

NOT_OFFERED: Final = NoteKind(
    code="chat.tool-not-offered",
    severity="warning",
    group="protocol",
    about="A tool is called that is not among the tools that the request offers.",
    cites="OpenAI Chat Completions, tools",
)

LABELS: Final[dict[str, tuple[str, str | None]]] = {
    "role": ("role", None),
    "content": ("content", None),
    "messages": ("messages", None),
    "name": ("name", None),
    "tool_calls": ("calls of tools", None),
    "tool_call_id": ("id of the call", "the call that this answers"),
    "call_id": ("id of the call", "a call and its result bear the same"),
    "tool_use_id": ("id of the call", "the call that this answers"),
    "arguments": ("arguments", "JSON written as a text"),
    "is_error": ("whether the tool failed", None),
    "uuid": ("id of the line", None),
    "parentUuid": ("id of the line before", None),
    "sessionId": ("id of the session", None),
    "isSidechain": ("whether a sub-agent speaks", None),
    "agentId": ("id of the sub-agent", None),
    "isCompactSummary": ("whether it sums up what came before", None),
    "trace_id": ("id of the trace", None),
    "group_id": ("id of the conversation", None),
    "parent_id": ("id of the span around it", None),
    "span_data": ("what the span is of", None),
    "previous_response_id": ("id of the response before", None),
    "timestamp": ("time", None),
    "encrypted_content": ("encrypted reasoning", None),
}

GLOSSARY: Final = (
    *(
        Term(kind="role", code=code, name=code, meaning=f"{role.speaker[0].lower()}{role.speaker[1:]} {role.says}")
        for code, role in OTHER_ROLES.items()
    ),
    *(
        Term(kind="reason to stop", code=code, name=code, meaning=f"the answer was {meaning}")
        for code, meaning in STOPS.items()
    ),
    Term(kind="field", code="isSidechain", name="isSidechain", meaning="a sub-agent speaks, or is spoken to"),
    Term(kind="field", code="is_error", name="is_error", meaning="the tool ran, and failed"),
)
