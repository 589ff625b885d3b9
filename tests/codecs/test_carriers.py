"""Carriers: what stands inside a message is read in turn, to its innermost characters, and bounded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import dialects
from tests.codecs.cases import Case, cases
from tests.codecs.test_laws import assert_covers
from tests.each import for_each

CLOWL = (
    '{"clowl":"0.2","mid":"m1","ts":1795248000,"p":"REQ","from":"planner","to":"executor","cid":"c1",'
    '"body":{"t":"count","d":{"n":1}}}'
)


def call(text: Any, number: int = 1) -> str:
    params = {"name": "send", "arguments": {"text": text}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def fold(size: int) -> str:
    """Calls inside calls, whose escapes grow twofold with each."""
    wire = CLOWL
    while len(wire) * 2 < size:
        wire = call(wire)
    return wire


def stream(count: int, *, is_ended: bool = False) -> str:
    """Events of a completion, each of which goes on; where it is ended, each second ends it."""
    return "".join(
        "data: "
        + json.dumps(
            {
                "object": "chat.completion.chunk",
                "choices": [{"delta": {"content": "x"}, "finish_reason": "stop" if is_ended and at % 2 else None}],
            }
        )
        + "\n\n"
        for at in range(count)
    )


# Of so many characters, what costs most to read.
WORST: dict[str, Callable[[int], str]] = {
    "one long text": lambda size: call("x" * size),
    "calls inside calls": fold,
    "a batch of calls": lambda size: f"[{','.join([call(CLOWL)] * (size // 300 + 1))}]",
    "a batch of short texts": lambda size: f"[{','.join([call('!Ik')] * (size // 100 + 1))}]",
    "many arguments": lambda size: call({f"k{number}": "?Uk/co" for number in range(size // 20 + 1)}),
    "a list of blocks": lambda size: json.dumps(
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "@a3|f0"}] * (size // 40 + 1)}}
    ),
    "a stream of pieces": lambda size: stream(size // 110 + 1),
    "a stream of broken events": lambda size: stream(1) + "data: {\n\n" * (size // 9),
    "a stream that ends again and again": lambda size: stream(size // 230 + 1, is_ended=True),
    "brackets in a text": lambda size: call("[" * size),
    "text before it": lambda size: "x" * size + call("x"),
}


def test_a_report_of_progress_answers_the_call_that_bears_its_token() -> None:
    rows = (
        {"id": 1, "method": "tools/call", "params": {"name": "send", "_meta": {"progressToken": 7}}},
        {"method": "notifications/progress", "params": {"progressToken": 7, "progress": 1}},
    )
    asked, reported = (dialects.decode(json.dumps({"jsonrpc": "2.0", **row})).messages[0] for row in rows)
    (way,) = dialects.get_dialect("mcp").replies(reported)
    assert (way.whom, way.value) == ("correlation-id", asked.object_id)


def test_what_is_inside_is_a_message_of_its_own_with_the_characters_it_came_from() -> None:
    reading = dialects.decode(call(CLOWL))
    outer, inner = reading.messages
    assert (outer.dialect, inner.dialect, inner.carrier_part) == (None, "clowl", 1)
    assert (inner.sender, inner.receivers, inner.performative) == ("planner", ("executor",), "request")
    layers = {layer.id: layer for layer in reading.layers}
    said = {layers[span[0]].text[span[1] : span[2]] for segment in inner.english for span in segment.spans}
    assert '"planner"' in said
    layer = layers[max(layers)]
    assert (layer.text, layer.kind) == (CLOWL, "json-string")
    assert layer.of is not None
    assert json.loads(reading.wire[layer.of[1] : layer.of[2]]) == CLOWL
    assert inner.sentence in outer.sentence


def test_what_its_own_wire_leaves_open_the_message_around_it_says() -> None:
    around = dialects.envelope_of({"from": "desk", "to": "weather", "at": "2026-11-21T09:00:00Z", "conversation": "k"})
    outer, inner = dialects.decode(call('@a3|f0|c1|S0|d1|T1|k1|t"count"#'), around).messages
    assert (outer.sender, inner.sender) == ("desk", "0")
    assert (outer.conversation_id, inner.conversation_id) == ("k", "1")
    assert inner.sent_at == outer.sent_at == "2026-11-21T09:00:00Z"
    assert [note.code for note in inner.notes if note.code.startswith("envelope.")] == []


def test_texts_inside_texts_are_read_to_a_bound() -> None:
    wire = CLOWL
    for number in range(9):
        wire = call(wire, number)
    reading = dialects.decode(wire)
    assert_covers(reading)
    assert [message.dialect for message in reading.messages] == [None, "mcp", "mcp", "mcp", "mcp"]
    assert "mcp.too-deep" in [note.code for message in reading.messages for note in message.notes]
    many = [json.loads(call("👽73|@1|$x", number)) for number in range(400)]
    reading = dialects.decode(json.dumps(many))
    assert sum(message.dialect == "agent_lingua" for message in reading.messages) == 256
    assert_covers(reading)


_INNER = {**json.loads(CLOWL), "auth": "tok-1234567890"}
_ODD = {**_INNER, "auth": 'tok-"1234567890'}
# A text in JSON twice, and what stands one object deeper: bounded as texts inside texts are.
_UNREAD = frozenset({2, 5, 8, 9})


def write_around(held: Any) -> Iterator[str]:
    """Messages of carriers that hold a value: as data, in a text of JSON, and in one that a text of JSON holds."""
    part = {"kind": "data", "data": held}
    yield call(held)
    yield json.dumps({"kind": "message", "role": "user", "messageId": "m", "parts": [part]})
    yield json.dumps({"role": "tool", "tool_call_id": "c", "content": json.dumps(held)})
    text = {"type": "text", "text": json.dumps({"reply": held})}
    yield json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [text]}})
    given = {"key": "gen_ai.tool.call.arguments", "value": {"stringValue": json.dumps({"m": held})}}
    own = {"traceId": "5" * 32, "spanId": "6" * 16, "startTimeUnixNano": "1795118400000000000"}
    named = {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}
    yield json.dumps({**own, "name": "send", "attributes": [named, given]})


@for_each([json.dumps(_INNER), _INNER, json.dumps(_ODD), _ODD])
def test_a_secret_of_what_is_inside_is_masked_around_it(inner: Any) -> None:
    for number, wire in enumerate(wire for held in (inner, {"reply": inner}) for wire in write_around(held)):
        reading = dialects.decode(wire)
        told = " ".join(json.dumps(message.to_dict()) + message.sentence for message in reading.messages)
        is_read = len(reading.messages) > 1
        assert is_read or number in _UNREAD, wire
        if is_read:
            assert [field for field in walk(reading.fields) if field.is_masked]
            assert "1234567890" not in told, wire


PLAIN = [case for case in cases("valid") if case.data["notes"] and not case.data.keys() & {"envelope", "prior", "keys"}]


@for_each(PLAIN)
def test_what_is_noted_on_a_text_inside_is_told_with_its_characters(case: Case) -> None:
    alone, inside = case.decode(), dialects.decode(call(case.wire))
    if [message.dialect for message in inside.messages[1:2]] != [alone.dialect]:
        return  # Alone it is a guess, and inside it stays text.
    layers = {layer.id: layer.text for layer in inside.layers}
    found = [*inside.notes, *(note for message in inside.messages for note in message.notes)]
    told = {(note.code, layers[note.span[0]][note.span[1] : note.span[2]] if note.span else None) for note in found}
    for note in alone.notes:
        # Whatever a record is in, it notes hidden characters where they were written.
        if note.code != "text.hidden":
            layer, start, end = note.span or (0, 0, 0)
            assert (note.code, alone.layers[layer].text[start:end] if note.span else None) in told


def walk(fields: Any) -> Any:
    for field in fields:
        yield field
        yield from walk(field.children)


def test_a_stream_of_events_in_one_text_is_read_event_by_event() -> None:
    reading = dialects.decode("\ufeff" + stream(3).replace("\n", "\r\n") + ": ping\r\ndata: [DONE]\r\n")
    assert_covers(reading)
    assert (reading.dialect, len(reading.messages), reading.notes) == ("chat", 3, ())
    names = {field.name for field in reading.fields}
    assert "unread" not in names
    assert "event" in names
    for message, at in zip(reading.messages, (0, 1, 2), strict=True):
        (span,) = [span for segment in message.english for span in segment.spans if segment.text == "x"]
        assert reading.wire[span[1] : span[2]] == '"x"'
        assert reading.wire.count("data:", 0, span[1]) == at + 1


def test_what_a_stream_holds_besides_is_noted_and_a_stream_of_something_else_is_prose() -> None:
    mixed = "HTTP/1.1 200 OK\n\n" + stream(2) + 'data: {"temperature": 3}\n\ndata: hello\n\n' + stream(1)
    reading = dialects.decode(mixed)
    assert_covers(reading)
    assert [(note.code, mixed[note.span[1] : note.span[2]].strip()) for note in reading.notes if note.span] == [
        ("chat.text-around", "HTTP/1.1 200 OK\n\ndata:"),
        ("chat.text-around", "data: hello\n\ndata:"),
        ("chat.text-around", '{"temperature": 3}'),
    ]
    for other in (
        'data: {"temperature": 3}\n\ndata: {"temperature": 4}\n\n' + stream(1),
        "event: login\ndata: {}\n\n",
        "id: 7\ndata:",
    ):
        assert dialects.decode(other).dialect == "prose", other


def test_an_event_with_its_name_is_one_record_of_a_log_and_other_lines_stay_apart() -> None:
    log = 'event: message\nid: 4\ndata: {"role": "user", "content": "hi"}\n\nevent: start\nnothing follows\n'
    found = [each.wire for each in dialects.read_log([log.encode()]) if isinstance(each, dialects.LogRecord)]
    assert found == [log.partition("\n\n")[0], "event: start", "nothing follows"]
    assert dialects.decode(found[0] or "").messages[0].sentence == "The user says: “hi”."


def test_a_stream_establishes_no_more_than_what_holds_at_its_end() -> None:
    told = dialects.tell(dialects.read(stream(400)), dialects.Context(), dialects.NoKeys())
    assert len(told.entries) < 10
