"""An auditor with an unknown log: its four planted faults are the first four things seen, up to a signed report.

By way of the overview, once by mouse, where each click is counted, and once by keyboard and palette alone; and straight
from the upload, in both themes and at four widths, by mouse or by keyboard, where each step is counted.
"""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from inspector.audit.models import Review
from inspector.exports.models import Export
from tests.browser.conftest import Open, at, wait_for_rest
from tests.browser.test_accessibility import find_sideways, keep_picture
from tests.inspector.conftest import Cast, resolve_all
from tests.lanes import begin_with

START: Final = datetime(2026, 10, 6, 5, 30, tzinfo=UTC)
KEY: Final = "sk_live_" + "4Rk7pWq2Zt9Lm3Xv8Nc1Yb6D"
MAX_CLICKS: Final = 20
# More presses than these for one thing are no way of a person.
MAX_TABS: Final = 40
# The rules that find the leaked key, the reversed refusal, the unanswered approval and the missing parent.
FAULTS: Final = ("Exposed secret", "Outcome reversed", "Request never answered", "Reply to a missing message")


def say(minute: float, raw: str, sender: str = "", receiver: str = "", of: str = "417", **more: str) -> str:
    """A line of the log: a wire in its envelope."""
    named = {"from": sender, "to": receiver, "conversation": of} if sender else {}
    envelope = {"at": (START + timedelta(minutes=minute)).isoformat(), "raw": raw} | named | more
    return json.dumps({name: value for name, value in envelope.items() if value}, ensure_ascii=False) + "\n"


def clowl(minute: float, mid: str, act: str, who: str, task: str, pid: str = "", **data: object) -> str:
    """A line of the log that is a message of CLowl itself."""
    sender, receiver = who.split(">")
    said: dict[str, object] = {"clowl": "0.2", "mid": mid, "ts": int(START.timestamp() + 60 * minute), "p": act}
    said |= {"from": sender, "to": receiver, "cid": "417"} | ({"pid": pid} if pid else {})
    return json.dumps(said | {"body": {"t": task, "d": data}}) + "\n"


def lingua(content: dict[str, str]) -> str:
    """A message of agent-lingua, its content packed as there."""
    packed = base64.b64encode(json.dumps(content).encode()).decode()
    return f"👽13|@tanker|$j:{packed}\n--👽lingua/0.4@agent-lingua"


def answer(words: str) -> str:
    return f"^0|${base64.b64encode(words.encode()).decode()}\n--👽lingua/0.4@agent-lingua"


