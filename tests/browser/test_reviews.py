"""A review by the keys: take the next, go to the rubric, answer and sign; the other signs it off."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from inspector.audit.models import ReviewItem
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.threads.models import Conversation
from tests.browser.conftest import Open
from tests.inspector.conftest import Cast, take_in
from tests.inspector.pages.conftest import STORY

pytestmark = pytest.mark.long(seconds=10)


def review(page: Page) -> None:
    page.wait_for_load_state()
    page.keyboard.press("r")
    expect(
        page.get_by_text("You hold it for half an hour").or_(page.get_by_text("claimed by you").first)
    ).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("r")
    expect(page).to_have_url(page.url.partition("#")[0] + "#rubric")
    page.get_by_role("radio", name="Fail").check()
    page.get_by_role("radio", name="Concern").check()
    page.get_by_role("button", name="Sign off").click()


def test_two_review_by_the_keys(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY, name="story.log")
    queue = create_queue(membership=cast.owner, name="Two", reviewers=2, criteria=["Is it told as it was said?"])
    conversation = Conversation.objects.get(native_id="story")
    fill_queue(queue=queue, conversations=[conversation.pk], why="by hand", membership=cast.owner)
    address = f"/w/acme/reviews/queues/{queue.pk}/"
    page = open_page(cast.auditor, address)
    review(page)
    expect(page.get_by_text("Only you see this until the second verdict is in")).to_be_visible()
    page = open_page(cast.owner, address, width=360)
    expect(page.get_by_text("1 of 2 verdicts, hidden")).to_be_visible()
    review(page)
    expect(page.get_by_text("Signed off, bound to what you saw.")).to_be_visible()
    assert ReviewItem.objects.get().verdict == "concern"
