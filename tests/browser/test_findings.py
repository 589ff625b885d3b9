"""From the overview to a rule, judging two of its findings by the keys, and what then stands there."""

from __future__ import annotations

import pytest

from inspector.audit.models import Finding, FindingAct
from inspector.audit.rules.logs import say
from tests.browser.conftest import Open
from tests.inspector.conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.long(seconds=8)

LOG = say(*[("ada", f'{{def:ok="not {number}"}}!st/ok') for number in range(3)])


def test_two_findings_are_judged_by_the_keys(open_page: Open, cast: Cast) -> None:
    deliver(cast, LOG.encode())
    settle_all()
    count = Finding.objects.filter(rule="word-redefined").count()
    assert count >= 3
    page = open_page(cast.auditor, "/w/acme/overview/")
    page.get_by_role("link", name=f"{count} warning").click()
    page.wait_for_load_state()
    page.get_by_role("link", name="Term redefined").click()
    page.wait_for_load_state()
    page.locator("h1").click()
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    assert page.get_by_text(f"2 of {count} on this page").is_visible()
    page.get_by_label("Decision").select_option("false-alarm")
    page.get_by_role("button", name="Apply to selected").click()
    assert page.locator("#judge-reason:invalid").count() == 1
    page.locator("#judge-reason").fill("they agreed on it")
    page.get_by_role("button", name="Apply to selected").click()
    page.wait_for_load_state()
    assert "2 findings are now kept as false alarm" in page.get_by_role("status").inner_text()
    assert page.locator(".findings > li").count() == count - 2
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="History").wait_for()
    page.get_by_role("link", name="other findings of the conversation").click()
    page.wait_for_load_state()
    page.get_by_label("State").select_option("false-alarm")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_load_state()
    assert page.locator(".findings > li").count() == 2
    assert {act.reason for act in FindingAct.objects.all()} == {"they agreed on it"}


def test_one_is_judged_without_scripts(open_page: Open, cast: Cast) -> None:
    deliver(cast, LOG.encode())
    settle_all()
    page = open_page(cast.auditor, "/w/acme/findings/?rule=word-redefined", has_script=False)
    page.locator("[data-choose]").first.check()
    assert page.get_by_label("Decision").input_value() == ""
    page.get_by_label("Decision").select_option("accepted")
    page.locator("#judge-reason").fill("so it is")
    page.get_by_role("button", name="Apply to selected").click()
    page.wait_for_load_state()
    assert "1 finding is now kept as accepted" in page.get_by_role("status").inner_text()
    assert Finding.objects.filter(state="accepted").count() == 1
    page.get_by_role("button", name="Reopen").click()
    page.wait_for_load_state()
    assert "1 finding is now kept as open" in page.get_by_role("status").inner_text()
    assert not Finding.objects.exclude(state="open").exists()
    assert page.get_by_role("button", name="Reopen").count() == 0