# A night at a chemical works in five dialects; nSLIP writes the number 417 as "6j".
LOG: Final = "".join(
    (
        say(-9, "The night shift takes over.", "day-shift", of="handover"),
        say(-6, "?Uk/co", "sampler", "lab", of="probe-88"),
        say(-5, "!Ik/co", "lab", "sampler", of="probe-88"),
        clowl(0, "w01", "REQ", "coordinator>pump-3", "flush-line", litres=900, line=3),
        clowl(1, "w02", "ACK", "pump-3>coordinator", "flush-line", "w01", eta="40m"),
        clowl(2, "w03", "QRY", "pump-3>supervisor", "approve-flush", "w01", q="May line 3 be flushed?"),
        say(4, '@a3|f0|c6j|S0|d2|T1|g1|k6|q1|t"open vault 4"#'),
        say(5, '@a7|f0|c6j|S2|d0|T2|g1|k6|u"two people must be present"|t"open vault 4"#'),
        say(11, '@a1|f0|c6j|S2|d0|T3|g1|k6|u"done"|t"vault 4 is open"#'),
        say(13, lingua({"sb": "Berth", "bd": "Berth 2 is free."}), "gate", "tanker", of="berth-2"),
        say(14, answer("I come to berth 2."), "tanker", "gate", of="berth-2"),
        say(16, lingua({"sb": "Weighbridge", "api_key": KEY}), "coordinator", "tanker"),
        say(17, answer("The weighbridge is open."), "tanker", "coordinator"),
        say(31, "!Ik/da", "lab", "coordinator", parent="probe-87-result"),
        clowl(200, "w04", "INF", "coordinator>pump-3", "shift", message="The night shift ends"),
    )
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "works.jsonl"
    path.write_text(LOG)
    return path


def expect_faults_first(titles: Locator) -> None:
    """The first of these titles are the four faults; nothing else stands before or between them."""
    expect(titles.first).to_be_visible()
    assert tuple(" ".join(words.split()) for words in titles.all_inner_texts()[: len(FAULTS)]) == FAULTS


def expect_report(page: Page) -> None:
    """The page becomes the report: what was found, no secret in clear, and who signed."""
    expect(page.get_by_text("finding its messages")).to_be_visible()
    resolve_all()
    page.wait_for_url(re.compile(r"\?open"))
    expect(page.get_by_text("Signed off:")).to_contain_text("violation, by amir")
    body = page.locator("body").inner_text()
    assert [title for title in FAULTS if title not in body] == []
    assert KEY not in page.content()
    assert "The key must be revoked." in body


def expect_looked_at(page: Page) -> None:
    """The file was chosen, and its beginning is told."""
    expect(page.get_by_role("form", name="works.jsonl")).to_be_visible()
    wait_for_rest(page)


def expect_stored(page: Page) -> None:
    expect(page.get_by_text("Splitting into records", exact=True)).to_be_visible()
    resolve_all()
    expect(page.get_by_text("15 stored, 0 duplicate, 0 quarantined (kept)")).to_be_visible()


class Hand:
    """A mouse that counts its clicks."""

    def __init__(self) -> None:
        self.clicks = 0

    def click(self, there: Locator) -> None:
        there.click()
        self.clicks += 1


@pytest.mark.long(seconds=15)
def test_from_an_unknown_log_to_a_signed_report_by_mouse(open_page: Open, cast: Cast, log: Path) -> None:
    page, hand = open_page(cast.auditor, at("upload")), Hand()
    with page.expect_file_chooser() as chooser:
        hand.click(page.get_by_text("Choose files", exact=True))
    chooser.value.set_files(log)
    expect_looked_at(page)
    keep_picture(page, "walk-1-check")
    hand.click(page.get_by_role("button", name="Import file"))
    expect_stored(page)
    keep_picture(page, "walk-2-stored")

    hand.click(page.get_by_role("navigation", name="Main").get_by_role("link", name="Overview"))
    expect_faults_first(page.get_by_role("region", name="Open findings by rule").locator("tbody tr a"))
    wait_for_rest(page)
    keep_picture(page, "walk-3-overview")
    hand.click(page.get_by_role("link", name="Most severe first"))
    expect_faults_first(page.locator(".findings > li .chips a"))
    keep_picture(page, "walk-4-findings")
    hand.click(page.locator(".findings .sentence a").first)
    for number, title in enumerate(FAULTS):
        expect(page.get_by_role("navigation", name="Where you are")).to_contain_text(title)
        keep_picture(page, f"walk-5-finding-{number}")
        if title != FAULTS[-1]:
            hand.click(page.get_by_role("link", name="Next open finding, j"))

    hand.click(page.get_by_role("link", name="Give a verdict on its page"))
    expect(page.get_by_role("form", name="Your verdict")).to_be_in_viewport()
    keep_picture(page, "walk-6-conversation")
    hand.click(page.get_by_role("radio", name="Violation"))
    hand.click(page.get_by_label("Comment"))
    page.keyboard.type("The key must be revoked.")
    hand.click(page.get_by_role("button", name="Sign off"))
    expect(page.get_by_role("status").filter(has_text="Your verdict is kept")).to_be_visible()
    keep_picture(page, "walk-7-signed")
    hand.click(page.get_by_role("button", name="Report"))
    expect_report(page)
    keep_picture(page, "walk-8-report")
    assert hand.clicks <= MAX_CLICKS
    assert Review.objects.get().verdict == Review.Verdict.VIOLATION
    assert Export.objects.get().is_masked


def tab_to(page: Page, there: Locator, most: int = MAX_TABS) -> None:
    """Press Tab until this has the focus, from where it is, as often as a person would."""
    for _ in range(most):
        if there.evaluate("node => node === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{there} has no focus after {most} presses of Tab")


def go_to(page: Page, typed: str, title: str) -> None:
    """Open the palette, type, and take what stands first."""
    wait_for_rest(page)
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    expect(palette.get_by_role("combobox")).to_be_focused()
    page.keyboard.type(typed)
    expect(palette.get_by_role("option").first).to_contain_text(title)
    page.keyboard.press("Enter")


@pytest.mark.long(seconds=15)
def test_from_an_unknown_log_to_a_signed_report_by_keyboard(open_page: Open, cast: Cast, log: Path) -> None:
    page = open_page(cast.auditor, at("overview"))
    go_to(page, "upload", "Upload")
    expect(page.get_by_role("heading", name="Upload", level=1)).to_be_visible()
    wait_for_rest(page)
    # The browser is asked for its file dialog well before the key that opens it.
    with page.expect_file_chooser() as chooser:
        tab_to(page, page.get_by_role("link", name="Skip to content"))
        page.keyboard.press("Enter")
        tab_to(page, page.locator("input[type=file]"))
        page.keyboard.press("Enter")
    chooser.value.set_files(log)
    expect_looked_at(page)
    tab_to(page, page.get_by_role("button", name="Import file"))
    page.keyboard.press("Enter")
    expect_stored(page)
    # The button that had the focus is gone: Tab goes on from the result.
    expect(page.get_by_role("region", name="Uploads of this visit")).to_be_focused()

    go_to(page, "overview", "Overview")
    rules = page.get_by_role("region", name="Open findings by rule").locator("tbody tr")
    expect_faults_first(rules.get_by_role("link"))
    wait_for_rest(page)
    for number, title in enumerate(FAULTS):
        page.keyboard.press("j")
        expect(rules.nth(number).get_by_role("link", name=title)).to_be_focused()
    for _ in FAULTS[1:]:
        page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=FAULTS[0], level=1)).to_be_visible()
    wait_for_rest(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    for title in FAULTS:
        expect(page.get_by_role("navigation", name="Where you are")).to_contain_text(title)
        wait_for_rest(page)
        if title != FAULTS[-1]:
            page.keyboard.press("j")

    page.keyboard.press("r")
    verdict = page.get_by_role("form", name="Your verdict")
    expect(verdict).to_be_in_viewport()
    wait_for_rest(page)
    tab_to(page, verdict.get_by_role("radio", name="No issues"))
    page.keyboard.press("ArrowUp")
    expect(verdict.get_by_role("radio", name="Violation")).to_be_checked()
    tab_to(page, verdict.get_by_label("Comment"))
    page.keyboard.type("The key must be revoked.")
    tab_to(page, verdict.get_by_role("button", name="Sign off"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Your verdict is kept")).to_be_visible()
    go_to(page, "report", "Report")
    expect_report(page)
    assert Review.objects.get().verdict == Review.Verdict.VIOLATION


class Auditor:
    """Someone at a page, and what each step costs; without a mouse every element is reached by Tab."""

    def __init__(self, page: Page, *, has_mouse: bool) -> None:
        self.page = page
        self.has_mouse = has_mouse
        self.steps = 0

    def reach(self, element: Locator) -> None:
        """Let Tab come to the element, from where the focus is."""
        wait_for_rest(self.page)
        expect(element).to_be_visible()
        tab_to(self.page, element, most=3 * MAX_TABS)

    def enter(self, element: Locator, key: str = "Enter") -> None:
        """Click it, or come to it and press a key."""
        self.steps += 1
        if self.has_mouse:
            wait_for_rest(self.page)
            return element.click()
        self.reach(element)
        return self.page.keyboard.press(key)

    def press(self, *keys: str) -> None:
        """Keys that the page itself listens to."""
        wait_for_rest(self.page)
        for key in keys:
            self.page.keyboard.press(key)
            self.steps += 1


@pytest.mark.parametrize(
    ("width", "theme", "has_mouse"),
    begin_with(
        1,
        [(1280, "light", False), (360, "dark", True), (768, "light", True), (1920, "dark", False)],
        seconds=15,
    ),
)
def test_from_an_unknown_log_to_a_signed_report_straight_from_the_upload(
    open_page: Open, cast: Cast, log: Path, width: int, theme: str, *, has_mouse: bool
) -> None:
    page = open_page(cast.auditor, at("upload"), width=width, theme=theme)
    auditor = Auditor(page, has_mouse=has_mouse)

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
    expect_stored(page)
    expect(uploads.get_by_text("4 findings")).to_be_visible()
    look("loaded")
    # What was planted is the first that is seen, and here all of it.
    auditor.enter(uploads.get_by_role("link", name="look at them"))
    rows = page.locator(".findings > li")
    # The list is in sight before all of it has come.
    expect(rows).to_have_count(len(FAULTS))
    assert [row.locator(".chips a").first.text_content() for row in rows.all()] == list(FAULTS)
    look("findings")
    heading = page.get_by_role("heading", level=1)
    auditor.press("j", "Enter")
    expect(heading).to_contain_text("Looks like an exposed service API key")
    look("finding")
    # The other three are a key away each.
    for words in ("Reported done after it was refused", "pump-3 asked supervisor", "which was not received"):
        auditor.press("j")
        expect(heading).to_contain_text(words)
    for words in ("pump-3 asked supervisor", "Reported done after it was refused", "exposed service API key"):
        auditor.press("k")
        expect(heading).to_contain_text(words)
    auditor.enter(page.get_by_role("main").locator(".page-head .about a").first)
    expect(page.get_by_role("region", name="Transcript, 10 messages")).to_be_visible()
    look("conversation")
    auditor.press("r")
    if has_mouse:
        auditor.enter(page.get_by_role("radio", name="Violation"))
    else:
        # Tab comes to the first of them, and arrows choose.
        auditor.reach(page.get_by_role("radio", name="No issues"))
        auditor.press("ArrowDown", "ArrowDown")
    expect(page.get_by_role("radio", name="Violation")).to_be_checked()
    auditor.enter(page.get_by_label("Comment"), "Shift")
    page.keyboard.type("A key in clear.")
    auditor.enter(page.get_by_role("button", name="Sign off"))
    expect(page.get_by_role("status").filter(has_text="Your verdict is kept")).to_be_visible()
    assert Review.objects.get().verdict == "violation"
    look("signed")
    auditor.enter(page.get_by_role("button", name="Report"))
    expect(page).to_have_url(re.compile("/exports/[0-9a-f-]{36}/"))
    resolve_all()
    # It opens by itself when it is ready: signed, and with the secret masked.
    expect(page).to_have_url(re.compile(r"/file\?open$"))
    expect(page.get_by_text("A key in clear.").first).to_be_visible()
    expect(page.get_by_text("violation").first).to_be_visible()
    assert KEY not in page.content()
    look("report")
    assert auditor.steps <= MAX_CLICKS
