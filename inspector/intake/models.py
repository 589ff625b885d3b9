"""What came in: deliveries, the records in them, where each was seen, and the jobs that work them off.

Identity and order, the two rules everything rests on, stand in `identity.py`; this module holds their columns.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.utils import timezone

from inspector.accounts.models import ApiKey, Channel, User, Workspace, make_id
from inspector.keyring.models import PeriodKey

from .identity import BY_TIME
from .object_store import Stored
from .sealed import SealedField


def _sealed_with() -> models.ForeignKey[PeriodKey | None]:
    """The key that a row's bytes are sealed with; null where they are clear. Not looked up for each row."""
    return models.ForeignKey(
        PeriodKey, null=True, on_delete=models.PROTECT, db_index=False, db_constraint=False, related_name="+"
    )


class Door(models.TextChoices):
    """How a delivery came in."""

    API = "api", "API"
    UPLOAD = "upload", "Upload"
    IMPORT = "import", "Import command"


class Delivery(models.Model):
    """One POST, upload or import with its receipt. Its numbers count records and never move once framed."""

    class State(models.TextChoices):
        """How far framing is."""

        # Of an upload that waits for a person's word: its bytes are here, and nothing of it is in the log.
        STAGED = "staged", "Waits to be loaded"
        RECEIVING = "receiving", "Receiving"
        FRAMING = "framing", "Framing"
        FRAMED = "framed", "Framed"
        BROKEN = "broken", "Broken off"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT)
    door = models.CharField(max_length=16, choices=Door.choices)
    state = models.CharField(max_length=16, choices=State.choices, default=State.RECEIVING)
    received_at = models.DateTimeField(default=timezone.now)
    declared_start = models.DateTimeField(null=True, blank=True)
    framed_at = models.DateTimeField(null=True, blank=True)
    sent_by_user = models.ForeignKey(User, null=True, blank=True, on_delete=models.SET_NULL)
    sent_by_key = models.ForeignKey(ApiKey, null=True, blank=True, on_delete=models.SET_NULL)
    remote_address = models.CharField(max_length=64, blank=True)
    file_name = models.TextField(blank=True)
    content_type = models.CharField(max_length=120, blank=True)
    options = models.JSONField(default=dict)
    size_bytes = models.BigIntegerField(default=0)
    sha256 = models.BinaryField(max_length=32, null=True)
    framed_bytes = models.BigIntegerField(default=0)
    # Digest of the stream up to the end of its first record: a grown or renamed file stays one source.
    source_digest = models.BinaryField(max_length=32, null=True)
    received = models.BigIntegerField(default=0)
    stored = models.BigIntegerField(default=0)
    duplicate = models.BigIntegerField(default=0)
    quarantined = models.BigIntegerField(default=0)
    # How many of its records have been read into messages; moves until it reaches stored.
    read = models.BigIntegerField(default=0)
    # How many of its new records could not be read and were set aside as dead letters; they are not in `read`.
    set_aside = models.BigIntegerField(default=0)
    # What its sender should be told of it, see `warnings`; it moves no count.
    warnings = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    idempotency_key = models.CharField(max_length=255, null=True, blank=True)  # noqa: DJ001 (null: no key was sent)
    # Whether another delivery may be sent by this key: it is evidence, and stays.
    is_key_free = models.BooleanField(default=False, db_default=False)
    failure = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="delivery_accounts_for_every_record",
                condition=models.Q(
                    received=models.F("stored") + models.F("duplicate") + models.F("quarantined"),
                ),
            ),
            # Serves the look-up of an Idempotency-Key, and keeps two twins from both running.
            models.UniqueConstraint(
                fields=["workspace", "sent_by_key", "idempotency_key"],
                condition=models.Q(is_key_free=False),
                name="delivery_idempotency_of_key",
            ),
        ]
        indexes = [
            # Serves the list of deliveries, newest first, by keyset.
            models.Index(fields=["workspace", "-received_at", "-id"], name="delivery_newest"),
            # Serves the ledger, which asks what was framed since a moment; it grows in this order.
            BrinIndex(fields=["framed_at"], name="delivery_framed", autosummarize=True),
            # Serves what waits to be loaded, and the sweep of what has waited too long.
            models.Index(fields=["received_at"], name="delivery_staged", condition=models.Q(state="staged")),
            # Serves the bytes that wait in a workspace.
            models.Index(
                fields=["workspace"],
                name="delivery_waiting",
                condition=models.Q(state__in=["staged", "receiving", "framing"]),
            ),
        ]

    # When it is to be read, in seconds since 1970, as whoever receives it decided; 0 for at once. No column holds it.
    due = 0.0

    def __str__(self) -> str:
        return self.file_name or f"{self.door} delivery {self.id}"

    @property
    def is_file(self) -> bool:
        """Whether it is a file (upload or import), whose records without id and time are known by their place."""
        return self.door != Door.API

    @property
    def is_framed(self) -> bool:
        """Whether the receipt is final."""
        return self.state in (self.State.FRAMED, self.State.BROKEN)


