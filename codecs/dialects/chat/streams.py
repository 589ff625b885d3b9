"""Streams: chunks of Chat Completions, and the events of Responses and of Anthropic's Messages.

Each tells its piece, and the last of a text or a call what they are put together. Those of Responses are not put
together: an event of theirs repeats each item in whole. What repeats others says so, and is no message anew.
"""

from __future__ import annotations

from typing import Any, Final

from .._draft import Draft
from .._english import quote, say_name
from .._json import Path
from .._record import Failure
from .._turns import ARGUMENTS_INVALID, ASSISTANT, Role, Turn, find_value, read_columns, read_text, say_content
from .messages import say_stop
from .responses import draft_item, score_item
from .tables import ERROR_TYPES

_PROGRAM: Final = Role("program", "The program", "notes", "inform")
# The kinds under which pieces are put together, and what the arguments belong to.
_TEXT, _ARGUMENTS, _CALL, _TOOL = "chat-text", "chat-arguments", "chat-streamed-call", "chat-streamed-tool"
# So many calls of one chunk's choice are told with its end.
_MAX_CALLS: Final = 16
# What a delta of Anthropic holds, and what is said of it; nothing where it is no text.
_DELTAS: Final[dict[str, tuple[str, str]]] = {
    "text_delta": ("text", " goes on: "),
    "thinking_delta": ("thinking", " goes on reasoning: "),
    "input_json_delta": ("partial_json", " goes on with the arguments: "),
    "signature_delta": ("", " signs its reasoning"),
    "citations_delta": ("", " adds a citation"),
}
# Of the events of Responses, the words for a piece, by the middle of their names.
_PIECES: Final = {
    "output_text": " goes on: ",
    "refusal": " goes on refusing: ",
    "reasoning_text": " goes on reasoning: ",
    "reasoning_summary_text": " goes on reasoning: ",
    "function_call_arguments": " goes on with the arguments: ",
    "mcp_call_arguments": " goes on with the arguments: ",
    "custom_tool_call_input": " goes on with the input: ",
    "code_interpreter_call_code": " goes on with the code: ",
}
_ENDS: Final = {
    "response.completed": "is complete",
    "response.incomplete": "is incomplete",
    "response.failed": "has failed",
    "response.cancelled": "is cancelled",
    "response.created": "is begun",
    "response.in_progress": "is in progress",
    "response.queued": "is queued",
}
_LAST: Final = ("response.completed", "response.incomplete")


def score_stream(data: dict[str, Any]) -> tuple[float, str] | None:
    """How likely an object is a piece of a stream, and why."""
    if data.get("object") == "chat.completion.chunk" and isinstance(data.get("choices"), list):
        return 0.95, "a chunk of a streamed completion"
    kind = data.get("type")
    if not isinstance(kind, str):
        return None
    if kind == "stream_event" and isinstance(data.get("event"), dict) and _is_of_anthropic(data["event"]):
        return 0.93, "an event of a streamed message, as Claude's SDK writes it"
    if _is_of_responses(kind, data):
        return 0.95, "an event of a streamed response"
    return (0.93, "an event of a streamed message of Anthropic") if _is_of_anthropic(data) else None


def _is_of_responses(kind: str, data: dict[str, Any]) -> bool:
    if kind in _ENDS:
        return isinstance(data.get("response"), dict)
    if kind in ("response.output_item.added", "response.output_item.done"):
        return score_item(data.get("item")) is not None or isinstance(find_value(data, "item", "type"), str)
    if kind in ("response.content_part.added", "response.content_part.done"):
        return isinstance(data.get("part"), dict)
    is_numbered = isinstance(data.get("sequence_number"), int)
    if kind == "error":
        return is_numbered and isinstance(data.get("message"), str)
    name, _, end = kind.removeprefix("response.").rpartition(".")
    if not kind.startswith("response.") or (name in _PIECES and end == "delta" and not read_text(data.get("delta"))):
        return False
    return is_numbered or (name in _PIECES and end in ("delta", "done"))


