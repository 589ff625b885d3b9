"""Secrets in the arguments of tools: in each carrier the rule finds them, and nothing that is made of it shows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from django.test import Client

import dialects
from inspector.accounts.models import Channel
from inspector.audit.models import Finding
from inspector.intake.readings import mask_layers, read_with_facts
from inspector.threads.models import MaskedWire, Message
from tests.inspector.audit.rule_logs.writing import stream_turn
from tests.lanes import begin_with

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db

# By what they are put under; what is put in, and the part of it that nobody may read.
SECRETS: Final = {
    "query": ("use ghp_" + "a1B2" * 9 + " for it", "ghp_" + "a1B2" * 9),
    "password": ("Tr0ub4dor&" + "3xQz", "Tr0ub4dor&" + "3xQz"),
}
# What only looks alike: a stand-in, a word about a secret, an example out of a manual.
NEAR: Final = {
    "query": "use AKIAIOSFODNN7" + "EXAMPLE for it",
    "password": "<your password>",
    "token_limit": "4096",
}
Arguments = dict[str, Any]


def _span(number: int, **attributes: str) -> str:
    said = [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()]
    span = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": f"eee19b7ec3c1{number:04x}", "attributes": said}
    return json.dumps({**span, "name": "execute_tool find", "startTimeUnixNano": "1795118403000000000"})


def _call_by_a2a(part: Arguments) -> str:
    message = {"kind": "message", "role": "user", "messageId": "m1", "parts": [part]}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}})


def _call_by_mcp(arguments: Arguments) -> Arguments:
    params = {"name": "find", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def _call_by_chat(arguments: str) -> str:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": arguments}}
    return json.dumps({"role": "assistant", "content": None, "tool_calls": [call]})


# Each carrier, and how it writes a call: as an object, as a text of JSON, inside another, with escapes, cut short.
CALLS: Final[dict[str, tuple[str, Callable[[Arguments], str]]]] = {
    "mcp": ("mcp", lambda given: json.dumps(_call_by_mcp(given))),
    "mcp, deep": ("mcp", lambda given: json.dumps(_call_by_mcp({"options": [{"login": given}]}))),
    "a2a, data": ("a2a", lambda given: _call_by_a2a({"kind": "data", "data": given})),
    "a2a, text": ("a2a", lambda given: _call_by_a2a({"kind": "text", "text": json.dumps(given)})),
    "a2a, mcp inside": ("a2a", lambda given: _call_by_a2a({"kind": "data", "data": _call_by_mcp(given)})),
    "otel": (
        "otel",
        lambda given: _span(1, gen_ai__tool__name="find", gen_ai__tool__call__arguments=json.dumps(given)),
    ),
    "otel, openinference": (
        "otel",
        lambda given: _span(2, openinference__span__kind="TOOL", input__value=json.dumps(given)),
    ),
    "otel, chat inside": (
        "otel",
        lambda given: _span(
            3,
            gen_ai__operation__name="chat",
            gen_ai__output__messages=json.dumps([{"type": "tool_call", "name": "find", "arguments": given}]),
        ),
    ),
    "chat": ("chat", lambda given: _call_by_chat(json.dumps(given))),
    "chat, cut short": ("chat", lambda given: _call_by_chat(json.dumps(given)[:-1])),
    "chat, escapes": (
        "chat",
        lambda given: _call_by_chat(json.dumps(given).replace("B", "\\u0042")),
    ),
    "chat, blocks": (
        "chat",
        lambda given: json.dumps(
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": given}]}
        ),
    ),
    "chat, responses": (
        "chat",
        lambda given: json.dumps(
            {"type": "function_call", "call_id": "c1", "name": "find", "arguments": json.dumps(given)}
        ),
    ),
}


def test_every_carrier_has_calls_here() -> None:
    carriers = {each.slug for each in dialects.all_dialects() if each.is_carrier}
    assert {dialect for dialect, _ in CALLS.values()} == carriers


def test_a_secret_in_arguments_is_found_and_masked(cast: Cast) -> None:
    where, wires = {}, {}
    for name, (dialect, write) in CALLS.items():
        for key, (value, secret) in SECRETS.items():
            channel = Channel.objects.create(workspace=cast.workspace, name=f"{name} {key}")
            where[channel.pk] = (name, key, dialect, secret)
            wires[name, key] = wire = write({key: value, "limit": 3})
            deliver(cast, json.dumps({"raw": wire}).encode() + b"\n", channel=channel, name="calls.jsonl")
    resolve_all()
    found = set(Finding.objects.filter(rule="token-in-clear", holds=True).values_list("channel", flat=True))
    assert [case[:2] for pk, case in where.items() if pk not in found] == []
    rows = list(Message.objects.filter(channel__in=where).values_list("channel", "dialect", "english", "body", "words"))
    assert {where[row[0]][:2] for row in rows} == set(wires)
    assert [where[row[0]][:2] for row in rows if row[1] != where[row[0]][2] and "inside" not in where[row[0]][0]] == []
    assert [where[row[0]][:2] for row in rows if where[row[0]][3] in " ".join(map(str, row[2:]))] == []
    told = Finding.objects.values_list("channel", "text", "key")
    assert [where[pk][:2] for pk, *texts in told if where[pk][3] in " ".join(map(str, texts))] == []
    # The wire as it is shown to whoever may not see secrets, each layer of it.
    for name, key, _, secret in where.values():
        reading = read_with_facts(wires[name, key], "", "")
        assert secret not in json.dumps(reading.to_dict()["messages"]), "nor before it is told"
        shown = "\n".join(mask_layers(reading))
        assert secret not in shown, (name, key)
        assert "•" in shown, (name, key)
        assert "limit" in shown, "what is no secret stays readable"


# Passwords by their name that JSON writes otherwise than they are meant: with an escaped letter, with a quotation mark.
@pytest.mark.parametrize("secret", ["Tr0\u00fcb4dor&3xQz", 'Tr0ub"4dor&3xQz'], ids=["letter", "quotation mark"])
def test_a_password_that_is_written_with_escapes_is_masked(secret: str) -> None:
    shown = []
    for _, write in CALLS.values():
        reading = read_with_facts(write({"password": secret}), "", "")
        shown += [str(message.content) for message in reading.messages] + mask_layers(reading)
    assert [text for text in shown if secret[-8:] in text] == []


def test_what_only_looks_like_a_secret_is_let_pass(cast: Cast) -> None:
    for name, (_, write) in CALLS.items():
        channel = Channel.objects.create(workspace=cast.workspace, name=name)
        deliver(cast, json.dumps({"raw": write(dict(NEAR))}).encode() + b"\n", channel=channel, name="calls.jsonl")
    resolve_all()
    found = Finding.objects.filter(rule="token-in-clear").values_list("channel__name", "text")
    assert list(found) == []


def _write_piece(number: int, text: str, *, is_last: bool) -> bytes:
    artifact = {"artifactId": "a1", "parts": [{"text": text}], "metadata": {"number": number}}
    update = {"taskId": "t1", "artifact": artifact, "append": number > 0, "lastChunk": is_last}
    return json.dumps({"artifactUpdate": update}).encode() + b"\n"


@pytest.mark.parametrize("size", [5, 17, 400])
def test_a_secret_that_comes_in_pieces_is_in_nothing_that_is_made_of_them(cast: Cast, size: int) -> None:
    """Neither in what they were put together to nor in what they establish, however they were cut."""
    text, secret = f"{'Count on. ' * 60}{SECRETS['query'][0]} and go on", SECRETS["query"][1]
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    deliver(cast, *(_write_piece(at, each, is_last=at == len(pieces) - 1) for at, each in enumerate(pieces)))
    resolve_all()
    rows = list(Message.objects.order_by("place").values_list("english", "established", "body"))
    assert "its pieces put together: “Count on. Count on." in rows[-1][0]
    assert rows[-1][0].endswith(" and go on”.")
    assert [row for row in rows if any(secret in text for text in row)] == []
    assert not Finding.objects.filter(text__contains=secret).exists()


def test_a_secret_whose_arguments_came_in_pieces_is_found_where_they_are_put_together(cast: Cast) -> None:
    """As a log of lines and as one text; each piece alone is no secret, and the whole is told nowhere."""
    value, secret = SECRETS["query"]
    lines = stream_turn(call=("find", {"query": value, "limit": 3}))
    whole = json.dumps({"raw": "".join(f"data: {line}\n\n" for line in lines.splitlines())})
    for name, log in (("lines", lines), ("whole", whole)):
        channel = Channel.objects.create(workspace=cast.workspace, name=name)
        deliver(cast, log.encode(), channel=channel, name=f"{name}.jsonl")
        resolve_all()
        (found,) = Finding.objects.filter(rule="token-in-clear", holds=True, channel=channel)
        assert "in pieces" in found.text
        rows = Message.objects.filter(channel=channel).values_list("english", "body", "words")
        assert [row for row in rows if secret in " ".join(map(str, row))] == []
    near = stream_turn(call=("find", {"query": NEAR["query"]}))
    channel = Channel.objects.create(workspace=cast.workspace, name="near")
    deliver(cast, near.encode(), channel=channel, name="near.jsonl")
    resolve_all()
    assert not Finding.objects.filter(rule="token-in-clear", channel=channel).exists()


@pytest.mark.parametrize("size", begin_with(1, [9, 3, 1], seconds=15))
def test_the_pieces_of_a_secret_are_masked_where_they_stand_in_one_text(cast: Cast, client: Client, size: int) -> None:
    """To whoever may not see it none of them is readable, nor in what is compared; what is no piece of it stays so."""
    value, secret = SECRETS["query"]
    lines = stream_turn(*(value[at : at + size] for at in range(0, len(value), size)))
    wire = "".join(f"data: {line}\n\n" for line in lines.splitlines())
    deliver(cast, json.dumps({"raw": wire}).encode(), name="whole.jsonl")
    resolve_all()
    reading = read_with_facts(wire, "", "")
    (whole,) = (layer for layer in reading.layers if layer.kind == "put-together" and secret in layer.text)
    assert whole.text == value
    start = value.index(secret)
    (shown, *_) = mask_layers(reading)
    for piece in whole.pieces:
        _, first, last = piece.span
        is_of_secret = piece.start < start + len(secret) and start < piece.end
        assert (shown[first:last] == "•" * (last - first)) == is_of_secret, reading.wire[first:last]
        message = next(each for each in reading.messages if each.part == piece.part)
        assert ("•" in str(message.content)) == is_of_secret
    parts = {each.part for each in whole.pieces if each.start < start + len(secret) and start < each.end}
    rows = Message.objects.order_by("part").values_list("part", "english")
    assert {part for part, english in rows if "goes on: “••••••”" in english} == parts
    assert bytes(MaskedWire.objects.get().text).decode() == shown
    client.force_login(cast.viewer.user, backend="django.contrib.auth.backends.ModelBackend")
    for each in Message.objects.all():
        page = client.get(f"/w/acme/messages/{each.pk}/").content.decode()
        assert [text for text in (secret, '"ghp_a1', "a1B2") if text in page] == []
