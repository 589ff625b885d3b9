"""The roles of a chat, how each speaks, the kinds of content, and what the field tree calls its keys."""

from __future__ import annotations

from typing import Final, NamedTuple

from .._dialect import Term
from .._record import NoteKind

SPECIFICATION: Final = (
    "OpenAI Chat Completions, Responses and Agents SDK traces; Anthropic Messages; "
    "the session files of Claude Code and Codex, ShareGPT and LangChain as found"
)


class Role(NamedTuple):
    """Who speaks in a role, how it is said, and what act that is."""

    name: str
    speaker: str
    says: str
    performative: str


USER: Final = Role("user", "The user", "says", "inform")
ASSISTANT: Final = Role("assistant", "The assistant", "says", "inform")
SYSTEM: Final = Role("system", "The system prompt", "instructs the assistant", "control")
DEVELOPER: Final = Role("developer", "The developer", "instructs the assistant", "control")
TOOL: Final = Role("tool", "The tool", "answers", "done")

# The roles of OpenAI and Anthropic, by which a bare message is known.
ROLES: Final = {
    "user": USER,
    "assistant": ASSISTANT,
    "system": SYSTEM,
    "developer": DEVELOPER,
    "tool": TOOL,
    "function": TOOL,
}
# As ShareGPT and LangChain call them.
OTHER_ROLES: Final = {
    **ROLES,
    "human": USER,
    "gpt": ASSISTANT,
    "ai": ASSISTANT,
    "chatgpt": ASSISTANT,
    "bot": ASSISTANT,
    "model": ASSISTANT,
    "observation": TOOL,
}

# A block of content that is a text, and the key of the text.
TEXTS: Final = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
    "logs": "logs",
}
# A block that is no text, as it is named.
MEDIA: Final = {
    "image": "an image",
    "image_url": "an image",
    "input_image": "an image",
    "computer_screenshot": "an image",
    "input_audio": "a sound",
    "audio": "a sound",
    "file": "a file",
    "input_file": "a file",
    "document": "a document",
    "container_upload": "a file",
    "video_url": "a video",
}
THOUGHTS: Final = {"thinking": "thinking", "reasoning": "reasoning", "redacted_thinking": "data"}
CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
RESULTS: Final = frozenset(
    (
        *("tool_result", "mcp_tool_result", "web_search_tool_result", "web_fetch_tool_result"),
        *("code_execution_tool_result", "bash_code_execution_tool_result"),
        *("text_editor_code_execution_tool_result", "tool_search_tool_result"),
    )
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

ARGUMENTS_INVALID: Final = NoteKind(
    code="chat.arguments-invalid",
    severity="warning",
    group="malformed",
    about="The arguments of a call are a text that is no JSON, or one cut short; the text is kept as it is.",
    cites="OpenAI Chat Completions, tool_calls.function.arguments",
)
NAME_MISSING: Final = NoteKind(
    code="chat.tool-unnamed",
    severity="warning",
    group="protocol",
    about="A call names no tool.",
)
CALL_ID_MISSING: Final = NoteKind(
    code="chat.call-id-missing",
    severity="warning",
    group="protocol",
    about="The result of a tool names no call, so that nobody can say what it answers.",
)
TOOL_FAILED: Final = NoteKind(
    code="chat.tool-failed",
    severity="notice",
    group="protocol",
    about="A tool ran and failed: its result says so.",
)
OTHER_SHAPE: Final = NoteKind(
    code="chat.other-shape",
    severity="info",
    group="undecoded",
    about="Something within a transcript has a form that is not known here; it is shown as it stands.",
)
NOT_OFFERED: Final = NoteKind(
    code="chat.tool-not-offered",
    severity="warning",
    group="protocol",
    about="A tool is called that is not among the tools that the request offers.",
    cites="OpenAI Chat Completions, tools",
)
NOTES: Final = (ARGUMENTS_INVALID, NAME_MISSING, CALL_ID_MISSING, TOOL_FAILED, OTHER_SHAPE)

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
