"""What the rules found, what auditors said of it, and what they decided, bound to what was seen."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from inspector.accounts.models import User, Workspace, make_id
from inspector.threads.models import Conversation

from .comments import Comment as Comment
from .comments import CommentTurn as CommentTurn
from .findings import Examination as Examination
from .findings import Finding as Finding
from .findings import FindingAct as FindingAct
from .findings import RuleChange as RuleChange
from .findings import Suppression as Suppression


class Review(models.Model):
    """One auditor's verdict on a conversation, with the digest of the messages it was given on.

    Reviews are added, never changed: the latest of each reviewer is the one in force.
    """

    class Verdict(models.TextChoices):
        """What the auditor found."""

        FINE = "fine", "Nothing to object to"
        CONCERN = "concern", "Of concern"
        VIOLATION = "violation", "A violation"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(User, on_delete=models.PROTECT)
    verdict = models.CharField(max_length=16, choices=Verdict.choices)
    comment = models.TextField(blank=True, max_length=10_000)
    seen_digest = models.BinaryField(max_length=32)
    seen_messages = models.BigIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Serves the reviews of a conversation, newest first, and `reviewed:` in search.
        indexes = [models.Index(fields=["conversation", "-created_at"], name="review_newest")]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.reviewer}"
