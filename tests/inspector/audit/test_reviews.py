"""Reviews: only auditors give verdicts, only on what they have seen, and a verdict shows when it no longer holds."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied, ValidationError

from inspector.audit import selectors
from inspector.audit.models import Review
from inspector.audit.services import give_verdict
from inspector.threads.models import Conversation

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation(cast: Cast) -> Conversation:
    deliver(cast, b'{"raw": "Pay the invoice.", "conversation": "c1", "id": "m1"}')
    settle_all()
    return Conversation.objects.get()


def seen(conversation: Conversation) -> bytes:
    return bytes(conversation.settled_digest or b"")


def test_an_auditor_gives_a_verdict(cast: Cast, conversation: Conversation) -> None:
    review = give_verdict(
        membership=cast.auditor, conversation=conversation, verdict="concern", comment=" why? ", seen=seen(conversation)
    )
    assert (review.comment, review.seen_messages) == ("why?", 1)
    assert selectors.is_current(review=review, conversation=conversation)
    assert selectors.find_latest_reviews(conversation_ids=[conversation.pk]) == {conversation.pk: review}


def test_a_viewer_and_a_stranger_may_not(cast: Cast, conversation: Conversation) -> None:
    for membership in (cast.viewer, cast.stranger):
        with pytest.raises(PermissionDenied):
            give_verdict(
                membership=membership, conversation=conversation, verdict="fine", comment="", seen=seen(conversation)
            )
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
    settle_all()
    with pytest.raises(ValidationError, match="changed"):
        give_verdict(membership=cast.auditor, conversation=conversation, verdict="fine", comment="", seen=before)


def test_a_verdict_no_longer_holds_when_the_conversation_grows(cast: Cast, conversation: Conversation) -> None:
    review = give_verdict(
        membership=cast.auditor, conversation=conversation, verdict="fine", comment="", seen=seen(conversation)
    )
    deliver(cast, b'{"raw": "And the other one.", "conversation": "c1", "id": "m2"}')
    settle_all()
    conversation.refresh_from_db()
    assert not selectors.is_current(review=review, conversation=conversation)
