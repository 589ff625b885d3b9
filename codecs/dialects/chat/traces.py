"""Traces and spans as the OpenAI Agents SDK exports them: agents, generations, functions, handoffs, guardrails."""

from __future__ import annotations

from typing import Any, Final

from .._draft import Draft
from .._english import join_words, say_name
from .._json import Path
from .._record import Failure
from .._turns import ASSISTANT, TOOL, Role, Turn, fill_columns, find_value, read_columns, read_text, say_value
from .messages import draft_message, score_message
from .responses import draft_item, score_item

_PROGRAM: Final = Role("program", "The program", "notes", "inform")


def score_trace(data: dict[str, Any]) -> tuple[float, str] | None:
    """How likely an object is a trace or a span, and why."""
    if data.get("object") == "trace" and isinstance(data.get("workflow_name"), str):
        return 0.95, "a trace of the OpenAI Agents SDK"
    is_span = data.get("object") == "trace.span" and isinstance(find_value(data, "span_data", "type"), str)
    return (0.95, "a span of the OpenAI Agents SDK") if is_span else None


def draft_trace(data: dict[str, Any], path: Path = ()) -> list[Draft]:
    """The drafts of a trace or a span."""
    columns = read_columns(data)
    if data["object"] == "trace":
        columns["trace_id"] = columns.get("message_id")
    # A span does not say to which group its trace belongs: one trace is one conversation.
    columns["conversation_id"] = columns.get("trace_id")
    if data["object"] == "trace":
        columns["attributes"] = {"group": data["group_id"]} if read_text(data.get("group_id")) else {}
        draft = Turn(_PROGRAM, path, columns).begin("control", "trace", topic=data["workflow_name"])
        return [draft.say(f" runs the workflow {say_name(data['workflow_name'])}", (*path, "workflow_name"))]
    span, at = data["span_data"], (*path, "span_data")
    turn = Turn(_PROGRAM, path, columns)
    _DRAFT.get(span["type"], _draft_other)(turn, span, at)
    error = data.get("error")
    if span["type"] == "agent" and not error and read_text(data.get("ended_at")) and "parent_id" not in columns:
        # What was handed over to it is done; of a span within another that one says so.
        turn.drafts[-1].columns["status"] = "completed"
    if error and span["type"] != "function":
        _fail(turn.drafts[-1], error, (*path, "error"))
    elif span["type"] == "function":
        _answer(turn, data, span, path)
    return turn.drafts


def _fail(draft: Draft, error: Any, path: Path) -> None:
    message = read_text(find_value(error, "message")) or read_text(error)
    draft.columns |= {"performative": "failure", "error": Failure(message=message)}
    draft.say(", and fails: ", path)
    say_value(draft, error if message is None else message, (*path, "message") if isinstance(error, dict) else path)


