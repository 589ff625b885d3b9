"""Traces, and what their trees and those of conversations show beside messages: ghosts and headings."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from inspector.accounts.models import Channel, Workspace, make_id

from ..placing.places import PLACE_BYTES
from ..standing import Standing


class Trace(models.Model):
    """The messages that carry one trace id, across conversations; across channels where decision 10 lets them join.

    `channel` is None for what joins across channels, else the channel that scopes the id. `generation` counts what
    changed, as for a conversation. One without messages (`last_at` None) is not shown.
    """

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, null=True)
    key = models.BinaryField(max_length=32)
    native_id = models.TextField()
    generation = models.BigIntegerField(default=0)
    settled_generation = models.BigIntegerField(default=0)
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
    # Of one in parts, the channels whose messages it has; and the messages at which circles are cut: see `tracing`.
    channels = ArrayField(models.UUIDField(), default=list)
    cut = ArrayField(models.UUIDField(), default=list)
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


class TreeGroup(models.Model):
    """Messages that a tree, or the sums of a trace, take together.

    A ghost is a message that was cited and not received: those that cite it stand below it. A heading stands for a
    conversation in a trace: its messages that answer nothing in the trace stand below it. Both stand where the first
    line below them does, whose order key they have, and `above` is the line that they stand below themselves. A part
    is a stretch of time of a long trace, from its `order_time` to that of the next part; `data` is what its messages
    add up to (`parts`), and `is_stale` says that they have changed since.
    """

    class Kind(models.IntegerChoices):
        """What a group is."""

        GHOST = 1, "ghost"
        HEADING = 2, "heading"
        PART = 3, "part"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    kind = models.SmallIntegerField(choices=Kind.choices)
    # A ghost of a conversation has no trace, a ghost of a trace and a part have no conversation.
    conversation = models.ForeignKey("threads.Conversation", on_delete=models.CASCADE, null=True)
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, null=True, db_index=False)
    above = models.UUIDField(null=True)
    order_time = models.DateTimeField()
    order_source = models.BinaryField(max_length=32, default=bytes)
    order_index = models.BigIntegerField(default=0)
    place = models.BinaryField(max_length=PLACE_BYTES, default=bytes)
    # Of a heading and of a part: the times of the first and the last of its messages, and the gravest severity.
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    severity = models.SmallIntegerField(default=0)
    # Of a part: how many messages, and whether they have changed since they were read.
    size = models.IntegerField(default=0)
    is_stale = models.BooleanField(default=False)
    data = models.TextField(blank=True)

    class Meta:
        indexes: ClassVar = [
            # Serves the walk through a tree: the groups below a line, in order.
            models.Index(
                fields=["above", "order_time", "order_source", "order_index", "place", "id"],
                name="tree_group_in_order",
                condition=models.Q(above__isnull=False),
            ),
            # Serves the sums of a trace, and finding the part of a time.
            models.Index(
                fields=["trace", "kind", "order_time"],
                name="tree_group_of_trace",
                condition=models.Q(trace__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.Kind(self.kind).label} {self.id}"
