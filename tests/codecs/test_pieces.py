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


def write_chunk(delta: object, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({"id": "s1", "object": "chat.completion.chunk", "choices": [choice]})


def test_a_stream_of_a_chat_is_put_together_whatever_comes_between() -> None:
    """Another stream, another dialect, and a stream of the same name that begins anew."""
    text = "Count the bricks, “all” of them. " * 20
    pieces = [write_chunk({"content": text[at : at + 3]}) for at in range(0, len(text), 3)]
    other = [piece.replace('"s1"', '"s2"') for piece in pieces]
    first = write_chunk({"role": "assistant", "content": ""})
    mixed = [wire for pair in zip(pieces, other, strict=True) for wire in pair]
    reading = tell(first, *pieces[:5], "Good morning.", first, *mixed, write_chunk({}, "stop"))
    assert f"its pieces put together: «{text}»" in reading.messages[-1].sentence


def test_chunks_that_are_no_chunks_are_read_without_fault() -> None:
    odd: tuple[object, ...] = (None, 7, [], "x", {"role": 7}, {"content": {}}, {"content": [1]}, {"tool_calls": 9})
    odder: tuple[object, ...] = (
        *({"tool_calls": [call]} for call in (None, {}, {"index": {}}, {"id": "c", "function": 3}, {"function": {}})),
        *({"tool_calls": [{"index": -1, "function": {"arguments": given}}]} for given in ("", "\ud800", 9, None)),
    )
    for delta in (*odd, *odder):
        for finish in (None, "stop"):
            assert tell(write_chunk(delta, finish)).messages
            assert tell(write_chunk({"role": "assistant"}), write_chunk(delta), write_chunk(delta, finish)).messages
    for choices in ([None], [7], [[]], [{}], [{"index": "x", "delta": {"content": "y"}, "finish_reason": 3}]):
        assert tell(json.dumps({"object": "chat.completion.chunk", "choices": choices})).messages


def test_what_other_programs_log_is_no_stream() -> None:
    """Words that a program may use for something else do not make an event."""
    others: tuple[dict[str, object], ...] = (
        *({"type": kind} for kind in ("ping", "error", "message_start", "content_block_stop", "response.completed")),
        {"type": "error", "error": {"type": "disk", "message": "full"}},
        {"type": "message_stop", "host": "a"},
        {"type": "message_delta", "delta": 3},
        {"type": "response.sent", "delta": "x"},
        {"type": "response.output_text.delta", "delta": 3},
        {"type": "stream_event", "event": {"type": "click"}},
        {"object": "chat.completion.chunk"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "resize"}},
    )
    assert [each for each in others if dialects.decode(json.dumps(each)).dialect != "prose"] == []
