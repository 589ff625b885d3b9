"""New messages announce themselves while somebody reads: nothing moves, the chip counts, a click shows them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from inspector.accounts.models import Membership
from inspector.audit.reviews.verdicts import give_verdict
from inspector.threads.models import Conversation
from tests.browser.conftest import Open, at
from tests.browser.test_accessibility import find_faults
from tests.inspector.conftest import Cast, take_in
from tests.inspector.pages.test_events import port

pytestmark = pytest.mark.long(seconds=8)

# For the pictures every theme is tried at every width; otherwise each of them once.
STEP = 1 if os.environ.get("INSPECTOR_SCREENSHOTS") else 3
# Where the thing stands that is read, and whether anything on the page was ever moved without being asked.
WATCH_SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((seen) => seen.getEntries().forEach((entry) => window.shifts.push(entry.value)))
    .observe({ type: "layout-shift", buffered: false });
}"""

# Another tab is looked at, and this one again.
HIDE = """() => {
  Object.defineProperty(document, "hidden", { configurable: true, value: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
SHOW = """() => {
  delete document.hidden;
  document.dispatchEvent(new Event("visibilitychange"));
}"""

__all__ = ["port"]  # The event stream's own process.


@pytest.fixture(autouse=True)
def quick(settings: Any) -> None:
    settings.LIVE_POLL_SECONDS = 0.4


def say(cast: Cast, first: int, last: int, conversation: str = "talk", words: str = "zebra") -> None:
    """Messages of one minute each, told."""
    lines = [
        {"raw": f"{words} number {n}.", "conversation": conversation, "from": "ada", "at": f"2026-11-21T09:{n:02}:00Z"}
        for n in range(first, last)
    ]
    take_in(cast, *(json.dumps(line).encode() + b"\n" for line in lines), name=f"{conversation}-{first}.jsonl")


def place_of(page: Page, text: str) -> float:
    box = page.get_by_text(text, exact=False).first.bounding_box()
    assert box is not None
    return box["y"]


def expect_calm(page: Page, text: str, place: float) -> None:
    assert place_of(page, text) == pytest.approx(place, abs=1.5)
    assert page.evaluate("window.shifts") == []


def click(page: Page, chip: Locator) -> None:
    """With the mouse, as a reader does: playwright's own click would scroll the page to where the top bar began."""
    box = chip.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def keep_picture(page: Page, name: str) -> None:
    folder = os.environ.get("INSPECTOR_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png")


def enter(open_page: Open, who: Membership, address: str, **looks: Any) -> Page:
    page = open_page(who, address, **looks)
    with page.expect_response("**/live/?*"):
        page.wait_for_load_state()
    # What a page loads by itself when it is opened has come as well.
    expect(page.locator("#facets:not(:has(section))")).to_have_count(0)
    return page


def test_a_verdict_that_new_messages_make_stale_says_so_at_once(open_page: Open, cast: Cast) -> None:
    say(cast, 0, 3)
    talk = Conversation.objects.get()
    seen = bytes(talk.settled_digest or b"")
    give_verdict(membership=cast.owner, conversation=talk, verdict="concern", comment="Half <typed>", seen=seen)
    page = enter(open_page, cast.auditor, at("conversation", talk.pk))
    verdicts = page.locator("#verdict")
    expect(verdicts).to_contain_text("the latest sign-off is in force")
    page.get_by_label("Comment").fill("half typed")
    say(cast, 3, 4)
    chip = page.get_by_role("status").get_by_role("link")
    expect(chip).to_have_text("1 new message: show it")
    expect(verdicts).not_to_contain_text("tale")
    click(page, chip)
    expect(verdicts).to_contain_text("Stale: the content has changed since the sign-off.")
    expect(verdicts).to_contain_text("the latest sign-off is stale")
    expect(page.get_by_label("Comment")).to_have_value("half typed")


