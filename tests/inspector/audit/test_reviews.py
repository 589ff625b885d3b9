"""Reviews: only auditors give verdicts, only on what they have seen, and a verdict shows when it no longer holds."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection
from django.utils import timezone

from inspector.accounts.models import Membership, Role
from inspector.accounts.services import add_member
from inspector.audit.models import Binding, Review, ReviewItem, ReviewQueue
from inspector.audit.reviews import queues, verdicts
from inspector.audit.reviews.bindings import (
    check,
    find_sign_offs,
    find_standings,
    list_item_reviews,
    list_reviews,
    read_changes,
)
from inspector.audit.reviews.selectors import count_queue, count_reviewers
from inspector.audit.reviews.verdicts import give_verdict
from inspector.intake.models import Record
from inspector.search.language import QueryError
from inspector.search.selectors import find_messages
from inspector.threads import dependencies
from inspector.threads.models import Conversation, Message
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, make_user, resolve_all

pytestmark = pytest.mark.django_db
CRITERIA = ["Does the English say what the wire says?", "Was it within the agent's task?"]


@pytest.fixture
def conversation(cast: Cast) -> Conversation:
    deliver(cast, b'{"raw": "Pay the invoice.", "conversation": "c1", "id": "m1"}')
    resolve_all()
    return Conversation.objects.get()


@pytest.fixture
def third(cast: Cast) -> Membership:
    return add_member(workspace=cast.workspace, user=make_user("tara"), role=Role.AUDITOR)


def seen(conversation: Conversation) -> bytes:
    return bytes(Conversation.objects.get(pk=conversation.pk).settled_digest or b"")


def enqueue(cast: Cast, conversation: Conversation, *, reviewers: int = 2) -> ReviewItem:
    queue = queues.create_queue(membership=cast.owner, name="Q", reviewers=reviewers, criteria=CRITERIA)
    queues.fill_queue(queue=queue, conversations=[conversation.pk], why="by hand", membership=cast.owner)
    return ReviewItem.objects.get(queue=queue)


def judge(item: ReviewItem, who: Membership, verdict: str, comment: str = "Hidden words.") -> Review:
    verdicts.claim(membership=who, item=item)
    return verdicts.judge_item(
        membership=who,
        item=item,
        verdict=verdict,
        comment=comment,
        seen=seen(item.conversation),
        answers=["pass", "n/a"],
    )


def state_of(item: ReviewItem) -> tuple[str, str]:
    item.refresh_from_db()
    return item.state, item.verdict


def changes_of(conversation: Conversation) -> dict[str, int]:
    """What differs of the one verdict on a conversation, compared now; and the worker came to the same."""
    conversation.refresh_from_db()
    review = Review.objects.select_related("binding").get(conversation=conversation)
    exact, kept = (
        find_standings(reviews=[review], conversation=conversation, is_compared=is_compared)[review.pk]
        for is_compared in (True, False)
    )
    assert kept.is_known
    assert exact.changes.keys() == kept.changes.keys()
    return {kind: change.count for kind, change in exact.changes.items()}


def test_an_auditor_gives_a_verdict_directly(cast: Cast, conversation: Conversation) -> None:
    review = give_verdict(
        membership=cast.auditor, conversation=conversation, verdict="concern", comment=" why? ", seen=seen(conversation)
    )
    assert (review.comment, review.seen_messages) == ("why?", 1)
    assert changes_of(conversation) == {}
    sign_off = find_sign_offs(conversations=[conversation])[conversation.pk]
    assert (sign_off.verdict, sign_off.reviewers, sign_off.standing.is_stale) == ("concern", ["amir"], False)
    again = give_verdict(
        membership=cast.owner, conversation=conversation, verdict="fine", comment="", seen=seen(conversation)
    )
    # It supersedes what stays; both saw the same.
    assert find_sign_offs(conversations=[conversation])[conversation.pk].verdict == "fine"
    assert list_reviews(conversation=conversation, reader_id=None) == [again, review]
    assert Binding.objects.count() == 1


def test_a_viewer_and_a_stranger_may_not(cast: Cast, conversation: Conversation) -> None:
    item = enqueue(cast, conversation)
    for membership in (cast.viewer, cast.stranger):
        with pytest.raises(PermissionDenied):
            give_verdict(
                membership=membership, conversation=conversation, verdict="fine", comment="", seen=seen(conversation)
            )
        for act in (verdicts.claim, verdicts.renew, verdicts.release, verdicts.withdraw_verdict, queues.remove_item):
            with pytest.raises(PermissionDenied):
                act(membership=membership, item=item)
        with pytest.raises(PermissionDenied):
            judge(item, membership, "fine")
        with pytest.raises(PermissionDenied):
            queues.fill_queue(queue=item.queue, conversations=[conversation.pk], why="", membership=membership)
        with pytest.raises(PermissionDenied):
            queues.change_rubric(membership=membership, queue=item.queue, criteria=["a"], expected=1)
    with pytest.raises(PermissionDenied):
        queues.create_queue(membership=cast.viewer, name="Mine")
    assert not Review.objects.exists()


@pytest.mark.parametrize(("verdict", "comment"), [("perfect", ""), ("fine", "x" * 10_001)])
def test_what_is_no_verdict_is_refused(cast: Cast, conversation: Conversation, verdict: str, comment: str) -> None:
    with pytest.raises(ValidationError):
        give_verdict(
            membership=cast.auditor,
            conversation=conversation,
            verdict=verdict,
            comment=comment,
            seen=seen(conversation),
        )


def test_nobody_signs_what_they_have_not_seen(cast: Cast, conversation: Conversation) -> None:
    before = seen(conversation)
    deliver(cast, b'{"raw": "And the other one.", "conversation": "c1", "id": "m2"}')
    resolve_all()
    with pytest.raises(ValidationError, match="changed"):
        give_verdict(membership=cast.auditor, conversation=conversation, verdict="fine", comment="", seen=before)


def test_a_second_reviewer_knows_nothing_until_both_have_spoken(cast: Cast, conversation: Conversation) -> None:
    item = enqueue(cast, conversation)
    first = judge(item, cast.auditor, "concern")
    assert state_of(item) == ("second", "")
    assert list_item_reviews(item=item, reader_id=cast.owner.user_id) == []
    assert list_item_reviews(item=item, reader_id=cast.auditor.user_id) == [first]
    assert list_reviews(conversation=conversation, reader_id=cast.owner.user_id) == []
    assert count_reviewers(queue=item.queue, reader_id=cast.owner.user_id) == []
    assert find_sign_offs(conversations=[conversation]) == {}
    assert find_messages(workspace=cast.workspace, query="reviewed:yes") == []
    assert len(find_messages(workspace=cast.workspace, query="reviewed:no -review:concern")) == 1
    with pytest.raises(ValidationError, match="your verdict is in"):
        verdicts.claim(membership=cast.auditor, item=item)
    with pytest.raises(ValidationError, match="waits for review in the queue"):
        give_verdict(
            membership=cast.owner, conversation=conversation, verdict="fine", comment="", seen=seen(conversation)
        )
    judge(item, cast.owner, "concern")
    assert state_of(item) == ("settled", "concern")
    assert len(list_item_reviews(item=item, reader_id=cast.viewer.user_id)) == 2
    assert len(find_messages(workspace=cast.workspace, query="reviewed:yes review:concern,fine")) == 1
    sign_off = find_sign_offs(conversations=[conversation])[conversation.pk]
    assert sorted(sign_off.reviewers) == ["amir", "olivia"]
    with pytest.raises(ValidationError, match="cannot be withdrawn any more"):
        verdicts.withdraw_verdict(membership=cast.owner, item=item)


def test_what_is_said_beside_a_blind_review_is_not_told_either(
    cast: Cast, conversation: Conversation, third: Membership
) -> None:
    blind = enqueue(cast, conversation)
    alone = queues.create_queue(membership=cast.owner, name="Alone")
    queues.fill_queue(queue=alone, conversations=[conversation.pk], why="", membership=cast.owner)
    item = ReviewItem.objects.get(queue=alone)
    verdicts.claim(membership=third, item=item)
    verdicts.judge_item(membership=third, item=item, verdict="violation", comment="", seen=seen(conversation))
    assert list_reviews(conversation=conversation, reader_id=cast.owner.user_id) == []
    assert find_sign_offs(conversations=[conversation]) == {}
    assert find_messages(workspace=cast.workspace, query="reviewed:yes OR review:violation") == []
    judge(blind, cast.auditor, "fine")
    judge(blind, cast.owner, "fine")
    assert len(list_reviews(conversation=conversation, reader_id=None)) == 3


def test_each_deed_is_in_the_trail(cast: Cast, conversation: Conversation) -> None:
    item = enqueue(cast, conversation)
    judge(item, cast.auditor, "fine")
    verdicts.withdraw_verdict(membership=cast.auditor, item=item)
    verdicts.claim(membership=cast.owner, item=item)
    verdicts.release(membership=cast.owner, item=item)
    queues.remove_item(membership=cast.owner, item=item)
    queues.change_rubric(membership=cast.owner, queue=item.queue, criteria=[], expected=1)
    queues.close_queue(membership=cast.owner, queue=item.queue, is_closed=True)
    deeds = Deed.objects.filter(workspace=cast.workspace).order_by("sequence").values_list("code", flat=True)
    assert [code for code in deeds if code.partition(".")[0] in ("queue", "rubric", "review", "verdict")] == [
        *("queue.made", "queue.filled", "review.taken", "verdict.given", "verdict.withdrawn"),
        *("review.taken", "review.released", "review.removed", "rubric.changed", "queue.closed"),
    ]


def test_who_differs_does_not_decide(cast: Cast, conversation: Conversation, third: Membership) -> None:
    item = enqueue(cast, conversation)
    judge(item, cast.auditor, "fine")
    judge(item, cast.owner, "violation")
    assert state_of(item) == ("disputed", "")
    for one_of_two in (cast.auditor, cast.owner):
        with pytest.raises(ValidationError, match="a third person decides"):
            verdicts.claim(membership=one_of_two, item=item)
    assert len(list_item_reviews(item=item, reader_id=third.user_id)) == 2
    assert judge(item, third, "violation").is_adjudication
    assert state_of(item) == ("settled", "violation")
    sign_off = find_sign_offs(conversations=[conversation])[conversation.pk]
    assert sign_off.reviewers == ["olivia", "tara"]


def test_a_verdict_is_withdrawn_before_the_other_speaks_and_superseded_later(
    cast: Cast, conversation: Conversation
) -> None:
    item = enqueue(cast, conversation)
    judge(item, cast.auditor, "fine")
    with pytest.raises(ValidationError, match="cannot be withdrawn"):
        verdicts.withdraw_verdict(membership=cast.owner, item=item)
    with pytest.raises(ValidationError, match="somebody has spoken"):
        queues.remove_item(membership=cast.owner, item=item)
    verdicts.withdraw_verdict(membership=cast.auditor, item=item)
    assert state_of(item) == ("waiting", "")
    judge(item, cast.auditor, "violation")
    judge(item, cast.owner, "violation")
    assert Review.objects.count() == 3
    assert len(list_reviews(conversation=conversation, reader_id=None)) == 2
    again = verdicts.review_again(membership=cast.auditor, item=item)
    judge(again, cast.auditor, "fine")
    # What was signed off before is not unsaid by a review that is under way.
    assert find_sign_offs(conversations=[conversation])[conversation.pk].verdict == "violation"
    judge(again, cast.owner, "fine")
    assert find_sign_offs(conversations=[conversation])[conversation.pk].verdict == "fine"


def test_a_lease_is_one_persons_until_it_expires(cast: Cast, conversation: Conversation) -> None:
    item = enqueue(cast, conversation)
    verdicts.claim(membership=cast.auditor, item=item)
    assert len(find_messages(workspace=cast.workspace, query="assignee:Amir")) == 1
    with pytest.raises(ValidationError, match="amir holds it until"):
        verdicts.claim(membership=cast.owner, item=item)
    ReviewItem.objects.update(held_until=timezone.now() - timedelta(hours=1))
    assert find_messages(workspace=cast.workspace, query="assignee:amir") == []
    # Who sees the list of members is told of a name that is not in it; nobody else learns which names are.
    with pytest.raises(QueryError, match="no member of this workspace has the name 'nobody'"):
        find_messages(workspace=cast.workspace, query="assignee:amir,nobody", may_see_secrets=True)
    assert find_messages(workspace=cast.workspace, query="assignee:nobody") == []
    # Nobody took it over: it is still theirs.
    verdicts.renew(membership=cast.auditor, item=item)
    ReviewItem.objects.update(held_until=timezone.now() - timedelta(hours=1))
    verdicts.claim(membership=cast.owner, item=item)
    for act in (verdicts.renew, verdicts.release):
        with pytest.raises(ValidationError, match="olivia holds it"):
            act(membership=cast.auditor, item=item)
    with pytest.raises(ValidationError, match="olivia holds it"):
        verdicts.judge_item(
            membership=cast.auditor,
            item=item,
            verdict="fine",
            comment="",
            seen=seen(conversation),
            answers=["pass", "pass"],
        )
    verdicts.release(membership=cast.owner, item=item)
    assert verdicts.claim(membership=cast.auditor, item=item).holder == cast.auditor.user


@pytest.mark.django_db(transaction=True)
def test_of_two_who_claim_at_once_one_wins(cast: Cast) -> None:
    deliver(cast, b'{"raw": "Pay the invoice.", "conversation": "c1", "id": "m1"}')
    resolve_all()
    item = enqueue(cast, Conversation.objects.get())
    ready, outcomes = threading.Barrier(2, timeout=20), []

    def claim(who: Membership) -> None:
        try:
            ready.wait()
            outcomes.append(verdicts.claim(membership=who, item=item).holder_id)
        except ValidationError:
            outcomes.append(None)
        finally:
            connection.close()

    threads = [threading.Thread(target=claim, args=[who]) for who in (cast.auditor, cast.owner)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    item.refresh_from_db()
    assert sorted(outcomes, key=str) == sorted([item.holder_id, None], key=str)
    assert item.holder_id is not None


def test_a_rubric_is_answered_as_it_was_given(cast: Cast, conversation: Conversation) -> None:
    item = enqueue(cast, conversation)
    verdicts.claim(membership=cast.auditor, item=item)
    with pytest.raises(ValidationError, match="answer each criterion"):
        verdicts.judge_item(
            membership=cast.auditor, item=item, verdict="fine", comment="", seen=seen(conversation), answers=["pass"]
        )
    newer = queues.change_rubric(membership=cast.auditor, queue=item.queue, criteria=["One alone"], expected=1)
    with pytest.raises(ValidationError, match="somebody changed the rubric"):
        queues.change_rubric(membership=cast.owner, queue=item.queue, criteria=["Another"], expected=1)
    # Both are asked what the first was asked; what comes into the queue next is asked the new one.
    for who in (cast.auditor, cast.owner):
        assert judge(item, who, "fine").rubric.criteria == CRITERIA  # type: ignore[union-attr]
    again = verdicts.review_again(membership=cast.auditor, item=item)
    assert verdicts.claim(membership=cast.auditor, item=again).rubric == newer


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("bytes", {"bytes": 1}),
        ("english", {"english": 1}),
        ("beside", {"beside": 1}),
        ("decoder", {"decoder": 1}),
        ("came", {"came": 1}),
        ("gone", {"gone": 1}),
    ],
)
def test_a_sign_off_says_what_changed(
    cast: Cast, conversation: Conversation, change: str, expected: dict[str, int]
) -> None:
    give_verdict(
        membership=cast.auditor, conversation=conversation, verdict="fine", comment="", seen=seen(conversation)
    )
    message = Message.objects.select_related("record").get()
    if change == "bytes":
        Record.objects.update(source=bytes(message.record.source) + b" ")
    elif change == "english":
        Message.objects.update(english="Somebody says something else.")
    elif change == "beside":
        Message.objects.update(told_digest=b"another telling".ljust(32))
    elif change == "decoder":
        Message.objects.update(told_in=message.told_in.replace(dependencies.DECODER_VERSION, "99.9"))
    elif change == "came":
        deliver(cast, b'{"raw": "And the other one.", "conversation": "c1", "id": "m2"}')
        resolve_all()
    else:
        from inspector.intake.models import HiddenRecord

        HiddenRecord.objects.create(record=message.record, workspace=cast.workspace)
    # Settling changes the digest of the conversation; what comes from elsewhere does not.
    Conversation.objects.exclude(settled_digest=None).update(settled_digest=b"settled anew".ljust(32))
    check(conversations=[conversation.pk])
    assert changes_of(conversation) == expected
    kept = read_changes(Binding.objects.get().changes)
    named = [(f"prose {dependencies.DECODER_VERSION}", "prose 99.9")] if change == "decoder" else []
    assert [pair for each in kept.values() for pair in each.decoders] == named


def test_findings_fill_a_queue_and_again_when_there_are_new_ones(cast: Cast) -> None:
    queue = queues.create_queue(
        membership=cast.owner, name="Grave", source="findings", rules=["missing-message", "malformed"]
    )
    deliver(cast, b'{"raw": "{\\"clowl\\": \\"0.2\\"", "conversation": "c1", "id": "m1", "dialect": "clowl"}')
    resolve_all()
    item = ReviewItem.objects.get()
    assert (item.queue, item.why) == (queue, "Unreadable message")
    assert queues.fill_from_source(membership=cast.owner, queue=queue) == queues.Filled(0, 1)
    queues.remove_item(membership=cast.owner, item=item)
    assert queues.fill_from_source(membership=cast.owner, queue=queue).added == 0
    deliver(cast, b'{"raw": "{\\"clowl\\": \\"0.3\\"", "conversation": "c1", "id": "m2", "dialect": "clowl"}')
    resolve_all()
    assert ReviewItem.objects.filter(state="waiting").count() == 1
    assert count_queue(queue=ReviewQueue.objects.get()).open == 1


def test_a_search_fills_a_queue_once(cast: Cast, conversation: Conversation) -> None:
    queue = queues.create_queue(membership=cast.owner, name="Invoices", source="search", query="invoice")
    assert queues.fill_from_source(membership=cast.auditor, queue=queue).added == 1
    assert queues.fill_from_source(membership=cast.auditor, queue=queue).added == 0
    with pytest.raises(ValidationError, match="query"):
        queues.create_queue(membership=cast.owner, name="Wrong", source="search", query="nobody:knows")
    queues.close_queue(membership=cast.owner, queue=queue, is_closed=True)
    with pytest.raises(ValidationError, match="closed"):
        queues.fill_queue(queue=queue, conversations=[conversation.pk], why="", membership=cast.owner)
