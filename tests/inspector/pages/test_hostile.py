"""Logs are written by machines that may lie: whatever they say stays text, wherever it is shown."""

from __future__ import annotations

import json
import re

import pytest
from django.conf import settings
from django.test import Client

from inspector.intake.models import Delivery
from inspector.threads.models import Conversation, Message
from tests.inspector.conftest import Cast, take_in

from .conftest import page_of, shows

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}{% now "Y" %}'
UNSEEN = "pay\u202eload\u200b\x1b[31m\ufeff"


def line(**said: object) -> bytes:
    record = {"clowl": "0.2", "mid": "m1", "ts": 1795251600, "p": "REQ", "from": "oscar", "to": "radar", "cid": "c"}
    return json.dumps({**record, "body": {"t": "search", "d": {"q": "x"}}, **said}).encode() + b"\n"


@pytest.fixture
def hostile(cast: Cast) -> Delivery:
    """A log that attacks through every name it can choose: ids, agents, topics, contents, the file itself."""
    evil = EVIL + UNSEEN
    body = {"t": evil, "d": {"q": evil, evil: evil}}
    return take_in(
        cast,
        line(mid=evil, cid=evil, **{"from": evil, "to": [evil, "b" + evil]}, body=body),
        line(mid="m2", pid="m-none" + evil, cid=evil, body=body),
        line(p=evil, cid=evil),
        b'{"clowl":"0.2","mid":"m0' + EVIL.encode() + b"\n",
        EVIL.encode() + b"\n",
        b"\xed\xa0\xbd broken \xff\n",
        b'"lone \\ud83d surrogate and \\u0000 nul"\n',
        name=EVIL + UNSEEN + ".log",
    )


def list_addresses(delivery: Delivery) -> list[str]:
    """Every page that shows something of the log."""
    pages = [page_of(f"{name}") for name in ("conversations", "search", "deliveries", "settings", "upload")]
    pages += [page_of("conversation", one.pk) for one in Conversation.objects.all()]
    pages += [f"{page}?order=time" for page in pages[5:]]
    pages += [page_of("message", one.pk) for one in Message.objects.all()]
    pages += [page_of(f"{name}", delivery.pk) for name in ("delivery", "progress")]
    searches = ("script", "oscar", "payload", f'"{EVIL[2:10]}"', EVIL, "from:" + UNSEEN, "%00", "💥")
    pages += [page_of("search") + f"?q={re.sub('[^a-z0-9:]', '%22', text)}" for text in searches]
    return pages


def test_nothing_that_a_log_says_becomes_markup(auditor: Client, hostile: Delivery) -> None:
    seen = 0
    for address in list_addresses(hostile):
        response = auditor.get(address)
        assert response.status_code in (200, 400), address
        page = response.content.decode("utf-8")
        seen += "alert(1)" in page
        assert "<script>" not in page, address
        assert "<img" not in page, address
        assert not re.search(r"<[^>]*\sonerror=", re.sub(r'"[^"]*"', '""', page)), address
        assert not any(character in page for character in "\u202e\u200b\x1b\ufeff\x00"), address
        assert ">49<" not in page
    assert seen > 10


def test_what_is_hidden_is_named(auditor: Client, hostile: Delivery) -> None:
    message = Message.objects.get(native_id="m2")
    page = auditor.get(page_of("message", message.pk)).content.decode()
    assert '<span class="hidden-character" title="U+202E right-to-left override">U+202E</span>' in page


def test_a_query_is_shown_as_typed_and_inert(auditor: Client, hostile: Delivery) -> None:
    response = auditor.get(page_of("search"), {"q": EVIL})
    page = response.content.decode()
    shows(page, "&lt;script&gt;", never=["<script>"])


@pytest.mark.parametrize(
    "query", ["before=nonsense", "offset=-1", "offset=99999999999999999999", "after=x", "offset=７"]
)
def test_an_odd_address_is_no_error_of_ours(query: str, auditor: Client, hostile: Delivery) -> None:
    for address in list_addresses(hostile)[:8]:
        assert auditor.get(f"{address}?{query}").status_code in (200, 404)


def test_a_cursor_of_another_workspace_is_not_taken(auditor: Client, cast: Cast, hostile: Delivery) -> None:
    from inspector.search.selectors import write_cursor

    cursor = write_cursor((hostile.received_at, hostile.pk), cast.stranger.workspace.pk)
    assert auditor.get(page_of("deliveries"), {"before": cursor}).status_code == 404


@pytest.mark.parametrize("name", ["conversations", "search", "upload", "deliveries", "settings"])
def test_every_page_carries_the_policy_and_obeys_it(name: str, owner: Client) -> None:
    response = owner.get(page_of(f"{name}"))
    policy = response["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "unsafe" not in policy
    page = response.content.decode()
    assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", page)
    assert not re.search(r"<style", page)
    assert re.findall(r"<script(?![^>]*\ssrc=)", page) == []


def test_no_template_marks_anything_safe_or_carries_inline_code() -> None:
    for template in (settings.BASE_DIR / "templates").rglob("*.html"):
        text = template.read_text()
        for forbidden in ("|safe", "autoescape off", " style=", "<style", "javascript:", " onclick=", "hx-on"):
            assert forbidden not in text, f"{forbidden} in {template}"
