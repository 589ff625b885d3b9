"""A tree in a real browser: windows come as one scrolls, rows open and close by keys, and nothing needs a script."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from inspector.threads.models import Trace
from tests.browser.conftest import PATIENCE_MS, Open
from tests.inspector.conftest import Cast, deliver, settle_all

COUNT = 700


@pytest.fixture
def address(cast: Cast) -> str:
    """The page of a trace that does not fit into one window."""

    def say(number: int) -> bytes:
        said: dict[str, Any] = {"raw": f"Line {number}.", "id": f"m{number}", "from": "ada", "conversation": "c"}
        said |= {"trace": "goal", "at": 1_763_715_600 + number}
        return json.dumps(said | ({"parent": f"m{number // 3}"} if number else {})).encode() + b"\n"

    deliver(cast, *map(say, range(COUNT)))
    settle_all()
    return reverse("pages:trace", args=["acme", Trace.objects.get(last_at__isnull=False).pk])


def test_windows_come_as_one_scrolls_and_rows_fold_by_keys(open_page: Open, cast: Cast, address: str) -> None:
    page = open_page(cast.owner, address)
    rows = page.locator("[data-tree] tbody tr[data-fold]")
    expect(page.get_by_role("treegrid")).to_be_visible()
    until = time.monotonic() + PATIENCE_MS / 1000
    while rows.count() <= COUNT and time.monotonic() < until:
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(150)
    assert rows.count() == COUNT + 1
    places = page.evaluate("[...document.querySelectorAll('[data-fold]')].map((row) => row.id)")
    assert places == [f"row-{place}" for place in range(COUNT + 1)], "each row once, in order"
    # A row is closed by its key, and says what it hides; the address keeps it.
    page.locator("#row-2").focus()
    page.keyboard.press("[")
    expect(page.locator("#row-2")).to_have_attribute("aria-expanded", "false")
    expect(page.locator("#row-3")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"fold=2\."))
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") != "row-2"
    page.reload()
    expect(page.locator("#row-2")).to_have_attribute("aria-expanded", "false")
    page.locator("#row-2 [data-twist]").click()
    expect(page.locator("#row-3")).to_have_count(1)
    expect(page).not_to_have_url(re.compile("fold="))


def test_without_a_script_links_lead_on(open_page: Open, cast: Cast, address: str) -> None:
    page = open_page(cast.owner, address, has_script=False, width=360)
    page.get_by_role("link", name="Next →").click()
    expect(page.locator("[data-fold]").first).to_have_id("row-200")
    page.get_by_role("link", name="Collapse all").click()
    expect(page.locator("[data-fold]")).to_have_count(1)
    page.get_by_role("link", name="Open, 700 below").click()
    expect(page.locator("[data-fold]")).to_have_count(2)
    page.get_by_label("Find in this tree").fill("Line 650.")
    page.get_by_label("Find in this tree").press("Enter")
    expect(page.locator("tr[aria-current]")).to_contain_text("Line 650.")
