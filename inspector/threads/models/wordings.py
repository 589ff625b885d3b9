"""What is kept beside the messages: earlier wordings, masked texts, and announcements of what was told first."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from inspector.accounts.models import Workspace, make_id
from inspector.intake.models import Record


class Wording(models.Model):
    """An earlier English of a message, which stood until its conversation was told otherwise. Never changed.

    It belongs to a record and a part, as messages may be placed anew. Only the plain words are kept: everything else
    of an earlier telling follows from the bytes, the decoder and the context.
    """

    class Cause(models.TextChoices):
        """Why a message is told otherwise than before."""

        LATE = "late", "A message arrived late"
        WITHDRAWAL = "withdrawal", "A delivery was withdrawn"
        RETURN = "return", "A withdrawal was taken back"
        DECODER = "decoder", "The decoder changed"
        DIALECT = "dialect", "Its dialect was settled otherwise"
        MOVED = "moved", "It was placed anew"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="wordings")
    part = models.IntegerField()
    # Counted from 1; a gap says how many are no longer kept.
    number = models.IntegerField()
    english = models.TextField(blank=True)
    # What the message carried beyond the sentence, in words.
    also = ArrayField(models.TextField(), default=list)
    digest = models.BinaryField(max_length=32)
    decoder = models.CharField(max_length=32)
    # What the telling asked of its context, and a digest of the answers: see `contexts`.
    told_in = models.TextField(blank=True)
    since = models.DateTimeField()
    until = models.DateTimeField()
    cause = models.CharField(max_length=16, choices=Cause.choices)
    # The one message that arrived late, where it was one.
    because_of = models.UUIDField(null=True)

    # How many before it are no longer kept, where that was asked for: no column holds it.
    skipped = 0

    class Meta:
        constraints: ClassVar = [
            # Serves the history of a message, and keeps two workers from counting alike.
            models.UniqueConstraint(fields=["record", "part", "number"], name="wording_once"),
        ]

    def __str__(self) -> str:
        return self.english


class MaskedWire(models.Model):
    """The text of a record as it is shown to who may not see secrets, where something in it is masked: see `masks`.

    It follows from the record, the dialect it is read in and the decoders, and is written with the messages.
    """

    record = models.ForeignKey(Record, on_delete=models.CASCADE, db_index=False, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    dialect = models.CharField(max_length=32)
    # UTF-8; empty where the record is too long to be looked through.
    text = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            # Serves `raw:`, and keeps two workers from writing the same.
            models.UniqueConstraint(fields=["record", "dialect"], name="masked_once"),
        ]

    def __str__(self) -> str:
        return f"masked {self.record_id}"


class Announcement(models.Model):
    """That these messages of a workspace were told for the first time.

    `transaction` is the number of the transaction that wrote it. The sequence of `id` is drawn before a transaction
    commits, so that a smaller one may come to light after a larger one; what no transaction can be behind any more is
    told by the oldest one that still runs. `messages` are their ids in the order of their timelines.
    """

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    transaction = models.BigIntegerField()
    at = models.DateTimeField()
    messages = ArrayField(models.UUIDField())

    class Meta:
        indexes: ClassVar = [
            # Serves following a workspace, in the order in which transactions began to write.
            models.Index(fields=["workspace", "transaction", "id"], name="announcement_in_order"),
            # Serves forgetting what is old.
            models.Index(fields=["at"], name="announcement_age"),
        ]

    def __str__(self) -> str:
        return f"{len(self.messages)} messages by transaction {self.transaction}"
