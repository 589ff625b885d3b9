"""Results and errors of MCP as drafts: what came back, for which request, and whether it went wrong."""

from __future__ import annotations

from typing import Any, Final

from .._denials import says_failure
from .._draft import Draft, Offer
from .._english import join_words, say_name
from .._json import Path
from .._jsonrpc import NOT_UNDERSTOOD, Call, list_values, read_failure, say_failure, say_values
from .._record import Failure, NoteKind
from .calls import name_request, say_content, say_input_request, say_role
from .tables import ACTIONS, ANSWERS, OF_CLIENT, STATES

ANSWERED: Final = NoteKind(
    code="mcp.tool-failed",
    severity="notice",
    group="protocol",
    about="A tool ran and failed: the result says isError, or what it holds says so.",
    cites="MCP, tools, error handling",
)

NOT_OFFERED: Final = NoteKind(
    code="mcp.tool-not-offered",
    severity="warning",
    group="protocol",
    about="A tool is called that is not in the list that its server gave before.",
    cites="MCP, tools, listing tools",
)


def find_answer(result: Any) -> str | None:
    """The key by which a result is known for one of MCP; None where it has none."""
    if not isinstance(result, dict):
        return None
    if (
        isinstance(result.get("content"), list)
        or "structuredContent" in result
        or isinstance(result.get("isError"), bool)
    ):
        return "content"
    if "role" in result and "model" in result:
        return "model"
    if result.get("action") in ("accept", "decline", "cancel"):
        return "action"
    if result.get("resultType") == "input_required":
        return "inputRequests"
    # What asks for a task is answered by the task itself.
    if {"taskId", "createdAt", "ttl"} <= result.keys() and result.get("status") in list(STATES):
        return "taskId"
    # A language server answers with a single object of contents.
    held = {**result, "contents": None} if isinstance(result.get("contents"), dict) else result
    return next((key for key, _, _ in ANSWERS if isinstance(held.get(key), (dict, list))), None)


def draft_answer(call: Call) -> Draft:
    """The draft of a result or an error."""
    result: Any = call.data.get("result")
    key = find_answer(result) if call.kind == "result" else None
    caller = "server" if key in OF_CLIENT else "client"
    parent = name_request(caller, call.id) if call.id is not None else None
    who = "The client" if caller == "server" else "The server" if key else "The other side"
    if call.kind == "error":
        return _draft_error(call, parent)
    if key == "content":
        return _draft_result(call, result, parent)
    act, says = next(((act, says) for name, act, says in ANSWERS if name == key), ("done", "answers"))
    if key == "action":
        act, says = ACTIONS[result["action"]]
        says = f"says that the user {says}"
    draft = Draft(act, "result", parent_id=parent, content=result, sender=_read_name(result))
    at = (*call.path, "result")
    draft.say_sender(who, at).say(f" {says}", at)
    _say_request(draft, call, parent)
    if key == "model":
        draft.say(f", by the model {say_name(str(result['model']))}: ", (*at, "model"))
        say_content(draft, result.get("content"), (*at, "content"))
    elif key == "action" and isinstance(result.get("content"), dict):
        draft.say(", with ").carry((*at, "content"))
    elif key == "contents":
        draft.say(": ")
        for index, each in enumerate(result["contents"]):
            is_text = isinstance(each, dict) and isinstance(each.get("text"), str)
            draft.say(" and " if index else "")
            say_content(
                draft, each["text"] if is_text else each, (*at, "contents", index, *(("text",) if is_text else ()))
            )
    elif key == "inputRequests":
        for index, (_, path, each) in enumerate(list_values(result.get(key), (*at, key))):
            draft.say("; it " if index else ": it ")
            say_input_request(draft, each, path)
    elif key == "messages":
        _say_messages(draft, result["messages"], (*at, "messages"))
    elif key == "serverInfo":
        _say_session(draft, result, at)
    elif key is not None:
        if key == "taskId":
            draft.say(f": {say_name(str(result[key]))}", (*at, key)).say(f", {result['status']}", (*at, "status"))
        else:
            _say_names(draft, result[key], (*at, key))
        if key == "tools" and isinstance(result[key], list):
            names = [each.get("name") for each in result[key] if isinstance(each, dict)]
            offered = [name for name in names if isinstance(name, str)]
            draft.offer = Offer(offered, is_whole=not result.get("nextCursor"), is_of_side=True)
    elif result not in ({}, None):
        draft.say(": ").carry(at)
    return draft.say(".")


