"""The forms of Λ Lambda around its statements, beyond their vectors: JSON, its layers, and look-alikes of it."""

from __future__ import annotations

import json
import random
import time

import pytest

import dialects

from .test_laws import assert_covers

LOOK_ALIKES = {
    "a function's log": '{"type": "lambda", "timestamp": 1700000000, "lambda_name": "resize"}',
    "an address of a function": '{"type":"lambda","lambda":"arn:aws:lambda:eu-west-1:123:function:resize"}',
    "a number": '{"type":"lambda","lambda":0.25,"thickness":0.013}',
    "an expression": '{"type":"lambda","lambda":"x => x + 1"}',
    "a sentence": '{"type":"lambda","lambda":"Please find the data."}',
    "another type": '{"type":"message","lambda":"!Ik/da"}',
    "no type": '{"lambda":"!Ik/da"}',
    "a list": '{"type":["lambda"],"lambda":"!Ik/da"}',
    "words of a sentence": '{"version":"1.0","type":"query","tokens":["what","is","it"]}',
    "tokens without a version": '{"type":"assert","tokens":["I","k"]}',
    "tokens as numbers": '{"version":"1.0","type":"assert","tokens":[101,2003,102]}',
    "tokens as a count": '{"version":"1.0","type":"assert","tokens":250}',
    "no tokens": '{"version":"1.0","type":"assert","tokens":[]}',
    "an event": '{"type":"assert","version":"2.1","tokens":["eyJhbGciOi"],"user":"ada"}',
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_other_json_is_not_taken(name: str) -> None:
    assert dialects.detect(LOOK_ALIKES[name])[0].dialect == "prose"
    # Whoever forces the dialect is answered all the same.
    assert_covers(dialects.decode(LOOK_ALIKES[name], dialect="lambda_lang"))


TEXTS = ("!Ik/da", "?Uk/er", ".Uf/nd", "<+", "!er:un/qo", "@v2.0 !Ik", '{def:xq="a \\"b\\" c"}!Ik/xq', "~Ik/tr", "!I-k")


def write(rng: random.Random, text: str, names: dict[str, str]) -> tuple[str, dict[str, object]]:
    """A pilot envelope with its keys in any order, some left out, and any white space."""
    members: list[tuple[str, object]] = [("type", "lambda"), ("lambda", text), *names.items()]
    if rng.random() < 0.5:
        members.append(("version", rng.choice(["1.5.0", "2.0.0", "1.8"])))
    if rng.random() < 0.5:
        members.append(("english", rng.choice(["(query) it", "“quoted” — and more", "a\nb"])))
    rng.shuffle(members)
    given = dict(members)
    return json.dumps(given, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 2])), given


@pytest.mark.parametrize("seed", range(200))
def test_a_generated_envelope_tells_what_its_text_tells(seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice(TEXTS)
    names = {name: value for name, value in (("from", "oscar"), ("to", "radar"), ("id", "m-1")) if rng.random() < 0.3}
    wire, given = write(rng, text, names)
    around = dialects.Envelope(sender=names.get("from"), receivers=tuple(filter(None, [names.get("to")])))
    reading, bare = dialects.decode(wire), dialects.decode(text, around, dialect="lambda_lang")
    assert reading.dialect == "lambda_lang"
    assert_covers(reading)
    assert [layer.kind for layer in reading.layers] == ["wire", "json-string"]
    assert reading.layers[1].text == text
    _, start, end = reading.layers[1].of or (0, 0, 0)
    assert json.loads(f'"{wire[start:end]}"') == text
    for message, other in zip(reading.messages, bare.messages, strict=True):
        assert message.performative == other.performative
        assert message.content == other.content
        assert message.gloss_line == other.gloss_line
        assert message.sentence == other.sentence
    first = reading.messages[0]
    assert (first.sender, first.receivers) == (names.get("from"), tuple(filter(None, [names.get("to")])))
    if "english" in given:
        said = " ".join(part.text for part in first.also)
        assert (
            json.dumps(given["english"])[1:-1] in said or json.dumps(given["english"], ensure_ascii=False)[1:-1] in said
        )
    written = dialects.encode(reading)
    assert written.losses == ()
    assert json.loads(written.wire) == given


@pytest.mark.parametrize("text", TEXTS)
def test_every_segment_points_at_the_text_it_came_from(text: str) -> None:
    """What is told of a text in JSON points at the same characters, on the layer of that text."""
    wire = json.dumps({"type": "lambda", "lambda": text})
    reading, bare = dialects.decode(wire), dialects.decode(text, dialect="lambda_lang")
    for message, other in zip(reading.messages, bare.messages, strict=True):
        pairs = zip((*message.english, *message.gloss), (*other.english, *other.gloss), strict=True)
        for one, two in pairs:
            assert one.text == two.text
            assert [(1, *span[1:]) for span in two.spans] == list(one.spans)


def test_the_text_of_an_envelope_is_told_in_its_conversation() -> None:
    prior = [('{"type":"lambda","lambda":"{def:da=\\"the ledger\\"}"}', dialects.Envelope(sender="oscar"))]
    reading = dialects.decode('{"type":"lambda","lambda":"!Ik/da"}', prior=prior)
    assert "the ledger" in reading.messages[0].sentence
    assert "lambda_lang.sender-defined" in {note.code for note in reading.messages[0].notes}


def test_the_envelopes_ids_are_found_cheaply() -> None:
    wire = '{"type":"lambda","lambda":"!Ik","id":"m-3","conversation":"c-9"}'
    assert dialects.identify(wire) == dialects.Identity(id="m-3", conversation="c-9")


HOSTILE = {
    "deep": lambda size: '{"type":"lambda","lambda":"!Ik","x":' + "[" * size + "]" * size + "}",
    "long text": lambda size: '{"type":"lambda","lambda":"' + "!Ik " * size + '"}',
    "many keys": lambda size: '{"type":"lambda","lambda":"!Ik"' + ',"a":1' * size + "}",
    "many tokens": lambda size: '{"version":"2.0","type":"assert","tokens":["I"' + ',"k"' * size + "]}",
    "digits": lambda size: '{"type":"lambda","lambda":"!Ik","n":' + "7" * size + "}",
    "cut": lambda size: '{"type":"lambda","lambda":"!Ik","x":"' + "a" * size,
    "escapes": lambda size: '{"type":"lambda","lambda":"!Ik/' + "\\ud800" * size + '"}',
}


def measure(text: str) -> float:
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        reading = dialects.decode(text, dialect="lambda_lang")
        _ = reading.fields
        taken.append(time.perf_counter() - start)
    return min(taken)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_envelope_is_read_whole_and_in_time(name: str) -> None:
    make = HOSTILE[name]
    for size in (1, 50, 150, 900, 3000):
        reading = dialects.decode(make(size), dialect="lambda_lang")
        assert_covers(reading)
        json.dumps(reading.to_dict(), ensure_ascii=False).encode()
        dialects.detect(make(size))
    # Time grows with the text alone: ten times the text may take forty times as long on a busy machine.
    assert measure(make(5_000)) < 40 * max(measure(make(500)), 0.002)
