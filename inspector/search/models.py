"""Searches that somebody keeps under a name."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from inspector.accounts.models import User, Workspace, make_id

MAX_SAVED = 100
MAX_NAME_LENGTH = 80


class SavedSearch(models.Model):
    """A query with a name: its owner's alone, or shared with everybody in the workspace."""

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="saved_searches")
    saved_by = models.ForeignKey(User, on_delete=models.CASCADE)
    name = models.CharField(max_length=MAX_NAME_LENGTH)
    query = models.TextField()
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Serves the list of a person's searches, and keeps two from bearing one name.
            models.UniqueConstraint(fields=["workspace", "saved_by", "name"], name="saved_search_once"),
        ]
        indexes = [
            # Serves the list of what is shared in a workspace.
            models.Index(fields=["workspace", "name"], name="saved_search_shared", condition=models.Q(is_shared=True)),
        ]

    def __str__(self) -> str:
        return self.name
