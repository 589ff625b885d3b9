"""Requests and notifications of MCP as drafts: who asks for what, with which arguments."""

from __future__ import annotations

from typing import Any, Final

from .._draft import Draft, Offer
from .._english import join_words, quote, say_name
from .._json import Path
from .._jsonrpc import Call, list_values, say_scalar, say_values
from .._record import NoteKind
from .tables import ACTIONS, METHODS, Method

TOOL_WITHOUT_NAME: Final = NoteKind(
    code="mcp.name-missing",
    severity="warning",
    group="protocol",
    about="A call names no tool, prompt or resource.",
    cites="MCP, server features",
)
_UNKNOWN: Final = Method("unknown", "either", "calls the method")
_META: Final = "io.modelcontextprotocol/"
# What a method is about, by the key that names it.
_NAMED: Final = {
    "tools/call": ("name", "the tool"),
    "prompts/get": ("name", ""),
    "resources/read": ("uri", ""),
    "resources/subscribe": ("uri", ""),
    "resources/unsubscribe": ("uri", ""),
    "logging/setLevel": ("level", "to"),
    "tasks/get": ("taskId", ""),
    "tasks/result": ("taskId", ""),
    "tasks/cancel": ("taskId", ""),
    "notifications/resources/updated": ("uri", "namely"),
}


def draft_call(call: Call) -> Draft:
    """The draft of a request or a notification."""
    method = METHODS.get(call.method, _UNKNOWN)
    params, at = call.params, (*call.path, "params")
    caller = "client" if method.caller == "either" else method.caller
    draft = Draft(method.performative, call.method, **_read_columns(call, caller))
    draft.say_sender("One side" if method.caller == "either" else f"The {caller}", (*call.path, "method"))
    draft.say(f" {method.says}", (*call.path, "method"))
    if method is _UNKNOWN:
        draft.say(f" {quote(call.method)}", (*call.path, "method"))
    _SAY.get(call.method, _say_named)(draft, call, at)
    if call.id is not None:
        draft.say(f" (request {say_name(call.id)})", (*call.path, "id"))
        draft.establish("mcp-call", name_request(caller, call.id), _name_call(call))
    _say_arguments(draft, call.method, params, at)
    _say_responses(draft, params, at)
    if call.method == "tools/call" and isinstance(params.get("name"), str):
        draft.called = (params["name"], (*at, "name"), True)
    elif call.method == "notifications/tools/list_changed":
        draft.offer = Offer(None, is_of_side=True)
    token = _find(params, "_meta", "progressToken")
    if call.kind == "request" and isinstance(token, (str, int)):
        draft.say(f"; progress is to bear the token {say_scalar(token)}", (*at, "_meta", "progressToken"))
    return draft.say(".")


def name_request(caller: str, own: str) -> str:
    """The name of a request: each side counts its own."""
    return f"{caller}:{own}"


def say_input_request(draft: Draft, asked: Any, path: Path) -> None:
    """What a server asks for before it can answer, which is a request of its own within the answer."""
    call = Call(path, asked if isinstance(asked, dict) else {}, "request", None)
    method = METHODS.get(str(call.data.get("method")))
    if method is None or method.caller != "server":
        draft.say("asks for ").carry(path)
        return
    draft.say(method.says, (*path, "method"))
    _SAY.get(call.method, _say_named)(draft, call, (*path, "params"))


def say_role(role: Any) -> str:
    """Who speaks in a message of a prompt or a sample."""
    return f"the {role}" if role in ("user", "assistant") else say_name(role) if isinstance(role, str) else "someone"


def _name_call(call: Call) -> str:
    """A request as its answer names it."""
    name = call.params.get("name")
    if call.method == "tools/call" and isinstance(name, str):
        return f"the call of {say_name(name)}"
    return call.method if call.method in METHODS else quote(call.method)


