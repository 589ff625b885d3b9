"""What stands around the pages: the API's manual, help and theme on a small screen, filters that apply on change."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.inspector.conftest import Cast, take_in
from tests.inspector.pages.conftest import STORY

from .conftest import Open
from .test_accessibility import find_faults

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long(seconds=6)]


def test_the_manual_shows_every_operation(open_page: Open, live_server: Any) -> None:
    page = open_page(None, "/api/docs/")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    expect(page.get_by_text("/api/v1/deliveries/{delivery_id}/withdrawal").first).to_be_visible(timeout=30_000)
    expect(page.get_by_text("/api/v1/messages", exact=True).first).to_be_visible()
    assert asked
    assert all(address.startswith((live_server.url, "data:", "blob:")) for address in asked)


def test_operations_stand_below_their_subjects_with_a_summary_and_follow_the_theme(open_page: Open) -> None:
    page = open_page(None, "/api/docs/", theme="dark")
    expect(page.locator(".opblock-tag", has_text="Comments")).to_be_visible(timeout=30_000)
    expect(page.get_by_text("List exports", exact=True)).to_be_visible()
    root = page.locator("html")
    expect(root).to_have_class("dark-mode")
    expect(root).to_have_css("background-color", "rgb(28, 32, 34)")
    page.emulate_media(color_scheme="light")
    expect(root).not_to_have_class("dark-mode")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_manual_can_be_used_by_everybody(open_page: Open, theme: str) -> None:
    page = open_page(None, "/api/docs/", theme=theme)
    expect(page.get_by_text("List exports", exact=True)).to_be_visible(timeout=60_000)
    assert not find_faults(page)
    page.get_by_role("button", name="List exports").first.click()
    expect(page).to_have_url(re.compile("#/"))
    assert not find_faults(page)


def test_theme_and_help_are_reached_on_a_small_screen(open_page: Open, cast: Cast) -> None:
    page = open_page(cast.viewer, "/w/acme/conversations/", width=360)
    page.get_by_role("button", name="Signed in as").click()
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="Help and keys").click()
    expect(
        page.get_by_role("dialog", name="Help and keys").get_by_role("link", name="API documentation")
    ).to_be_visible()


def test_a_filter_applies_on_change_and_keeps_the_focus(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    page = open_page(cast.viewer, "/w/acme/conversations/", width=360)
    page.get_by_text("Filter and sort").click()
    page.get_by_label("State").select_option("done")
    page.wait_for_url("**state=done*")
    expect(page.get_by_label("State")).to_be_focused()
