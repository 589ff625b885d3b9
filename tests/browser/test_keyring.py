"""The keyring in a browser: the sample story is sealed, opens with its key, is sealed again without it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from inspector.keyring.models import EscrowedKey
from tests.browser.conftest import Open, at, wait_for_rest
from tests.inspector.conftest import Cast, resolve_all, take_in
from tests.inspector.keyring.conftest import SAMPLES, WORDS

pytestmark = pytest.mark.long(seconds=6)


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without"])
def test_the_sample_story_opens_with_its_key_and_is_sealed_without_it(
    open_page: Open, cast: Cast, has_script: bool
) -> None:
    take_in(cast, (SAMPLES / "1-invoice-run.jsonl").read_bytes(), name="1-invoice-run.jsonl")
    page = open_page(cast.owner, at("conversations"), has_script=has_script)
    page.get_by_role("row").filter(has_text="2611").get_by_role("link").first.click()
    transcript = page.get_by_role("region", name="Transcript")
    expect(transcript.get_by_text("sealed", exact=True)).to_have_count(2)
    conversation = page.url

    page.get_by_role("link", name="Keyring").click()
    expect(page.get_by_text("No key yet")).to_be_visible()
    wait_for_rest(page)
    page.get_by_label("Or a key file").set_input_files(SAMPLES / "keys.json")
    page.get_by_role("button", name="Save key").click()
    expect(page.get_by_text("Opening 1 conversation")).to_be_visible()
    resolve_all()
    if not has_script:
        page.get_by_role("link", name="Look again").click()
    row = page.get_by_role("row").filter(has_text="the executor's demonstration key").first
    expect(row).to_contain_text("2 messages")

    page.goto(conversation)
    expect(transcript.get_by_text("opened with the executor's demonstration key")).to_have_count(2)
    for words in WORDS:
        expect(transcript).to_contain_text(words)

    viewer = open_page(cast.viewer, conversation, has_script=has_script)
    expect(viewer.get_by_text("sealed; you may not see it")).to_have_count(2)
    for words in WORDS:
        expect(viewer.get_by_role("region", name="Transcript")).not_to_contain_text(words)

    page.get_by_role("link", name="Keyring").click()
    page.get_by_role("link", name="Remove the executor's demonstration key").click()
    expect(page.get_by_text("2 messages will be unreadable")).to_be_visible()
    page.get_by_role("button", name="Remove the key").click()
    expect(page.get_by_text("2 messages are sealed again")).to_be_visible()
    assert not EscrowedKey.objects.exists()
    page.goto(conversation)
    expect(transcript.get_by_text("sealed", exact=True)).to_have_count(2)
    for words in WORDS:
        expect(transcript).not_to_contain_text(words)
