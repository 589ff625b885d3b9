"""Messages as resolved, and what is kept beside them: earlier wordings, masked texts, announcements, opened texts."""

from __future__ import annotations

from typing import ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models.functions import Length
from django.utils import timezone

from inspector.accounts.models import Channel, Workspace, make_id
from inspector.intake.models import HiddenRecord, Record
from inspector.keyring.models import EscrowedKey

from ..keys import PLACE_BYTES
from ..terms import FLAGGED, Spans
from .conversations import Conversation
from .packed_text import PackedTextField

# What a list or a tree of messages need not read.
LONG: Final = ("english", "body", "words", "atoms", "links", "established", "told_in")
# In bytes. The body of a short message is no longer, neither packed nor unpacked.
MAX_SHORT_BODY: Final = 20_000


class MessageQuerySet(models.QuerySet["Message"]):
    """Messages, and those of them whose record is not hidden by a withdrawal."""

    def shown(self) -> MessageQuerySet:
        """Without the messages of hidden records: what every list, count and placing starts from."""
        return self.filter(~models.Exists(HiddenRecord.objects.filter(record_id=models.OuterRef("record_id"))))

    def hidden(self) -> MessageQuerySet:
        """The messages of hidden records alone."""
        return self.filter(models.Exists(HiddenRecord.objects.filter(record_id=models.OuterRef("record_id"))))

    def light(self) -> MessageQuerySet:
        """Without their long columns. `short_body` is the packed body of one whose columns do not say what it answers,
        where that is short, else empty. It may unpack to any length, so whoever reads it gives `MAX_SHORT_BODY`."""
        is_unsaid = models.Q(parent=None) | models.Q(parent_basis__in=("turn", "adjacency"))
        is_read = is_unsaid & models.Q(size__lte=MAX_SHORT_BODY)
        body = models.Case(models.When(is_read, "body"), default=models.Value(b""), output_field=models.BinaryField())
        return self.defer(*LONG).annotate(size=Length("body")).annotate(short_body=body)


class Message(models.Model):
    """One communicative act. Columns are what is searched and placed by; `body` is the whole told message as canonical
    JSON text, never jsonb: that refuses NUL and lone surrogates, collapses duplicate keys and rewrites numbers.
    Workspace and channel are not looked up by the database for each row: neither is ever deleted."""

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
    # The dialect of its record, where it is a text inside a message of that; else none.
    carrier = models.CharField(max_length=32, blank=True, default="", db_default="")
    performative = models.CharField(max_length=24, null=True)  # noqa: DJ001 (null: malformed, no act was read)
    native_act = models.TextField(blank=True)
    topic = models.TextField(blank=True)
    sender = models.TextField(blank=True)
    receivers = ArrayField(models.TextField(), default=list)
    is_broadcast = models.BooleanField(default=False)
    native_id = models.TextField(blank=True)
    # Digest of the message id within its channel: ids of any length can be looked up.
    id_key = models.BinaryField(max_length=32, null=True)
    # By which a request and its answer find each other where the answer names their conversation: see `key_of_call`.
    call_key = models.BinaryField(max_length=33, null=True)
    trace_id = models.TextField(blank=True)
    # Digest of the trace id, and how far it joins: see `keys`.
    trace_key = models.BinaryField(max_length=32, null=True)
    trace_basis = models.CharField(max_length=8, blank=True, db_default="")
    task_id = models.TextField(blank=True)
    turn = models.BigIntegerField(null=True)
    run = models.IntegerField(default=1)
    status = models.TextField(blank=True)
    severity = models.SmallIntegerField(choices=Severity.choices, default=Severity.NONE)
    is_sealed = models.BooleanField(default=False)
    # What placing needs beyond these columns, as JSON text: see `keys`.
    links = models.TextField(blank=True)
    # Given by resolving: see `keys`. One that has none is not placed yet.
    place = models.BinaryField(max_length=PLACE_BYTES, null=True)
    # Digest of a cited id that the conversation itself does not hold, whether it was found elsewhere or nowhere.
    parent_key = models.BinaryField(max_length=32, null=True)
    parent = models.UUIDField(null=True)
    parent_basis = models.CharField(max_length=12, blank=True)
    parent_why = models.TextField(blank=True)
    # The lines that it stands below in the tree of its conversation and of its trace: see `lines`.
    above = models.UUIDField(null=True)
    trace_above = models.UUIDField(null=True)
    # The id of the task that it belongs to: no key, for tasks are written anew as they come out.
    task = models.UUIDField(null=True)
    # What its row shows that a rule may look at, as bits: see `terms`.
    sights = models.SmallIntegerField(default=0, db_default=0)
    # Told when it arrived, where no conversation makes a difference, else by resolving: in what context (see
    # `dependencies`), and what its record established for those after it.
    told_in = models.TextField(blank=True)
    established = models.TextField(blank=True)
    told_digest = models.BinaryField(max_length=32, null=True)
    # Since when it is told so: history alone asks, and nothing that is resolved depends on it.
    told_at = models.DateTimeField(null=True)
    english = models.TextField(blank=True)
    # What was told of it, as JSON text.
    body = PackedTextField()
    words = SearchVectorField(null=True)
    atoms = ArrayField(models.TextField(), default=list)

    # Its number in the conversation, counted from 1, where it was asked for (`numbering`): no column holds it.
    number = 0

    objects = MessageQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["record", "part"], name="message_once")]
        indexes = [
            # Serves resolving and the transcript: a conversation in its order.
            models.Index(
                fields=["conversation", "order_time", "order_source", "order_index", "part"], name="message_in_order"
            ),
            # Serves a window of the timeline by its place, and the neighbours of a message.
            models.Index(fields=["conversation", "place"], name="message_place"),
            # Serves newest-first lists and search windows.
            models.Index(fields=["workspace", "-order_time", "-id"], name="message_newest"),
            # Serves the search in a channel, newest first, by keyset.
            models.Index(fields=["channel", "-order_time", "-id"], name="message_newest_of_channel"),
            # Serves the look-up of a cited parent, and whether an id is borne twice in a conversation.
            models.Index(
                fields=["channel", "id_key", "conversation"],
                name="message_by_its_id",
                condition=models.Q(id_key__isnull=False),
            ),
            # Serves the same for what a request without a conversation, and its answer, bear.
            models.Index(
                fields=["channel", "call_key"], name="message_by_its_call", condition=models.Q(call_key__isnull=False)
            ),
            # Serves finding who cites an arriving message: ghosts that it fills, and parents that are no longer alone.
            models.Index(
                fields=["channel", "parent_key"], name="message_ghosts", condition=models.Q(parent_key__isnull=False)
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
                condition=FLAGGED,
            ),
            # Serves words in the English, and fields, codes, glyphs and emoji as exact terms, each with its workspace;
            # of all time, or of the spans in which the newest are.
            GinIndex("words", "atoms", Spans(), name="message_search"),
        ]

    def __str__(self) -> str:
        return self.english or str(self.id)

    @property
    def read_in(self) -> str:
        """The dialect that its record is read in."""
        return self.carrier or self.dialect


