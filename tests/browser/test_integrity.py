"""Integrity in a browser: verifying while one waits, with and without scripts, and the code beside a verdict."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from inspector import pipeline
from inspector.audit.reviews.verdicts import give_verdict
from inspector.intake.models import Job
from inspector.ledger.sequencing import enter_new
from inspector.threads.models import Conversation
from tests.browser.conftest import Open, at
from tests.inspector.conftest import Cast, take_in
from tests.inspector.pages.conftest import STORY


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without"])
def test_an_auditor_verifies_and_takes_a_bundle(open_page: Open, cast: Cast, tmp_path: Path, has_script: bool) -> None:
    take_in(cast, STORY, name="story.log")
    enter_new(at_once=True)
    page = open_page(cast.auditor, at("integrity"), has_script=has_script)
    expect(page.get_by_text("Not verified yet")).to_be_visible()
    page.get_by_role("button", name="Verify now").click()
    expect(page.get_by_text("Verifying", exact=True)).to_be_visible()
    pipeline.run_due(seconds=60, only=(Job.Kind.VERIFY,))
    if not has_script:
        page.get_by_role("link", name="Look again").click()
    expect(page.get_by_text("Everything is as it was entered and signed")).to_be_visible()
    with page.expect_download() as file:
        page.get_by_role("link", name="Proof bundle", exact=True).click()
    file.value.save_as(tmp_path / "bundle.zip")
    assert "leaves.bin" in zipfile.ZipFile(tmp_path / "bundle.zip").namelist()


def test_a_verdict_shows_its_checkpoint_as_text_and_as_a_code(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY, name="story.log")
    conversation = Conversation.objects.get(native_id="story")
    seen = bytes(conversation.settled_digest or b"")
    give_verdict(membership=cast.auditor, conversation=conversation, verdict="fine", comment="", seen=seen)
    enter_new(at_once=True)
    page = open_page(cast.viewer, at("conversation", conversation.pk))
    page.get_by_text("of the ledger, in the checkpoint of").click()
    expect(page.get_by_label("The signed checkpoint")).to_contain_text("/ledger/")
    code = page.get_by_role("img", name="QR code of the signed checkpoint")
    code.scroll_into_view_if_needed()
    page.wait_for_function("(each) => each.complete && each.naturalWidth > 0", arg=code.element_handle())