def test_what_one_reads_stays_where_it_is(open_page: Open, cast: Cast) -> None:
    say(cast, 0, 30)
    page = enter(open_page, cast.viewer, at("search") + "?q=zebra")
    page.evaluate("scrollTo({ top: 700, behavior: 'instant' })")
    page.evaluate(WATCH_SHIFTS)
    place = place_of(page, "number 22.")
    say(cast, 30, 33)
    say(cast, 30, 35, "aside", "giraffe")
    chip = page.get_by_role("status").get_by_role("link")
    expect(chip).to_have_text("3 new messages: show them")
    say(cast, 33, 34)
    expect(chip).to_have_text("4 new messages: show them")
    assert page.get_by_text("number 33.").count() == 0
    expect_calm(page, "number 22.", place)

    # They are put above what is read, which stays; the chip then says where they are and leads there.
    click(page, chip)
    expect(chip).to_have_text("4 above: go to the first")
    assert page.locator(".hit[data-new]").count() == 4
    assert [page.locator(".hit p").nth(n).inner_text() for n in (0, 4)] == [
        page.get_by_text("number 33.").first.inner_text(),
        page.get_by_text("number 29.").first.inner_text(),
    ]
    assert place_of(page, "number 22.") == pytest.approx(place, abs=1.5)
    chip.press("Enter")
    expect(page.get_by_text("number 30.").first).to_be_in_viewport()
    expect(chip).to_have_count(0)
    say(cast, 34, 35)
    expect(chip).to_have_text("1 new message: show it")
    # More than a page holds: what lies between is not passed over in silence.
    say(cast, 35, 60)
    expect(chip).to_have_text("26 new messages: show them")
    expect(page.locator(".live-gap")).to_have_count(0)
    click(page, chip)
    expect(page.locator(".live-gap")).to_have_text("There is more between these and those below. Open the list anew")
    page.get_by_role("link", name="Open the list anew").click()
    expect(page.locator(".hit")).to_have_count(25)


def test_a_conversation_goes_on_below(open_page: Open, cast: Cast) -> None:
    say(cast, 0, 20)
    conversation = Conversation.objects.get(native_id="talk")
    address = at("conversation", conversation.pk) + "?order=time"
    page = enter(open_page, cast.auditor, address)
    page.get_by_label("No issues").check()
    page.get_by_label("Comment").fill("I have seen")
    seen = page.locator("input[name=seen]").input_value()
    legend = page.get_by_role("group", name="Agents")
    expect(legend).to_contain_text("× 20")
    page.evaluate("scrollTo({ top: 500, behavior: 'instant' })")
    page.evaluate(WATCH_SHIFTS)
    place = place_of(page, "number 9.")
    say(cast, 20, 60)
    chip = page.get_by_role("status").get_by_role("link")
    expect(chip).to_contain_text("40 new")
    expect_calm(page, "number 9.", place)
    click(page, chip)
    expect(chip).to_contain_text("40 below")
    assert place_of(page, "number 9.") == pytest.approx(place, abs=1.5)
    expect(legend).to_contain_text("× 60")
    # Its window is full: the rest stands in the next one, and the count beside it is of all.
    expect(page.locator(".message")).to_have_count(50)
    expect(page.get_by_text("Messages 1–50 of 60")).to_be_visible()
    # What was being written is kept; whoever signs now signs what is shown now.
    assert page.get_by_label("Comment").input_value() == "I have seen"
    assert page.locator("input[name=seen]").input_value() != seen
    page.get_by_role("button", name="Sign off").click()
    expect(page.get_by_text("Your verdict is kept")).to_be_visible()


def test_nobody_is_asked_while_nobody_looks_and_failures_are_waited_out(
    open_page: Open, cast: Cast, forgiven: set[str]
) -> None:
    forgiven.update({"status of 503", "Response Status Error Code 503"})
    say(cast, 0, 3)
    page = enter(open_page, cast.viewer, at("overview"))
    asked: list[float] = []
    page.route("**/live/?*", lambda route: (asked.append(1), route.fulfill(status=503))[-1])
    page.wait_for_timeout(3200)
    # 0.4, then 0.8, then 1.6 seconds and more: without waiting longer each time it would have been seven or eight.
    assert 2 <= len(asked) <= 4
    page.unroute("**/live/?*")
    page.evaluate(HIDE)
    page.on("request", lambda request: asked.append(1) if "/live/" in request.url else None)
    asked.clear()
    page.wait_for_timeout(1500)
    assert asked == []
    say(cast, 3, 5)
    page.evaluate(SHOW)
    chip = page.get_by_role("status").get_by_role("link")
    expect(chip).to_contain_text("2 new")
    numbers = page.locator(".stats").get_by_role("link", name="5", exact=True)
    expect(numbers).to_have_count(0)
    click(page, chip)
    expect(numbers).to_be_visible()
    expect(chip).to_have_count(0)


