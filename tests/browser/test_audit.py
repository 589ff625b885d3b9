"""An audit by keyboard alone: a log nobody has seen, from its upload to a signed report, in few steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Locator, Page, expect

from inspector.audit.models import Review
from tests.browser.conftest import Open, wait_for_rest
from tests.browser.test_accessibility import find_sideways, keep_picture
from tests.inspector.conftest import Cast, settle_all
from tests.inspector.pages.test_planted import KEY, PLANTED, TITLES
from tests.lanes import begin_with

# What may be clicked, or entered by key, from the upload to the report.
MOST_STEPS = 20


class Auditor:
    """Someone who uses keys alone, and counts what each step costs."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.steps = 0

    def enter(self, element: Locator, key: str = "Enter") -> None:
        """Go to an element that Tab reaches, and press a key on it."""
        wait_for_rest(self.page)
        expect(element).to_be_visible()
        assert element.evaluate("each => each.tabIndex") >= 0
        element.focus()
        self.page.keyboard.press(key)
        self.steps += 1


@pytest.mark.parametrize(
    ("width", "theme"), begin_with(1, [(1280, "light"), (360, "dark"), (768, "light"), (1920, "dark")], seconds=15)
)
def test_from_an_unknown_log_to_a_signed_report(
    open_page: Open, cast: Cast, tmp_path: Path, width: int, theme: str
) -> None:
    log = tmp_path / "unknown.jsonl"
    log.write_bytes(b"".join(PLANTED))
    page = open_page(cast.auditor, reverse("pages:upload", args=["acme"]), width=width, theme=theme)
    auditor = Auditor(page)

    def look(name: str) -> None:
        wait_for_rest(page)
        assert find_sideways(page) == [], name
        keep_picture(page, f"audit-{name}-{width}-{theme}")

    # The browser's own window chooses the file: one step.
    page.locator("input[type=file]").first.set_input_files(log)
    auditor.steps += 1
    uploads = page.get_by_role("region", name="Uploads of this visit")
    look("checked")
    auditor.enter(uploads.get_by_role("button", name="Import file"))
    expect(uploads.get_by_text("Splitting into records", exact=True)).to_be_visible()
    settle_all()
    expect(uploads.get_by_text("8 stored, 0 duplicate, 0 quarantined (kept)")).to_be_visible()
    look("loaded")
    # What was planted is the first that is seen.
    auditor.enter(uploads.get_by_role("link", name="look at them"))
    rows = page.locator(".findings > li")
    expect(rows.first).to_contain_text(TITLES[0])
    assert [row.locator(".chips a").first.text_content() for row in rows.all()] == list(TITLES)
    look("findings")
    wait_for_rest(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    auditor.steps += 2
    expect(page.get_by_role("heading", level=1)).to_contain_text("looks like a key of a service")
    look("finding")
    # The next findings are one key away.
    page.keyboard.press("j")
    auditor.steps += 1
    expect(page.get_by_role("heading", level=1)).not_to_contain_text("looks like a key of a service")
    auditor.enter(page.get_by_role("main").locator(".page-head .about a").first)
    expect(page.get_by_role("region", name="Transcript, 8 messages")).to_be_visible()
    look("conversation")
    page.keyboard.press("r")
    auditor.steps += 1
    auditor.enter(page.get_by_role("radio", name="Violation"), "Space")
    comment = page.get_by_label("Comment")
    comment.focus()
    page.keyboard.type("A key in clear, and paid after a refusal.")
    auditor.enter(page.get_by_role("button", name="Sign off"))
    expect(page.get_by_role("status").filter(has_text="Your verdict is kept")).to_be_visible()
    assert Review.objects.get().verdict == "violation"
    look("signed")
    auditor.enter(page.get_by_role("button", name="Report"))
    expect(page).to_have_url(re.compile("/exports/[0-9a-f-]{36}/"))
    settle_all()
    # It opens by itself when it is ready: signed, and with the secret masked.
    expect(page).to_have_url(re.compile(r"/file\?open$"))
    expect(page.get_by_text("A key in clear, and paid after a refusal.").first).to_be_visible()
    assert KEY not in page.content()
    look("report")
    assert auditor.steps <= MOST_STEPS
