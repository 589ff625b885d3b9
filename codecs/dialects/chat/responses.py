"""Items of OpenAI's Responses API, alone or in a request or a response."""

from __future__ import annotations

from typing import Any, Final

from .._draft import Draft
from .._english import join_words, say_name
from .._json import Path
from .._record import Failure
from .._turns import (
    ASSISTANT,
    CALL_ID_MISSING,
    ROLES,
    SYSTEM,
    TOOL,
    USER,
    Turn,
    find_value,
    read_columns,
    read_text,
    say_call,
    say_value,
)
from .messages import draft_message, is_content, say_stop, score_message

# The keys that an item of a kind has, by which it is known.
_ITEMS: Final[dict[str, tuple[str, ...]]] = {
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
    "mcp_call": ("server_label", "name", "arguments"),
    "mcp_approval_request": ("server_label", "name", "arguments"),
    "mcp_approval_response": ("approval_request_id", "approve"),
    "mcp_list_tools": ("server_label", "tools"),
    "function_call_output": ("output",),
    "custom_tool_call_output": ("call_id", "output"),
    "local_shell_call_output": ("output",),
    "shell_call_output": ("call_id", "output"),
    "computer_call_output": ("call_id", "output"),
    "apply_patch_call_output": ("call_id", "status"),
    "local_shell_call": ("call_id", "action"),
    "shell_call": ("call_id", "action"),
    "computer_call": ("call_id", "status"),
    "apply_patch_call": ("call_id", "operation"),
    "web_search_call": ("status",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("container_id",),
    "image_generation_call": ("id", "status"),
    "tool_search_call": ("arguments",),
    "tool_search_output": ("tools",),
    "additional_tools": ("tools", "role"),
    "program": ("call_id", "code"),
    "program_output": ("call_id", "result"),
    "compaction": ("encrypted_content",),
}
# Of the calls of tools that OpenAI itself runs: what they are given, and what comes back in the same item.
_BUILT_IN: Final = {
    "web_search_call": ("action", None),
    "file_search_call": ("queries", "results"),
    "code_interpreter_call": ("code", "outputs"),
    "image_generation_call": ("revised_prompt", None),
    "local_shell_call": ("action", None),
    "shell_call": ("action", None),
    "computer_call": ("action", None),
    "apply_patch_call": ("operation", None),
    "tool_search_call": ("arguments", None),
    "program": ("code", None),
}
# Under what key the result of a call of a tool stands.
_RESULTS: Final = ("output", "result")


def score_item(item: Any) -> tuple[float, str] | None:
    """How likely an object is an item of the Responses API, and why."""
    kind = find_value(item, "type")
    if not isinstance(kind, str):
        return score_message(item)
    if kind == "message" and item.get("role") in ("user", "assistant", "system", "developer"):
        return (0.9, "a message of the Responses API") if is_content(item.get("content")) else score_message(item)
    if kind == "reasoning":
        is_known = isinstance(item.get("summary"), list) or isinstance(item.get("encrypted_content"), str)
        return (0.9, "reasoning of the Responses API") if is_known else None
    keys = _ITEMS.get(kind)
    is_known = keys is not None and all(key in item for key in keys)
    return (0.9, f"an item of the Responses API ({kind})") if is_known else score_message(item)


def draft_item(item: dict[str, Any], path: Path = (), around: dict[str, Any] | None = None) -> list[Draft]:
    """The drafts of an item; `around` are the columns that what holds it gives."""
    kind = item.get("type")
    columns = {**(around or {}), **{name: value for name, value in read_columns(item).items() if value}}
    if kind in (None, "message") or kind not in {*_ITEMS, "reasoning"}:
        role = item.get("role")
        known = ROLES.get(role) if isinstance(role, str) else None
        return draft_message(item, path, Turn(known, path, columns) if known else None)
    turn = Turn(TOOL if str(kind).endswith("_output") else ASSISTANT, path, columns)
    if kind == "reasoning":
        _read_reasoning(turn, item, path)
    elif kind == "compaction":
        draft = turn.begin("inform", "compaction")
        draft.say(" sums up what came before, in what is encrypted", path)
    elif kind in ("function_call", "custom_tool_call"):
        keys = ("name", "call_id", "arguments" if kind == "function_call" else "input")
        turn.call(item, path, str(kind), keys, is_free=kind == "custom_tool_call")
    elif kind in ("additional_tools", "tool_search_output") or str(kind).startswith("mcp_"):
        _read_mcp(turn, str(kind), item, path)
    elif str(kind).endswith("_output"):
        # The id of any other is its own.
        key = "id" if kind == "local_shell_call_output" and "call_id" not in item else "call_id"
        failed_at = (*path, "status") if item.get("status") == "failed" else None
        held = next((each for each in _RESULTS if each in item), "output")
        turn.answer(item.get(key), (*path, key), item.get(held), (*path, held), str(kind), failed_at=failed_at)
    else:
        _read_built_in(turn, str(kind), item, path)
    return turn.drafts


def _read_reasoning(turn: Turn, item: dict[str, Any], path: Path) -> None:
    for key in ("summary", "content"):
        turn.think(item.get(key), (*path, key), "reasoning")
    if not turn.drafts and read_text(item.get("encrypted_content")):
        key = "encrypted_content"
        turn.think(item[key], (*path, key), "reasoning", is_sealed=True)
    if not turn.drafts:
        turn.begin("inform", "reasoning").say(" reasons, and shows nothing of it", path)


def _read_mcp(turn: Turn, kind: str, item: dict[str, Any], path: Path) -> None:
    server = read_text(item.get("server_label"))
    where = f" of the MCP server {say_name(server)}" if server else ""
    if kind == "mcp_call":
        turn.call(item, path, kind, ("name", "id", "arguments"), where=where)
        error = item.get("error")
        if error or item.get("output") is not None:
            key = "error" if error else "output"
            answer = Turn(TOOL, path, {**turn.columns, "message_id": None})
            answer.answer(
                item.get("id"),
                (*path, "id"),
                item.get(key),
                (*path, key),
                "mcp_call_output",
                failed_at=(*path, "error") if error else None,
            )
            turn.drafts += answer.drafts
    elif kind == "mcp_approval_request":
        turn.call(item, path, kind, ("name", "id", "arguments"), where=where, says="asks whether it may call")
    elif kind == "mcp_approval_response":
        parent, is_approved = read_text(item.get("approval_request_id")), item.get("approve") is True
        draft = turn.begin("accept" if is_approved else "reject", kind, USER.speaker, parent_id=parent)
        draft.say(" allows the call" if is_approved else " does not allow the call", (*path, "approve"))
        if parent:
            say_call(draft, parent, (*path, "approval_request_id"))
        else:
            draft.note(CALL_ID_MISSING, "the permission names no call", path)
    else:
        tools = item.get("tools") if isinstance(item.get("tools"), list) else []
        names = [say_name(name) for tool in tools or () if (name := read_text(find_value(tool, "name")))]
        draft = turn.begin("inform", kind, "The program")
        draft.say(f" lists the tools{where}: {join_words(names) or 'none'}", (*path, "tools"))


def _read_built_in(turn: Turn, kind: str, item: dict[str, Any], path: Path) -> None:
    given, back = _BUILT_IN[kind]
    name = kind.removesuffix("_call")
    own = "call_id" if read_text(item.get("call_id")) else "id"
    correlation = read_text(item.get(own))
    draft = turn.begin(
        "request", kind, correlation_id=correlation, topic=name, content=item.get(given), attributes={"tool": name}
    )
    draft.say(f" calls the tool {name}", (*path, "type"))
    if correlation:
        draft.say(" (call ").say(say_name(correlation), (*path, own)).say(")")
        draft.establish("chat-call", correlation, f"its call of {name}")
    if item.get(given):
        draft.say(" with ")
        say_value(draft, item[given], (*path, given))
    if item.get("status") in ("failed", "incomplete"):
        draft.say(f", which is {item['status']}", (*path, "status"))
    if back and item.get(back):
        Turn.answer(turn, item.get(own), (*path, own), item[back], (*path, back), f"{kind}_output", name=name)


def score_response(data: dict[str, Any]) -> tuple[float, str] | None:
    """How likely an object is a request or a response of the Responses API, and why."""
    if data.get("object") == "response" and isinstance(data.get("output"), list):
        return 0.95, "a response of the Responses API"
    given, goes_on = data.get("input"), read_text(data.get("previous_response_id")) is not None
    if isinstance(given, list):
        is_request = (goes_on or ("model" in data and bool(given))) and all(map(score_item, given))
    else:
        is_text = isinstance(given, str) and bool(given) and "model" in data and "instructions" in data
        is_request = is_text or (goes_on and (given is None or isinstance(given, str)))
    return (0.9, "a request to the Responses API") if is_request else None


def draft_response(data: dict[str, Any]) -> list[Draft]:
    """The drafts of a request or a response, in the order of the talk: instructions, input, output."""
    around = read_columns(data)
    own = around.pop("message_id", None)
    drafts: list[Draft] = []
    instructions = Turn(SYSTEM, (), around)
    instructions.read_content(data.get("instructions"), ("instructions",))
    drafts += instructions.drafts
    for key, role in (("input", USER), ("output", ASSISTANT)):
        held = data.get(key)
        if isinstance(held, str):
            turn = Turn(role, (), around)
            turn.read_content(held, (key,))
            drafts += turn.drafts
        for index, item in enumerate(held if isinstance(held, list) else ()):
            if score_item(item):
                drafts += draft_item(item, (key, index), around)
    error = data.get("error")
    if isinstance(error, dict):
        message, code = read_text(error.get("message")), read_text(error.get("code"))
        failed = Turn(ASSISTANT, (), around).begin(
            "failure", "error", "The program", ("error",), error=Failure(code=code, message=message)
        )
        failed.say(f" answers with the error {say_name(code or 'without a code')}", ("error", "code"))
        drafts.append(failed.say(": ").carry(("error", "message")) if message else failed)
    if not drafts and "output" not in data and "object" not in data:
        drafts.append(Turn(USER, (), around).begin("inform", "user").say(" asks a model to go on"))
    if not drafts:
        drafts.append(Turn(ASSISTANT, (), around).begin("inform", "response").say(" answers nothing"))
    say_stop(drafts[-1], find_value(data, "incomplete_details", "reason"), ("incomplete_details", "reason"))
    if own:
        # The response after it names it by this, and not by the id of an item.
        drafts[0].columns["message_id"] = own
    return drafts
