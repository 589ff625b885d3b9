"""The keys of the desk: the palette, folds, the review, and how a search is walked through message by message."""

from __future__ import annotations

import re

from django.urls import reverse
from playwright.sync_api import expect

from inspector.threads.models import Message
from tests.browser.conftest import Open, wait_for_rest
from tests.inspector.conftest import Cast, deliver, settle_all
from tests.inspector.pages.conftest import STORY

SLUG = "acme"


def test_the_palette_goes_there_by_keys_alone(open_page: Open, cast: Cast) -> None:
    deliver(cast, STORY)
    settle_all()
    page = open_page(cast.viewer, reverse("pages:overview", args=[SLUG]))
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    field = palette.get_by_role("combobox")
    expect(field).to_be_focused()
    page.keyboard.type("radr")
    expect(palette.get_by_role("option").first).to_contain_text("radar")
    expect(palette.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(palette.get_by_role("option").nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("radar")
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    expect(palette).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()


def test_a_search_is_walked_through_and_its_hits_fold(open_page: Open, cast: Cast) -> None:
    deliver(cast, STORY)
    settle_all()
    page = open_page(cast.auditor, reverse("pages:search", args=[SLUG]) + "?q=conversation:story")
    page.wait_for_load_state()
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("j")
    page.keyboard.press("]")
    expect(page.locator(".hit[data-current] .around li")).not_to_have_count(0)
    colours = page.locator(".hit[data-current] .tile").evaluate_all(
        "tiles => Object.entries(Object.groupBy(tiles, t => t.textContent.trim().slice(0, 2)))"
        ".map(([, same]) => new Set(same.map(t => getComputedStyle(t).backgroundColor)).size)"
    )
    assert set(colours) == {1}
    page.keyboard.press("[")
    expect(page.locator(".hit[data-current] .around")).to_be_hidden()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?q=conversation%3Astory"))
    first = page.url
    page.wait_for_load_state()
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != first)
    page.wait_for_load_state()
    page.keyboard.press("r")
    page.wait_for_url(re.compile("#verdict"))


def test_what_was_never_answered_is_asked_for_from_the_first_page(open_page: Open, cast: Cast) -> None:
    deliver(cast, STORY)
    settle_all()
    page = open_page(cast.viewer, reverse("pages:overview", args=[SLUG]))
    wait_for_rest(page)
    page.keyboard.press("/")
    offered = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    for typed, taken in (
        ("is:un", "unanswered"),
        ("from:coo", "coordinator"),
        ("perf", "performative:"),
        ("req", "request"),
    ):
        page.keyboard.type(typed)
        expect(offered.first).to_contain_text(taken)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator(".token b")).to_have_text(["unanswered", "coordinator", "request"])
    wait_for_rest(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Raw")).to_contain_text("refactor_auth")


def test_another_dialect_is_chosen_without_a_script(open_page: Open, cast: Cast) -> None:
    deliver(cast, STORY)
    settle_all()
    message = Message.objects.get(native_id="m1")
    page = open_page(cast.viewer, reverse("pages:message", args=[SLUG, message.pk]), has_script=False)
    page.get_by_text("Decode as").click()
    page.get_by_role("link", name="Prose").click()
    expect(page.get_by_role("status")).to_contain_text("A view, not what is stored")
    page.get_by_role("link", name="Hex").click()
    expect(page.get_by_role("region", name="Raw")).to_contain_text("7b 22 63 6c")
    expect(page.get_by_role("status")).to_contain_text("read as Prose")