def test_a_conversation_that_goes_on_moves_up_in_the_list(open_page: Open, cast: Cast) -> None:
    for number, name in enumerate(("alpha", "beta", "gamma")):
        say(cast, number, number + 1, name)
    page = enter(open_page, cast.viewer, at("conversations"))
    names = page.locator("tbody th")
    expect(names).to_have_text([re.compile("gamma"), re.compile("beta"), re.compile("alpha")])
    say(cast, 30, 31, "alpha")
    say(cast, 31, 32, "delta")
    chip = page.get_by_role("status").get_by_role("link")
    expect(chip).to_have_text("2 new messages: show them")
    click(page, chip)
    expect(names).to_have_text([re.compile(name) for name in ("delta", "alpha", "gamma", "beta")])
    expect(page.locator("tr[data-new]")).to_have_count(2)
    expect(page.get_by_role("status")).to_have_text("2 shown")
    keep_picture(page, "live-list")


def test_a_stream_tells_what_is_new_and_goes_on_after_a_pause(
    open_page: Open, cast: Cast, port: int, settings: Any, forgiven: set[str]
) -> None:
    settings.EVENT_STREAM = True
    forgiven.add("status of 404")
    say(cast, 0, 3)
    # Where the stream is not there, the page asks.
    page = enter(open_page, cast.viewer, at("search") + "?q=zebra")
    settings.LIVE_POLL_SECONDS = 3600
    page.route(
        lambda address: "/events/" in address,
        lambda route: route.continue_(url=re.sub(r":\d+/", f":{port}/", route.request.url, count=1)),
    )
    page.reload()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/live/" in request.url else None)
    chip = page.get_by_role("status").get_by_role("link")
    say(cast, 3, 5)
    say(cast, 3, 5, "aside", "giraffe")
    expect(chip).to_have_text("2 new messages: show them")
    page.evaluate(HIDE)
    say(cast, 5, 6)
    page.wait_for_timeout(500)
    expect(chip).to_have_text("2 new messages: show them")
    page.evaluate(SHOW)
    expect(chip).to_have_text("3 new messages: show them")
    click(page, chip)
    expect(page.locator(".hit")).to_have_count(6)
    say(cast, 6, 7)
    expect(chip).to_have_text("1 new message: show it")
    assert asked == []
    page.close()


def test_whoever_signs_out_is_left_in_peace(open_page: Open, cast: Cast) -> None:
    say(cast, 0, 3)
    page = enter(open_page, cast.viewer, at("conversations"))
    page.context.clear_cookies()
    with page.expect_response(lambda answer: "/sign-in/" in answer.url):
        pass
    page.wait_for_timeout(300)
    expect(page.get_by_role("status").locator("*")).to_have_count(0)


def test_without_script_a_page_is_as_it_was(open_page: Open, cast: Cast) -> None:
    say(cast, 0, 3)
    page = open_page(cast.viewer, at("conversations"), has_script=False)
    expect(page.locator("#live > *")).to_have_count(0)


@pytest.mark.parametrize(("width", "theme"), [(360, "light"), (360, "dark"), (1280, "light"), (1280, "dark")][::STEP])
def test_the_chip_is_seen_and_hides_nothing_that_cannot_be_scrolled_to(
    open_page: Open, cast: Cast, theme: str, width: int
) -> None:
    say(cast, 0, 30)
    page = enter(open_page, cast.viewer, at("search") + "?q=zebra", width=width, theme=theme)
    page.evaluate("scrollTo({ top: 600, behavior: 'instant' })")
    say(cast, 30, 35)
    chip = page.get_by_role("status").get_by_role("link")
    expect(chip).to_be_in_viewport()
    keep_picture(page, f"live-{width}-{theme}")
    assert find_faults(page) == []
    place = place_of(page, "number 22.")
    click(page, chip)
    expect(chip).to_contain_text("above")
    assert place_of(page, "number 22.") == pytest.approx(place, abs=1.5)
    keep_picture(page, f"live-loaded-{width}-{theme}")
    click(page, chip)
    expect(page.locator(".hit[data-new]").first).to_be_visible()
    keep_picture(page, f"live-shown-{width}-{theme}")
    assert find_faults(page) == []