class Chunk(Stored):
    """A piece of an upload's bytes, durable before the upload is answered; dropped once it is framed."""

    FOLDER, OWNER = "uploads", "delivery_id"

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    offset = models.BigIntegerField()
    data = SealedField()
    sealed_with = _sealed_with()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["delivery", "offset"], name="chunk_once")]

    def __str__(self) -> str:
        return f"bytes at {self.offset}"

    def place_of(self, column: str) -> tuple[str, uuid.UUID, int]:
        """What its sealed bytes are bound to."""
        return "chunk", self.delivery_id, self.offset


# The byte before a record where nothing else is stored for it, which is most of what lies between the lines of a log.
LINE_END: Final = b"\n"


class Scaffold(models.Model):
    """The bytes between records: separators, headers, comments; and those of a duplicate that is written otherwise.

    With the slices, and `LINE_END` where one byte is missing, they give the stream back.
    """

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="scaffold", db_index=False)
    offset = models.BigIntegerField()
    data = SealedField()
    sealed_with = _sealed_with()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["delivery", "offset"], name="scaffold_once")]

    def __str__(self) -> str:
        return f"{len(self.data)} bytes at {self.offset}"

    def place_of(self, column: str) -> tuple[str, uuid.UUID, int]:
        """What its sealed bytes are bound to."""
        return "scaffold", self.delivery_id, self.offset


class Record(models.Model):
    """One stretch of bytes that carries messages, stored once however often it was seen.

    `source` is the exact slice of the stream; `wire` the text read from it as UTF-8, or null where it is the slice
    itself. `identity` is unique in a channel. `likeness` is shared by timed records that are equal but for their count.
    """

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    identity = models.BinaryField(max_length=32)
    likeness = models.BinaryField(max_length=32, null=True)
    rule = models.SmallIntegerField()
    source = SealedField()
    wire = SealedField(null=True)
    sealed_with = _sealed_with()
    envelope = models.TextField(blank=True)
    # What the delivery says beside the log: see `facts`. It never decides which record is new.
    facts = models.TextField(blank=True, default="")
    dialect = models.CharField(max_length=32, blank=True)
    is_quarantined = models.BooleanField(default=False)
    reason = models.TextField(blank=True)
    # The order key: time (and how it is known), digest of the source, index in it.
    order_time = models.DateTimeField()
    order_basis = models.CharField(max_length=8)
    order_source = models.BinaryField(max_length=32)
    order_index = models.BigIntegerField()
    # Whether that source is a file; what was posted belongs to its channel where no conversation is named.
    is_from_file = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Decides which record is new, also between concurrent writers.
            models.UniqueConstraint(fields=["workspace", "channel", "identity"], name="record_identity_once"),
        ]
        indexes = [
            # Serves the count of equal records in a delivery.
            models.Index(
                fields=["workspace", "channel", "likeness"], name="record_equal", condition=models.Q(rule=BY_TIME)
            ),
            # Serves erasing a period, and the question whether its key still seals anything.
            models.Index(
                fields=["sealed_with", "id"], name="record_sealed", condition=models.Q(sealed_with__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    def place_of(self, column: str) -> tuple[str, uuid.UUID, int]:
        """What its sealed bytes are bound to."""
        return f"record {column}", self.pk, 0

    @property
    def wire_text(self) -> str:
        """The text that was read, lone surrogates included."""
        return bytes(self.source if self.wire is None else self.wire).decode("utf-8", "surrogatepass")


class Sighting(models.Model):
    """That a record was seen: in which delivery, where, and what came of it. Duplicates leave one too."""

    class Outcome(models.TextChoices):
        """What came of a record that arrived."""

        STORED = "stored", "Stored"
        DUPLICATE = "duplicate", "Duplicate"
        QUARANTINED = "quarantined", "Quarantined"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="sightings", db_index=False)
    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="sightings")
    index = models.BigIntegerField()
    line = models.BigIntegerField(default=0)
    offset = models.BigIntegerField()
    length = models.BigIntegerField()
    outcome = models.CharField(max_length=16, choices=Outcome.choices)
    # A duplicate that gave its record a smaller order key: it is read again in its new place.
    is_earlier = models.BooleanField(default=False)
    # An envelope that differs from the one the record keeps.
    envelope = models.TextField(blank=True)
    reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            # Serves reading a delivery in order, its problems, and makes framing repeatable.
            models.UniqueConstraint(fields=["delivery", "index"], name="sighting_once"),
        ]
        # The foreign key's index on record serves: where was this record seen?

    def __str__(self) -> str:
        return f"{self.outcome} #{self.index}"


