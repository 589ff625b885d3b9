"""Connect an agent, in a browser: the key stands in the lines, and the page says by itself that a message came."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from playwright.sync_api import expect

from tests.inspector.conftest import Cast, resolve_all

from .conftest import Open, at

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.long(seconds=12)
def test_the_page_says_by_itself_that_the_first_message_came(open_page: Open, cast: Cast) -> None:
    page = open_page(cast.owner, at("connect"), width=360)
    page.get_by_role("button", name="Make a key and fill it in").click()
    token = page.locator("#new-token").inner_text()
    for each in page.locator("pre").all():
        assert token in each.inner_text()
    expect(page.locator("#arrival")).to_contain_text("Waiting for the first message")
    (wire,) = re.findall(r"<<'END'\n(.*)\nEND$", page.locator("#way-curl").inner_text())
    headers = {"Authorization": f"Bearer {token}"}
    assert Client().post("/api/v1/messages", wire, content_type="text/plain", headers=headers).status_code == 202
    resolve_all(is_examined=False)
    expect(page.locator("#arrival")).to_contain_text("First message received")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.locator("#arrival a").first.click()
    expect(page.locator("h1")).to_be_visible()
