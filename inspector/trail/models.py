"""What people and programs did: one row for each deed, in a table that is only added to.

Its triggers stand in the first migration. They number the deeds of a workspace without a gap, set the time by the
database's clock, and refuse to change, delete or empty what is written. `guard` tells whom they hold.
"""

from __future__ import annotations

from typing import ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex, GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models.functions import Now

from .deeds import DEEDS, DeedKind

# What the words of a search are looked for in. The names stand for themselves too: in the sentence they are quoted, and
# PostgreSQL takes a quotation mark for a part of the word.
SEARCHED: Final = ("actor_name", "object_label", "told", "details")


class Deed(models.Model):
    """That somebody did something. Nothing here points at a row that may go: names are kept as text beside the ids."""

    class Actor(models.TextChoices):
        """What kind of somebody."""

        MEMBER = "member", "a member"
        API_KEY = "api-key", "an API key"
        OPERATOR = "operator", "the operator"
        PRODUCT = "product", "the product"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT, db_index=False, related_name="+")
    # 1 for the first deed of its workspace; by the database, one after the other as they are committed.
    sequence = models.BigIntegerField(db_default=0)
    at = models.DateTimeField(db_default=Now())
    actor_kind = models.CharField(max_length=16, choices=Actor.choices)
    actor_id = models.CharField(max_length=64, blank=True)
    actor_name = models.TextField()
    address = models.CharField(max_length=64, blank=True)
    code = models.CharField(max_length=48)
    # On what: its kind in a word, its id, and what it was called then.
    object_kind = models.CharField(max_length=32, blank=True)
    object_id = models.CharField(max_length=64, blank=True)
    object_label = models.TextField(blank=True)
    # All that it concerns, by id, so that each can show its own trail: the messages, their conversation, the findings.
    about = ArrayField(models.UUIDField(), default=list)
    # The deed in a sentence, as it was told when it was recorded.
    told = models.TextField()
    details = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            # Serves the trail of a workspace, newest first by keyset.
            models.UniqueConstraint(fields=["workspace", "sequence"], name="deed_number_once"),
        ]
        indexes: ClassVar = [
            # Serve the filters by who and by what was done, newest first.
            models.Index(fields=["workspace", "actor_kind", "actor_id", "-sequence"], name="deed_by_actor"),
            models.Index(fields=["workspace", "code", "-sequence"], name="deed_by_code"),
            # Serves the ledger, which asks what was done since a moment in any workspace.
            BrinIndex(fields=["at"], name="deed_since", autosummarize=True),
            # Serves a stretch of time.
            models.Index(fields=["workspace", "at"], name="deed_by_time"),
            # Serves the trail of one object. Ids of two workspaces never meet.
            GinIndex(fields=["about"], name="deed_about"),
            # Serves the words.
            GinIndex(SearchVector(*SEARCHED, config="simple"), name="deed_words"),
        ]

    def __str__(self) -> str:
        return self.told

    @property
    def kind(self) -> DeedKind | None:
        """What kind of deed it is; None where a later version of the product wrote it."""
        return DEEDS.get(self.code)
