"""What was asked to be written into a file, how far that is, and the file itself, in pieces.

An export has three ages. It is asked for; its set is fixed by one statement (`entries`), as blocks that name messages;
and block by block it is written (`making`), each with the pieces of the file that it gives in one transaction. The
file goes when its time is over. The row stays: what was taken out of a workspace, by whom, and with which digest.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from inspector.accounts.models import ApiKey, User, Workspace, make_id
from inspector.intake.object_store import Stored

from .exporters import BROUGHT


class Export(models.Model):
    """One export: what was asked, by whom, and what came of it. Numbers count as `selectors.make_manifest` says.

    `listed` is how many messages are in the set, None while they are not counted. At the end it is the sum of
    `messages`, `withdrawn` and `gone`.
    """

    class Form(models.TextChoices):
        """What the file is, besides what `exporters` bring."""

        JSONL = "jsonl", "JSON Lines"
        CSV = "csv", "CSV"
        REPORT = "html", "Report"

    class Subject(models.TextChoices):
        """What is meant: messages by a query, one conversation, those of a list or of an audit sample; findings."""

        QUERY = "query", "Messages that a search finds"
        CONVERSATION = "conversation", "One conversation"
        CONVERSATIONS = "conversations", "Conversations of a list"
        SAMPLE = "sample", "An audit sample"
        FINDINGS = "findings", "Findings of a list"

    class State(models.TextChoices):
        """Where it stands."""

        QUEUED = "queued", "Waits for a worker"
        WRITING = "writing", "Being written"
        SEALING = "sealing", "Being hashed"
        DONE = "done", "Ready"
        REFUSED = "refused", "Could not be made"
        CANCELLED = "cancelled", "Cancelled"
        REMOVED = "removed", "Removed"
        EXPIRED = "expired", "Expired"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="exports", db_index=False)
    asked_by_user = models.ForeignKey(User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    asked_by_key = models.ForeignKey(ApiKey, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    # Their name then: it outlives them.
    asked_by = models.TextField()
    asked_at = models.DateTimeField(default=timezone.now)
    subject = models.CharField(max_length=16, choices=Subject.choices)
    query = models.TextField(blank=True)
    # Whose days the days of the query are.
    zone = models.CharField(max_length=64, default="UTC")
    # A conversation outlives nothing by being exported: its id stays here whatever becomes of it.
    conversation_id = models.UUIDField(null=True, blank=True)
    sample_id = models.UUIDField(null=True, blank=True)
    filters = models.JSONField(default=dict)
    # What people call it: the query, or the conversation's name.
    title = models.TextField(blank=True)
    form = models.CharField(max_length=8, choices=Form.choices)
    is_masked = models.BooleanField(default=True)
    has_mark = models.BooleanField(default=False)
    is_packed = models.BooleanField(default=False)
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    # Why it could not be made.
    failure = models.TextField(blank=True)
    fixed_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    listed = models.BigIntegerField(null=True, blank=True)
    messages = models.BigIntegerField(default=0)
    rows = models.BigIntegerField(default=0)
    withdrawn = models.BigIntegerField(default=0)
    gone = models.BigIntegerField(default=0)
    # How many messages of how many records hold something that was masked.
    masked = models.BigIntegerField(default=0)
    # How many messages are of records that are not what was entered in the ledger.
    changed = models.BigIntegerField(default=0, db_default=0)
    # Where writing goes on: a block, and an entry in it; and how many pieces there are.
    block = models.IntegerField(default=0)
    entry = models.IntegerField(default=0)
    pieces = models.IntegerField(default=0)
    size_bytes = models.BigIntegerField(default=0)
    unpacked_bytes = models.BigIntegerField(default=0)
    sha256 = models.BinaryField(max_length=32, null=True)
    decoder = models.CharField(max_length=32, blank=True)
    downloads = models.IntegerField(default=0)
    downloaded_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            # Serves the list of a workspace's exports, newest first, by keyset, and the count of those under way.
            models.Index(fields=["workspace", "-asked_at", "-id"], name="export_newest"),
            # Serves the sweep of those whose time is over.
            models.Index(fields=["expires_at"], name="export_kept", condition=models.Q(state="done")),
        ]

    def __str__(self) -> str:
        return self.title or f"export {self.id}"

    def get_form_display(self) -> str:  # type: ignore[no-redef]  # in the place of Django's
        """What people call the form: also one that another package brings."""
        return BROUGHT[self.form].title if self.form in BROUGHT else dict(self.Form.choices).get(self.form, self.form)

    @property
    def is_under_way(self) -> bool:
        """Whether the file is still to come."""
        return self.state in UNDER_WAY

    @property
    def file_name(self) -> str:
        """What the file is called when it is downloaded."""
        has_findings = self.subject == self.Subject.FINDINGS
        kind = "report" if self.form == self.Form.REPORT else "findings" if has_findings else "messages"
        return f"{kind}-{self.asked_at:%Y%m%d-%H%M%S}-{self.id.hex[-6:]}.{self.form}{'.gz' if self.is_packed else ''}"


UNDER_WAY = (Export.State.QUEUED, Export.State.WRITING, Export.State.SEALING)


class Block(models.Model):
    """A stretch of the set, in its order: `entries` holds, for each message, its record's id and its part.

    Twenty bytes each: the sixteen of the id and a big-endian number. All messages of a record are in one block; of a
    sample those that are in one of its conversations, each of which begins a block: see `entries`.
    """

    export = models.ForeignKey(Export, on_delete=models.CASCADE, related_name="blocks", db_index=False)
    number = models.IntegerField()
    entries = models.BinaryField()

    class Meta:
        # Serves the block that is to be written next.
        constraints = [models.UniqueConstraint(fields=["export", "number"], name="export_block_once")]

    def __str__(self) -> str:
        return f"block {self.number} of {self.export_id}"


class Piece(Stored):
    """A piece of the file, at most `making.PIECE_BYTES` long."""

    FOLDER, OWNER = "exports", "export_id"

    export = models.ForeignKey(Export, on_delete=models.CASCADE, related_name="file", db_index=False)
    number = models.IntegerField()
    data = models.BinaryField()

    class Meta:
        # Serves the download, in order; and no piece can be written twice.
        constraints = [models.UniqueConstraint(fields=["export", "number"], name="export_piece_once")]

    def __str__(self) -> str:
        return f"piece {self.number} of {self.export_id}"
