"""Texts that come in pieces: put together when the last one comes, whatever came in between, and never without end."""

from __future__ import annotations

import json
import time

import dialects


def write_piece(text: str, *, is_added: bool = True, is_last: bool = False, artifact: str = "a1") -> str:
    update = {"taskId": "t1", "artifact": {"artifactId": artifact, "parts": [{"text": text}]}}
    return json.dumps({"artifactUpdate": {**update, "append": is_added, "lastChunk": is_last}})


def tell(*wires: str) -> dialects.Reading:
    """The last of these, told in the context of the others."""
    return dialects.decode(wires[-1], prior=[(wire, None) for wire in wires[:-1]])


def test_many_pieces_are_put_together_in_their_order() -> None:
    words = [f"word {number}, " for number in range(400)]
    wires = [write_piece(word, is_added=number > 0) for number, word in enumerate(words)]
    reading = tell(*wires, write_piece("end", is_last=True))
    assert f"its pieces put together: “{''.join(words)}end”." in reading.messages[0].sentence


def test_time_and_size_are_bounded() -> None:
    """A stream that never ends grows no faster than it is long, and what is told of it has a bound."""
    wires = [write_piece("x" * 1000, is_added=number > 0) for number in range(400)]
    started = time.thread_time()
    reading = tell(*wires, write_piece("end", is_last=True))
    assert time.thread_time() - started < 5
    assert "its pieces put together, up to 20,000 characters: “xxx" in reading.messages[0].sentence
    assert len(reading.messages[0].sentence) < 21_000


def test_a_text_that_was_put_together_has_a_layer_and_a_leaf() -> None:
    """Its sentence points to the last piece, which is there whatever the context, and to the message with the first."""
    reading = tell(write_piece("Leave ", is_added=False), write_piece("at nine", is_last=True))
    (whole,) = [segment for segment in reading.messages[0].english if segment.text == "Leave at nine"]
    ((layer, start, end),) = whole.spans
    assert layer == 0
    assert '"text": "at nine"' in reading.wire[start:end]
    assert whole.source is not None
    put = [layer for layer in reading.layers if layer.kind == "put-together"]
    assert {(each.text, each.of) for each in put} == {("Leave at nine", (0, start, end))}
    for each in put:
        assert [field.raw for field in reading.fields if field.span[0] == each.id] == ["Leave at nine"]


def test_what_claims_to_be_a_name_breaks_nothing() -> None:
    """Ids that look like the product's own, that are odd, or that are no text."""
    for artifact in ("0 a1", "#", "\ud800", "a" * 5000):
        reading = tell(
            write_piece("x", is_added=False, artifact=artifact), write_piece("y", is_last=True, artifact=artifact)
        )
        assert "“xy”" in reading.messages[0].sentence
    odd = {
        "taskId": 7,
        "id": "t",
        "artifact": {"index": {}, "parts": [{"text": 9}, None, "x"]},
        "append": True,
        "lastChunk": True,
    }
    assert tell(json.dumps(odd)).messages