def _is_of_anthropic(data: dict[str, Any]) -> bool:
    kind, is_indexed = data.get("type"), isinstance(data.get("index"), int)
    if kind == "message_start":
        return isinstance(find_value(data, "message", "role"), str)
    if kind == "content_block_start":
        return is_indexed and isinstance(find_value(data, "content_block", "type"), str)
    if kind == "content_block_delta":
        return is_indexed and read_text(find_value(data, "delta", "type")) in _DELTAS
    if kind == "content_block_stop":
        return is_indexed
    if kind == "message_delta":
        return isinstance(data.get("delta"), dict) and ("stop_reason" in data["delta"] or "usage" in data)
    if kind == "error":
        return read_text(find_value(data, "error", "type")) in ERROR_TYPES
    return kind == "message_stop" and data.keys() <= {"type", "amazon-bedrock-invocationMetrics"}


def draft_stream(data: dict[str, Any]) -> list[Draft]:
    """The drafts of a piece of a stream."""
    if data.get("object") == "chat.completion.chunk":
        return _draft_chunk(data)
    columns = {name: value for name, value in read_columns(data).items() if name != "message_id"}
    if data["type"] == "stream_event":
        parent = read_text(data.get("parent_tool_use_id"))
        stream = f"{columns.get('conversation_id') or ''}/{parent or ''}"
        aside = " (as a sub-agent)" if parent else ""
        return [_draft_event(Turn(ASSISTANT, ("event",), columns, aside=aside), data["event"], ("event",), stream)]
    if _is_of_responses(data["type"], data):
        return _draft_response_event(data, columns)
    return [_draft_event(Turn(ASSISTANT, (), columns), data, (), "")]


def _draft_chunk(data: dict[str, Any]) -> list[Draft]:
    """The pieces of each choice of a chunk; what begins a call is the request that its result answers."""
    columns, drafts = read_columns(data), []
    stream = columns.pop("message_id", None) or ""
    columns["object_id"] = stream or None
    for at, choice in enumerate(data["choices"]):
        path: Path = ("choices", at)
        turn = Turn(ASSISTANT, path, columns)
        index = find_value(choice, "index")
        name = f"{stream}/{index if isinstance(index, int) else at}"
        delta = find_value(choice, "delta")
        if isinstance(delta, dict):
            _read_delta(turn, delta, (*path, "delta"), name)
        reason = read_text(find_value(choice, "finish_reason"))
        if reason is not None:
            _end(turn, (*path, "finish_reason"), name, [f"{name}/{number}" for number in range(_MAX_CALLS)])
            say_stop(turn.drafts[-1], reason, (*path, "finish_reason"))
        drafts += turn.drafts
    if not drafts:
        drafts = [Turn(ASSISTANT, (), columns).begin("progress", "chunk").say(" sends a piece that says nothing")]
    return drafts


def _read_delta(turn: Turn, delta: dict[str, Any], path: Path, name: str) -> None:
    is_first = isinstance(delta.get("role"), str)
    for key, words in (("reasoning_content", "reasoning: "), ("reasoning", "reasoning: "), ("refusal", "refusing: ")):
        if read_text(delta.get(key)):
            turn.begin("progress", key).say(f" goes on {words}").carry((*path, key))
    content = delta.get("content")
    if read_text(content):
        draft = turn.begin("progress", "chunk", content=content).say(" begins: " if is_first else " goes on: ")
        draft.carry((*path, "content")).gather(_TEXT, name, str(content), (*path, "content"), is_first=is_first)
    elif is_first:
        turn.begin("progress", "chunk").say(" begins", path).gather(_TEXT, name, "", is_first=True)
    calls = delta.get("tool_calls")
    for at, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            _read_call(turn, call, (*path, "tool_calls", at), f"{name}/{find_value(call, 'index') or 0}")