class Withdrawal(models.Model):
    """That a person withdrew a delivery: who, when and why; and the same of taking it back. Never changed or deleted.

    Nothing is erased by it. A record is hidden when all deliveries it was seen in are withdrawn; see `withdrawals`.
    """

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    delivery = models.ForeignKey(Delivery, on_delete=models.RESTRICT, related_name="withdrawals")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    reason = models.TextField(max_length=2000)
    taken_back_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    taken_back_at = models.DateTimeField(null=True, blank=True)
    taken_back_reason = models.TextField(blank=True, max_length=2000)

    class Meta:
        constraints = [
            # Serves: is this delivery withdrawn? And lets one withdrawal of it be in force, not two.
            models.UniqueConstraint(
                fields=["delivery"], name="withdrawal_in_force_once", condition=models.Q(taken_back_at__isnull=True)
            ),
            models.CheckConstraint(
                name="withdrawal_taken_back_by_someone",
                condition=models.Q(taken_back_at__isnull=True, taken_back_by__isnull=True)
                | models.Q(taken_back_at__isnull=False, taken_back_by__isnull=False),
            ),
        ]
        # Serves: was anything ever withdrawn in this workspace?
        indexes = [models.Index(fields=["workspace", "-at"], name="withdrawal_newest")]

    def __str__(self) -> str:
        return f"{self.delivery} withdrawn by {self.by}"


class HiddenRecord(models.Model):
    """A record all of whose sightings are withdrawn. The few that are hidden stand apart: no evidence is written to."""

    record = models.OneToOneField(Record, primary_key=True, on_delete=models.CASCADE, related_name="hidden")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    since = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.record_id} is hidden"


class Job(models.Model):
    """Work to be done, and the truth about it. One row a kind and subject."""

    class Kind(models.TextChoices):
        """What is to be done: with a delivery, a conversation (resolve, open, examine), a trace, export or ledger."""

        FRAME = "frame", "Frame a delivery"
        INGEST = "ingest", "Read a delivery's records"
        WEIGH = "weigh", "Hide or show a delivery's records"
        RESOLVE = "settle", "Process a conversation"
        TRACE = "trace", "Draw the tree of a trace"
        OPEN = "open", "Open what is sealed in a conversation"
        EXPORT = "export", "Write an export"
        EXAMINE = "examine", "Examine a conversation"
        ALERT = "alert", "Tell a webhook of a finding"
        VERIFY = "verify", "Verify a ledger"
        ERASE = "erase", "Erase messages"

    class State(models.TextChoices):
        """Where the job stands. A running job whose lease has run out is due again."""

        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        DEAD = "dead", "Dead letter"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    subject = models.UUIDField()
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    # Counts how often the work was asked for; a job asked for again while it runs is queued when it ends.
    requests = models.BigIntegerField(default=1)
    attempts = models.SmallIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    due_at = models.DateTimeField(default=timezone.now)
    checkpoint = models.JSONField(default=dict)
    failure = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "subject"], name="job_once")]
        indexes = [
            # Serves every worker that asks what is due.
            models.Index(fields=["due_at"], name="job_due", condition=models.Q(state__in=["queued", "running"])),
            # Serves the page of dead letters.
            models.Index(fields=["workspace", "-updated_at"], name="job_dead", condition=models.Q(state="dead")),
        ]

    # The jobs that one lease holds together with this one: see `jobs`. No column holds them.
    companions: Sequence[Job] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}: {self.state}"


class DeadLetter(models.Model):
    """A record that could not be read, set aside so that the rest of its delivery could be.

    The record and its bytes stand as they were received, and the delivery's counts never move for it: what is missing
    is only its reading. `letters` says how it comes here, and how it is tried again.
    """

    class State(models.TextChoices):
        """Where the letter stands."""

        WAITING = "waiting", "To be tried again"
        DEAD = "dead", "Given up"
        READ = "read", "Read after all"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="dead_letters")
    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="dead_letters")
    sighting = models.OneToOneField(Sighting, on_delete=models.CASCADE, related_name="dead_letter")
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    # Counted before each attempt begins, so that one that kills its worker counts.
    attempts = models.SmallIntegerField(default=0)
    failure = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    asked_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    asked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            # Serves the page of dead letters, newest first, by keyset.
            models.Index(
                fields=["workspace", "-created_at", "-id"], name="letter_open", condition=~models.Q(state="read")
            ),
            # Serves the ingest job of a delivery, which asks what is to be tried again.
            models.Index(fields=["delivery"], name="letter_waiting", condition=models.Q(state="waiting")),
        ]

    def __str__(self) -> str:
        return f"record {self.record_id}: {self.state}"