def _read_columns(call: Call, caller: str) -> dict[str, Any]:
    params = call.params
    name = params.get("name") if call.method in ("tools/call", "prompts/get") else params.get("uri")
    columns: dict[str, Any] = {
        "correlation_id": name_request(caller, call.id) if call.id is not None else None,
        "topic": name if isinstance(name, str) else None,
        "content": params.get("arguments") if call.method in ("tools/call", "prompts/get") else params or None,
        "trace_id": _read_trace(params),
        "task_id": _text(params.get("taskId")) or _text(_find(params, "_meta", f"{_META}related-task", "taskId")),
        "sender": _text(_find(params, "clientInfo", "name") or _find(params, "_meta", f"{_META}clientInfo", "name")),
    }
    if call.method == "notifications/cancelled" and isinstance(params.get("requestId"), (str, int)):
        columns["parent_id"] = name_request(caller, str(params["requestId"]))
    if isinstance(token := _find(params, "_meta", "progressToken"), (str, int)) and call.kind == "request":
        columns["object_id"] = _name_progress(token)
    if call.method == "tools/call":
        columns["attributes"] = {"tool": name} if isinstance(name, str) else {}
    if call.method == "notifications/progress":
        columns["progress"] = _read_progress(params)
        if isinstance(params.get("progressToken"), (str, int)):
            columns["parent_id"] = _name_progress(params["progressToken"])
    return columns


def _name_progress(token: str | int) -> str:
    """The progress of a request, by the token that its reports bear."""
    return f"progress:{token}"


def _read_progress(params: dict[str, Any]) -> float | None:
    done, total = params.get("progress"), params.get("total")
    if isinstance(done, (int, float)) and isinstance(total, (int, float)) and 0 <= done <= total and total > 0:
        return round(100 * done / total, 1)
    return None


