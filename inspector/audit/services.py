"""Writes of audit: a verdict on a conversation, bound to what was seen."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction

from inspector.accounts.models import Membership
from inspector.intake.text import make_storable
from inspector.threads.models import Conversation

from .models import Review


@transaction.atomic
def give_verdict(
    *, membership: Membership, conversation: Conversation, verdict: str, comment: str, seen: bytes
) -> Review:
    """An auditor's verdict on a conversation.

    Args:
        membership: who gives it; an owner or an auditor of the conversation's workspace.
        conversation: on what.
        verdict: one of `Review.Verdict`.
        comment: why; up to 10,000 characters.
        seen: the settled digest of the conversation as the auditor's page showed it.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: for an unknown verdict, too long a comment, or a conversation that has changed since it was
            shown: nobody signs what they have not seen.
    """
    if not membership.is_auditor or membership.workspace_id != conversation.workspace_id:
        raise PermissionDenied("only an auditor of this workspace gives verdicts")
    conversation = Conversation.objects.select_for_update().get(pk=conversation.pk)
    if verdict not in Review.Verdict.values:
        raise ValidationError({"verdict": f"a verdict is one of {', '.join(Review.Verdict.values)}"})
    if len(comment) > 10_000:
        raise ValidationError({"comment": "a comment has at most 10,000 characters"})
    if seen != bytes(conversation.settled_digest or b""):
        raise ValidationError("the conversation has changed since you opened it: look again before you sign")
    return Review.objects.create(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        reviewer=membership.user,
        verdict=verdict,
        comment=make_storable(comment.strip()),
        seen_digest=seen,
        seen_messages=conversation.message_count,
    )
