"""Requests of A2A as drafts: messages that are sent to an agent, and questions about a task, its news and its agent."""

from __future__ import annotations

from typing import Any, Final

from .._draft import Draft
from .._english import quote, say_name
from .._jsonrpc import Call, say_scalar
from .._record import NoteKind
from .shapes import ROLES, Spot, read_columns, say_parts, say_references
from .tables import METHODS, SENDING, STREAMED, Method, read_state

NO_MESSAGE: Final = NoteKind(
    code="a2a.message-missing",
    severity="warning",
    group="protocol",
    about="A request to send a message holds none.",
    cites="A2A 1.0, section 3.1.1",
)
_UNKNOWN: Final = Method("unknown", "calls a method that is not known here:", "")
# What a request sets that is not its message, as far as a reader must know of it.
_ABOUT: Final = (
    ("historyLength", ", with earlier messages up to "),
    ("contextId", ", of the conversation "),
    ("status", ", in the state "),
)


def draft_call(call: Call) -> Draft:
    """The draft of a request."""
    at = Spot(call.data, call.path)
    draft = draft_sending(at.at("params"), call) if call.method in SENDING else _draft_question(at, call)
    if call.id is not None:
        draft.establish("a2a-call", call.id, _name_call(call))
        draft.asked = ("a2a-asked", call.id)
    return draft


def _name_call(call: Call) -> str:
    return "its message" if call.method in SENDING else f"its {say_name(call.method)}"


def draft_sending(params: Spot, call: Call | None) -> Draft:
    """The draft of a message that is sent: the parameters of a call, or the body of a request over HTTP."""
    message = params.at("message")
    native = call.method if call else "message:send"
    # Before version 0.2 the task had its id from the client, and beside the message.
    own = params if native.startswith("tasks/") else message
    columns = read_columns(message) | {"correlation_id": call.id if call else None}
    columns["task_id"] = own.find("id") if own is params else own.find("taskId")
    columns["conversation_id"] = columns["conversation_id"] or params.find("sessionId")
    # What goes on with a task that the agent knows is no new request.
    is_more = own is message and columns["task_id"] is not None
    draft = Draft("inform" if is_more else "request", native, **columns)
    _say_asking(draft, message, columns["task_id"] if is_more else None)
    if native in STREAMED:
        draft.say(" (as a stream)", (*call.path, "method") if call else None)
    draft.say(": ")
    say_parts(draft, message.at("parts"))
    say_references(draft, message)
    url = _find_push(params.at("configuration")) or _find_push(params)
    if url is not None:
        draft.say(f"; news is to be sent to {quote(str(url.text))}", url.path)
    if not message.members:
        draft.note(NO_MESSAGE, f"{native} holds no message", call.path if call else params.path)
    return draft.say(".")


def draft_message(message: Spot) -> Draft:
    """The draft of a message alone, from who asks."""
    columns = read_columns(message)
    draft = Draft("request" if columns["task_id"] is None else "inform", "message", **columns)
    _say_asking(draft, message, columns["task_id"])
    say_parts(draft.say(": "), message.at("parts"))
    say_references(draft, message)
    return draft.say(".")


def _say_asking(draft: Draft, message: Spot, task: str | None) -> None:
    is_agent = ROLES.get(str(message.at("role").value)) == "agent"
    draft.say_sender("An agent" if is_agent else "The client", message.at("role").path)
    draft.say(" asks " if task is None else " tells ").say_receivers("the agent").say(", by A2A")
    if task is not None:
        draft.say(f", on the task {say_name(task)}", message.at("taskId").path)


def _find_push(held: Spot) -> Spot | None:
    for name in ("pushNotificationConfig", "taskPushNotificationConfig", "pushNotification"):
        if held.at(name, "url").text:
            return held.at(name, "url")
    return None


def _draft_question(at: Spot, call: Call) -> Draft:
    """What asks about a task or an agent."""
    method = METHODS.get(call.method, _UNKNOWN)
    params = at.at("params")
    task = params.at("taskId") if params.find("taskId") else params.at("id")
    columns: dict[str, Any] = {
        "correlation_id": call.id,
        "task_id": task.text,
        "conversation_id": params.find("contextId", "sessionId"),
        "content": call.params or None,
    }
    draft = Draft(method.performative, call.method, **columns)
    draft.say_sender("The client", at.at("method").path)
    before, is_named, after = method.says.partition("{agent}")
    draft.say(f" {before}", at.at("method").path)
    if is_named:
        draft.say_receivers("the agent").say(after, at.at("method").path)
    if method is _UNKNOWN:
        draft.say(f" {quote(call.method)}", at.at("method").path)
    elif task.text:
        draft.say(f" the task {say_name(task.text)}", task.path)
    elif "agent card" not in method.says:
        draft.say(" tasks" if call.method in ("tasks/list", "ListTasks") else " a task that it does not name")
    draft.say(", by A2A")
    for name, words in _ABOUT:
        value = params.at(name).value
        if isinstance(value, str):
            draft.say(words + say_name(read_state(value) if name == "status" else value), params.at(name).path)
        elif isinstance(value, int):
            draft.say(words + say_scalar(value), params.at(name).path)
    url = _find_push(params) or (params.at("url") if params.find("url") else None)
    if url is not None:
        draft.say(f", to the address {quote(str(url.text))}", url.path)
    return draft.say(".")
