"""Audit samples: which conversations a seed drew, out of how many of what, so that anybody can draw them again."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from inspector.accounts.models import User, Workspace, make_id
from inspector.audit.models.reviews import ReviewQueue
from inspector.threads.models import Conversation


class AuditSample(models.Model):
    """A sample of the conversations of a workspace, and the queue that it fills. Nothing of it is changed later.

    `strata` holds [name, population, drawn] of each stratum, by name. `digest` is SHA-256 over the identities that were
    drawn, in ascending order: equal for everybody who draws the same. See `sampling` for both.
    """

    class Stratum(models.TextChoices):
        """What divides the population."""

        DIALECT = "dialect", "Dialect"
        SEVERITY = "severity", "Gravest note"
        PAIR = "pair", "Pair of agents"
        CHANNEL = "channel", "Channel"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    queue = models.OneToOneField(ReviewQueue, on_delete=models.CASCADE, related_name="sample")
    seed = models.CharField(max_length=64)
    stratum = models.CharField(max_length=16, choices=Stratum.choices)
    wanted = models.IntegerField()
    # Only conversations that were active in this span, its end excluded.
    since = models.DateTimeField(null=True)
    until = models.DateTimeField(null=True)
    population = models.BigIntegerField()
    drawn = models.IntegerField()
    # How many of the population were not settled yet: another draw of the same seed may come out otherwise.
    unsettled = models.BigIntegerField(default=0)
    strata = models.JSONField(default=list)
    digest = models.BinaryField(max_length=32)
    method = models.CharField(max_length=16)
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Serves the list of samples, newest first, by keyset.
        indexes = [models.Index(fields=["workspace", "-made_at", "-id"], name="audit_sample_newest")]

    def __str__(self) -> str:
        return f"{self.drawn} by {self.seed}"


class SampledConversation(models.Model):
    """A conversation that was drawn: its identity, the stratum it stood for, and its place in the draw, from 1."""

    sample = models.ForeignKey(AuditSample, on_delete=models.CASCADE, related_name="conversations", db_index=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+", db_index=False)
    place = models.IntegerField()
    stratum = models.TextField()
    identity = models.BinaryField(max_length=32)

    class Meta:
        ordering: ClassVar = ["place"]
        # Serves the drawn ones in their order, by keyset.
        constraints = [models.UniqueConstraint(fields=["sample", "place"], name="sampled_place_once")]

    def __str__(self) -> str:
        return f"{self.place}: {self.conversation_id}"
