"""What no single span shows: long histories, and JSON that only looks like a span."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dialects


def make_span(**attributes: str) -> dict[str, Any]:
    return {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "name": "chat",
        "startTimeUnixNano": "1795118400000000000",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }


def test_of_a_long_history_the_last_texts_are_told() -> None:
    history = [{"role": "user", "parts": [{"type": "text", "content": f"text {at}"}]} for at in range(150)]
    span = make_span(**{"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(history)})
    told = dialects.decode(json.dumps(span)).messages[0]
    assert [note.code for note in told.notes] == ["otel.more-texts"]
    assert "“text 149”" in told.sentence
    assert "“text 49”" not in told.sentence


def test_the_words_of_a_text_lead_to_its_characters() -> None:
    history = [{"role": "user", "parts": [{"type": "text", "content": 'say \u201cyes\u201d "now"'}]}]
    reading = dialects.decode(json.dumps(make_span(**{"gen_ai.input.messages": json.dumps(history)})))
    spans = [part.spans[0] for part in reading.messages[0].english if "now" in part.text]
    layers = {layer.id: layer for layer in reading.layers}
    assert [json.loads(layers[layer].text[start:end]) for layer, start, end in spans] == ['say \u201cyes\u201d "now"']
    assert layers[spans[0][0]].of is not None


@pytest.mark.parametrize(
    "logged",
    [
        {"level": "info", "message": "started", "trace_id": "5b8efff7", "span_id": "eee19b7e"},
        {"timeUnixNano": "1795118400000000000", "traceId": "5b8efff7", "spanId": "eee19b7e", "body": {}},
        {"resourceSpans": []},
        {"traceId": "5b8efff7", "spanId": "eee19b7e", "name": None, "startTimeUnixNano": "1"},
    ],
)
def test_what_only_looks_like_a_span_is_none(logged: dict[str, Any]) -> None:
    assert dialects.detect(json.dumps(logged))[0].dialect == "prose"
