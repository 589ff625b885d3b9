"""The roles of a chat, how each speaks, the kinds of content, and what is noted on a turn."""

from __future__ import annotations

from typing import Final, NamedTuple

from .._record import NoteKind


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
NOTES: Final = (ARGUMENTS_INVALID, NAME_MISSING, CALL_ID_MISSING, TOOL_FAILED, OTHER_SHAPE)
