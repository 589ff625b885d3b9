"""The translator reads what is pasted and keeps nothing; the glossary holds every term."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

import dialects
from inspector.intake.models import Record
from inspector.pages.translator import EXAMPLES, MAX_RECORDS, MAX_TEXT_LENGTH
from inspector.threads.models import Message

from .conftest import page_of, shows

pytestmark = pytest.mark.django_db
TRANSLATOR = "/w/acme/translator/"
REQUEST = (
    '{"clowl":"0.2","mid":"m1","ts":1795251600,"p":"REQ","from":"oscar","to":"radar",'
    '"cid":"c","body":{"t":"search","d":{"q":"sorghum"}}}'
)


def paste(client: Client, text: str, **more: str) -> str:
    answer = client.post(TRANSLATOR, {"text": text, **more})
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_message_is_told_and_written_in_the_others_with_what_is_lost(viewer: Client) -> None:
    page = paste(viewer, REQUEST, into="agent_lingua")
    shows(page, "sorghum", "CLowl 0.2")
    written = dialects.encode(dialects.decode(REQUEST), "agent_lingua")
    assert f'data-whole="{escape(written.wire)}"' in page
    assert written.losses
    assert all(f"<code>{loss.name}</code>" in page for loss in written.losses)


def test_what_the_other_dialect_requires_and_was_not_said_is_listed(viewer: Client) -> None:
    page = paste(viewer, "?Uk/co", into="clowl")
    lacks = page.partition("6 problems in CLowl; nothing was invented")[2].partition("</div>")[0]
    for words in ("The message id is missing", "the sender is missing", "the time is missing"):
        assert words in lacks
    assert "nothing was invented" not in paste(viewer, "?Uk/co", into="agent_lingua")


def test_nothing_is_stored_and_the_text_stands_in_no_address(viewer: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        paste(viewer, REQUEST)
    assert not [query["sql"] for query in queries if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert not Record.objects.exists()
    assert not Message.objects.exists()
    assert "sorghum" not in viewer.get(TRANSLATOR, {"text": REQUEST}).content.decode()


def test_what_another_dialect_cannot_say_is_refused_with_the_reason(viewer: Client) -> None:
    page = paste(viewer, REQUEST, into="nslip")
    shows(page, "nSLIP cannot say this", "no number that nSLIP can hold")
    # The name of the dialect stands before the reason once.
    assert "nslip:" not in page.partition("nSLIP cannot say this")[2].partition("</div>")[0]


def test_another_dialect_can_be_forced(viewer: Client) -> None:
    assert "you chose it" in paste(viewer, "?Uk/co", dialect="prose")


def test_of_several_records_one_is_chosen(viewer: Client) -> None:
    page = paste(viewer, f"{REQUEST}\n@a3|f0|c1|S0|d1|T1|g1|k1#\n?Uk/co\n", record="1")
    assert "3 records" in page
    assert page.count('class="pick" aria-current="true"') == 1
    assert "nSLIP 0.1" in page


def test_a_log_is_cut_and_says_so(viewer: Client) -> None:
    page = paste(viewer, "?Uk/co\n" * (MAX_RECORDS + 7))
    assert "7 more are" in page


@pytest.mark.parametrize(
    "text", ["\x00", "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"), "[" * 5000, " \n", "👽73|"]
)
def test_odd_texts_are_answered(viewer: Client, text: str) -> None:
    answer = viewer.post(TRANSLATOR, {"text": text})
    assert answer.status_code in (200, 400)


def test_what_is_too_long_is_refused_with_a_way_on(viewer: Client) -> None:
    answer = viewer.post(TRANSLATOR, {"text": "x" * (MAX_TEXT_LENGTH + 1)})
    assert answer.status_code == 400
    assert "Upload a longer log" in answer.content.decode()


@pytest.mark.parametrize(("title", "wire"), EXAMPLES)
def test_every_example_is_read_without_an_error_in_its_own_dialect(title: str, wire: str) -> None:
    reading = dialects.decode(wire)
    assert title in {dialect.title for dialect in dialects.all_dialects() if dialect.slug == reading.dialect}
    assert not reading.error


@pytest.mark.parametrize("slug", ["clowl", "nslip", "lambda_lang", "agent_lingua", "slip"])
def test_the_glossary_shows_every_term_and_finds_one(viewer: Client, slug: str) -> None:
    (dialect,) = (each for each in dialects.all_dialects() if each.slug == slug)
    page = viewer.get(page_of("glossary", slug)).content.decode()
    assert page.count('<tr><th scope="row"><code>') == len(dialect.glossary)
    term = dialect.glossary[0]
    found = viewer.get(page_of("glossary", slug), {"code": term.code}).content.decode()
    assert found.count('<tr><th scope="row"><code>') == sum(each.code == term.code for each in dialect.glossary)
    assert viewer.get(page_of("glossary", slug), {"q": "qqqq"}).status_code == 200


def test_prose_and_what_is_no_dialect_have_no_glossary(viewer: Client) -> None:
    assert viewer.get("/w/acme/glossary/prose/").status_code == 404
    assert viewer.get("/w/acme/glossary/latin/").status_code == 404
