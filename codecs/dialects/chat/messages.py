"""Messages with a role: Chat Completions, Anthropic, LangChain and ShareGPT, alone, in a list or in a whole file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .._draft import Draft, Offer
from .._json import Path
from .._turns import ASSISTANT, OTHER_ROLES, ROLES, SYSTEM, Turn, fill_columns, find_value, read_columns, read_text
from .tables import BLOCKS, STOPS

# What stands beside the text of a plain message in the files that people have; with another key beside a role and a
# text an object may be any program's.
_BESIDE: Final = frozenset(
    (
        *("role", "content", "name", "id", "type", "timestamp", "created_at", "created", "time", "ts", "date"),
        *("uuid", "model", "metadata", "refusal", "annotations", "audio", "function_call", "tool_calls"),
        *("tool_call_id", "reasoning", "reasoning_content", "reasoning_details", "thinking", "images", "weight"),
        *("usage", "finish_reason", "stop_reason", "stop_sequence", "conversation_id", "session_id", "thread_id"),
        *("parent_id", "message_id", "trace_id", "status", "prefix", "phase", "cache_control", "tool_name"),
        *("object", "container", "context_management", "files", "attachments", "index", "turn"),
    )
)
_LANGCHAIN: Final = frozenset({"additional_kwargs", "response_metadata", "tool_call_id", "tool_calls", "example"})
_KINDS: Final = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
_CALL: Final = ("function.name", "id", "function.arguments")


def is_content(content: Any) -> bool:
    """Whether a value is blocks of content, all of a known form."""
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(find_value(block, "type"), str) and block["type"] in BLOCKS for block in content)
    )


def score_message(item: Any) -> tuple[float, str] | None:
    """How likely an object is a message with a role, and why; None where it is not."""
    if not isinstance(item, dict):
        return None
    if _unwrap(item) is not None:
        return 0.8, "a message as LangChain writes it"
    role = item.get("role")
    if not isinstance(role, str) or role not in ROLES or item.get("type", "message") != "message":
        return None
    content = item.get("content")
    if _lists_calls(item) and (content is None or isinstance(content, (str, list))):
        return 0.9, "an assistant's message with calls of tools"
    if isinstance(item.get("tool_call_id"), str) and isinstance(content, (str, list)):
        return 0.9, "the result of a tool"
    if is_content(content):
        return 0.85, "a role and blocks of content"
    if isinstance(content, str) and _BESIDE.issuperset(item):
        return 0.7, "a role and a text"
    return (0.7, "a refusal") if content is None and isinstance(item.get("refusal"), str) else None


def _lists_calls(item: dict[str, Any]) -> bool:
    calls = item.get("tool_calls")
    old = isinstance(find_value(item, "function_call", "name"), str)
    return old or (isinstance(calls, list) and bool(calls) and all(isinstance(call, dict) for call in calls))


def _unwrap(item: dict[str, Any]) -> tuple[str, Path] | None:
    """The role of a message of LangChain, and the path to its fields."""
    if item.get("lc") == 1 and item.get("type") == "constructor":
        name = item.get("id")
        last = name[-1] if isinstance(name, list) and name and isinstance(name[-1], str) else ""
        role = _KINDS.get(last.removesuffix("Chunk").removesuffix("Message").lower())
        return (role, ("kwargs",)) if role and find_value(item, "kwargs", "content") is not None else None
    kind = item.get("type")
    role = _KINDS.get(kind) if isinstance(kind, str) else None
    if role is None or "role" in item:
        return None
    data = item.get("data")
    if isinstance(data, dict) and isinstance(data.get("content"), (str, list)) and set(item) == {"type", "data"}:
        return role, ("data",)
    if not isinstance(item.get("content"), (str, list)):
        return None
    is_bare = kind in ("human", "ai") and set(item) <= {"type", "content", "id", "name"}
    return (role, ()) if is_bare or not _LANGCHAIN.isdisjoint(item) else None


def draft_message(item: Any, path: Path = (), turn: Turn | None = None) -> list[Draft]:
    """The drafts of one message with a role.

    Args:
        path: of the message.
        turn: whose it is, where what stands around it says more than the message.
    """
    role, below = _unwrap(item) or (item.get("role"), ())
    data, path = find_value(item, *map(str, below)) if below else item, (*path, *below)
    turn = turn or Turn(ROLES.get(role if isinstance(role, str) else "", ASSISTANT), path, read_columns(data))
    name = read_text(data.get("name"))
    if turn.role.name == "tool":
        failed_at = (*path, "status") if data.get("status") == "error" else None
        own = data.get("tool_call_id")
        kind = "tool" if "tool_call_id" in data else str(role)
        turn.answer(
            own, (*path, "tool_call_id"), data.get("content"), (*path, "content"), kind, failed_at=failed_at, name=name
        )
        return turn.drafts
    if name:
        turn.columns["sender"] = name
    for key in ("reasoning_content", "reasoning", "thinking"):
        turn.think(data.get(key), (*path, key), "reasoning") if isinstance(data.get(key), str) else None
    turn.read_content(data.get("content"), (*path, "content"))
    if read_text(data.get("refusal")):
        draft = turn.begin("reject", "refusal", content=data["refusal"])
        draft.say(" refuses: ").carry((*path, "refusal"))
    for key in ("tool_calls", "invalid_tool_calls"):
        _read_calls(turn, data.get(key), (*path, key))
    if isinstance(data.get("function_call"), dict):
        turn.call(data["function_call"], (*path, "function_call"), "function_call", ("name", "id", "arguments"))
    if not turn.drafts:
        turn.begin(turn.role.performative, turn.role.name).say(f" {turn.role.says} nothing", path)
    say_stop(turn.drafts[-1], data.get("stop_reason"), (*path, "stop_reason"))
    return turn.drafts


def _read_calls(turn: Turn, calls: Any, path: Path) -> None:
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        if not isinstance(call, dict):
            continue
        keys = ("name", "id", "args")
        if isinstance(call.get("function"), dict):
            keys = _CALL
        elif isinstance(call.get("custom"), dict):
            keys = ("custom.name", "id", "custom.input")
        turn.call(call, (*path, index), "tool_call", keys, is_free=keys[2] == "custom.input")


def say_stop(draft: Draft, reason: Any, path: Path) -> None:
    """Say why the model stopped, where it did not come to its end."""
    if isinstance(reason, str) and reason in STOPS:
        draft.say(f", {STOPS[reason]}", path)


def score_file(data: dict[str, Any]) -> tuple[float, str] | None:
    """How likely an object holds a whole conversation or a completion, and why."""
    messages = data.get("messages")
    if isinstance(messages, list) and messages and all(map(score_message, messages)):
        return 0.9, "a list of messages with roles"
    said = data.get("conversations")
    if isinstance(said, list) and said and all(map(_is_said, said)):
        return 0.9, "a conversation as ShareGPT writes it"
    choices = data.get("choices")
    is_named = data.get("object") == "chat.completion"
    if isinstance(choices, list) and choices and all(_is_chosen(each, is_named=is_named) for each in choices):
        return 0.9, "a completion of a chat"
    is_message = data.get("type") == "message" and data.get("role") == "assistant" and "stop_reason" in data
    return (0.95, "a message of Anthropic") if is_message and is_content(data.get("content")) else None


def _is_chosen(choice: Any, *, is_named: bool) -> bool:
    """Whether a choice holds a message; one that says nothing is one where the object says what it is."""
    message = find_value(choice, "message")
    return score_message(message) is not None or (is_named and read_text(find_value(message, "role")) in ROLES)


def _is_said(item: Any) -> bool:
    who = find_value(item, "from")
    return isinstance(who, str) and who in OTHER_ROLES and isinstance(item.get("value"), str)


def draft_file(data: dict[str, Any]) -> list[Draft]:
    """The drafts of a whole conversation or of a completion."""
    around = read_columns(data)
    if isinstance(data.get("choices"), list):
        return _draft_choices(data["choices"], around)
    if isinstance(data.get("conversations"), list):
        return _draft_said(data["conversations"], around)
    if not isinstance(data.get("messages"), list):
        return draft_message(data)
    around["conversation_id"] = around.get("conversation_id") or around.get("message_id")
    around.pop("message_id", None)
    drafts: list[Draft] = []
    if data.get("system"):
        turn = Turn(SYSTEM, (), around)
        turn.read_content(data["system"], ("system",))
        drafts += turn.drafts
    for index, item in enumerate(data["messages"]):
        drafts += fill_columns(draft_message(item, ("messages", index)), around)
    if drafts and isinstance(data.get("tools"), list) and data["tools"]:
        drafts[0].offer = Offer(_name_tools(data["tools"]))
    return drafts


def _name_tools(tools: Sequence[Any]) -> list[str] | None:
    """The names of tools as OpenAI and Anthropic list them; None where one has none, as those that a provider runs."""
    names = [read_text(find_value(each, "function", "name")) or read_text(find_value(each, "name")) for each in tools]
    return [name for name in names if name] if all(names) else None


def _draft_choices(choices: Sequence[dict[str, Any]], around: dict[str, Any]) -> list[Draft]:
    drafts: list[Draft] = []
    for index, choice in enumerate(choices):
        path: Path = ("choices", index)
        aside = f" (in choice {index + 1} of {len(choices)})" if len(choices) > 1 else ""
        made = draft_message(
            choice["message"], (*path, "message"), Turn(ASSISTANT, (*path, "message"), around, aside=aside)
        )
        say_stop(made[-1], choice.get("finish_reason"), (*path, "finish_reason"))
        drafts += made
        around = {name: value for name, value in around.items() if name != "message_id"}
    return drafts


def _draft_said(said: Sequence[dict[str, Any]], around: dict[str, Any]) -> list[Draft]:
    """ShareGPT: an id names the whole conversation."""
    around["conversation_id"] = around.get("conversation_id") or around.pop("message_id", None)
    drafts: list[Draft] = []
    for index, item in enumerate(said):
        turn = Turn(OTHER_ROLES[item["from"]], ("conversations", index), around)
        if turn.role.name == "tool":
            turn.answer(None, turn.path, item["value"], (*turn.path, "value"), item["from"])
        else:
            turn.read_content(item["value"], (*turn.path, "value"))
        if not turn.drafts:
            turn.begin(turn.role.performative, turn.role.name).say(f" {turn.role.says} nothing", turn.path)
        drafts += turn.drafts
    return drafts
