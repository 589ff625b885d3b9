"""What is kept beside the messages: earlier wordings, masked texts, and what conversations established long ago."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from inspector.accounts.models import Workspace, make_id
from inspector.intake.models import Record

from ..placing.places import PLACE_BYTES


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

    class Meta:
        constraints: ClassVar = [
            # Serves the history of a message, and keeps two workers from counting alike.
            models.UniqueConstraint(fields=["record", "part", "number"], name="wording_once"),
        ]

    def __str__(self) -> str:
        return self.english


class ShelvedName(models.Model):
    """What a name of a conversation's context stands for, where the conversation does not carry it: see `shelves`.

    `question` is the digest of the question for it, `since` the place in the timeline from which it holds, `said` JSON
    text.
    """

    conversation = models.ForeignKey("threads.Conversation", on_delete=models.CASCADE, db_index=False, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    question = models.BinaryField(max_length=12)
    since = models.BinaryField(max_length=PLACE_BYTES)
    said = models.TextField()

    class Meta:
        constraints: ClassVar = [
            # Finds what is asked for.
            models.UniqueConstraint(fields=["conversation", "question", "since"], name="shelved_once"),
        ]
        indexes: ClassVar = [
            # Finds what is settled again.
            models.Index(fields=["conversation", "since"], name="shelved_since"),
        ]

    def __str__(self) -> str:
        return f"shelved of {self.conversation_id}"


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
