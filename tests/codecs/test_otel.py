"""What no single span shows: long histories, and JSON that only looks like a span."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import dialects


def wrap(value: Any) -> dict[str, Any]:
    """A value as OTLP's own."""
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": wrap(inner)} for key, inner in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [wrap(inner) for inner in value]}}
    return {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}


def make_span(**attributes: Any) -> dict[str, Any]:
    return {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "name": "chat",
        "startTimeUnixNano": "1795118400000000000",
        "attributes": [{"key": key, "value": wrap(value)} for key, value in attributes.items()],
    }


def test_of_a_long_history_the_last_texts_are_told() -> None:
    history = [{"role": "user", "parts": [{"type": "text", "content": f"text {at}"}]} for at in range(150)]
    span = make_span(**{"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(history)})
    told, *new = dialects.decode(json.dumps(span)).messages
    assert [note.code for note in told.notes] == ["otel.more-texts"]
    assert [message.content for message in new] == [f"text {at}" for at in range(50, 150)]
    history.append({"role": "assistant", "content": "so it is"})
    span = make_span(**{"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(history)})
    (told,) = dialects.decode(json.dumps(span)).messages
    assert [note.code for note in told.notes] == ["otel.more-texts"]
    assert "“text 149”, assistant says “so it is”" in told.sentence
    assert "“text 50”" not in told.sentence


@pytest.mark.parametrize("write", [json.dumps, list], ids=["a text of JSON", "OTLP's own list"])
def test_the_words_of_a_text_lead_to_its_characters(write: Callable[[Any], Any]) -> None:
    history = [{"role": "user", "parts": [{"type": "text", "content": 'say \u201cyes\u201d "now"'}]}]
    reading = dialects.decode(json.dumps(make_span(**{"gen_ai.input.messages": write(history)})))
    spans = [part.spans[0] for part in reading.messages[0].english if "now" in part.text]
    layers = {layer.id: layer for layer in reading.layers}
    assert [json.loads(layers[layer].text[start:end]) for layer, start, end in spans] == ['say \u201cyes\u201d "now"']
    assert (layers[spans[0][0]].of is not None) == (write is json.dumps)


CLOWL = (
    '{"clowl":"0.2","mid":"m1","ts":1795118400,"p":"REQ","from":"ada","to":"bo","cid":"c1","body":{"t":"count","d":{}},'
    '"auth":"tok-secret-9876"}'
)


@pytest.mark.parametrize("operation", ["chat", "invoke_agent"])
@pytest.mark.parametrize("write", [json.dumps, list], ids=["a text of JSON", "OTLP's own list"])
def test_what_is_secret_in_an_object_is_in_no_column(write: Callable[[Any], Any], operation: str) -> None:
    back = {"role": "tool", "parts": [{"type": "tool_call_response", "response": json.loads(CLOWL)}]}
    span = make_span(**{"gen_ai.operation.name": operation, "gen_ai.input.messages": write([back])})
    reading = dialects.decode(json.dumps(span))
    assert [message.message_id for message in reading.messages if message.dialect == "clowl"] == ["m1"]
    assert "tok-secret" not in json.dumps(reading.to_dict()["messages"])
    assert "tok-secret" not in str([field.to_dict() for field in reading.fields])


@pytest.mark.parametrize("is_model", [True, False], ids=["a call of a model", "the span of a tool"])
@pytest.mark.parametrize("is_text", [True, False], ids=["a text of JSON", "an object"])
def test_a_message_in_the_arguments_of_a_tool_is_read_to_its_characters(*, is_text: bool, is_model: bool) -> None:
    given = {"to": "bo", "text": '@a3|f0|c1|S0|d1|T1|k1|t"count"#', "n": 3}
    arguments: Any = json.dumps(given) if is_text else given
    said: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": arguments}
    if is_model:
        call = {"type": "tool_call", "name": "send", "arguments": arguments}
        said = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": [{"role": "assistant", "parts": [call]}]}
    named = {"gen_ai.agent.name": "ada", "gen_ai.tool.name": "send"}
    reading = dialects.decode(json.dumps({**make_span(), "attributes": {**named, **said}}))
    *_, outer, inner = reading.messages
    assert "text = in nSLIP" in outer.sentence if is_model else "where text is in nSLIP" in outer.sentence
    assert (inner.dialect, inner.performative, inner.carrier_part) == ("nslip", "request", outer.part)
    assert (inner.sender, len(reading.messages)) == ("0", 3 if is_model else 2)
    ((layer, start, end),) = inner.english[0].spans
    assert reading.layers[layer].text[start:end] == "S0"


def test_what_a_history_repeats_is_quoted_and_no_message_anew() -> None:
    """Each span of a model repeats all that was said before; what is secret in it is no less secret then."""
    asked = {"role": "user", "parts": [{"type": "text", "content": CLOWL}]}
    called = {"role": "assistant", "parts": [{"type": "tool_call", "name": "count", "arguments": {"n": 1}}]}
    back = {"role": "tool", "parts": [{"type": "tool_call_response", "response": CLOWL.replace('"m1"', '"m2"')}]}
    for history, own in (([asked], ["m1"]), ([asked, called, back], ["m2"]), ([asked, called, back, called], [])):
        span = make_span(**{"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(history)})
        reading = dialects.decode(json.dumps(span))
        assert [message.message_id for message in reading.messages if message.dialect == "clowl"] == own
        assert "tok-secret" not in json.dumps(reading.to_dict()["messages"])
        assert "tok-secret" not in str([field.to_dict() for field in reading.fields])


@pytest.mark.parametrize(
    "logged",
    [
        {"level": "info", "message": "started", "trace_id": "5b8efff7", "span_id": "eee19b7e"},
        {"timeUnixNano": "1795118400000000000", "startTimeUnixNano": "1795118400000000000", "asInt": "4"},
        {"timestamp": "2026-11-19T20:00:00Z", "severity": "INFO", "body": "started", "trace_id": "5b8efff7"},
        {"resourceSpans": []},
        {"resourceLogs": []},
        {"traceId": "5b8efff7", "spanId": "eee19b7e", "name": None, "startTimeUnixNano": "1"},
    ],
)
def test_what_only_looks_like_a_span_is_none(logged: dict[str, Any]) -> None:
    assert dialects.detect(json.dumps(logged))[0].dialect == "prose"
