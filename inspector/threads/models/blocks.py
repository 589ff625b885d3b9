"""What resolving keeps of a conversation: its blocks, the facts that each of them gave, and what each of them read."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Final

from django.db import models

from inspector.accounts.models import Workspace

from ..keys import KEY_BYTES

# The key of the first block: it comes before every message.
FIRST: Final = bytes(KEY_BYTES)
FACT_BYTES: Final = 16
# The generation of a block of which messages are written, and not yet what it gives: its worker has ended in between.
BROKEN_OFF: Final = -1


class Block(models.Model):
    """Messages of a conversation that stand together in its timeline, resolved together: see `resolver`. `border` is
    where it begins, and how the places of its messages begin; the order columns say the same in full, null for the
    first block. `summary` is what its messages add up to (`summaries`), as JSON text."""

    conversation = models.ForeignKey(
        "threads.Conversation", on_delete=models.CASCADE, related_name="blocks", db_index=False
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    border = models.BinaryField(max_length=KEY_BYTES)
    order_time = models.DateTimeField(null=True)
    order_source = models.BinaryField(max_length=32, null=True)
    order_index = models.BigIntegerField(null=True)
    # Whether it begins here because the one before it was full, and not because of its own first message.
    is_forced = models.BooleanField(default=False)
    count = models.IntegerField(default=0)
    # The generation of the conversation that it was resolved in, and by which decoders and secret: see
    # `dependencies.name_form`.
    generation = models.BigIntegerField(default=0)
    form = models.CharField(max_length=64, blank=True)
    # Something that it read has changed since, by what another block of the same resolving gave.
    is_stale = models.BooleanField(default=False)
    # The latest generation in which something else has changed in it: a withdrawal, or who bears an id that it cites.
    # It is dirty where that is later than its own.
    changed_generation = models.BigIntegerField(default=0, db_default=0)
    # Whether its facts and reads are stored: those of a conversation's only block are not.
    is_linked = models.BooleanField(default=False)
    summary = models.TextField(blank=True)

    class Meta:
        # Finds the blocks of a conversation in order, and the one that a message stands in.
        # It holds the workspace, so that ON CONFLICT names the same key of a table in partitions (`trail.partitions`).
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "border", "workspace"], name="block_of_workspace_once")
        ]

    def __str__(self) -> str:
        return f"block of {self.conversation_id}"

    @property
    def start(self) -> bytes:
        return bytes(self.border)

    @property
    def key(self) -> tuple[datetime, bytes, int] | None:
        """The order key that it begins with; None of the first."""
        if self.order_time is None or self.order_source is None or self.order_index is None:
            return None
        return self.order_time, bytes(self.order_source), self.order_index


class OfBlock(models.Model):
    """What a block keeps under a key."""

    conversation = models.ForeignKey("threads.Conversation", on_delete=models.CASCADE, related_name="+", db_index=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    key = models.BinaryField(max_length=FACT_BYTES)
    border = models.BinaryField(max_length=KEY_BYTES)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.model_name} of {self.conversation_id}"


class Fact(OfBlock):
    """The last value that a block gave a key; `extra` is what no later block reads."""

    value = models.BinaryField()
    extra = models.BinaryField(null=True)

    class Meta:
        constraints: ClassVar = [
            # Finds the latest value of a key before a block.
            models.UniqueConstraint(fields=["conversation", "key", "border"], name="fact_once")
        ]
        # Finds all that a block gave.
        indexes: ClassVar = [models.Index(fields=["conversation", "border"], name="fact_of_block")]


class Read(OfBlock):
    """That a block asked for a key, and which block answered: the border `reached`, or empty where none did."""

    reached = models.BinaryField(max_length=KEY_BYTES)

    class Meta:
        constraints: ClassVar = [
            # Finds who asked for a key that has changed.
            models.UniqueConstraint(fields=["conversation", "key", "border"], name="read_once")
        ]
        # Finds all that a block asked.
        indexes: ClassVar = [models.Index(fields=["conversation", "border"], name="read_of_block")]
