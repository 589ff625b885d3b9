"""Traces, and the outlines of traces and conversations with their blocks."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from inspector.accounts.models import Channel, Workspace, make_id

from ..standing import Standing


class Trace(models.Model):
    """The messages that carry one trace id, across conversations; across channels where decision 10 lets them join.

    `channel` is None for what joins across channels, else the channel that scopes the id. `generation` counts what
    changed, as for a conversation. `fresh_at` is the earliest time of a message that came new or changed since they
    were read to draw it; `whole_generation` is the last one that changed what no such time tells. One without messages
    (`last_at` None) is not shown.
    """

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, null=True)
    key = models.BinaryField(max_length=32)
    native_id = models.TextField()
    generation = models.BigIntegerField(default=0)
    settled_generation = models.BigIntegerField(default=0)
    whole_generation = models.BigIntegerField(default=0, db_default=0)
    fresh_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    digest = models.BinaryField(max_length=32, null=True)
    state = models.CharField(max_length=16, choices=Standing.choices, default=Standing.OPEN)
    subject = models.TextField(blank=True)
    agents = ArrayField(models.TextField(), default=list)
    dialects = ArrayField(models.TextField(), default=list)
    message_count = models.BigIntegerField(default=0)
    conversation_count = models.BigIntegerField(default=0)
    missing_count = models.BigIntegerField(default=0)
    # Requests that nothing has answered.
    open_count = models.BigIntegerField(default=0)
    severity = models.SmallIntegerField(default=0)
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            # Decides which trace a message belongs to, also between concurrent writers; serves "same id elsewhere".
            models.UniqueConstraint(fields=["workspace", "key", "channel"], name="trace_once", nulls_distinct=False),
        ]
        # Serves the list of traces, latest activity first, by keyset.
        indexes: ClassVar = [models.Index(fields=["workspace", "-last_at", "-id"], name="trace_latest")]

    def __str__(self) -> str:
        return self.native_id

    @property
    def is_settled(self) -> bool:
        """Whether everything that its conversations settled is in its tree."""
        return self.settled_generation >= self.generation


class TraceCarry(models.Model):
    """A point of a trace: what is carried over it (`carrying`), what the row said and how the tree stood (`points`).

    It stands behind the messages up to `last_at`, and holds for the settled generation that it names and for no other.
    """

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, db_index=False, related_name="carries")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    generation = models.BigIntegerField()
    last_at = models.DateTimeField()
    message_count = models.BigIntegerField()
    data = models.BinaryField()
    # Of the tree, as an outline has them.
    directory = models.BinaryField()
    latest = models.BigIntegerField()

    class Meta:
        # Finds the points of a trace, the newest first.
        constraints: ClassVar = [models.UniqueConstraint(fields=["trace", "last_at"], name="trace_carry_once")]

    def __str__(self) -> str:
        return f"carry of {self.trace_id} over {self.last_at}"


class TraceChange(models.Model):
    """A message that came new to a trace or changed since it was drawn, and how it stood as it was drawn (`noting`).

    `parent` is what it answered, `cited` the key of what it cited and was missing, `is_several` whether several bear
    that. Where `message_id` is None something has changed that is not named.
    """

    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, db_index=False, related_name="changes")
    message_id = models.UUIDField(null=True)
    is_new = models.BooleanField()
    parent = models.UUIDField(null=True)
    cited = models.BinaryField(max_length=32, null=True)
    is_several = models.BooleanField()
    told_digest = models.BinaryField(max_length=32, null=True)

    class Meta:
        # Finds what has changed of a trace; the first to name a message says how it stood.
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["trace", "message_id"], name="trace_change_once", nulls_distinct=False),
        ]

    def __str__(self) -> str:
        return f"change of {self.message_id} in {self.trace_id}"


class Outline(models.Model):
    """The tree of a conversation or a trace in display order; `directory` says in which blocks it stands (`blocks`).

    `latest` is the place of its last message by order key, -1 where it has none: the end of the critical path.
    """

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    conversation = models.OneToOneField(
        "threads.Conversation", on_delete=models.CASCADE, null=True, related_name="tree"
    )
    trace = models.OneToOneField(Trace, on_delete=models.CASCADE, null=True, related_name="tree")
    count = models.BigIntegerField(default=0)
    latest = models.BigIntegerField(default=-1)
    directory = models.BinaryField(default=bytes)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(conversation__isnull=True) ^ models.Q(trace__isnull=True), name="outline_of_one"
            ),
        ]

    def __str__(self) -> str:
        return f"outline of {self.count} lines"


class OutlineBlock(models.Model):
    """About a thousand lines of an outline, known by the digest of what it holds, so that equal blocks stand still.

    `depths` are the depths of its lines, `lines` the lines themselves: see `blocks` for their form.
    """

    outline = models.ForeignKey(Outline, on_delete=models.CASCADE, related_name="blocks", db_index=False)
    digest = models.BinaryField(max_length=16)
    depths = models.BinaryField()
    lines = models.BinaryField()

    class Meta:
        # Finds the blocks of a window by their digests in the directory.
        constraints: ClassVar = [models.UniqueConstraint(fields=["outline", "digest"], name="outline_block_once")]

    def __str__(self) -> str:
        return f"block {bytes(self.digest).hex()}"
