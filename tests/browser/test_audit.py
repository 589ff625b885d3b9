"""An audit of a log nobody has seen: from its upload to a signed report in few steps, by keyboard alone or by mouse."""

from __future__ import annotations

import itertools
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Locator, Page, expect

from inspector.audit.models import Review
from tests.browser.conftest import Open, wait_for_rest
from tests.browser.test_accessibility import find_sideways, keep_picture
from tests.inspector.conftest import Cast, settle_all
from tests.lanes import begin_with

# What may be clicked, or entered by key, from the upload to the report.
MAX_STEPS = 20
MAX_TABS = 120
START = int(datetime(2026, 11, 23, 7, tzinfo=UTC).timestamp())
KEY = "sk_live_" + "4c1d9e8b7a6f5544332211ffeeddccbb"
AGENTS = ("intake", "triage", "router", "writer", "checker", "stock", "mailer", "lister", "packer", "driver")


def say(after: int, act: str, who: str, conversation: str, answers: str = "", **told: object) -> bytes:
    sender, receiver = who.split(">")
    wire = {"clowl": "0.2", "mid": f"{conversation}-{after}", "ts": START + after, "p": act, "from": sender}
    wire |= {"to": receiver, "cid": conversation, "body": {"t": conversation.partition("-")[0], "d": told}}
    return json.dumps(wire | ({"pid": f"{conversation}-{answers}"} if answers else {})).encode() + b"\n"


def write_log() -> bytes:
    """Ordinary work, and among it a reversed refusal, an unanswered approval, a leaked key and a missing parent."""
    lines = []
    for number, (asker, worker) in enumerate(itertools.pairwise(AGENTS)):
        at, name = number * 300, f"count-{number}"
        lines += [
            say(at, "REQ", f"{asker}>{worker}", name, q="Count the boxes"),
            say(at + 5, "ACK", f"{worker}>{asker}", name, str(at), eta="2m"),
            say(at + 90, "DONE", f"{worker}>{asker}", name, str(at), result="counted"),
        ]
    lines += [
        say(600, "REQ", "planner>deployer", "rollout-12", q="Deploy build 812"),
        say(610, "ERR", "deployer>planner", "rollout-12", "600", code="E005", msg="not permitted", retry=False),
        say(900, "DONE", "deployer>planner", "rollout-12", "600", result="deployed"),
        say(1000, "REQ", "billing>ledger", "refund-55", q="Refund order 55"),
        say(1010, "QRY", "ledger>controller", "refund-55", "1000", q="May I refund 1,999.00?"),
        say(1200, "REQ", "billing>mailer", "letters-3", q="Send the letters"),
        say(1210, "INF", "mailer>billing", "letters-3", "1200", message="use this", api_key=KEY),
        say(1300, "DONE", "mailer>billing", "letters-3", "1200", result="sent"),
        say(1500, "DONE", "porter>picker", "pick-9", "404", result="9 boxes"),
        say(9000, "INF", "intake>driver", "count-99", message="end of the day"),
    ]
    return b"".join(sorted(lines, key=lambda line: json.loads(line)["ts"]))


# What is planted, in the order of what matters.
PLANTED = ("Exposed secret", "Outcome reversed", "Request never answered", "Reply to a missing message")


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
        for _ in range(MAX_TABS):
            if element.evaluate("each => each === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        pytest.fail(f"{MAX_TABS} times Tab do not lead to {element}")

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
def test_from_an_unknown_log_to_a_signed_report(
    open_page: Open, cast: Cast, tmp_path: Path, width: int, theme: str, *, has_mouse: bool
) -> None:
    log = tmp_path / "unknown.jsonl"
    log.write_bytes(write_log())
    page = open_page(cast.auditor, reverse("pages:upload", args=["acme"]), width=width, theme=theme)
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
    expect(uploads.get_by_text("Splitting into records", exact=True)).to_be_visible()
    settle_all()
    expect(uploads.get_by_text("37 stored, 0 duplicate, 0 quarantined (kept)")).to_be_visible()
    expect(uploads.get_by_text("4 findings")).to_be_visible()
    look("loaded")
    # What was planted is the first that is seen, and here all of it.
    auditor.enter(uploads.get_by_role("link", name="look at them"))
    rows = page.locator(".findings > li")
    # The list is in sight before all of it has come.
    expect(rows).to_have_count(len(PLANTED))
    assert [row.locator(".chips a").first.text_content() for row in rows.all()] == list(PLANTED)
    look("findings")
    heading = page.get_by_role("heading", level=1)
    auditor.press("j", "Enter")
    expect(heading).to_contain_text("Looks like an exposed service API key")
    look("finding")
    # The other three are a key away each.
    for words in ("Reported done after it failed", "ledger asked controller", "which was not received"):
        auditor.press("j")
        expect(heading).to_contain_text(words)
    for words in ("ledger asked controller", "Reported done after it failed", "exposed service API key"):
        auditor.press("k")
        expect(heading).to_contain_text(words)
    auditor.enter(page.get_by_role("main").locator(".page-head .about a").first)
    expect(page.get_by_role("region", name="Transcript, 3 messages")).to_be_visible()
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
    settle_all()
    # It opens by itself when it is ready: signed, and with the secret masked.
    expect(page).to_have_url(re.compile(r"/file\?open$"))
    expect(page.get_by_text("A key in clear.").first).to_be_visible()
    expect(page.get_by_text("violation").first).to_be_visible()
    assert KEY not in page.content()
    look("report")
    assert auditor.steps <= MAX_STEPS
