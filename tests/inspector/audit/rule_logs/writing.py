"""Logs as they would be uploaded, written in a line or two: wires in envelopes, CLowl, chats, spans."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

# What stands below a message of agent-lingua.
FOOT: Final = "\n--👽lingua/0.4@agent-lingua"
_START: Final = datetime(2026, 11, 16, 9, tzinfo=UTC)


def say(*lines: tuple[str, str] | tuple[str, str, float]) -> str:
    """A log of wires in envelopes: (sender, wire), a minute apart, or (sender, wire, minutes since the start)."""
    rows = []
    for number, (sender, wire, *minutes) in enumerate(lines):
        at = _START + timedelta(minutes=minutes[0] if minutes else number)
        rows.append({"raw": wire, "from": sender, "conversation": "c", "at": at.isoformat()})
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def clowl(mid: str, act: str, sender: str, receiver: str, *, minute: float = 0, pid: str = "", **data: Any) -> str:
    """A line of CLowl 0.2 about the task "x"."""
    message: dict[str, Any] = {
        "clowl": "0.2",
        "mid": mid,
        "ts": int(_START.timestamp() + 60 * minute),
        "p": act,
        "from": sender,
        "to": receiver,
        "cid": "c",
    }
    if pid:
        message["pid"] = pid
    message["body"] = {"t": "x", "d": data}
    return json.dumps(message, ensure_ascii=False) + "\n"


def pack(content: bytes | dict[str, Any]) -> str:
    """A payload of agent-lingua as it is packed: Base64, of JSON where it is an object."""
    return base64.b64encode(json.dumps(content).encode() if isinstance(content, dict) else content).decode()


Line = dict[str, object]


def write_call(name: str, arguments: Line, own: str) -> Line:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": own, "type": "function", "function": function}]}


def talk(*lines: str | Line, asks: str = "Book room 7.", call: Line | None = None) -> str:
    """A transcript: somebody asks, a tool is called, gives the first of these lines, and its caller goes on."""
    result, *said = lines
    went_on = [each if isinstance(each, dict) else {"role": "assistant", "content": each} for each in said]
    messages = [
        {"role": "user", "content": asks},
        call or write_call("book", {"room": 7}, "c1"),
        {"role": "tool", "tool_call_id": "c1", "content": result},
        *went_on,
    ]
    return json.dumps({"messages": messages}) + "\n"


def answer_by_mcp(result: Line, *wires: str | Line) -> str:
    """The same by a server of tools, whose client then says or calls something in the same log."""
    call = {"method": "tools/call", "params": {"name": "book", "arguments": {"room": 7}}}
    lines: list[Line | str] = [{"id": 1, **call}, {"id": 1, "result": result}, *wires]
    raw = [each if isinstance(each, str) else json.dumps({"jsonrpc": "2.0", **each}) for each in lines]
    return say(*((("ada", "rooms", "ada")[min(at, 2)], wire) for at, wire in enumerate(raw)))


def write_span(operation: str, attributes: Line, *, fails: bool = False) -> Line:
    """A span of an agent, with attributes of GenAI."""
    said: Line = {"operation.name": operation, "agent.name": "ada", **attributes}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in said.items()}
    listed = [{"key": f"gen_ai.{name}", "value": {"stringValue": text}} for name, text in texts.items()]
    status = {"code": 2, "message": "the room is taken"} if fails else {}
    return {"name": operation, "attributes": listed, "status": status}


def run_tool(name: str, given: Line, back: str | Line | None, *, fails: bool = False) -> Line:
    """The span of a tool."""
    result: Line = {} if back is None else {"tool.call.result": back}
    return write_span("execute_tool", {"tool.name": name, "tool.call.arguments": given, **result}, fails=fails)


def ask_model(asks: str, *parts: str | Line, offers: Sequence[Line] | None = None) -> Line:
    """The span of a model: what it is asked, the words and calls that come back, and the tools that it may call."""
    texts = ({"type": "text", "content": each} if isinstance(each, str) else each for each in parts)
    given = [{"role": "user", "parts": [{"type": "text", "content": asks}]}]
    back = [{"role": "assistant", "parts": [{"type": "tool_call", **each} for each in texts]}]
    tools: Line = {} if offers is None else {"tool.definitions": offers}
    return write_span("chat", {"input.messages": given, "output.messages": back, **tools})


def trace(*spans: Line) -> str:
    """A log of spans, one after another."""
    times = ({"startTimeUnixNano": str(at), "endTimeUnixNano": str(at + 5)} for at in range(_START_NS, _START_NS + 100))
    ids = ({"traceId": "5b8efff798038103d269b633813fc60c", "spanId": f"eee19b7ec3c1{at:04x}"} for at in range(100))
    named = ({**own, "name": "x", **time, **span} for own, time, span in zip(ids, times, spans, strict=False))
    return "".join(json.dumps(each) + "\n" for each in named)


_START_NS: Final = 1_795_118_400_000_000_000


def stream_turn(*texts: str, call: tuple[str, Line] | None = None) -> str:
    """A turn of an assistant that streams: a text in these pieces, or a call whose arguments come letter by letter."""
    block: Line = (
        {"type": "tool_use", "id": "t9", "name": call[0], "input": {}} if call else {"type": "text", "text": ""}
    )
    kind, key = ("input_json_delta", "partial_json") if call else ("text_delta", "text")
    events: list[Line] = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: piece}}
            for piece in (json.dumps(call[1]) if call else texts)
        ),
        {"type": "content_block_stop", "index": 0},
    ]
    return "".join(json.dumps(each) + "\n" for each in events)


CALL_AGAIN: Final = write_call("book", {"room": 8}, "c2")
