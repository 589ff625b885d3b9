"""The way of a newcomer: upload a log, read it in English, open a message, judge, search."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from inspector.audit.models import Review
from tests.browser.conftest import Open, at, wait_for_rest
from tests.inspector.conftest import Cast, resolve_all, take_in
from tests.inspector.pages.conftest import STORY


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "agents.log"
    path.write_bytes(STORY)
    return path


def test_upload_a_file_and_read_the_english(open_page: Open, cast: Cast, log: Path) -> None:
    page = open_page(cast.auditor, at("upload"))
    second = log.with_name("second.log")
    second.write_text("oscar says hello\n")
    page.get_by_label("Log files").or_(page.locator("input[type=file]")).first.set_input_files([log, second])
    uploads = page.get_by_role("region", name="Uploads of this visit")
    for name in ("agents.log", "second.log"):
        expect(uploads.get_by_role("form", name=name)).to_be_visible()
    wait_for_rest(page)
    uploads.get_by_role("form", name="agents.log").get_by_role("button", name="Import file").click()
    uploads.get_by_role("form", name="second.log").get_by_role("button", name="Import file").click()
    expect(uploads.get_by_text("Splitting into records", exact=True)).to_have_count(2)
    resolve_all()
    expect(uploads.get_by_text("5 stored, 0 duplicate, 0 quarantined (kept)")).to_be_visible()
    expect(uploads.get_by_text("1 stored, 0 duplicate, 0 quarantined (kept)")).to_be_visible()

    uploads.get_by_role("link", name="See the conversations").first.click()
    page.get_by_role("link", name="search", exact=True).click()
    transcript = page.get_by_role("region", name="Transcript, 3 messages")
    expect(transcript.get_by_text("oscar asks radar")).to_be_visible()
    expect(transcript.get_by_text('"mid":"m1"')).to_be_visible()
    expect(transcript.get_by_text("m3 was not received.")).to_be_visible()


def test_a_refused_upload_says_why(open_page: Open, cast: Cast, log: Path, forgiven: set[str]) -> None:
    page = open_page(cast.auditor, at("upload"))
    page.get_by_label("Channel").fill("\u200b")
    forgiven.add("status of 422")
    page.locator("input[type=file]").set_input_files(log)
    expect(page.get_by_role("alert")).to_contain_text("printable characters")


def test_upload_works_without_script(open_page: Open, cast: Cast, log: Path) -> None:
    page = open_page(cast.auditor, at("upload"), has_script=False)
    page.locator("input[type=file]").set_input_files(log)
    page.get_by_role("button", name="Preview").click()
    page.get_by_label("Dialect").select_option("nSLIP")
    page.get_by_role("button", name="Read again with these choices").click()
    expect(page.get_by_text("chosen by the sender of the delivery").first).to_be_visible()
    page.get_by_role("button", name="Import file").click()
    expect(page.get_by_role("heading", name="agents.log")).to_be_visible()
    resolve_all()
    page.reload()
    expect(page.get_by_text("every record read as nSLIP")).to_be_visible()


def test_one_piece_lights_up_in_three_panes(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    page = open_page(cast.viewer, at("search") + "?q=dialect:nslip+refactor_auth")
    page.locator(".hit [data-open]").click()
    expect(page.get_by_role("region", name="Raw")).to_be_visible()
    wait_for_rest(page)
    lit = page.locator("[data-span='0:25-27'].is-lit")

    def expect_lit_in_every_pane() -> None:
        for name in ("English", "Fields", "Raw"):
            expect(page.get_by_role("region", name=name).and_(page.locator(".pane:has(.is-lit)"))).to_be_visible()
        expect(page.get_by_role("region", name="Raw").locator(".is-lit")).to_have_text(["q2"])

    expect(lit).to_have_count(0)
    page.locator(".pane .wire [data-span='0:25-27']").hover()
    expect_lit_in_every_pane()
    page.locator(".pane .wire [data-span='0:1-3']").focus()
    expect(lit).to_have_count(0)
    page.locator(".pane .wire [data-span='0:25-27']").press("Enter")
    page.mouse.move(0, 0)
    expect_lit_in_every_pane()
    expect(page).to_have_url(re.compile(re.escape("?q=dialect%3Anslip+refactor_auth&span=0:25-27") + "$"))
    chosen = page.locator("#selected")
    expect(chosen).to_contain_text("priority")
    expect(chosen).to_contain_text("71 32")
    expect(chosen.get_by_role("link", name="Filter for priority:2")).to_be_visible()
    page.reload()
    expect_lit_in_every_pane()
    unscripted = open_page(cast.viewer, page.url.removeprefix(page.url.split("/w/")[0]), has_script=False)
    expect(unscripted.locator(".wire .is-lit")).to_have_text(["q2"])
    # Tab goes from pane to pane along what is lit.
    page.get_by_role("region", name="Fields").locator("[data-piece][tabindex='0']").focus()
    expect(page.locator(":focus")).to_have_text("25–27")
    raw = page.get_by_role("region", name="Raw")
    expect(raw.locator("[tabindex='0']")).to_have_count(1)
    raw.locator("[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    expect(raw.locator(":focus")).to_have_text('t"refactor_auth"')
    expect(raw.locator(".is-lit")).to_have_text(['t"refactor_auth"'])
    page.keyboard.press("Escape")
    expect(lit).to_have_count(0)


def test_keys_walk_open_and_search(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    page = open_page(cast.viewer, at("conversations"))
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("tr[data-current]")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Transcript")).to_be_visible()
    wait_for_rest(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Help and keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("mcp j k ?")
    expect(page.get_by_label("Search messages")).to_have_value("mcp j k ?")


def test_an_auditor_signs_a_verdict(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    page = open_page(cast.auditor, at("conversations"))
    page.get_by_role("link", name="search", exact=True).click()
    page.get_by_role("link", name="Review", exact=True).click()
    page.get_by_label("Concern").check()
    page.get_by_label("Comment").fill("m3 must be found before this can be closed.")
    page.get_by_role("button", name="Sign off").click()
    expect(page.get_by_role("status").filter(has_text="Your verdict is kept")).to_be_visible()
    expect(page.get_by_label("In short").get_by_text("concern", exact=True)).to_be_visible()
    assert Review.objects.get().comment == "m3 must be found before this can be closed."


def test_the_theme_is_remembered(open_page: Open, cast: Cast) -> None:
    page = open_page(cast.viewer, at("conversations"))
    background = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Light or dark").click()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark


def test_the_narrow_page_has_its_menu(open_page: Open, cast: Cast) -> None:
    page = open_page(cast.viewer, at("conversations"), width=360)
    expect(page.get_by_role("navigation", name="Main")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Deliveries").click()
    expect(page.get_by_role("heading", name="Deliveries")).to_be_visible()


def test_signing_in_and_out(open_page: Open, cast: Cast) -> None:
    user = cast.owner.user
    user.set_password("correct horse battery")
    user.save()
    page = open_page(None, at("settings"))
    page.get_by_label("Username").fill("olivia")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    wait_for_rest(page)
    page.get_by_role("button", name="Signed in as olivia").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