def _draft_agent(turn: Turn, span: dict[str, Any], path: Path) -> None:
    name = read_text(span.get("name"))
    draft = turn.begin("inform", "agent", "An agent without a name", (*path, "name"), sender=name)
    draft.say(" works")
    for key, words in (("tools", " with the tools "), ("handoffs", " and may hand over to ")):
        listed = span.get(key)
        names = [say_name(each) for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
        draft.say(f"{words}{join_words(names)}" if names else "", (*path, key))


def _draft_generation(turn: Turn, span: dict[str, Any], path: Path) -> None:
    """Of the input only the last message is told: those before it are in the spans before this one."""
    given, model = span.get("input"), read_text(span.get("model"))
    draft = turn.begin("control", "generation").say(
        f" asks {f'the model {say_name(model)}' if model else 'a model'}", (*path, "model")
    )
    if isinstance(given, list) and given and score_message(given[-1]):
        count = f"{len(given)} messages, the last of which is told" if len(given) > 1 else "one message"
        draft.say(f", with {count}", (*path, "input"))
        turn.drafts += fill_columns(draft_message(given[-1], (*path, "input", len(given) - 1)), turn.columns)
    output = span.get("output")
    for index, item in enumerate(output if isinstance(output, list) else ()):
        if score_message(item):
            at: Path = (*path, "output", index)
            turn.drafts += draft_message(item, at, Turn(ASSISTANT, at, turn.columns))


def _draft_function(turn: Turn, span: dict[str, Any], path: Path) -> None:
    draft = turn.call(span, path, "function", ("name", "id", "input"))
    draft.columns["correlation_id"] = turn.drafts[0].columns.get("message_id")


def _answer(turn: Turn, data: dict[str, Any], span: dict[str, Any], path: Path) -> None:
    own, error, at = data.get("id"), data.get("error"), (*path, "span_data", "output")
    if not error and span.get("output") is None:
        return
    draft = turn.drafts[0]
    if isinstance(own, str):
        name = read_text(span.get("name"))
        draft.establish("chat-call", own, f"its call of {say_name(name)}" if name else "a call")
    back = Turn(TOOL, path, {name: value for name, value in turn.columns.items() if name != "parent_id"})
    if "ended_at" in data:
        back.columns |= {key: value for key, value in read_columns({"timestamp": data["ended_at"]}).items() if value}
    content, at = (error, (*path, "error")) if error else (span["output"], at)
    back.answer(own, (*path, "id"), content, at, "function_output", failed_at=at if error else None)
    turn.drafts += back.drafts


def _draft_handoff(turn: Turn, span: dict[str, Any], path: Path) -> None:
    giver, taker = read_text(span.get("from_agent")), read_text(span.get("to_agent"))
    draft = turn.begin(
        "delegate", "handoff", "An agent", (*path, "from_agent"), sender=giver, receivers=(taker,) if taker else None
    )
    draft.say(" hands the conversation over to ").say_receivers("an agent that is not named", (*path, "to_agent"))


def _draft_guardrail(turn: Turn, span: dict[str, Any], path: Path) -> None:
    name, is_triggered = read_text(span.get("name")), span.get("triggered") is True
    draft = turn.begin(
        "evaluate",
        "guardrail",
        f"The guardrail {say_name(name)}" if name else "A guardrail",
        (*path, "name"),
        status="triggered" if is_triggered else None,
    )
    draft.say(" stops the agent" if is_triggered else " finds nothing", (*path, "triggered"))


def _draft_tools(turn: Turn, span: dict[str, Any], path: Path) -> None:
    server, listed = read_text(span.get("server")), span.get("result")
    names = [say_name(each) for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    draft = turn.begin("inform", "mcp_tools", f"The MCP server {say_name(server)}" if server else "An MCP server")
    draft.say(f" lists its tools: {join_words(names) or 'none'}", (*path, "result"))


def _draft_response(turn: Turn, span: dict[str, Any], path: Path) -> None:
    own = read_text(span.get("response_id"))
    draft = turn.begin("inform", "response", "A model").say(" answers")
    if own:
        draft.say(" in the response ").say(say_name(own), (*path, "response_id"))
    for key in ("input", "output"):
        held = span.get(key)
        for index, item in enumerate(held if isinstance(held, list) else ()):
            if score_item(item):
                turn.drafts += draft_item(item, (*path, key, index), {**turn.columns, "message_id": None})


def _draft_other(turn: Turn, span: dict[str, Any], path: Path) -> None:
    kind, name = span["type"], read_text(span.get("name"))
    draft = turn.begin("inform", kind).say(" notes a span of the kind ").say(say_name(kind), (*path, "type"))
    draft.say(f" called {say_name(name)}" if name else "", (*path, "name"))
    for key in ("data", "input", "output"):
        if span.get(key):
            draft.say(", with ")
            say_value(draft, span[key], (*path, key))


_DRAFT: Final = {
    "agent": _draft_agent,
    "generation": _draft_generation,
    "function": _draft_function,
    "handoff": _draft_handoff,
    "guardrail": _draft_guardrail,
    "mcp_tools": _draft_tools,
    "response": _draft_response,
}
