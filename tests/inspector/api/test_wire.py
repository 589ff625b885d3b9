"""An export as Protobuf is cut on the wire, and what is too much is refused before anything is made of it."""

from __future__ import annotations

import gzip
import resource

import pytest
from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from inspector.api import wire
from inspector.api.ingest import SPANS, parse_export, write_items
from inspector.api.problems import ProblemError
from inspector.api.wire import TooManyError, Walk, WireError, cut_scopes, parse
from inspector.intake import framing

from .test_spans import make_export, post

MIB = 1024 * 1024


def make_field(number: int, value: bytes) -> bytes:
    size, written = len(value), bytearray([number << 3 | 2])
    while size > 0x7F:
        written.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes(written) + bytes([size]) + value


def make_bomb(count: int, depth: int) -> bytes:
    """So many empty messages of two bytes each, in a resource, in its scope, or in a span of that."""
    body = b"\x12\x00" * count if depth < 3 else b"\x4a\x00" * count
    for _ in range(depth - 1):
        body = make_field(2, body)
    return make_field(1, body)


@pytest.mark.django_db
@pytest.mark.parametrize("depth", [1, 2, 3], ids=["scopes", "spans", "attributes"])
def test_what_becomes_millions_of_objects_is_refused_before(token: str, depth: int) -> None:
    bomb = gzip.compress(make_bomb(4 * MIB, depth))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = post(bomb, token, **{"Content-Encoding": "gzip"})
    assert answer.status_code == 413
    assert b"send fewer at once" in answer.content
    # Of kibibytes: the body and its list of views, where a gigabyte and a half were.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024


def test_as_many_resources_scopes_and_spans_are_taken_as_a_post_may_bring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = make_export(7).SerializeToString()
    monkeypatch.setattr(framing, "FREE_RECORDS", 10)
    (scope,) = parse_export(body, SPANS)  # And the fields of the resource, and of the scope.
    assert len(list(write_items([scope], SPANS))) == 7
    monkeypatch.setattr(framing, "FREE_RECORDS", 9)
    with pytest.raises(ProblemError, match="more than 9"):
        parse_export(body, SPANS)


def test_a_resource_in_two_pieces_is_one() -> None:
    exported = make_export(1)
    body = exported.SerializeToString()
    first, second = make_export(0, region="north").resource_spans[0].resource, exported.resource_spans[0].resource
    split = make_field(1, make_field(1, second.SerializeToString()) + make_field(1, first.SerializeToString()))
    assert len(cut_scopes(split, most=100)) == 0
    whole = make_field(1, cut_tail(body) + make_field(1, first.SerializeToString()))
    (scope,) = cut_scopes(whole, most=100)
    parsed = parse(SPANS.resource, scope.resource)
    expected = SPANS.resource.FromString(cut_tail(body) + make_field(1, first.SerializeToString()))
    assert parsed.resource == expected.resource


def cut_tail(body: bytes) -> bytes:
    """What the only resource of an export holds."""
    return bytes(Walk(10).cut(memoryview(body), 1)[1][0])


@pytest.mark.parametrize(
    "body",
    [b"\x0a", b"\x0a\x05ab", b"\x0b\x0c", b"\x80", b"\xff" * 12, b"\x09\x01", b"\x0a\x02\x12\x05"],
    ids=["no-length", "cut", "group", "no-tag", "no-number", "fixed", "inner"],
)
def test_what_is_no_message_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises((WireError, DecodeError)):
        cut_scopes(body, most=100)
    with pytest.raises(ProblemError, match="is no ExportTraceServiceRequest"):
        parse_export(body, SPANS)


def test_an_item_of_many_fields_is_refused_and_one_of_long_texts_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_FIELDS", 20)
    span = Span(name="x" * 1000)
    assert parse(Span, span.SerializeToString()) == span
    for number in range(10):
        span.attributes.add(key=f"{number}").value.int_value = 1
    with pytest.raises(TooManyError, match="more than 20"):
        parse(Span, span.SerializeToString())
    nested = Span()
    value = nested.attributes.add(key="k").value
    for _ in range(30):
        value = value.array_value.values.add()
    with pytest.raises(TooManyError):
        parse(Span, nested.SerializeToString())