def _read_name(result: Any) -> str | None:
    info = result.get("serverInfo") if isinstance(result, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else None


def _draft_error(call: Call, parent: str | None) -> Draft:
    failure = read_failure(call)
    code = call.data["error"].get("code")
    act = "not-understood" if code in NOT_UNDERSTOOD else "failure"
    at = (*call.path, "error")
    draft = Draft(act, "error", parent_id=parent, error=failure, content=call.data["error"])
    draft.say_sender("The other side", at).say(f" answers with {say_failure(failure)}", (*at, "code"))
    _say_request(draft, call, parent)
    if failure.message is not None:
        draft.say(": ").carry((*at, "message"))
    if call.data["error"].get("data") is not None:
        draft.say(", with ").carry((*at, "data"))
    return draft.say(".")


def _draft_result(call: Call, result: Any, parent: str | None) -> Draft:
    """What a tool gave back."""
    at = (*call.path, "result")
    failed_at = (*at, "isError") if result.get("isError") is True else _find_failure(result, at)
    is_failure = failed_at is not None
    error = Failure(message=_first_text(result.get("content"))) if is_failure else None
    draft = Draft("failure" if is_failure else "done", "result", parent_id=parent, content=result, error=error)
    draft.say_sender("The server", at)
    draft.say(
        " says that it failed to do what was asked" if is_failure else " answers",
        failed_at or at,
    )
    _say_request(draft, call, parent)
    draft.say(": ")
    if result.get("content") or "structuredContent" not in result:
        say_content(draft, result.get("content"), (*at, "content"))
    else:
        say_values(draft.carry((*at, "structuredContent")), result["structuredContent"], (*at, "structuredContent"))
    if failed_at is not None:
        is_said = failed_at[-1] == "isError"
        draft.note(ANSWERED, f"the tool ran and failed{' (isError)' if is_said else ': its result says so'}", failed_at)
    return draft.say(".")


def _find_failure(result: dict[str, Any], at: Path) -> Path | None:
    """Where a result that is not marked as an error says that it is one: in its data, or in its only text."""
    if says_failure(result.get("structuredContent")):
        return (*at, "structuredContent")
    return (*at, "content", 0, "text") if says_failure(result.get("content")) else None


def _first_text(content: Any) -> str | None:
    blocks = content if isinstance(content, list) else ()
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return next((text for text in texts if isinstance(text, str)), None)


def _say_request(draft: Draft, call: Call, parent: str | None) -> None:
    if call.id is None or parent is None:
        return
    draft.say(" (request ").say(say_name(call.id), (*call.path, "id")).say(", ")
    draft.recall("mcp-call", parent, "which is not known here", (*call.path, "id")).say(")")


def _say_messages(draft: Draft, messages: Any, path: Path) -> None:
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        role = message.get("role") if isinstance(message, dict) else None
        draft.say(f"{':' if index == 0 else ';'} {say_role(role)} says ")
        content = message.get("content") if isinstance(message, dict) else None
        say_content(draft, content, (*path, index, "content"))


def _say_session(draft: Draft, result: dict[str, Any], at: Path) -> None:
    if isinstance(result.get("protocolVersion"), str):
        draft.say(f", by MCP {say_name(result['protocolVersion'])}", (*at, "protocolVersion"))
    offered = result.get("capabilities")
    if isinstance(offered, dict):
        draft.say(f", offering {join_words([say_name(name) for name in offered]) or 'nothing'}", (*at, "capabilities"))


def _say_names(draft: Draft, listed: Any, path: Path) -> None:
    """The names of what is listed, by name or address; of a single thing its name and version."""
    items = listed if isinstance(listed, list) else [listed]
    found = [
        (item.get("name") or item.get("uri") or item.get("taskId")) if isinstance(item, dict) else item
        for item in (items if isinstance(listed, (list, dict)) else ())
    ]
    names = [say_name(str(name)) for name in found if isinstance(name, (str, int)) and name]
    draft.say(f": {join_words(names)}" if names else ": none" if not items else "", path)
