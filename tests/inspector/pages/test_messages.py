"""The page of one message: what is lit without a script, other readings, bytes, and the steps through a search."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from inspector.intake.models import Delivery
from inspector.pages.shown.fields import dump_bytes, escape_text
from inspector.pages.shown.markup import Stretch
from inspector.threads.models import Message
from tests.inspector.conftest import Cast, take_in

from .conftest import page_of, shows

SECRET = (
    b'{"clowl":"0.2","mid":"s1","p":"REQ","from":"oscar","to":"radar","cid":"c",'
    b'"auth":{"issuer":"gate","token":"hunter2-hunter2"},"body":{"t":"search","d":{"q":"plan"}}}\n'
)
TAGS = re.compile(r"<[^>]+>")


def address(native_id: str, name: str = "message") -> str:
    return page_of(f"{name}", Message.objects.get(native_id=native_id).pk)


def find_tag() -> str:
    message = Message.objects.get(dialect="nslip", performative="request")
    return page_of("message", message.pk)


def show(client: Client, path: str, **query: str) -> str:
    response = client.get(path, query)
    assert response.status_code == 200
    return response.content.decode()


def test_an_address_lights_its_span_in_every_pane_without_a_script(viewer: Client, story: Delivery) -> None:
    page = show(viewer, find_tag(), span="0:25-27")
    lit = re.findall(r'<(\w+)[^>]*data-span="0:25-27"[^>]*class="is-lit"', page)
    assert lit.count("tr") >= 1
    assert lit.count("span") >= 2
    shows(
        page,
        "71 32",
        'href="/w/acme/search/?q=priority%3A2"',
        never=['data-span="0:22-24" tabindex="0" class="is-lit"'],
    )
    assert "is-lit" not in show(viewer, find_tag(), span="0:25-900000000000 nonsense 7:1-2:3")


def test_a_piece_is_filtered_for_by_its_own_name(viewer: Client, story: Delivery) -> None:
    wire = Message.objects.get(native_id="m2").record.wire_text
    for piece, query in (
        ('"radar"', "from:radar"),
        ('"t1"', "trace:t1"),
        ('"m1"', "parent:m1"),
        ('"60s"', "content.eta:60s"),
    ):
        start = wire.index(piece)
        part = viewer.get(address("m2"), {"span": f"0:{start}-{start + len(piece)}"}, headers={"HX-Request": "true"})
        found = re.search(r'search/\?q=([^"]+)"', part.content.decode())
        assert found is not None, piece
        assert found[1] == query.replace(":", "%3A")
        hits = viewer.get(page_of("search"), {"q": query}).content.decode()
        assert address("m2") in hits, query


def test_another_dialect_is_a_view_and_changes_nothing(viewer: Client, story: Delivery) -> None:
    before = Message.objects.order_by("pk").values_list("pk", "dialect", "english", "told_digest")
    rows = list(before)
    page = show(viewer, address("m1"), **{"as": "prose"})
    shows(page, "A preview, not the stored message: read as Prose", "stored as CLowl 0.2")
    assert "A preview, not the stored message" not in show(viewer, address("m1"), **{"as": "clowl"})
    assert viewer.get(address("m1"), {"as": "klingon"}).status_code == 404
    assert list(before.all()) == rows
    choices = show(viewer, find_tag())
    assert "the text is a nSLIP tag with its complete header" in choices
    assert "nothing in the text speaks for it" in choices


@pytest.mark.parametrize("query", [{"as": "prose"}, {"as": "nslip"}, {"view": "hex"}, {"view": "escaped"}, {}])
def test_no_view_shows_a_secret(viewer: Client, auditor: Client, cast: Cast, query: dict[str, str]) -> None:
    take_in(cast, SECRET)
    start = SECRET.decode().index('"hunter2')
    for client in (viewer, auditor):
        page = show(client, address("s1"), **query, span=f"0:{start}-{start + 17}")
        shows(page, never=["hunter2", "68 75 6e 74"])
        assert "•" in page or "masked" in page
    assert "hunter2" not in viewer.get(address("s1", "message-json")).content.decode()


def test_the_json_is_the_message_as_told(viewer: Client, story: Delivery) -> None:
    found = json.loads(viewer.get(address("m2", "message-json")).content)
    assert found["message"]["parent_id"] == "m1"
    assert found["about"]["dialect"] == "clowl"


def test_steps_go_through_the_search_that_the_address_carries(viewer: Client, story: Delivery) -> None:
    page = show(viewer, address("m2"), q="conversation:story -performative:failure")
    shows(
        page,
        f'rel="next" href="{address("m1")}?q=conversation%3Astory+-performative%3Afailure"',
        never=[f'rel="prev" href="{address("m4")}'],
    )
    assert f'rel="prev" href="{address("m4")}?q=from%3Aradar"' in show(viewer, address("m2"), q="from:radar")
    assert 'rel="next"' not in show(viewer, address("m2"), q="from:radar")
    assert "No steps through this search" in show(viewer, address("m2"), q="perfomative:request")
    stepped = show(viewer, address("m2"), q='raw:"m1"')
    assert f'rel="next" href="{address("m1")}?q=raw' in stepped


def test_bytes_and_escapes_keep_their_pieces() -> None:
    text = "a\u200b👽\\\n\udcff"
    stretches = [Stretch(start=0, end=1, spans=((0, 0, 1),)), Stretch(start=1, end=3, spans=((0, 1, 3),))]
    dump = dump_bytes(text, stretches)
    assert dump["total"] == len(text.encode("utf-8", "surrogatepass")) == 13
    shown = TAGS.sub("", dump["markup"])
    assert shown.splitlines()[0] == "0000  61 e2 80 8b f0 9f 91 bd  a·······"
    assert shown.splitlines()[1].startswith("0008  5c 0a ed b3 bf")
    assert '<span data-span="0:1-3" tabindex="0">e2 80 8b f0 9f 91 bd</span>' in dump["markup"]
    escaped, moved = escape_text(text, stretches)
    assert escaped == "a\\u{200B}\\u{1F47D}\\\\\\n\\u{DCFF}"
    assert escaped[moved[1].start : moved[1].end] == "\\u{200B}\\u{1F47D}"


def test_a_dump_begins_at_what_is_lit() -> None:
    text = "x" * 5000
    dump = dump_bytes(text, (), light=((0, 4000, 4001),))
    assert dump["start"] == 4000 - 16
    # Two rows of eight are a line of sixteen where there is room.
    assert dump_bytes(text, (), light=((0, 4008, 4009),))["start"] == 4000 - 16
    assert dump["end"] == 5000
    assert dump_bytes(text, ())["end"] == 1536
