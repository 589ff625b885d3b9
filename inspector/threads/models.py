"""Conversations and the messages in them, as settled: placed, ordered, told."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models.functions import Left
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


class Conversation(models.Model):
    """Messages that share a conversation id in a channel, or a source where none is carried.

    `generation` counts what changed; the conversation is settled when `settled_generation` has caught up.
    """

    class State(models.TextChoices):
        """How a conversation stands; derived, never said by a wire."""

        OPEN = "open", "Open"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"
        STALLED = "stalled", "Stalled"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT)
    key = models.BinaryField(max_length=32)
    # The id as the wire or the envelope says; empty where the conversation is a source's.
    native_id = models.TextField(blank=True)
    title = models.TextField(blank=True)
    generation = models.BigIntegerField(default=0)
    settled_generation = models.BigIntegerField(default=0)
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
            # Serves the same list, the gravest note of the decoder first.
            models.Index(fields=["workspace", "-severity", "-last_at", "-id"], name="conversation_worst"),
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

    `body` is canonical JSON text (ASCII), never jsonb: jsonb refuses NUL and lone surrogates, collapses duplicate
    keys and rewrites numbers.
    """

    class Severity(models.IntegerChoices):
        """The gravest note of a message; 0 is none."""

        NONE = 0, "none"
        INFO = 1, "info"
        NOTICE = 2, "notice"
        WARNING = 3, "warning"
        ERROR = 4, "error"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="messages")
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
            # Serves the look-up of a cited parent.
            models.Index(
                fields=["workspace", "channel", "id_key"],
                name="message_by_id",
                condition=models.Q(id_key__isnull=False),
            ),
            # Serves finding who cites an arriving message: ghosts that it fills, and parents that are no longer alone.
            models.Index(
                fields=["workspace", "channel", "parent_key"],
                name="message_ghosts",
                condition=models.Q(parent_key__isnull=False),
            ),
            # Serves the building of a trace, and the question whether a channel's trace joins others.
            models.Index(
                fields=["workspace", "trace_key", "channel"],
                name="message_by_trace",
                condition=models.Q(trace_key__isnull=False),
            ),
            # Serves finding what a new key may open.
            models.Index(
                fields=["workspace", "conversation"], name="message_sealed", condition=models.Q(is_sealed=True)
            ),
            # Serves words in the English; the workspace is one more lexeme.
            GinIndex(fields=["words"], name="message_words"),
            # Serves fields, codes, glyphs and emoji as exact terms; the workspace is one more.
            GinIndex(fields=["atoms"], name="message_atoms"),
        ]

    def __str__(self) -> str:
        return self.english or str(self.id)


class PlaceDirectory(models.Model):
    """In which blocks the timeline of a conversation stands, and how many messages each holds: see `places`."""

    conversation = models.OneToOneField(Conversation, on_delete=models.CASCADE, primary_key=True, related_name="places")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    blocks = models.BinaryField()

    def __str__(self) -> str:
        return f"places of {self.conversation_id}"


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
        constraints = [
            # Serves the history of a message, and keeps two workers from counting alike.
            models.UniqueConstraint(fields=["record", "part", "number"], name="wording_once"),
        ]

    def __str__(self) -> str:
        return self.english


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
    state = models.CharField(max_length=16, choices=Conversation.State.choices, default=Conversation.State.OPEN)
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
        constraints = [
            # Decides which trace a message belongs to, also between concurrent writers; serves "same id elsewhere".
            models.UniqueConstraint(fields=["workspace", "key", "channel"], name="trace_once", nulls_distinct=False),
        ]
        # Serves the list of traces, latest activity first, by keyset.
        indexes = [models.Index(fields=["workspace", "-last_at", "-id"], name="trace_latest")]

    def __str__(self) -> str:
        return self.native_id

    @property
    def is_settled(self) -> bool:
        """Whether everything that its conversations settled is in its tree."""
        return self.settled_generation >= self.generation


