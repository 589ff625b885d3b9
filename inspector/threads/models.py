"""Conversations and the messages in them, as settled: placed, ordered, told."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.utils import timezone

from inspector.accounts.models import Channel, Workspace, make_id
from inspector.intake.models import HiddenRecord, Record

from .agents.tables import Agent as Agent
from .agents.tables import AgentTotal as AgentTotal
from .agents.tables import AgentWord as AgentWord
from .agents.tables import Appearance as Appearance
from .agents.tables import Declaration as Declaration
from .agents.tables import Exchange as Exchange
from .agents.tables import PairTotal as PairTotal
from .arriving.announcements import Announcement as Announcement
from .opening.tables import OpenedMessage as OpenedMessage
from .opening.tables import OpeningTrial as OpeningTrial
from .placing.places import PLACE_BYTES
from .resolving.tables import Block as Block
from .resolving.tables import Fact as Fact
from .resolving.tables import Read as Read
from .standing import Standing
from .tasks.tables import Task as Task
from .telling.sights import IN_SIGHT
from .telling.tables import MaskedWire as MaskedWire
from .telling.tables import Wording as Wording
from .trees.tables import Trace as Trace
from .trees.tables import TreeGroup as TreeGroup


class Conversation(models.Model):
    """Messages that share a conversation id in a channel, or a source where none is carried.

    `generation` counts what changed; the conversation is settled when `settled_generation` has caught up.
    """

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
    # When it last came to rest: settled, with nothing more asked for and no delivery half read. See `wordings`.
    stood_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    subject = models.TextField(blank=True)
    agents = ArrayField(models.TextField(), default=list)
    dialects = ArrayField(models.TextField(), default=list)
    message_count = models.BigIntegerField(default=0)
    missing_count = models.BigIntegerField(default=0)
    severity = models.SmallIntegerField(default=0)
    # The severity of the gravest finding in it that stands open, 0 for none. Settling does not write it: whoever writes
    # or judges findings does, see `audit.findings.grading`.
    open_severity = models.SmallIntegerField(default=0, db_default=0)
    # What its page says first, counted by settling, as JSON text: see `tallies`. Empty where it never was.
    tally = models.TextField(blank=True)
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Decides which conversation a message belongs to, also between concurrent writers.
            models.UniqueConstraint(fields=["workspace", "channel", "key"], name="conversation_once"),
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


class MessageQuerySet(models.QuerySet["Message"]):
    """Messages, and those of them whose record is not hidden by a withdrawal."""

    def shown(self) -> MessageQuerySet:
        """Without the messages of hidden records: what every list, count and placing starts from."""
        return self.filter(~models.Exists(HiddenRecord.objects.filter(record_id=models.OuterRef("record_id"))))

    def hidden(self) -> MessageQuerySet:
        """The messages of hidden records alone."""
        return self.filter(models.Exists(HiddenRecord.objects.filter(record_id=models.OuterRef("record_id"))))


class Message(models.Model):
    """One communicative act. Columns are what is searched and placed by; `body` is the whole told message.

    Workspace and channel of rows that are written in bulk are not looked up by the database for each row: neither is
    ever deleted. `body` is canonical JSON text (ASCII), never jsonb: jsonb refuses NUL and lone surrogates, collapses
    duplicate keys and rewrites numbers.
    """

    class Severity(models.IntegerChoices):
        """The gravest note of a message; 0 is none."""

        NONE = 0, "none"
        INFO = 1, "info"
        NOTICE = 2, "notice"
        WARNING = 3, "warning"
        ERROR = 4, "error"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages", db_index=False)
    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="messages", db_index=False)
    part = models.IntegerField(default=1)
    order_time = models.DateTimeField()
    order_basis = models.CharField(max_length=8)
    order_source = models.BinaryField(max_length=32)
    order_index = models.BigIntegerField()
    dialect = models.CharField(max_length=32)
    performative = models.CharField(max_length=24, null=True)  # noqa: DJ001 (null: malformed, no act was read)
    native_act = models.TextField(blank=True)
    topic = models.TextField(blank=True)
    sender = models.TextField(blank=True)
    receivers = ArrayField(models.TextField(), default=list)
    is_broadcast = models.BooleanField(default=False)
    native_id = models.TextField(blank=True)
    # Digest of the message id within its channel: ids of any length can be looked up.
    id_key = models.BinaryField(max_length=32, null=True)
    trace_id = models.TextField(blank=True)
    # Digest of the trace id, and how far it joins: see `keys.TRACE_BASES`.
    trace_key = models.BinaryField(max_length=32, null=True)
    trace_basis = models.CharField(max_length=8, blank=True, db_default="")
    task_id = models.TextField(blank=True)
    turn = models.BigIntegerField(null=True)
    run = models.IntegerField(default=1)
    status = models.TextField(blank=True)
    severity = models.SmallIntegerField(choices=Severity.choices, default=Severity.NONE)
    is_sealed = models.BooleanField(default=False)
    # What placing needs beyond these columns, as JSON text: see `links`.
    links = models.TextField(blank=True)
    # Given by settling: see `places`. One that has none is not placed yet.
    place = models.BinaryField(max_length=PLACE_BYTES, null=True)
    # Digest of a cited id that the conversation itself does not hold, whether it was found elsewhere or nowhere.
    parent_key = models.BinaryField(max_length=32, null=True)
    parent = models.UUIDField(null=True)
    parent_basis = models.CharField(max_length=12, blank=True)
    parent_why = models.TextField(blank=True)
    # The lines that it stands below in the tree of its conversation and of its trace: see `trees.hanging`.
    above = models.UUIDField(null=True)
    trace_above = models.UUIDField(null=True)
    # The id of the task that it belongs to: no key, for tasks are written anew as they come out.
    task = models.UUIDField(null=True)
    # What its row shows that a rule may look at, as bits: see `sights`.
    sights = models.SmallIntegerField(default=0, db_default=0)
    # Told when it arrived, where no conversation makes a difference, else by settling: in what context (see
    # `contexts`), and what its record established for those after it.
    told_in = models.TextField(blank=True)
    established = models.TextField(blank=True)
    told_digest = models.BinaryField(max_length=32, null=True)
    # Since when it is told so: history alone asks, and nothing that is settled depends on it.
    told_at = models.DateTimeField(null=True)
    english = models.TextField(blank=True)
    body = models.TextField(blank=True)
    words = SearchVectorField(null=True)
    atoms = ArrayField(models.TextField(), default=list)

    # Its number in the conversation, counted from 1, where it was asked for (`numbering`): no column holds it.
    number = 0

    objects = MessageQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["record", "part"], name="message_once")]
        indexes = [
            # Serves settling and the transcript: a conversation in its order.
            models.Index(
                fields=["conversation", "order_time", "order_source", "order_index", "part"], name="message_in_order"
            ),
            # Serves a window of the timeline by its place, and the neighbours of a message.
            models.Index(fields=["conversation", "place"], name="message_place"),
            # Serves newest-first lists and search windows.
            models.Index(fields=["workspace", "-order_time", "-id"], name="message_newest"),
            # Serves the search in a channel, newest first, by keyset.
            models.Index(fields=["workspace", "channel", "-order_time", "-id"], name="message_newest_of_channel"),
            # Serves the look-up of a cited parent, and whether an id is borne twice in a conversation.
            models.Index(
                fields=["workspace", "channel", "id_key", "conversation"],
                name="message_by_its_id",
                condition=models.Q(id_key__isnull=False),
            ),
            # Serves finding who cites an arriving message: ghosts that it fills, and parents that are no longer alone.
            models.Index(
                fields=["workspace", "channel", "parent_key"],
                name="message_ghosts",
                condition=models.Q(parent_key__isnull=False),
            ),
            # Serves the walk through the tree of a conversation: the messages below a line, in order.
            models.Index(
                fields=["above", "place", "id"], name="message_above", condition=models.Q(above__isnull=False)
            ),
            # Serves the walk through the tree of a trace.
            models.Index(
                fields=["trace_above", "order_time", "order_source", "order_index", "place", "id"],
                name="message_trace_above",
                condition=models.Q(trace_above__isnull=False),
            ),
            # Serves the sums of a trace, whole or in parts, and the question whether a channel's joins others.
            models.Index(
                fields=["workspace", "trace_key", "order_time"],
                name="message_of_trace",
                condition=models.Q(trace_key__isnull=False),
            ),
            # Serves playing a task again from all its messages.
            models.Index(fields=["task"], name="message_of_task", condition=models.Q(task__isnull=False)),
            # Serves finding what a new key may open.
            models.Index(
                fields=["workspace", "conversation"], name="message_sealed", condition=models.Q(is_sealed=True)
            ),
            # Serves examining: the messages that show something a rule may have to look at. It has their order too, so
            # that no estimate makes `message_in_order` look better.
            models.Index(
                fields=["conversation", "order_time", "order_source", "order_index"],
                name="message_in_sight",
                condition=IN_SIGHT,
            ),
            # Serves words in the English, each with its workspace.
            GinIndex(fields=["words"], name="message_words"),
            # Serves fields, codes, glyphs and emoji as exact terms, each with its workspace.
            GinIndex(fields=["atoms"], name="message_atoms"),
        ]

    def __str__(self) -> str:
        return self.english or str(self.id)
