"""A tree in a real browser: windows come as one scrolls, rows open and close by keys, and nothing needs a script."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from inspector.threads.models import Trace
from inspector.threads.trees import Tree
from tests.browser.conftest import PATIENCE_MS, Open, at
from tests.inspector.conftest import Cast, take_in

pytestmark = pytest.mark.long(seconds=8)

COUNT = 700


@pytest.fixture
def address(cast: Cast) -> str:
    """The page of a trace that does not fit into one window."""

    def say(number: int) -> bytes:
        said: dict[str, Any] = {"raw": f"Line {number}.", "id": f"m{number}", "from": "ada", "conversation": "c"}
        said |= {"trace": "goal", "at": 1_763_715_600 + number}
        return json.dumps(said | ({"parent": f"m{number // 3}"} if number else {})).encode() + b"\n"

    take_in(cast, *map(say, range(COUNT)))
    return at("trace", Trace.objects.get(last_at__isnull=False).pk)


def list_rows() -> list[str]:
    """The rows of the tree in display order, as the page names them."""
    tree = Tree(Trace.objects.get(last_at__isnull=False))
    return [f"row-{row.place.hex}" for row in tree.read_window(limit=COUNT + 1).rows]


def test_the_map_leads_to_a_time(open_page: Open, cast: Cast, address: str) -> None:
    page = open_page(cast.owner, address)
    box = page.locator(".minimap").bounding_box()
    assert box is not None
    page.locator(".minimap").click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    expect(page).to_have_url(re.compile(r"time=\d+"))
    number = int(re.search(r"Line (\d+)\.", page.locator("[data-tree] tr[data-item]").first.inner_text())[1])  # type: ignore[index]
    assert abs(number - COUNT / 2) < COUNT / 20


def test_windows_come_as_one_scrolls_and_rows_fold_by_keys(open_page: Open, cast: Cast, address: str) -> None:
    page = open_page(cast.owner, address)
    rows = page.locator("[data-tree] tbody tr[data-item]")
    expect(page.get_by_role("treegrid")).to_be_visible()
    until = time.monotonic() + PATIENCE_MS / 1000
    while rows.count() <= COUNT and time.monotonic() < until:
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(150)
    assert rows.count() == COUNT + 1
    places = page.evaluate("[...document.querySelectorAll('[data-tree] tr[data-item]')].map((row) => row.id)")
    assert places == list_rows(), "each row once, in order"
    second, third = (f"#{place}" for place in places[2:4])
    # A row is closed by its key, and says what it hides; the address keeps it.
    page.locator(second).focus()
    page.keyboard.press("[")
    expect(page.locator(second)).to_have_attribute("aria-expanded", "false")
    expect(page.locator(third)).to_have_count(0)
    expect(page).to_have_url(re.compile(f"fold={places[2].removeprefix('row-')}"))
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") != places[2]
    page.reload()
    expect(page.locator(second)).to_have_attribute("aria-expanded", "false")
    page.locator(f"{second} [data-twist]").click()
    expect(page.locator(third)).to_have_count(1)
    expect(page).not_to_have_url(re.compile("fold="))


def test_without_a_script_links_lead_on(open_page: Open, cast: Cast, address: str) -> None:
    page = open_page(cast.owner, address, has_script=False, width=360)
    page.get_by_role("link", name="Next →").click()
    expect(page.locator("[data-tree] tr[data-item]").first).to_have_id(list_rows()[200])
    page.get_by_role("link", name="Collapse all").click()
    expect(page.locator("[data-tree] tr[data-item]")).to_have_count(1)
    page.get_by_role("link", name="Open, 700 below").click()
    expect(page.locator("[data-tree] tr[data-item]")).to_have_count(2)
    page.get_by_label("Find in this tree").fill("Line 650.")
    page.get_by_label("Find in this tree").press("Enter")
    expect(page.locator("tr[aria-current]")).to_contain_text("Line 650.")


def test_what_is_found_is_marked_in_windows_that_load_later_too(open_page: Open, cast: Cast, address: str) -> None:
    page = open_page(cast.owner, f"{address}?find=5.")
    rows = page.locator("[data-tree] tbody tr[data-item]")
    expect(page.get_by_role("status")).to_have_text("1 of 70")
    expect(page.locator("tr[aria-current]")).to_contain_text("5.")
    current = page.locator("tr[aria-current]").get_attribute("id")
    page.mouse.wheel(0, -20_000)
    until = time.monotonic() + PATIENCE_MS / 1000
    last = f"#{list_rows()[-1]}"
    while page.locator(last).count() == 0 and time.monotonic() < until:
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(150)
    expect(page.locator(last)).to_have_count(1)
    count_marked = (
        "[...document.querySelectorAll('[data-tree] tr[data-item]')]"
        ".filter((row) => /Line \\d*5\\./.test(row.textContent))"
    )
    assert page.evaluate(f"{count_marked}.every((row) => row.hasAttribute('data-hit'))")
    assert page.evaluate(f"{count_marked}.length") == page.locator("tr[data-hit]").count() > 20
    # A window that gave up its rows has its marks again, and the current row is still the current one.
    while page.locator(f"#{current}").count() == 0 and time.monotonic() < until:
        page.mouse.wheel(0, -20_000)
        page.wait_for_timeout(150)
    expect(page.locator(f"#{current}")).to_have_attribute("aria-current", "true")
    expect(page.locator(f"#{current}")).to_have_attribute("data-hit", "")
    assert rows.count() > 200


def test_without_a_script_the_next_window_marks_what_is_found(open_page: Open, cast: Cast, address: str) -> None:
    page = open_page(cast.owner, f"{address}?find=5.", has_script=False)
    page.get_by_role("link", name="Next →").click()
    expect(page.locator("tr[data-hit]").first).to_be_visible()
    expect(page.locator("tr[aria-current]")).to_have_count(0)
    expect(page.get_by_role("status")).to_have_text("70 found")
    first = page.locator("tr[data-hit]").first.get_attribute("id")
    page.get_by_role("link", name="Next find").click()
    expect(page.locator("tr[aria-current]")).to_have_id(str(first))
