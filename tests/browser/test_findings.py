"""From the overview to a rule, judging two of its findings by the keys, and what then stands there."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from inspector.audit.models import Finding, FindingAct
from inspector.threads.models import Message
from tests.browser.conftest import Open, wait_for_rest
from tests.inspector.audit.rule_logs.writing import say
from tests.inspector.conftest import Cast, take_in

pytestmark = pytest.mark.long(seconds=8)

LOG = say(*[("ada", f'{{def:ok="not {number}"}}!st/ok') for number in range(3)])


def test_two_findings_are_judged_by_the_keys(open_page: Open, cast: Cast) -> None:
    take_in(cast, LOG.encode())
    count = Finding.objects.filter(rule="word-redefined").count()
    assert count >= 3
    warnings = Finding.objects.filter(severity=Message.Severity.WARNING).count()
    page = open_page(cast.auditor, "/w/acme/overview/")
    page.get_by_role("link", name=f"{warnings} warning").click()
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
    assert "2 findings are now marked as false alarms" in page.get_by_role("status").inner_text()
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
    take_in(cast, LOG.encode())
    page = open_page(cast.auditor, "/w/acme/findings/?rule=word-redefined", has_script=False)
    page.locator("[data-choose]").first.check()
    assert page.get_by_label("Decision").input_value() == ""
    page.get_by_label("Decision").select_option("accepted")
    page.locator("#judge-reason").fill("so it is")
    page.get_by_role("button", name="Apply to selected").click()
    page.wait_for_load_state()
    assert "1 finding is now accepted" in page.get_by_role("status").inner_text()
    assert Finding.objects.filter(state="accepted").count() == 1
    page.get_by_role("button", name="Reopen").click()
    page.wait_for_load_state()
    assert "1 finding is now open again" in page.get_by_role("status").inner_text()
    assert not Finding.objects.exclude(state="open").exists()
    assert page.get_by_role("button", name="Reopen").count() == 0


def test_findings_are_assigned_and_snoozed_and_come_back(open_page: Open, cast: Cast) -> None:
    take_in(cast, LOG.encode())
    count = Finding.objects.filter(rule="word-redefined").count()
    page = open_page(cast.auditor, "/w/acme/findings/?rule=word-redefined")
    wait_for_rest(page)
    rows = page.locator(".findings > li")
    # Two are given to the owner; no decision and no reason is asked for.
    for number in range(2):
        rows.nth(number).get_by_role("checkbox").check()
    page.get_by_label("Assign to").select_option("olivia")
    page.get_by_role("button", name="Assign").click()
    expect(page.get_by_role("status").first).to_contain_text("2 findings are now assigned to olivia")
    expect(rows.filter(has_text="assigned to olivia")).to_have_count(2)
    wait_for_rest(page)
    page.get_by_label("Assigned to", exact=True).select_option("olivia")
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile(r"assignee=\d+"))

    # One of them is put off on its own page, which takes a reason.
    wait_for_rest(page)
    rows.first.locator("[data-open]").click()
    page.locator("#judge-state").select_option("Snooze for a week")
    page.get_by_role("button", name="Save").click()
    assert page.locator("#judge-reason:invalid").count() == 1
    page.locator("#judge-reason").fill("after the release")
    page.get_by_role("button", name="Save").click()
    history = page.get_by_role("region", name="History")
    expect(history).to_contain_text("assigned it to olivia")
    expect(history).to_contain_text("snoozed it until")
    expect(history).to_contain_text("after the release")
    expect(page.locator(".page-head")).to_contain_text("snoozed")
    page.goto("/w/acme/findings/?rule=word-redefined")
    expect(rows).to_have_count(count - 1)
    page.goto("/w/acme/findings/")
    page.get_by_role("link", name="1 snoozed").click()
    expect(page.locator("[data-item]")).to_have_count(1)
    page.locator("[data-open]").click()

    # It is open all the same, and opening it again ends the snooze; so does its time.
    finding = Finding.objects.get(snoozed_until__isnull=False)
    assert finding.state == Finding.State.OPEN
    wait_for_rest(page)
    page.locator("#judge-state").select_option("Open again")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".page-head")).not_to_contain_text("snoozed")
    page.goto("/w/acme/findings/?rule=word-redefined")
    expect(rows).to_have_count(count)
    # Nobody is an answer, too.
    wait_for_rest(page)
    rows.filter(has_text="assigned to olivia").first.get_by_role("checkbox").check()
    page.get_by_label("Assign to").select_option("nobody")
    page.get_by_role("button", name="Assign").click()
    expect(rows.filter(has_text="assigned to olivia")).to_have_count(1)
