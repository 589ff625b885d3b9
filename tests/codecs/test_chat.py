"""Chat transcripts: what is one and what is not, and that nothing of an odd one is lost or raises."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import dialects
from tests.each import for_each

from .cases import Case, cases
from .test_laws import assert_covers

# Lines of programs that have nothing to do with a chat, though their keys are those of one.
UNRELATED = (
    {"type": "error", "message": "disk full"},
    {"type": "message", "text": "deployed"},
    {"type": "user", "message": "signed in", "id": 7},
    {"type": "user", "name": "ada", "role": "owner"},
    {"type": "system", "message": "shutting down", "level": "warn"},
    {"type": "system", "content": "load 0.7"},
    {"type": "tool", "content": "hammer", "stock": 4},
    {"type": "human", "content": "female", "age": 31},
    {"type": "summary", "summary": "3 passed, 1 failed"},
    {"type": "result", "is_error": False, "result": 4},
    {"type": "reasoning", "text": "none"},
    {"type": "function_call", "function": "main", "ms": 3},
    {"role": "admin", "content": "all"},
    {"role": "user", "content": 5},
    {"role": "user", "content": "/invoices", "action": "read", "allowed": True},
    {"role": "user", "permissions": ["read"]},
    {"role": ["user"], "content": "x"},
    {"message": {"role": "user"}, "type": "audit", "id": "a"},
    {"messages": [], "total": 0},
    {"messages": [{"id": 1, "body": "hi"}]},
    {"conversations": [{"id": "c", "title": "Bricks"}]},
    {"choices": [{"text": "red"}, {"text": "blue"}]},
    {"object": "event", "id": "evt_1", "type": "charge.succeeded"},
    {"model": "embedding", "input": "bricks"},
    {"input": [{"type": "text"}], "output": []},
    {"timestamp": "2026-11-21T09:00:00Z", "type": "event", "payload": {"id": 1}},
    {"sessionId": "s", "type": "page_view", "path": "/"},
    [{"role": "user", "content": "x"}, {"role": "host", "content": "y"}],
)


def write_turns(size: int, **turn: Any) -> str:
    """A file of as many of one turn as fit into a size."""
    one = json.dumps(turn)
    return f'{{"messages":[{",".join([one] * max(1, size // len(one)))}]}}'


def write_call(arguments: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}


# Texts that take the longest to read, by what they are made of; each is about as long as it is told.
HOSTILE: dict[str, Callable[[int], str]] = {
    "turns": lambda size: write_turns(size, role="user", content="x"),
    "carried": lambda size: write_turns(size, role="user", content="!I k/co"),
    "blocks": lambda size: write_turns(size, role="user", content=[{"type": "text", "text": ""}] * 20),
    "calls": lambda size: write_turns(size, role="assistant", content=None, tool_calls=[write_call('{"a":"b"}')] * 9),
    "arguments": lambda size: write_turns(
        size,
        role="assistant",
        content=None,
        tool_calls=[write_call(json.dumps(dict.fromkeys(map(str, range(99)), "")))],
    ),
    "results": lambda size: write_turns(size, role="tool", tool_call_id="c", content='{"error":{}}'),
    "one text": lambda size: json.dumps({"role": "user", "content": "”" * (size // 6)}),
    "no arguments": lambda size: json.dumps(
        {"role": "assistant", "content": None, "tool_calls": [write_call("[" * size)]}
    ),
}


@for_each(UNRELATED)
def test_lines_of_other_programs_stay_prose(line: Any) -> None:
    assert dialects.detect(json.dumps(line))[0].dialect == "prose"


ODD = (None, True, 5, 1.5, "", "x", [], [None], {}, {"type": []}, {"type": "text", "text": 5}, [{"type": "image"}])
# A stream of events is no JSON; each of its events is here by itself.
VALID = [case for case in cases("valid") if case.dialect == "chat" and case.wire.startswith(("{", "["))]


@for_each(VALID)
def test_a_value_of_another_type_anywhere_is_read_or_is_no_transcript(case: Case) -> None:
    data = json.loads(case.wire)
    for holder, key in list(walk(data)):
        kept = holder[key]
        for odd in ODD:
            holder[key] = odd
            reading = dialects.decode(json.dumps(data), dialect="chat")
            assert reading.messages
            assert all(message.sentence for message in reading.messages)
        holder[key] = kept
    assert_covers(dialects.decode(json.dumps(data), dialect="chat"))


def walk(value: Any) -> Any:
    """Each place of a JSON value, as what holds it and its key."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from walk(inner)


def test_what_stands_in_arguments_is_placed_in_their_text() -> None:
    arguments = json.dumps({"to": "mason", "text": "@a3|f0#"})
    call = {"id": "c", "type": "function", "function": {"name": "send", "arguments": arguments}}
    reading = dialects.decode(json.dumps({"role": "assistant", "content": None, "tool_calls": [call]}))
    wire, opened, inside = reading.layers
    assert (opened.text, inside.text) == (arguments, "@a3|f0#")
    assert wire.text[slice(*opened.of[1:])] == json.dumps(arguments)
    assert opened.text[slice(*inside.of[1:])] == '"@a3|f0#"'
    assert inside.of[0] == opened.id
    said = next(part for part in reading.messages[0].english if part.text == "mason")
    layer, start, end = said.spans[0]
    assert (layer, opened.text[start:end]) == (opened.id, '"mason"')
    assert [message.dialect for message in reading.messages] == [None, "nslip"]


def test_a_named_speaker_is_the_sender_of_what_it_carries() -> None:
    said = dialects.decode(json.dumps({"role": "assistant", "name": "mason", "content": "!I k/co"})).messages
    assert [message.sender for message in said] == ["mason", "mason"]


def test_data_of_an_image_is_not_quoted() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD" * 1000}
    line = {"role": "user", "content": [{"type": "image", "source": source}]}
    assert dialects.decode(json.dumps(line)).messages[0].sentence == "The user says: an image (image/png, 3,000 bytes)."


def test_transcripts_inside_transcripts_are_read_to_a_bound() -> None:
    wire = json.dumps({"role": "user", "content": "!I k/co"})
    for _ in range(7):
        wire = json.dumps({"role": "user", "content": wire})
    reading = dialects.decode(wire)
    assert [message.dialect for message in reading.messages] == [None, "chat", "chat", "chat", "chat"]
    assert [note.code for message in reading.messages for note in message.notes] == ["chat.too-deep"]
    assert_covers(reading)


def test_all_arguments_are_told_however_many_calls_there_are() -> None:
    calls = [{"id": str(at), "function": {"name": "f", "arguments": '{"at":"here"}'}} for at in range(300)]
    reading = dialects.decode(json.dumps({"role": "assistant", "content": None, "tool_calls": calls}))
    assert all("with at = “here”" in message.sentence for message in reading.messages)