class Outline(models.Model):
    """The tree of a conversation or a trace in display order; `directory` says in which blocks it stands (`blocks`).

    `latest` is the place of its last message by order key, -1 where it has none: the end of the critical path.
    """

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    conversation = models.OneToOneField(Conversation, on_delete=models.CASCADE, null=True, related_name="tree")
    trace = models.OneToOneField(Trace, on_delete=models.CASCADE, null=True, related_name="tree")
    count = models.BigIntegerField(default=0)
    latest = models.BigIntegerField(default=-1)
    directory = models.BinaryField(default=bytes)

    class Meta:
        constraints = [
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
        constraints = [models.UniqueConstraint(fields=["outline", "digest"], name="outline_block_once")]

    def __str__(self) -> str:
        return f"block {bytes(self.digest).hex()}"


class Task(models.Model):
    """One thing asked in a conversation, and how it stands: written by settling, a row only where it came out new.

    What it is: the messages of one task id (and run), or a request without one together with what hangs below it.

    who: `requester` asked; `performer` was asked, or took it up first where several or nobody by name were asked;
    `delegate` has it now where it was passed on, in the mode `delegation` ("" where none was said). Each is the name on
    the wire, "" where none is.
    when: `first_at`, `last_at` are the order times of its first and last message (always known). `asked_at`,
    `acknowledged_at` (the first word of anyone but the requester), `finished_at` (it reached its present end) and
    `deadline_at` are None where it did not happen, or where wire and envelope carry no time for it.
    how long: `acknowledge_seconds`, `finish_seconds`, from `asked_at` on; None where either time is.
    how often: `retries` (it was asked again), `failures` (failures reported, also those that were tried again).
    `is_answered`: anyone but the requester said a word on it. `is_received`: the message that asked was received.
    `is_inferred`: a step rests on a link that no wire says.
    `state` says what the messages say. What depends on the moment of reading, "stalled" and "timed out" by the
    deadline, is never stored: see `measures.state_at`.
    """

    class State(models.TextChoices):
        """How a task stands."""

        OPEN = "open", "Open"
        ACKNOWLEDGED = "acknowledged", "Acknowledged"
        IN_PROGRESS = "in-progress", "In progress"
        WAITING = "waiting", "Waiting"
        DELEGATED = "delegated", "Delegated"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"
        TIMED_OUT = "timed-out", "Timed out"
        STALLED = "stalled", "Stalled"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="tasks")
    # What makes it this task within its conversation.
    key = models.BinaryField(max_length=32)
    # The key of the task in the course of which it was asked.
    within_key = models.BinaryField(max_length=32, null=True)
    # The task id as the wire says; empty where the request itself is the task.
    native_id = models.TextField(blank=True)
    # The message that asked, and what act it is; null and empty where it was not received.
    request = models.UUIDField(null=True)
    act = models.CharField(max_length=24, blank=True)
    # Where it begins in the timeline of its conversation: see `places`.
    place = models.BinaryField(max_length=PLACE_BYTES, default=bytes)
    requester = models.TextField(blank=True)
    performer = models.TextField(blank=True)
    delegate = models.TextField(blank=True)
    delegation = models.TextField(blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    # The deadline as the wire says, and its instant.
    deadline = models.TextField(blank=True)
    deadline_at = models.DateTimeField(null=True)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    asked_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    acknowledge_seconds = models.FloatField(null=True)
    finish_seconds = models.FloatField(null=True)
    message_count = models.BigIntegerField(default=0)
    retries = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    is_answered = models.BooleanField(default=False)
    is_received = models.BooleanField(default=True)
    is_inferred = models.BooleanField(default=False)
    # Its changes of state as JSON text, see `plays`: all, or the first and last hundred of so many.
    steps = models.TextField(blank=True)
    step_count = models.IntegerField(default=0)
    # What settling compares, so that a row that came out the same is not written.
    digest = models.BinaryField(max_length=32)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "key"], name="task_once")]
        indexes = [
            # Serves the tasks of a conversation in its order, by keyset.
            models.Index(fields=["conversation", "place", "id"], name="task_in_order"),
            # Serves the measures of a pair and of a requester.
            # Names may be longer than an entry of an index may be: their beginnings find them, they themselves decide.
            models.Index("workspace", Left("requester", 100), Left("performer", 100), name="task_of_pair"),
            # Serves the measures of a performer.
            models.Index("workspace", Left("performer", 100), name="task_of_performer"),
            # Serves those that stand in a state, latest word first: what stands still, what waits.
            models.Index(fields=["workspace", "state", "-last_at"], name="task_by_state"),
            # Serves search: whether a message asked for something that stands so.
            models.Index(fields=["workspace", "request"], name="task_of_request"),
        ]

    def __str__(self) -> str:
        return self.native_id or str(self.id)