def _read_call(turn: Turn, call: dict[str, Any], path: Path, name: str) -> None:
    """A piece of a call: the first bears its id and its tool."""
    given = find_value(call, "function", "arguments")
    if read_text(call.get("id")) or read_text(find_value(call, "function", "name")):
        # Its arguments are whole in none of its pieces.
        begun = {**call, "function": {"name": find_value(call, "function", "name")}}
        draft = turn.call(begun, path, "tool_call", ("function.name", "id", "function.arguments"))
        _begin_call(draft, name, read_text(find_value(call, "function", "name")), read_text(call.get("id")))
        if read_text(given):
            draft.say(", with the arguments so far: ").carry((*path, "function", "arguments"))
    elif read_text(given):
        draft = turn.begin("progress", "chunk", content=given)
        draft.say(" goes on with the arguments: ").carry((*path, "function", "arguments"))
    else:
        return
    at, is_first = (*path, "function", "arguments"), draft.columns["performative"] == "request"
    draft.gather(_ARGUMENTS, name, read_text(given) or "", at, is_first=is_first)


def _begin_call(draft: Draft, name: str, tool: str | None, own: str | None) -> None:
    of = f" of {say_name(tool)}" if tool else ""
    draft.establish(_TOOL, name, tool or "")
    draft.establish(_CALL, name, f"; the arguments of its call{of}{f' (call {say_name(own)})' if own else ''}")


def _end(turn: Turn, path: Path, name: str, calls: list[str]) -> None:
    """The end of what comes in pieces, with what was said and called in them."""
    draft = turn.begin("inform", "chunk").say(" comes to its end", path)
    draft.say_gathered(_TEXT, name, path)
    for call in calls:
        draft.recall(_CALL, call, "", path)
        draft.say_gathered(_ARGUMENTS, call, path, " put together", invalid=ARGUMENTS_INVALID, tool=(_TOOL, call))


def _draft_event(turn: Turn, event: dict[str, Any], path: Path, stream: str) -> Draft:
    """An event of a message of Anthropic."""
    kind = str(event.get("type"))
    name = f"{stream}/{event.get('index')}"
    if kind == "content_block_start":
        return _begin_block(turn, event["content_block"], (*path, "content_block"), name)
    if kind == "content_block_delta":
        return _add_to_block(turn, event["delta"], (*path, "delta"), name)
    if kind == "content_block_stop":
        _end(turn, (*path, "type"), name, [name])
        return turn.drafts[-1]
    if kind == "error":
        error, at = event["error"], (*path, "error")
        message = read_text(error.get("message"))
        draft = turn.begin("failure", kind, _PROGRAM.speaker, error=Failure(code=error["type"], message=message))
        draft.say(f" answers with the error {say_name(error['type'])}", (*at, "type"))
        return draft.say(": ").carry((*at, "message")) if message else draft
    if kind == "message_start":
        own, model = (read_text(find_value(event, "message", key)) for key in ("id", "model"))
        draft = turn.begin("progress", kind, object_id=own).say(" begins a message", (*path, "message"))
        draft.say(f" ({say_name(own)})", (*path, "message", "id")) if own else None
        return draft.say(f", as the model {say_name(model)}", (*path, "message", "model")) if model else draft
    draft = turn.begin("progress", kind).say(" ends its message", (*path, "type"))
    say_stop(draft, find_value(event, "delta", "stop_reason"), (*path, "delta", "stop_reason"))
    return draft


def _begin_block(turn: Turn, block: dict[str, Any], path: Path, name: str) -> Draft:
    if block["type"] in ("tool_use", "server_tool_use", "mcp_tool_use"):
        draft = turn.call({**block, "input": block.get("input") or None}, path, block["type"])
        _begin_call(draft, name, read_text(block.get("name")), read_text(block.get("id")))
        return draft.gather(_ARGUMENTS, name, "", is_first=True).gather(_TEXT, name, "", is_first=True)
    key = "thinking" if block["type"] == "thinking" else "text"
    text = read_text(block.get(key)) or ""
    draft = turn.begin("progress", block["type"])
    if text:
        draft.say(" begins: ").carry((*path, key))
    elif block["type"] in ("text", "thinking"):
        draft.say(" begins a text" if key == "text" else " begins to reason", path)
    else:
        draft.say(f" sends content of the kind {say_name(block['type'])}: ", path)
        say_content(draft, block, path)
    # What a block before had under this number is not its own.
    draft.establish(_CALL, name, "").establish(_TOOL, name, "")
    return draft.gather(_TEXT, name, text, (*path, key), is_first=True).gather(_ARGUMENTS, name, "", is_first=True)


