"""What settling keeps of a conversation for its next settling."""

from __future__ import annotations

from django.db import models

from inspector.accounts.models import Workspace


class Carry(models.Model):
    """What is carried over the end of a conversation as it was settled: see `carries`.

    It holds for the settled generation that it names and for no other.
    """

    conversation = models.OneToOneField(
        "threads.Conversation", on_delete=models.CASCADE, primary_key=True, related_name="carry"
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    generation = models.BigIntegerField()
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"carry of {self.conversation_id}"