def _read_trace(params: dict[str, Any]) -> str | None:
    """The trace of W3C's traceparent, `00-<trace>-<span>-<flags>`."""
    parts = (_text(_find(params, "_meta", "traceparent")) or "").split("-")
    return parts[1] if len(parts) == 4 and len(parts[1]) == 32 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _find(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _say_named(draft: Draft, call: Call, at: Path) -> None:
    key, link = _NAMED.get(call.method, ("", ""))
    if not key:
        return
    name = call.params.get(key)
    before = f" {link}" if link else ""
    if isinstance(name, str):
        draft.say(f"{before} {say_name(name) if key != 'uri' else quote(name)}", (*at, key))
    else:
        draft.say(f"{before}, which it does not name")
        draft.note(TOOL_WITHOUT_NAME, f"{call.method} says no {key}", call.path)


def _say_session(draft: Draft, call: Call, at: Path) -> None:
    version, offered = call.params.get("protocolVersion"), call.params.get("capabilities")
    if isinstance(version, str):
        draft.say(f" by MCP {say_name(version)}", (*at, "protocolVersion"))
    info = _find(call.params, "clientInfo", "version")
    if isinstance(info, str):
        draft.say(f", its version {say_name(info)}", (*at, "clientInfo", "version"))
    if isinstance(offered, dict):
        names = join_words([say_name(name) for name in offered]) or "nothing beside it"
        draft.say(f", offering {names}", (*at, "capabilities"))


def _say_sampling(draft: Draft, call: Call, at: Path) -> None:
    if isinstance(call.params.get("systemPrompt"), str):
        draft.say(", under the instruction ").carry((*at, "systemPrompt"))
    messages = call.params.get("messages")
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        role = message.get("role") if isinstance(message, dict) else None
        draft.say(f"{':' if index == 0 else ';'} {say_role(role)} says ")
        say_content(
            draft, message.get("content") if isinstance(message, dict) else None, (*at, "messages", index, "content")
        )


def _say_elicitation(draft: Draft, call: Call, at: Path) -> None:
    if isinstance(call.params.get("message"), str):
        draft.say(": ").carry((*at, "message"))
    wanted = _find(call.params, "requestedSchema", "properties")
    if isinstance(wanted, dict) and wanted:
        names = join_words([say_name(name) for name in wanted])
        draft.say(f", for {names}", (*at, "requestedSchema", "properties"))
    if isinstance(call.params.get("url"), str):
        draft.say(f", at the address {quote(call.params['url'])}", (*at, "url"))


def _say_progress(draft: Draft, call: Call, at: Path) -> None:
    for key, before in (("progress", ": "), ("total", " of "), ("progressToken", ", for the token ")):
        value = call.params.get(key)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            draft.say(f"{before}{say_scalar(value)}", (*at, key))
    if isinstance(call.params.get("message"), str):
        draft.say(", ").carry((*at, "message"))


def _say_log(draft: Draft, call: Call, at: Path) -> None:
    level = call.params.get("level")
    draft.say(f" at level {say_name(level)}" if isinstance(level, str) else "", (*at, "level")).say(": ")
    if "data" in call.params:
        draft.carry((*at, "data"))


def _say_withdrawal(draft: Draft, call: Call, at: Path) -> None:
    own = call.params.get("requestId")
    if isinstance(own, (str, int)):
        draft.say(f" {say_scalar(own)}", (*at, "requestId"))
    if isinstance(call.params.get("reason"), str):
        draft.say(", because ").carry((*at, "reason"))


_SAY: Final = {
    "initialize": _say_session,
    "sampling/createMessage": _say_sampling,
    "elicitation/create": _say_elicitation,
    "notifications/progress": _say_progress,
    "notifications/message": _say_log,
    "notifications/cancelled": _say_withdrawal,
}


def _say_arguments(draft: Draft, method: str, params: dict[str, Any], at: Path) -> None:
    if method not in ("tools/call", "prompts/get"):
        return
    for index, (name, path, value) in enumerate(list_values(params.get("arguments"), (*at, "arguments"))):
        draft.say(" with " if index == 0 else ", ")
        if name:
            draft.say(f"{name} = ", path)
        if isinstance(value, (str, dict, list)):
            draft.carry(path)
        else:
            draft.say(say_scalar(value), path)


def _say_responses(draft: Draft, params: dict[str, Any], at: Path) -> None:
    """What the server asked for before it could answer: it comes with the same call, made again."""
    for index, (name, path, value) in enumerate(list_values(params.get("inputResponses"), (*at, "inputResponses"))):
        draft.say("; " if index else "; to what it was asked before, ")
        held = value if isinstance(value, dict) else {}
        if isinstance(held.get("action"), str) and held["action"] in ACTIONS:
            draft.say(f"the user {ACTIONS[held['action']][1]}", (*path, "action"))
            if "content" in held:
                draft.say(", with ").carry((*path, "content"))
        elif "model" in held:
            draft.say(f"the model {say_name(str(held['model']))} says ", (*path, "model"))
            say_content(draft, held.get("content"), (*path, "content"))
        else:
            draft.say(f"{name or 'the client'} answers ", path).carry(path)


def say_content(draft: Draft, content: Any, path: Path) -> None:
    """Content of a message or a result: its texts are carried, what is no text is named by its kind."""
    if isinstance(content, list):
        for index, block in enumerate(content):
            if index:
                draft.say(" and ")
            say_content(draft, block, (*path, index))
        if not content:
            draft.say("nothing", path)
        return
    kind = content.get("type") if isinstance(content, dict) else None
    if isinstance(content, str):
        say_values(draft.carry(path), content, path)
    elif kind == "text" and isinstance(content.get("text"), str):
        say_values(draft.carry((*path, "text")), content["text"], (*path, "text"))
    elif kind == "resource" and isinstance(_find(content, "resource", "text"), str):
        draft.say(f"the resource {quote(str(content['resource'].get('uri', '')))}: ", (*path, "resource"))
        draft.carry((*path, "resource", "text"))
    elif isinstance(kind, str):
        about = content.get("uri") or content.get("mimeType") or content.get("name")
        draft.say(f"content of the kind {say_name(kind)}{f' ({quote(str(about))})' if about else ''}", path)
    elif content is None:
        draft.say("nothing", path)
    else:
        draft.carry(path)
