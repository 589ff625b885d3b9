"""What settling keeps of a conversation for its next settling."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from inspector.accounts.models import Workspace

from ..placing.places import PLACE_BYTES


class Carry(models.Model):
    """What is carried over the end of a conversation as it was settled: see `carries`.

    That of the settled generation is carried over its end. Those of earlier generations are milestones, which settling
    can go back to (`milestones`): `stood` says how the conversation and its tasks stood there. `reached` is the time of
    the last message in microseconds since 1970, `count` how many there are up to it.
    """

    conversation = models.ForeignKey(
        "threads.Conversation", on_delete=models.CASCADE, related_name="carries", db_index=False
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    generation = models.BigIntegerField()
    reached = models.BigIntegerField()
    count = models.BigIntegerField()
    # The place that the next message has at least: see `places`.
    border = models.BinaryField(max_length=PLACE_BYTES)
    data = models.BinaryField()
    stood = models.BinaryField(null=True)

    class Meta:
        # Finds those of a conversation, and that of its settled generation.
        constraints: ClassVar = [models.UniqueConstraint(fields=["conversation", "generation"], name="carry_once")]

    def __str__(self) -> str:
        return f"carry of {self.conversation_id} at {self.generation}"


class Stretch(models.Model):
    """A part of a long conversation that can be settled again by itself: see `stretches`.

    It begins at the place `border`. `state` is what settling knows there, `reads` and `depths` what its messages
    asked of what stands before it, the latter with how far back it went.
    """

    conversation = models.ForeignKey(
        "threads.Conversation", on_delete=models.CASCADE, related_name="stretches", db_index=False
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    border = models.BinaryField(max_length=PLACE_BYTES)
    state = models.BinaryField()
    reads = ArrayField(models.BigIntegerField())
    depths = models.BinaryField()

    class Meta:
        # Finds the one that a message comes into.
        constraints: ClassVar = [models.UniqueConstraint(fields=["conversation", "border"], name="stretch_once")]
        # Finds those that asked for what is otherwise now.
        indexes: ClassVar = [GinIndex(fields=["reads"], name="stretch_reads")]

    def __str__(self) -> str:
        return f"stretch of {self.conversation_id}"


class Lack(models.Model):
    """What is not known rightly any more where a border or a later one is gone on from: something was put in before it.

    `keys` are digests of what it is: see `reads`.
    """

    conversation = models.ForeignKey(
        "threads.Conversation", on_delete=models.CASCADE, related_name="lacks", db_index=False
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    border = models.BinaryField(max_length=PLACE_BYTES)
    keys = models.BinaryField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["conversation", "border"], name="lack_from")]

    def __str__(self) -> str:
        return f"lack of {self.conversation_id}"