class Wording(models.Model):
    """An earlier English of a message, which stood until its conversation was told otherwise. Never changed. It belongs
    to a record and a part, as messages may be placed anew. Only the plain words are kept: all else of an earlier
    telling follows from the bytes, the decoder and the context."""

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
    # What the telling asked of its context, and a digest of the answers: see `dependencies`.
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
            models.UniqueConstraint(fields=["record", "part", "number"], name="wording_once")
        ]

    def __str__(self) -> str:
        return self.english


class MaskedWire(models.Model):
    """The text of a record as it is shown to who may not see secrets, where something in it is masked: see
    `intake.readings`. It follows from the record, its dialect and the decoders, and is written with the messages."""

    record = models.ForeignKey(Record, on_delete=models.CASCADE, db_index=False, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    dialect = models.CharField(max_length=32)
    # UTF-8; empty where the record is too long to be looked through.
    text = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            # Serves `raw:`, and keeps two workers from writing the same.
            models.UniqueConstraint(fields=["record", "dialect"], name="masked_once")
        ]

    def __str__(self) -> str:
        return f"masked {self.record_id}"


class Announcement(models.Model):
    """That these messages of a workspace, by their ids, were told for the first time by the `transaction` of that
    number. `id` is drawn before a transaction commits, so that a smaller one may come to light after a larger one: see
    `browsing.activity`."""

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


class OpenedMessage(models.Model):
    """What one key opens of one message, sealed under that key's own data key. The database itself deletes a row
    together with its key or its message, whoever deletes them, and how."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    message = models.ForeignKey(
        "threads.Message", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="openings"
    )
    key = models.ForeignKey(
        EscrowedKey, on_delete=models.DO_NOTHING, db_constraint=False, related_name="opened_messages"
    )
    # JSON text: see `opening`.
    sealed = models.BinaryField()
    told_digest = models.BinaryField(max_length=32)
    opened_at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Serves the look-up by message, and the database when it deletes one.
        constraints = [models.UniqueConstraint(fields=["message", "key"], name="opened_message_once")]

    def __str__(self) -> str:
        return f"{self.message_id} opened with {self.key_id}"


class OpeningTrial(models.Model):
    """With which keys a sealed message was last tried, as a digest: it is tried again when these are others."""

    message = models.OneToOneField(
        "threads.Message", primary_key=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="trial"
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    digest = models.BinaryField(max_length=16)
    # Whether a key that is held for its very session does not open it: then it is not authentic.
    is_refused = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"trial of {self.message_id}"
