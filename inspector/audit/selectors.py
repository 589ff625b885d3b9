"""Reads of audit: the verdicts on a conversation, and whether they still hold."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.db.models import QuerySet

from inspector.threads.models import Conversation

from .models import Review


def list_reviews(*, conversation: Conversation) -> QuerySet[Review]:
    """The verdicts on a conversation, newest first, each with its reviewer."""
    return Review.objects.select_related("reviewer").filter(conversation=conversation).order_by("-created_at")


def find_latest_reviews(*, conversation_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Review]:
    """The newest verdict on each of these conversations that has one."""
    rows = (
        Review.objects.select_related("reviewer")
        .filter(conversation_id__in=list(conversation_ids))
        .order_by("conversation_id", "-created_at")
        .distinct("conversation_id")
    )
    return {review.conversation_id: review for review in rows}


def is_current(*, review: Review, conversation: Conversation) -> bool:
    """Whether the conversation is still as it was when the verdict was given."""
    return bytes(review.seen_digest) == bytes(conversation.settled_digest or b"")
