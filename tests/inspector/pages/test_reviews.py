"""Reviews as people do them: a queue made and filled, an item taken, two who know nothing of each other, a third."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inspector.accounts.models import Membership, Role
from inspector.accounts.services import add_member
from inspector.audit.findings.services import judge as judge_finding
from inspector.audit.models import Finding, Review, ReviewItem, ReviewQueue
from inspector.audit.reviews import queues
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Conversation
from tests.inspector.conftest import Cast, deliver, make_user, resolve_all, take_in
from tests.inspector.pages.conftest import STORY

from .conftest import page_of, shows

HIDDEN = "Only one of them knows this."


@pytest.fixture
def item(cast: Cast, conversation: Conversation) -> ReviewItem:
    queue = queues.create_queue(
        membership=cast.owner, name="Grave ones", reviewers=2, criteria=["Is it told as it was said?"]
    )
    queues.fill_queue(queue=queue, conversations=[conversation.pk], why="by hand", membership=cast.owner)
    return ReviewItem.objects.get()


@pytest.fixture
def third(cast: Cast, sign_in: Callable[[Membership], Client]) -> Client:
    return sign_in(add_member(workspace=cast.workspace, user=make_user("tara"), role=Role.AUDITOR))


def read(client: Client, name: str, *args: Any, query: str = "") -> str:
    response = client.get(page_of(name, *args) + query)
    assert response.status_code == 200
    return response.content.decode()


def act(client: Client, item: ReviewItem, name: str) -> Any:
    return client.post(page_of("act-on-item", item.pk), {"act": name}, follow=True)


def judge(client: Client, item: ReviewItem, verdict: str, comment: str = "") -> Any:
    act(client, item, "claim")
    seen = re.search(r'name="seen" value="([0-9a-f]{64})"', read(client, "review-item", item.pk))
    assert seen is not None
    said = {"verdict": verdict, "comment": comment, "seen": seen[1], "answer-0": "fail"}
    return client.post(page_of("judge-item", item.pk), said, follow=True)


def test_a_queue_is_made_and_filled_from_a_conversation(auditor: Client, conversation: Conversation) -> None:
    said = {"name": "Look here", "reviewers": "2", "criteria": "One\n\nTwo", "source": "hand", "severity": "0"}
    page = auditor.post(page_of("new-queue"), said, follow=True).content.decode()
    assert "The queue is made." in page
    assert auditor.post(page_of("new-queue"), said).status_code == 422
    queue = ReviewQueue.objects.get()
    assert "Add to queue" in read(auditor, "conversation", conversation.pk)
    page = auditor.post(page_of("enqueue", conversation.pk), {"queue": str(queue.pk)}, follow=True).content.decode()
    shows(page, "It now waits in “Look here”.", never=["Sign off"])
    item = ReviewItem.objects.get()
    response = auditor.post(page_of("act-on-queue", queue.pk), {"act": "next"})
    assert response["Location"] == page_of("review-item", item.pk)
    assert "Sign off" in read(auditor, "review-item", item.pk)


def test_a_search_fills_a_queue_from_its_form(auditor: Client, conversation: Conversation) -> None:
    said = {"name": "All", "reviewers": "1", "source": "search", "severity": "0", "query": "nobody:knows"}
    response = auditor.post(page_of("new-queue"), said)
    assert response.status_code == 422
    assert "nobody" in response.content.decode()
    page = auditor.post(page_of("new-queue"), {**said, "query": "from:radar"}, follow=True)
    assert "1 conversation came in." in page.content.decode()


def test_a_second_reviewer_finds_no_trace_of_the_first(
    owner: Client, auditor: Client, viewer: Client, item: ReviewItem, conversation: Conversation
) -> None:
    page = judge(auditor, item, "violation", HIDDEN).content.decode()
    shows(page, "Nobody sees it until the second reviewer has spoken", HIDDEN)
    for client in (owner, viewer):
        for name, args, query in (
            ("review-item", [item.pk], ""),
            ("queue", [item.queue_id], ""),
            ("queue", [item.queue_id], "?show=second"),
            ("queue", [item.queue_id], "?show=done"),
            ("reviews", [], ""),
            ("conversation", [conversation.pk], ""),
            ("conversations", [], ""),
            ("overview", [], ""),
            ("search", [], "?q=reviewed:yes"),
        ):
            page = read(client, name, *args, query=query)
            main = page[page.index("<main") : page.index("</main>")]
            for secret in (HIDDEN, "amir", "a violation</span>"):
                assert secret not in main, f"{name}{query} tells {secret!r}"
    assert "1 of 2 verdicts, hidden" in read(owner, "queue", item.queue_id)
    assert "No verdicts yet" in read(owner, "conversation", conversation.pk)
    # Who has spoken is let in no second time, and what was said is still theirs to withdraw.
    assert "your verdict is in" in act(auditor, item, "claim").content.decode().lower()
    judge(owner, item, "violation")
    page = read(viewer, "review-item", item.pk)
    shows(page, HIDDEN, "amir")
    assert "amir and olivia" in read(viewer, "conversations")


def test_two_differ_and_a_third_decides(
    owner: Client, auditor: Client, third: Client, item: ReviewItem, conversation: Conversation
) -> None:
    judge(auditor, item, "fine")
    assert "a third person decides" in judge(owner, item, "concern").content.decode()
    assert "a third person decides" in act(owner, item, "claim").content.decode()
    assert "The two differ" in read(third, "review-item", item.pk)
    assert "Signed off, bound to what you saw." in judge(third, item, "concern", "So it is.").content.decode()
    page = read(owner, "conversation", conversation.pk)
    assert "adjudicated" in page
    again = act(auditor, item, "again")
    assert "It waits to be reviewed again" in again.content.decode()
    assert ReviewItem.objects.count() == 2


def test_a_sign_off_goes_stale_and_says_why(owner: Client, cast: Cast, conversation: Conversation) -> None:
    queue = queues.create_queue(membership=cast.owner, name="Alone")
    queues.fill_queue(queue=queue, conversations=[conversation.pk], why="", membership=cast.owner)
    item = ReviewItem.objects.get()
    judge(owner, item, "fine")
    for name, args in (("review-item", [item.pk]), ("conversation", [conversation.pk]), ("conversations", [])):
        assert "tale" not in read(owner, name, *args).partition("<main")[2]
    assert 'data-live-part="in-force">the latest sign-off is in force<' in read(owner, "conversation", conversation.pk)
    take_in(cast, STORY.splitlines(True)[1].replace(b'"m2"', b'"m9"'), name="more.log")
    # What a page that is open puts in the place of what it showed says it as well.
    page = read(owner, "conversation", conversation.pk)
    assert 'data-live-part="in-force">the latest sign-off is stale<' in page
    assert "Stale: the content has changed" in page.partition('data-live-part="verdicts"')[2].partition("<form")[0]
    for name, args in (("review-item", [item.pk]), ("conversation", [conversation.pk])):
        assert "1 message arrived since" in read(owner, name, *args).replace("1 Message", "1 message")
    assert ">stale<" in read(owner, "conversations")
    assert ">stale<" in read(owner, "queue", queue.pk, query="?show=done")
    # And it is found without opening one after the other.
    assert f"{page_of('queue', queue.pk)}?show=stale" in read(owner, "reviews")
    assert f"{page_of('reviews')}?show=stale" in read(owner, "overview")
    assert "Alone" in read(owner, "reviews", query="?show=stale")
    listed = read(owner, "queue", queue.pk, query="?show=stale")
    shows(listed, page_of("review-item", item.pk), "1 message arrived since")
    act(owner, item, "again")
    judge(owner, ReviewItem.objects.get(queue=queue, state="waiting"), "fine")
    assert "No sign-off is stale" in read(owner, "queue", queue.pk, query="?show=stale")
    assert "?show=stale" not in read(owner, "reviews") + read(owner, "overview")
    assert "No sign-off is stale" in read(owner, "reviews", query="?show=stale")


def test_conversations_of_one_name_are_told_apart_in_a_queue(owner: Client, cast: Cast) -> None:
    """The same id in two channels, one longer than the other."""
    channel = cast.workspace.channels.create(name="night shift")
    first, *_ = STORY.splitlines(True)
    deliver(cast, first, name="a.log")
    take_in(cast, first, first.replace(b'"m1"', b'"m2"'), name="b.log", channel=channel)
    queue = queues.create_queue(membership=cast.owner, name="Both")
    ids = list(Conversation.objects.values_list("pk", flat=True))
    queues.fill_queue(queue=queue, conversations=ids, why="", membership=cast.owner)
    item = ReviewItem.objects.filter(queue=queue)[0]
    for page in (read(owner, "queue", queue.pk), read(owner, "review-item", item.pk)):
        words = " ".join(re.sub(r"<[^>]+>", "", page).split())
        assert re.search(r"1 message since .{1,30} · main", words)
        assert re.search(r"2 messages since .{1,30} · night shift", words)


def test_many_queues_come_a_page_at_a_time(
    viewer: Client, cast: Cast, item: ReviewItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.pages.reviews.QUEUES_AT_ONCE", 2)
    for name in ("Second", "Third"):
        queues.create_queue(membership=cast.owner, name=name)
    first = read(viewer, "reviews")
    assert ("Grave ones" in first, "Second" in first, "Third" in first) == (True, True, False)
    further = re.search(r'rel="next" href="([^"]+)"', first)
    assert further is not None
    second = read(viewer, "reviews", query=further[1].replace("&amp;", "&"))
    assert ("Grave ones" in second, "Third" in second, 'rel="next"' in second) == (False, True, False)
    assert viewer.get(page_of("reviews"), {"after": "x"}).status_code == 404


def test_what_is_refused_is_given_back_as_it_was_filled_in(owner: Client, auditor: Client, item: ReviewItem) -> None:
    act(auditor, item, "claim")
    assert "claimed by amir" in read(owner, "review-item", item.pk)
    assert owner.post(page_of("act-on-item", item.pk), {"act": "claim"}).status_code == 422
    said = {"verdict": "fine", "comment": "kept words", "seen": "00", "answer-0": "pass"}
    response = auditor.post(page_of("judge-item", item.pk), said)
    assert response.status_code == 422
    assert "look again before you sign" in response.content.decode()
    assert "kept words" in response.content.decode()
    assert not Review.objects.exists()


def test_what_was_written_is_not_lost_with_a_lease(owner: Client, auditor: Client, item: ReviewItem) -> None:
    act(auditor, item, "claim")
    page = read(owner, "review-item", item.pk)
    assert "Remove from queue" not in page, "somebody else holds it"
    ReviewItem.objects.update(held_until=timezone.now() - timedelta(hours=1))
    act(owner, item, "claim")
    said = {"verdict": "concern", "comment": "long words", "seen": "00", "answer-0": "pass"}
    response = auditor.post(page_of("judge-item", item.pk), said)
    page = response.content.decode()
    assert (response.status_code, "olivia holds it until" in page.lower()) == (422, True)
    shows(page, "Your unsaved input", "<p>Concern</p>", "long words")


def test_a_reviewer_sees_what_was_decided_by_whom_and_why(cast: Cast, auditor: Client) -> None:
    line = {"raw": "bearer eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl1", "from": "a", "to": "b", "conversation": "1"}
    delivery = deliver(cast, json.dumps(line).encode())
    resolve_all()
    finding = Finding.objects.get(rule="token-in-clear")
    queue = queues.create_queue(membership=cast.owner, name="Look", reviewers=1, criteria=[])
    queues.fill_queue(queue=queue, conversations=[finding.conversation_id], why="", membership=cast.owner)
    item = ReviewItem.objects.get()
    assert "<h3>Decided" not in read(auditor, "review-item", item.pk)
    judge_finding(membership=cast.owner, findings=[finding.pk], state="fixed", reason="old")
    judge_finding(membership=cast.owner, findings=[finding.pk], state="accepted", reason="a <b>test</b> key")
    Finding.objects.exclude(pk=finding.pk).update(holds=False)
    found = read(auditor, "review-item", item.pk).partition('id="found"')[2].partition("</section>")[0]
    shows(
        found,
        "No open findings.",
        page_of("finding", finding.pk),
        "accepted",
        "by olivia, ",
        "Reason: “a &lt;b&gt;test&lt;/b&gt; key”",
        finding.text,
        never=["old"],
    )
    withdraw_delivery(membership=cast.owner, delivery=delivery, reason="x")
    resolve_all(is_examined=False)
    assert finding.text not in read(auditor, "review-item", item.pk)


@pytest.mark.long(seconds=2)
def test_an_item_shows_what_was_found_and_leads_on(cast: Cast, auditor: Client, third: Client) -> None:
    for number in (1, 2):
        lines = [
            {"raw": "bearer eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl1", "from": "a", "to": "b", "conversation": str(number)}
        ]
        deliver(cast, b"".join(json.dumps(line).encode() for line in lines), name=f"{number}.log")
    resolve_all()
    queue = queues.create_queue(membership=cast.owner, name="Errors", reviewers=2, source="findings", severity=4)
    queues.fill_from_source(membership=cast.owner, queue=queue)
    first = ReviewItem.objects.order_by("added_at", "pk").first()
    assert first is not None
    page = read(auditor, "review-item", first.pk)
    assert "In the queue because: Exposed secret." in page
    found = page.partition('id="found"')[2].partition("</section>")[0]
    finding = Finding.objects.get(conversation=first.conversation, rule="token-in-clear")
    assert page_of("finding", finding.pk) in found
    row = page.partition('aria-labelledby="said"')[2].partition("</section>")[0]
    assert page_of("finding", finding.pk) in row, "the finding stands under its message"
    assert "Claim next" not in page
    page = judge(auditor, first, "fine").content.decode()
    assert "Claim next" in page
    # The verdicts come first where somebody has to decide between them.
    judge(third, first, "concern")
    page = read(auditor, "review-item", first.pk)
    assert page.index('id="verdicts"') < page.index('id="found"') < page.index('id="said"')


@pytest.mark.long(seconds=4)
def test_an_item_asks_equally_often_whatever_was_said(
    owner: Client, auditor: Client, third: Client, item: ReviewItem
) -> None:
    counts = []
    for who, verdict in ((auditor, "fine"), (owner, "concern"), (third, "fine"), (None, "")):
        with CaptureQueriesContext(connection) as asked:
            read(third, "review-item", item.pk)
        counts.append(len(asked.captured_queries))
        if who is not None:
            judge(who, item, verdict)
    assert max(counts) <= 12
    assert counts[2] == counts[3], "each verdict is asked for by itself"


def test_a_viewer_reads_and_does_nothing(viewer: Client, item: ReviewItem, conversation: Conversation) -> None:
    for name, args in (("reviews", []), ("queue", [item.queue_id]), ("review-item", [item.pk])):
        main = read(viewer, name, *args).partition("<main")[2].partition("</main>")[0]
        assert "<button" not in main, name
        assert page_of("new-queue") not in main
    for name, arg in (
        ("act-on-queue", item.queue_id),
        ("act-on-item", item.pk),
        ("judge-item", item.pk),
        ("enqueue", conversation.pk),
    ):
        assert viewer.post(page_of(name, arg), {"act": "claim"}).status_code == 403
    assert viewer.get(page_of("new-queue")).status_code == 403
    with pytest.raises(ValidationError):
        queues.create_queue(membership=Membership.objects.get(user__username="olivia"), name="Grave ones")
