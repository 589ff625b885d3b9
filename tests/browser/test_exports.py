"""Exports in a browser: asked for where one stands, followed, downloaded; with script and without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from inspector import pipeline
from inspector.intake.models import Job
from tests.browser.conftest import Open, at
from tests.inspector.conftest import Cast, take_in
from tests.inspector.pages.conftest import STORY

pytestmark = pytest.mark.long(seconds=8)


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without"])
def test_what_was_searched_is_downloaded(open_page: Open, cast: Cast, tmp_path: Path, has_script: bool) -> None:
    take_in(cast, STORY, name="story.log")
    page = open_page(cast.auditor, at("search") + "?q=from:radar", has_script=has_script)
    page.get_by_role("link", name="Export these").click()
    expect(page.get_by_role("main")).to_contain_text("from:radar")
    assert not page.get_by_label("Include secrets").is_checked()
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_text("finding its messages")).to_be_visible()
    pipeline.run_due(seconds=60, only=(Job.Kind.EXPORT,))
    if not has_script:
        page.get_by_role("link", name="Look again").click()
    expect(page.get_by_text("2 listed = 2 messages + 0 withdrawn + 0 gone")).to_be_visible()
    with page.expect_download() as file:
        page.get_by_role("link", name="Download", exact=False).first.click()
    file.value.save_as(tmp_path / "file")
    lines = [json.loads(line) for line in (tmp_path / "file").read_text().splitlines()]
    assert [json.loads(line["raw"])["mid"] for line in lines] == ["m2", "m4"]
    page.get_by_role("link", name="Exports").first.click()
    row = page.get_by_role("row").filter(has_text="from:radar")
    expect(row).to_contain_text("ready")
    row.get_by_role("link", name="from:radar").click()
    page.get_by_role("button", name="Remove the file").click()
    expect(page.get_by_text("There is no file any more")).to_be_visible()
