"""Commenting in a browser: characters that are dragged over, a piece by keyboard, and all of it without scripts."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from inspector.audit.models.reviews import Comment
from inspector.threads.models import Message
from tests.browser.conftest import Open, at, wait_for_rest
from tests.inspector.conftest import Cast, take_in
from tests.inspector.pages.conftest import STORY

pytestmark = pytest.mark.long(seconds=6)

# The first occurrence of a name in the raw, and the middle of it, chosen as a pointer would.
DRAG = """() => {
  const piece = [...document.querySelectorAll('.wire[data-layer="0"] [data-span]')]
    .find((each) => each.textContent === '"oscar"');
  const range = document.createRange();
  range.setStart(piece.firstChild, 1);
  range.setEnd(piece.firstChild, 4);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  piece.dispatchEvent(new PointerEvent('pointerup', {bubbles: true}));
}"""


@pytest.fixture
def address(cast: Cast) -> str:
    take_in(cast, STORY, name="story.log")
    return at("message", Message.objects.get(native_id="m1").pk)


def send(page: Page, words: str) -> None:
    page.get_by_label("Your comment").fill(words)
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_text("Your comment is kept")).to_be_visible()


def test_characters_that_were_dragged_over(open_page: Open, cast: Cast, address: str) -> None:
    page = open_page(cast.auditor, address)
    wait_for_rest(page)
    page.evaluate(DRAG)
    wire = Message.objects.get(native_id="m1").record.wire_text
    start = wire.index("oscar")
    expect(page.get_by_label("Characters from")).to_have_value(str(start))
    assert page.url.endswith(f"?span=0:{start}-{start + 3}")
    page.get_by_role("link", name="Comment on it").click()
    expect(page.get_by_label("Your comment")).to_be_focused()
    send(page, "Which one?")
    assert Comment.objects.get().quoted_text == "osc"
    expect(page.locator(".thread code")).to_have_text("osc")
    # Beside the raw, lit in it and in the English.
    assert page.locator(".wire[data-layer='0'] .is-lit").inner_text() == '"oscar"'
    assert page.locator(".is-exact").all_inner_texts() == ["osc"]
    expect(page.locator(".read .is-lit").first).to_be_visible()
    page.locator(".wire [data-span]").first.click()
    expect(page.locator(".is-exact")).to_have_count(0)


def test_a_piece_by_keyboard_and_the_form_without_scripts(open_page: Open, cast: Cast, address: str) -> None:
    page = open_page(cast.auditor, address)
    wait_for_rest(page)
    page.locator(".wire[data-layer='0'] [data-span]", has_text='"radar"').first.focus()
    page.keyboard.press("Enter")
    start = Message.objects.get(native_id="m1").record.wire_text.index('"radar"')
    expect(page.get_by_label("Characters from")).to_have_value(str(start))
    bare = open_page(cast.auditor, address, has_script=False)
    bare.get_by_label("Characters from").fill(str(start + 1))
    bare.get_by_label("Characters to").fill(str(start + 6))
    send(bare, "And this?")
    expect(bare.locator(".thread code")).to_have_text("radar")
    bare.get_by_role("button", name="Resolve").click()
    expect(bare.locator(".thread-head .state")).to_have_text("resolved")
