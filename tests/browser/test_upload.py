"""The whole way of an upload: dropped, looked at, read otherwise, loaded, settled, withdrawn, taken back."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from inspector.intake.models import Delivery, Record
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads.models import Message
from tests.browser.conftest import Open, at, wait_for_rest
from tests.browser.test_accessibility import find_faults, keep_picture
from tests.inspector.conftest import Cast, resolve_all, take_in
from tests.inspector.pages.conftest import STORY

pytestmark = pytest.mark.long(seconds=8)

LOG = "!nd hb ok\\n?Uk/co\\nall is well\\nfull of \\u0000 nothing\\n"


def drop(page: Page, name: str, text: str) -> None:
    files = page.evaluate_handle(
        "([name, text]) => { const data = new DataTransfer(); data.items.add(new File([text], name)); return data; }",
        [name, text.encode().decode("unicode_escape")],
    )
    page.dispatch_event(".dropzone", "drop", {"dataTransfer": files})


def open_upload(open_page: Open, cast: Cast) -> Page:
    return open_page(cast.auditor, at("upload"))


def open_with_night(open_page: Open, cast: Cast) -> Page:
    """The page once the log of the night was dropped and looked at."""
    page = open_upload(open_page, cast)
    drop(page, "night.log", LOG)
    expect(page.get_by_role("form", name="night.log")).to_be_visible()
    wait_for_rest(page)
    return page


def import_file(page: Page) -> None:
    """Import what was looked at, and let it be settled."""
    page.get_by_role("form", name="night.log").get_by_role("button", name="Import file").click()
    expect(page.get_by_text("Splitting into records", exact=True)).to_be_visible()
    resolve_all()


def test_a_receipt_follows_the_hiding_of_its_records(open_page: Open, cast: Cast) -> None:
    delivery = take_in(cast, STORY, name="story.log")
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="the wrong file")
    page = open_page(cast.auditor, at("delivery", delivery.pk))
    alert = page.locator("#hidden")
    expect(alert).to_contain_text("0 of 5 so far")
    resolve_all()
    expect(alert).to_contain_text("5 of its records are hidden")
    take_back(membership=cast.auditor, delivery=delivery, reason="right after all")
    page.reload()
    expect(alert).to_contain_text("5 of 5 are still hidden")
    resolve_all()
    expect(alert).to_have_count(0)


def test_from_the_drop_to_the_withdrawal_and_back(open_page: Open, cast: Cast) -> None:
    page = open_upload(open_page, cast)
    drop(page, "night.log", LOG)
    card = page.get_by_role("form", name="night.log")
    expect(card.get_by_text("4 records in all: 4 new, 0 duplicate, 0 quarantined")).to_be_visible()
    expect(card.get_by_text("someone", exact=False).first).to_be_visible()
    assert not Record.objects.exists()

    wait_for_rest(page)
    card.get_by_label("Dialect").select_option("Λ Lambda")
    expect(card.get_by_text("chosen by the sender of the delivery")).to_have_count(4)
    wait_for_rest(page)
    card.get_by_label("Dialect").select_option("Detect for each record")
    expect(card.get_by_text("chosen by the sender of the delivery")).to_have_count(0)
    wait_for_rest(page)

    card.get_by_label("Two, in turns").check()
    card.get_by_label("Name", exact=False).first.fill("oscar")
    card.get_by_label("The other’s name", exact=False).fill("radar")
    card.get_by_label("The other’s name", exact=False).press("Enter")
    expect(card.get_by_role("article", name="Record 2").locator(".agent").first).to_contain_text("radar")
    wait_for_rest(page)
    assert find_faults(page) == []

    card.get_by_role("button", name="Import file").click()
    uploads = page.get_by_role("region", name="Uploads of this visit")
    expect(uploads.get_by_text("Splitting into records", exact=True)).to_be_visible()
    expect(uploads.locator("[data-state=done]")).to_have_count(0)
    resolve_all()
    expect(uploads.get_by_text("4 stored, 0 duplicate, 0 quarantined (kept)")).to_be_visible()

    uploads.get_by_role("link", name="Receipt").click()
    expect(page.get_by_text("4 received = 4 stored + 0 duplicate + 0 quarantined").first).to_be_visible()
    expect(page.get_by_text("oscar and radar in turns")).to_be_visible()
    page.get_by_label("Reason").fill("the wrong night")
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Withdrawn by amir").first).to_be_visible()
    resolve_all()
    expect(page.get_by_text("as the withdrawals in force say")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("4 of its records are hidden")).to_be_visible()
    assert Message.objects.shown().count() == 0

    page.get_by_label("Reason").fill("the right night after all")
    page.get_by_role("button", name="Show its records again").click()
    resolve_all()
    page.reload()
    expect(page.get_by_text("Withdrawal undone by amir")).to_be_visible()
    assert Message.objects.shown().count() == 4


def test_a_printed_receipt_is_one_page(open_page: Open, cast: Cast) -> None:
    page = open_with_night(open_page, cast)
    import_file(page)
    page.goto(at("delivery", Delivery.objects.get().pk))
    page.emulate_media(media="print")
    expect(page.get_by_text("4 received = 4 stored").last).to_be_visible()
    expect(page.locator("#sha256")).to_be_visible()
    expect(page.get_by_text("receipt of a delivery")).to_be_visible()
    # What was not stored is part of what is signed for.
    expect(page.get_by_role("region", name="Problems")).to_be_visible()
    for name in ("Print the receipt", "Withdraw"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    assert page.pdf(format="A4", prefer_css_page_size=True).count(b"/Type /Page\n") == 1
    keep_picture(page, "receipt-printed")


def test_pasted_text_is_a_file_too(open_page: Open, cast: Cast) -> None:
    page = open_upload(open_page, cast)
    wait_for_rest(page)
    paste = """(where) => {
      const data = new DataTransfer();
      data.setData("text", "?Uk/co\\nall is well\\n");
      const pasted = new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
      document.querySelector(where).dispatchEvent(pasted);
    }"""
    # In a field it is what is typed there.
    page.evaluate(paste, "#id_channel")
    page.evaluate(paste, "body")
    card = page.get_by_role("form", name="pasted.log")
    expect(card.get_by_text("2 records in all: 2 new, 0 duplicate, 0 quarantined")).to_be_visible()
    expect(card).to_have_count(1)
    assert not Record.objects.exists()


def test_the_steps_say_how_far_the_upload_is(open_page: Open, cast: Cast) -> None:
    page = open_upload(open_page, cast)
    steps = page.get_by_role("list", name="Steps")
    current = steps.locator("[aria-current=step]")
    expect(current).to_have_text(["Choose"])
    drop(page, "night.log", LOG)
    expect(page.get_by_role("form", name="night.log")).to_be_visible()
    expect(current).to_have_text(["Check"])
    # The least advanced of several files is how far the upload is.
    drop(page, "day.log", "all is well\\n")
    expect(page.get_by_role("form", name="day.log")).to_be_visible()
    wait_for_rest(page)
    page.get_by_role("form", name="night.log").get_by_role("button", name="Import file").click()
    expect(page.get_by_text("Splitting into records", exact=True)).to_be_visible()
    expect(current).to_have_text(["Check"])
    page.get_by_role("form", name="day.log").get_by_role("button", name="Discard").click()
    expect(page.get_by_text("was discarded")).to_be_visible()
    expect(current).to_have_text(["Import"])
    resolve_all()
    expect(page.get_by_text("4 stored, 0 duplicate, 0 quarantined (kept)")).to_be_visible()
    expect(current).to_have_text(["Done"])
    expect(steps.locator("[data-past]")).to_have_text(["Choose", "Check", "Import"])


def test_after_loading_its_own_conversations_are_shown(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY, name="story.log")
    page = open_with_night(open_page, cast)
    import_file(page)
    page.get_by_role("link", name="See the conversations").click()
    rows = page.get_by_role("group", name="Table of conversations").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(page.get_by_text("Only what night.log brought")).to_be_visible()
    # What is chosen besides narrows down the same; the address is what a colleague sees.
    page.get_by_label("dialect").select_option("Λ Lambda")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("Only what night.log brought")).to_be_visible()
    assert f"delivery={Delivery.objects.get(file_name='night.log').pk}" in page.url
    page.get_by_role("link", name="Show all").click()
    expect(rows).to_have_count(4)


def test_throwing_away_leaves_nothing(open_page: Open, cast: Cast) -> None:
    page = open_with_night(open_page, cast)
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_text("was discarded")).to_be_visible()
    expect(page.get_by_role("list", name="Steps").locator("[aria-current=step]")).to_have_text(["Choose"])
    assert not Delivery.objects.exists()


def test_the_first_paint_is_the_last(open_page: Open, cast: Cast) -> None:
    """Before the script has run the page stands as it will; without scripts it has a field and a button."""
    address = at("upload")
    page = open_page(cast.auditor, at("deliveries"))
    page.route("**/uploads*.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    page.goto(address)
    expect(page.get_by_text("Choose files", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Preview")).to_be_hidden()
    plain = open_page(cast.auditor, address, has_script=False)
    expect(plain.get_by_text("Choose files", exact=True)).to_be_hidden()
    expect(plain.get_by_role("button", name="Preview")).to_be_visible()
