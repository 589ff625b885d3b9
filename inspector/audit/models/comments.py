"""What auditors say of a stretch of raw characters: comments bound to those bytes, and every turn taken since.

A comment keeps the characters it was written about and the digest of their record, so that it can be shown truthfully
whatever the reading of that record becomes. Nothing of it is ever changed but how it stands: what happens to it is
added as a turn.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from inspector.accounts.models import User, Workspace, make_id
from inspector.intake.models import Record


class Comment(models.Model):
    """Words about the characters [start, end) of a record's text. It belongs to a record and a part, as findings do.

    `quoted` is these characters in UTF-8, lone surrogates as they are. `source_sha256` is of the record's exact bytes,
    `english_sha256` of the sentence that the message was told as when the comment was written, `decoder` by what.
    """

    class State(models.TextChoices):
        """How it stands: what the latest turn about it says."""

        OPEN = "open", "Open"
        RESOLVED = "resolved", "Resolved"
        WITHDRAWN = "withdrawn", "Withdrawn"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="comments", db_index=False)
    part = models.IntegerField()
    start = models.IntegerField()
    end = models.IntegerField()
    quoted = models.BinaryField()
    source_sha256 = models.BinaryField(max_length=32)
    english_sha256 = models.BinaryField(max_length=32)
    decoder = models.CharField(max_length=32)
    author = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    words = models.TextField()
    # Whether its author saw what others may not, so that its words are for owners and auditors.
    is_restricted = models.BooleanField(default=False)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(end__gt=models.F("start")), name="comment_has_span")]
        indexes = [
            # Serves the comments on a message, and their number on each message of a window.
            models.Index(fields=["workspace", "record", "part", "created_at"], name="comment_by_record"),
            # Serves the list of those that stand so, newest first, by keyset.
            models.Index(fields=["workspace", "state", "-created_at", "-id"], name="comment_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.start}-{self.end} by {self.author_id}"

    @property
    def quoted_text(self) -> str:
        """The characters it was written about."""
        return bytes(self.quoted).decode("utf-8", "surrogatepass")


class CommentTurn(models.Model):
    """What somebody did about a comment: replied, resolved it, opened it again, or took words of theirs back.

    `of` is the reply that was taken back; without it a withdrawal is of the comment itself.
    """

    class Kind(models.TextChoices):
        """What was done."""

        REPLY = "reply", "Replied"
        RESOLVED = "resolved", "Resolved"
        REOPENED = "reopened", "Opened again"
        WITHDRAWN = "withdrawn", "Withdrew"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    comment = models.ForeignKey(Comment, on_delete=models.CASCADE, related_name="turns", db_index=False)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    words = models.TextField(blank=True)
    is_restricted = models.BooleanField(default=False)
    of = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="withdrawals", db_index=False)

    class Meta:
        ordering: ClassVar = ["at", "id"]
        # Serves what happened to a comment, in its order.
        indexes = [models.Index(fields=["comment", "at", "id"], name="comment_turn_in_order")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.by_id}"
