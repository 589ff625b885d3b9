"""What an auditor must look at: findings as the rules make them, what people said of each, and how rules are set; and
alerts, the webhook of a workspace and one row for each new finding that it is to hear of.
"""

from __future__ import annotations

import json
import uuid
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from inspector.accounts.models import Channel, User, Workspace, make_id
from inspector.intake.models import Record
from inspector.threads.models import Conversation, Message


class Finding(models.Model):
    """That a rule holds of a message, in its conversation. Written by examining; never deleted while its record stands.

    It belongs to a record and a part, as messages may be placed anew. `key` says which finding it is: the rule, the
    message and what tells it from others of the same rule there. One that no longer holds is closed as such; should it
    hold again it is the same finding, with what people said of it.
    `due_at` is the moment from which on it counts, where that is a matter of time; `due_since`, when it was noted that
    the moment has come. See `due`. One that is snoozed is open all the same: lists leave it out until that time.
    """

    class State(models.TextChoices):
        """What people made of it."""

        OPEN = "open", "Open"
        ACCEPTED = "accepted", "Accepted"
        FIXED = "fixed", "Fixed"
        FALSE_ALARM = "false-alarm", "False alarm"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="findings", db_index=False)
    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="findings")
    part = models.IntegerField()
    rule = models.CharField(max_length=48)
    key = models.BinaryField(max_length=32)
    severity = models.SmallIntegerField(choices=Message.Severity.choices)
    text = models.TextField()
    cites = models.TextField(blank=True)
    # The characters of the wire it is about, as JSON text [layer, start, end]; empty where it is about the message.
    span = models.TextField(blank=True)
    # The other messages it is about, as JSON text: [record, part] of each, and its span where it is about a stretch.
    related = models.TextField(blank=True)
    # Who sent the message; findings are suppressed by it.
    sender = models.TextField(blank=True)
    # The order time of the message.
    at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    due_since = models.DateTimeField(null=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    holds = models.BooleanField(default=True)
    is_suppressed = models.BooleanField(default=False)
    # Who is to look at it, and until when nobody wants to be shown it.
    assignee = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False)
    snoozed_until = models.DateTimeField(null=True)
    found_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)
    # By which decoders and rules it was last written.
    version = models.CharField(max_length=64)

    class Meta:
        constraints = [
            # Keeps a finding the same one each time its conversation is examined, and serves finding it.
            models.UniqueConstraint(fields=["conversation", "key"], name="finding_once"),
        ]
        indexes = [
            # Serves the findings of a rule, newest message first, by keyset.
            models.Index(fields=["workspace", "rule", "-at", "-id"], name="finding_by_rule"),
            # Serves the gravest open ones, and their counts.
            models.Index(
                fields=["workspace", "-severity", "-at", "-id"],
                name="finding_open",
                condition=models.Q(holds=True, is_suppressed=False, state="open"),
            ),
            # Serves what a person has to look at.
            models.Index(
                fields=["workspace", "assignee", "-at", "-id"],
                name="finding_assigned",
                condition=models.Q(assignee__isnull=False),
            ),
            # Serves the sweep: what may have become due in a channel, and what may be due no longer.
            models.Index(
                fields=["workspace", "channel", "due_at"],
                name="finding_to_be_due",
                condition=models.Q(holds=True, due_at__isnull=False, due_since__isnull=True),
            ),
            models.Index(
                fields=["workspace", "channel", "due_at"],
                name="finding_due",
                condition=models.Q(holds=True, due_at__isnull=False, due_since__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.text

    @property
    def is_snoozed(self) -> bool:
        """Whether lists leave it out for a while."""
        return self.snoozed_until is not None and self.snoozed_until > timezone.now()

    @property
    def is_due(self) -> bool:
        """Whether it counts already: one that is no matter of time always does."""
        return self.due_at is None or self.due_since is not None

    @property
    def place(self) -> list[int] | None:
        """The characters of the wire it is about: layer, start, end; None where it is about the whole."""
        return json.loads(self.span) if self.span else None

    def list_related(self) -> dict[tuple[uuid.UUID, int], list[int] | None]:
        """The other messages it is about, by record and part, each with the characters it is about, if it says so."""
        rows = json.loads(self.related or "[]")
        return {(uuid.UUID(record), part): next(iter(span), None) for record, part, *span in rows}


class FindingAct(models.Model):
    """What a person made of a finding, and why. Acts are added, never changed; the latest of a kind says how it stands.

    `assignee` is that of an act which assigns (None: nobody), `until` that of one which snoozes.
    """

    class Kind(models.TextChoices):
        """What the act changed."""

        JUDGED = "judged", "Judged"
        ASSIGNED = "assigned", "Assigned"
        SNOOZED = "snoozed", "Snoozed"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    finding = models.ForeignKey(Finding, on_delete=models.CASCADE, related_name="acts")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.JUDGED, db_default=Kind.JUDGED)
    # As it stood after the act.
    state = models.CharField(max_length=16, choices=Finding.State.choices)
    assignee = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False)
    until = models.DateTimeField(null=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT)
    at = models.DateTimeField(default=timezone.now)
    reason = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.state} by {self.by}"


