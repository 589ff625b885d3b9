"""Alerts: the webhook of a workspace, and one row for each new finding that it is to hear of."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from inspector.accounts.models import User, Workspace, make_id
from inspector.audit.models.findings import Finding
from inspector.threads.models import Message


class Webhook(models.Model):
    """Where a workspace wants new findings told. Its secret is not stored: see `sending`.

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