def _add_to_block(turn: Turn, delta: dict[str, Any], path: Path, name: str) -> Draft:
    key, words = _DELTAS[delta["type"]]
    text = read_text(delta.get(key)) if key else None
    if text is None:
        return turn.begin("progress", delta["type"]).say(words.removesuffix(": "), path)
    draft = turn.begin("progress", delta["type"], content=text).say(words).carry((*path, key))
    return draft.gather(_ARGUMENTS if key == "partial_json" else _TEXT, name, text, (*path, key))


def _draft_response_event(data: dict[str, Any], columns: dict[str, Any]) -> list[Draft]:
    """An event of a response: its items are told when they are done, in whole."""
    kind, turn = data["type"], Turn(ASSISTANT, (), columns)
    if kind == "response.output_item.done" and score_item(data["item"]):
        return draft_item(data["item"], ("item",), columns)
    if kind in _ENDS:
        return [_end_response(data, columns)]
    if kind.startswith(("response.output_item.", "response.content_part.")):
        key = "item" if "item" in data else "part"
        of = read_text(find_value(data, key, "type")) or "an unknown kind"
        verb = "begins" if kind.endswith(".added") else "ends"
        return [turn.begin("progress", kind).say(f" {verb} a piece of the kind {say_name(of)}", (key,))]
    if kind == "error":
        error = Failure(code=read_text(data.get("code")), message=data["message"])
        failed = turn.begin("failure", kind, _PROGRAM.speaker, error=error)
        return [failed.say(" answers with an error: ", ("type",)).carry(("message",))]
    name, _, end = str(kind).removeprefix("response.").rpartition(".")
    draft = turn.begin("progress", kind, object_id=read_text(data.get("item_id")))
    if name not in _PIECES:
        draft.say(" reports ").say(say_name(kind), ("type",))
        said = next((key for key in ("delta", "command", "annotation") if read_text(data.get(key))), None)
        return [draft.say(f": {quote(data[said])}", (said,)) if said else draft]
    if end == "delta":
        draft.columns |= {"content": data["delta"]} if data["delta"] else {}
        return [draft.say(_PIECES[name]).carry(("delta",))]
    draft.say(" comes to the end of it", ("type",))
    held = next((key for key in ("text", "refusal", "arguments", "input", "code") if read_text(data.get(key))), None)
    return [draft.say(f": {quote(data[held])}", (held,)) if held else draft]


def _end_response(data: dict[str, Any], columns: dict[str, Any]) -> Draft:
    """How a response stands; what it holds was told item by item, and is repeated."""
    response, at = data["response"], ("response",)
    own, error = read_text(response.get("id")), response.get("error")
    message, code = read_text(find_value(error, "message")), read_text(find_value(error, "code"))
    is_failure = data["type"] == "response.failed"
    failure = Failure(code=code, message=message) if is_failure else None
    draft = Turn(_PROGRAM, (), columns).begin(
        "failure" if is_failure else "progress", data["type"], object_id=own, error=failure
    )
    if data["type"] in _LAST:
        # The request after it names the response by this.
        draft.columns |= {"message_id": own} if own else {}
    draft.say(" says that the response ").say(f"{say_name(own)} " if own else "", (*at, "id"))
    draft.say(_ENDS[data["type"]], ("type",))
    say_stop(draft, find_value(response, "incomplete_details", "reason"), (*at, "incomplete_details", "reason"))
    if message:
        draft.say(": ").carry((*at, "error", "message"))
    for number, item in enumerate(response["output"] if isinstance(response.get("output"), list) else ()):
        draft.say("; it repeats " if number == 0 else ", ")
        texts = find_value(item, "content")
        said = [read_text(find_value(each, "text")) for each in (texts if isinstance(texts, list) else ())]
        kind = read_text(find_value(item, "name")) or read_text(find_value(item, "type")) or "an item"
        draft.say(quote(" ".join(filter(None, said))) if any(said) else say_name(kind), (*at, "output", number))
    return draft