class RuleChange(models.Model):
    """How a workspace has set a rule, by whom and why. Changes are added, never changed; the latest is in force."""

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    rule = models.CharField(max_length=48)
    is_on = models.BooleanField(default=True)
    # None is as the rule says.
    severity = models.SmallIntegerField(choices=Message.Severity.choices, null=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT)
    at = models.DateTimeField(default=timezone.now)
    reason = models.TextField()

    class Meta:
        # Serves what is in force, and the history of a rule.
        indexes = [models.Index(fields=["workspace", "rule", "-at"], name="rule_change_latest")]

    def __str__(self) -> str:
        return f"{self.rule}: {'on' if self.is_on else 'off'}"


class Suppression(models.Model):
    """That what a rule finds is not to be shown, of one sender or in one conversation, and why. It can be lifted."""

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    rule = models.CharField(max_length=48)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, null=True)
    # Of whose messages; empty means everybody's in the conversation.
    sender = models.TextField(blank=True)
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    lifted_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", null=True)
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        # Serves those in force, when conversations are examined.
        indexes = [
            models.Index(fields=["workspace", "rule"], name="suppression_live", condition=models.Q(lifted_at=None))
        ]

    def __str__(self) -> str:
        return f"{self.rule}: {self.reason}"


class Examination(models.Model):
    """That a conversation was examined: by which decoders and rules, and as it stood then."""

    conversation = models.OneToOneField(Conversation, on_delete=models.CASCADE, primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    settled_digest = models.BinaryField(max_length=32, null=True)
    version = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Serves finding what decoders or rules of another version examined.
        indexes = [models.Index(fields=["version", "conversation"], name="examination_version")]

    def __str__(self) -> str:
        return f"{self.version} at {self.at}"


class Webhook(models.Model):
    """Where a workspace wants new findings told. Its secret is not stored: see `alerts`.

    `failures` counts the tries since one last succeeded, `paused_until` keeps all its alerts back until then.
    """

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="+")
    address = models.TextField()
    # The least severity, and of which rules; none are all.
    severity = models.SmallIntegerField(choices=Message.Severity.choices, default=Message.Severity.ERROR)
    rules = ArrayField(models.CharField(max_length=48), default=list)
    # What the secret is made with, and the SHA-256 that shows whether it still can be.
    salt = models.BinaryField(max_length=16)
    secret_digest = models.BinaryField(max_length=32)
    # Where the pages are, for the links: the address that the owner used when they set this.
    site = models.TextField()
    is_on = models.BooleanField(default=True)
    # Why the product switched it off by itself; empty where a person did.
    off_because = models.TextField(blank=True)
    failures = models.IntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    paused_until = models.DateTimeField(null=True)
    set_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    set_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.address


class Alert(models.Model):
    """That a webhook is to hear of a finding, or of a test, and what became of it. It is written with the finding."""

    class State(models.TextChoices):
        """What became of it."""

        WAITING = "waiting", "waiting"
        DELIVERED = "delivered", "delivered"
        FAILED = "failed", "given up"
        DROPPED = "dropped", "no longer to be told"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, db_index=False)
    # None for a test.
    finding = models.ForeignKey(Finding, on_delete=models.CASCADE, null=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    # One for each try: when, the status or 0, and the beginning of what was said.
    answers = models.JSONField(default=list)
    created_at = models.DateTimeField(default=timezone.now)
    next_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            # A finding is told once, whatever is examined again.
            models.UniqueConstraint(fields=["webhook", "finding"], name="alert_once"),
        ]
        indexes: ClassVar = [
            # Serves the page: the alerts of a workspace, newest first.
            models.Index(fields=["workspace", "-created_at", "-id"], name="alert_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.finding_id or 'a test'}: {self.state}"
