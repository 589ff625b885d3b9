"""The short way to what is masked of a wire: whatever the text is, it masks what the long way does."""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialects
from inspector.intake.models import Record
from inspector.pages.shown.fields import cut_layers, mask_wire
from inspector.pages.shown.markup import Stretch
from inspector.threads import selectors
from inspector.threads.models import Message
from inspector.threads.selectors import reread
from tests.each import for_each

from ...codecs.fuzzing import ODD, SOUP, make_inputs, mutate

SLUGS = tuple(dialect.slug for dialect in dialects.all_dialects())
TOKEN = "ghp_" + "a1B2" * 9
SECRETS = (
    TOKEN,
    "gh\\u0070_" + TOKEN[4:],
    "ghp%5F" + TOKEN[4:],
    TOKEN[:9],
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "password=hunter22",
    "sk-proj-" + "a1B2" * 8,
    "postgres://ada:h1nter@db.example/x",
    "postgres:\\/\\/ada:h1nter@db.example/x",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQ",
    "Bearer abc.def-123456",
    '"auth":"letmein"',
    '"\\u0061uth":"letmein"',
    '"auth": {"token": "opensesame", "issuer": "me"}',
    '"token" : "opensesame',
    '"auth"',
    "letmein",
)


def pack(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def wrap(text: str) -> list[str]:
    """A text within each kind of wire that may hide it."""
    clowl = {"clowl": "0.2", "mid": "m", "ts": 1795118400, "p": "REQ", "from": "a", "to": "b", "cid": "c"}
    body = {"t": text, "d": {"q": text}}
    squeezed = base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode()
    # Between a letter and a line no space is put: the two are one where they are read.
    tokens = ["I", "k", "/", text[:3], text[3:]]
    whole = json.dumps(clowl | {"body": body, "auth": text})
    return [
        text,
        json.dumps(clowl | {"body": body}),
        json.dumps(clowl | {"body": body}, ensure_ascii=False),
        whole,
        whole.replace('"auth"', '"a\\u0075th"'),
        json.dumps(clowl | {"body": {"t": "x", "d": clowl | {"auth": {"token": text}}}}),
        json.dumps(clowl | {"body": {"t": "@"}}).replace("@", text),
        f'Here it is: {{"token": "{text}"}} as asked.',
        f'@a3|f0|c1|S0|d1|T1|k1|t"{text}"#',
        f"👽13|@bob|${pack(text)}\n--👽lingua/0.4@agent-lingua",
        f"👽13|@bob|$j:{pack(json.dumps({'t': text}))}\n--👽lingua/0.4@agent-lingua",
        f"👽13|@bob|$z:{squeezed}\n--👽lingua/0.4@agent-lingua",
        f"👽13|@bob|$r:{text}\n--👽lingua/0.4@agent-lingua",
        json.dumps({"type": "lambda", "version": "1.5.0", "lambda": f"?Uk/co '{text}'", "english": text}),
        json.dumps({"version": "1.0", "type": "assert", "tokens": tokens, "english": "x"}),
        f"?Uk/co '{text}'",
        call(text),
        call(whole),
        call(call(whole)),
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "x", "arguments": clowl | {"auth": text, "body": body}},
            }
        ),
    ]


def call(text: str) -> str:
    """A text inside a carrier's message."""
    params = {"name": "send", "arguments": {"text": text}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def make_message(wire: str, dialect: str, envelope: str = "", facts: str = "") -> Message:
    written = wire.encode("utf-8", "surrogatepass")
    return Message(record=Record(source=written, envelope=envelope, facts=facts), dialect=dialect)


def mask_by_reading(message: Message) -> list[Stretch]:
    return [each for each in cut_layers(reread(message=message)).get(0, ()) if each.kind == "masked"]


def assert_same(message: Message) -> bool:
    """Whether something is masked, which has to be the same on both ways."""
    wire, masked = mask_wire(message)
    assert (wire, list(masked)) == (message.record.wire_text, mask_by_reading(message))
    return bool(masked)


PIECES = st.sampled_from([*SECRETS, *ODD, *(piece for pieces in SOUP.values() for piece in pieces)])
TEXTS = st.lists(PIECES | st.text(st.characters(categories=None), max_size=6), max_size=12).map("".join)
WIRES = TEXTS.flatmap(lambda text: st.sampled_from(wrap(text)))


@given(WIRES, st.sampled_from(SLUGS), st.sampled_from(["", json.dumps({"sender": TOKEN}), '{"sender":"ada"}']))
def test_no_text_is_masked_otherwise(wire: str, slug: str, envelope: str) -> None:
    assert_same(make_message(wire, slug, envelope))


def test_secrets_in_all_kinds_of_wires_are_masked_alike() -> None:
    masked = Counter(
        slug for secret in SECRETS for wire in wrap(secret) for slug in SLUGS if assert_same(make_message(wire, slug))
    )
    assert set(masked) == set(SLUGS), "there has to be something to mask in every dialect"


@for_each(SLUGS)
def test_mutated_wires_with_secrets_in_them_are_masked_alike(slug: str) -> None:
    chance = random.Random(f"masked {slug}")
    wires = [wire for secret in SECRETS for wire in wrap(secret)]
    for text in make_inputs(slug, 200, seed=11):
        assert_same(make_message(text, slug))
        assert_same(make_message(mutate(text, wires, list(SECRETS), chance), slug))


@pytest.mark.parametrize(
    "wire",
    [
        '{"clowl":"0.2","mid":"m","ts":1795118400,"p":"REQ","from":"a","to":"b","cid":"c","body":{"t":"x","d":{}}}',
        '@a3|f0|c1|S0|d1|T1|k1|t"refactor"#',
        "?Uk/co",
        "👽13|@bob\n--👽lingua/0.4@agent-lingua",
        "Good morning.",
    ],
)
def test_a_wire_without_any_hint_is_not_read(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way is short: what can hold no secret is shown without being read."""

    def refuse(*given: Any, **named: Any) -> None:
        raise AssertionError("it was read")

    slug = dialects.read(wire).dialect
    monkeypatch.setattr(selectors, "read_with_facts", refuse)
    assert mask_wire(make_message(wire, slug)) == (wire, ())
