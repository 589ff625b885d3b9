"""Conversations, traces, and what their trees show beside messages: ghosts and headings."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from inspector.accounts.models import Channel, Workspace, make_id

from ..keys import PLACE_BYTES


class Standing(models.TextChoices):
    """How a conversation stands, and the traces through it; derived, never said by a wire."""

    OPEN = "open", "Open"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    STALLED = "stalled", "Stalled"


class OfChannel(models.Model):
    """What names a workspace and a channel without a look-up by the database for each row: neither is ever deleted."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, db_constraint=False)

    class Meta:
        abstract = True


class Conversation(models.Model):
    """Messages that share a conversation id in a channel, or a source where none is carried. `generation` counts what
    changed; the conversation is settled when `settled_generation` has caught up."""

    State = Standing

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT)
    key = models.BinaryField(max_length=32)
    # The id as the wire or the envelope says; empty where the conversation is a source's.
    native_id = models.TextField(blank=True)
    title = models.TextField(blank=True)
    generation = models.BigIntegerField(default=0)
    settled_generation = models.BigIntegerField(default=0)
    # The generation of the latest change that was more than messages added: blocks resolved before it are dirty.
    whole_generation = models.BigIntegerField(default=0, db_default=0)
    settled_at = models.DateTimeField(null=True)
    settled_digest = models.BinaryField(max_length=32, null=True)
    # When it last came to rest: resolved, with nothing more asked for and no delivery half read. See `writing`.
    stood_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    subject = models.TextField(blank=True)
    agents = ArrayField(models.TextField(), default=list)
    dialects = ArrayField(models.TextField(), default=list)
    message_count = models.BigIntegerField(default=0)
    missing_count = models.BigIntegerField(default=0)
    severity = models.SmallIntegerField(default=0)
    # The severity of the gravest finding in it that stands open, 0 for none. Resolving leaves it alone: whoever writes
    # or judges findings does, see `audit.findings.storing`.
    open_severity = models.SmallIntegerField(default=0, db_default=0)
    # What its page says first, counted by resolving, as JSON text: see `summaries`. Empty where it never was.
    tally = models.TextField(blank=True)
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Decides which conversation a message belongs to, also between concurrent writers.
            models.UniqueConstraint(fields=["workspace", "channel", "key"], name="conversation_once")
        ]
        indexes = [
            # Serves the list of conversations, latest activity first, by keyset.
            models.Index(fields=["workspace", "-last_at", "-id"], name="conversation_latest"),
            # Serves those of them with errors in what was read, by the gravest note of the decoder.
            models.Index(fields=["workspace", "-severity", "-last_at", "-id"], name="conversation_worst"),
            # Serves the same list, the gravest open finding first.
            models.Index(fields=["workspace", "-open_severity", "-last_at", "-id"], name="conversation_gravest"),
            # Serves the latest record of a channel: what "now" is for whatever stands still or falls due in it.
            models.Index(fields=["workspace", "channel", "-last_at", "-id"], name="conversation_of_channel"),
        ]

    def __str__(self) -> str:
        return self.title or self.native_id or str(self.id)

    @property
    def is_settled(self) -> bool:
        """Whether everything that arrived has been placed and told."""
        return self.settled_generation >= self.generation


class Trace(models.Model):
    """The messages that carry one trace id, across conversations; `channel` is None for what joins across channels.
    `generation` counts what changed, as for a conversation. One without messages (`last_at` None) is not shown."""

    State = Standing

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
        constraints = [
            # Decides which trace a message belongs to, also between concurrent writers; serves "same id elsewhere".
            models.UniqueConstraint(fields=["workspace", "key", "channel"], name="trace_once", nulls_distinct=False)
        ]
        # Serves the list of traces, latest activity first, by keyset.
        indexes = [models.Index(fields=["workspace", "-last_at", "-id"], name="trace_latest")]

    def __str__(self) -> str:
        return self.native_id

    @property
    def is_settled(self) -> bool:
        """Whether everything that its conversations resolved is in its tree."""
        return self.settled_generation >= self.generation


class TreeGroup(models.Model):
    """Messages that a tree, or the sums of a trace, take together. A ghost stands for a message that was cited and not
    received, a heading for a conversation in a trace: what cites the one, or answers nothing in the trace, stands below
    it. Both have the order key of the first line below them. A part is a stretch of time of a long trace, from its
    `order_time` on; `data` is what its messages add up to."""

    class Kind(models.IntegerChoices):
        """What a group is."""

        GHOST = 1, "ghost"
        HEADING = 2, "heading"
        PART = 3, "part"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    kind = models.SmallIntegerField(choices=Kind.choices)
    # A ghost of a conversation has no trace, a ghost of a trace and a part have no conversation.
    conversation = models.ForeignKey("threads.Conversation", on_delete=models.CASCADE, null=True, db_index=False)
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
        indexes = [
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
