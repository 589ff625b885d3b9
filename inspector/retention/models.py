"""How long messages are kept, legal holds, and erasures with the tombstones that they leave.

Rules, erasures and tombstones are only added to. Erasing itself is in `inspector.erasing`; the application's role can
clear evidence only by the database's own function, which needs a tombstone with the digest and heeds holds.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils import timezone

from inspector.accounts.models import Channel, User, Workspace, make_id


class RetentionRule(models.Model):
    """After how many days messages are erased, in a channel or, without one, wherever no channel says otherwise.

    The latest of a workspace and channel is in force. `days` is None where they are kept for ever.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, db_index=False, related_name="+")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, null=True, db_index=False, related_name="+")
    days = models.PositiveIntegerField(null=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Serves the rule in force.
        indexes: ClassVar = [models.Index(fields=["workspace", "channel", "-id"], name="retention_rule_latest")]

    def __str__(self) -> str:
        return f"{self.days} days"


class LegalHold(models.Model):
    """That nothing of a workspace, or of one channel, is erased until somebody lifts this again."""

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, null=True, related_name="+")
    reason = models.TextField(max_length=2000)
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    lifted_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    lifted_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.reason


class Erasure(models.Model):
    """That something is erased, by whom and why; its job says how far that is. No name of a person stands here.

    `target` is the id of the delivery, record or period's key; of a person or an age it is empty. What is erased by age
    came before `until`, and `by` is nobody then.
    """

    class Kind(models.TextChoices):
        """What is erased."""

        RECORD = "record", "A message"
        DELIVERY = "delivery", "A delivery"
        PERSON = "person", "A person"
        AGE = "age", "By age"
        PERIOD = "period", "A period"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, db_index=False, related_name="+")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, null=True, db_index=False, related_name="+")
    target = models.UUIDField(null=True)
    until = models.DateTimeField(null=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    reason = models.TextField(max_length=2000)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes: ClassVar = [
            # Serves the list of a workspace's erasures, newest first.
            models.Index(fields=["workspace", "-id"], name="erasure_newest"),
            # Serves the last one by age of a channel.
            models.Index(fields=["channel", "-until"], name="erasure_by_age", condition=models.Q(kind="age")),
        ]

    def __str__(self) -> str:
        """When and why, in words, and by whom where it was a person."""
        by = f" by {self.by.get_username()}" if self.by else ""
        return f"erased on {self.at:%Y-%m-%d}{by} because {self.reason}"


class Tombstone(models.Model):
    """What is left of an erased row: which it was, how large, and a digest that still verifies in the ledger.

    `kind` and `subject` are those of its entry. `sha256` is of a record's exact bytes, and of any other row's content
    as its leaf has it. `about` are the ids of the messages, conversations, traces and agents that it was about.
    """

    pk = models.CompositePrimaryKey("kind", "subject")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, db_index=False, related_name="+")
    erasure = models.ForeignKey(Erasure, on_delete=models.PROTECT, related_name="tombstones")
    kind = models.CharField(max_length=24)
    subject = models.UUIDField()
    sha256 = models.BinaryField(max_length=32)
    size_bytes = models.BigIntegerField()
    about = ArrayField(models.UUIDField(), default=list)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Serves what is said where an erased message, conversation or trace is looked for.
        indexes: ClassVar = [GinIndex(fields=["about"], name="tombstone_about")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}, {self.size_bytes} bytes"
