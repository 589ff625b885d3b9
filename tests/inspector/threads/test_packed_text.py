"""Packed texts: what goes in comes out, whatever it is, and what an earlier version stored is read."""

from __future__ import annotations

import json

import pytest
import zstandard
from django.db import connection
from django.db.models import Value

from inspector.threads.models import Message
from inspector.threads.models.packed_text import PackedTextField, pack_text, unpack_text
from tests.inspector.conftest import Cast, deliver, resolve_all

LINE = b'{"clowl":"0.2","mid":"m1","p":"REQ","from":"a","to":"b","cid":"c","body":{"t":"search","d":{"q":"tea"}}}\n'


@pytest.mark.parametrize(
    "text",
    ["", "x", "\x00", "\ud800", "\N{ALIEN MONSTER}" * 30, json.dumps({"message": {}}) * 500],
    ids=["nothing", "short", "NUL", "lone surrogate", "astral", "long"],
)
def test_a_text_comes_out_as_it_went_in(text: str) -> None:
    assert unpack_text(pack_text(text)) == text
    assert unpack_text(memoryview(pack_text(text))) == text


def test_a_text_over_the_bound_is_not_unpacked() -> None:
    for text in ("a" * 40, "a" * 100_000):
        assert unpack_text(pack_text(text), max_bytes=len(text)) == text
        assert unpack_text(pack_text(text), max_bytes=len(text) - 1) == ""


def test_a_form_of_a_later_version_is_an_error() -> None:
    with pytest.raises(ValueError, match="form 2"):
        unpack_text(b"\x02...")


@pytest.mark.django_db
def test_a_told_message_is_stored_packed_by_the_dictionary(cast: Cast) -> None:
    deliver(cast, LINE)
    resolve_all()
    with connection.cursor() as cursor:
        cursor.execute("SELECT body FROM threads_message")
        ((packed,),) = cursor.fetchall()
    body = Message.objects.get().body
    assert json.loads(body)["message"]["native_act"] == "REQ"
    assert bytes(packed[:1]) == b"\x01"
    without = zstandard.ZstdCompressor(3).compress(body.encode())
    assert len(packed) < 0.6 * len(without)


@pytest.mark.django_db
def test_a_body_of_before_is_read_as_it_was_stored(cast: Cast) -> None:
    """An upgrade put the number of the plain form before what was text."""
    deliver(cast, LINE)
    resolve_all()
    told = Message.objects.get().body
    plain = b"\x00" + told.encode()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE threads_message SET body = %s", [plain])
    assert Message.objects.get().body == told
    assert Message.objects.annotate(again=Value(told, PackedTextField())).values_list("body", "again").get() == (
        told,
        told,
    )
