"""What keys have opened of sealed messages: it lives apart from them, bound to its key, and is in no index."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from inspector.accounts.models import Workspace
from inspector.keyring.models import EscrowedKey


class OpenedMessage(models.Model):
    """What one key opens of one message, sealed under that key's own data key.

    The database itself deletes a row together with its key or its message, whoever deletes them, and how.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    message = models.ForeignKey(
        "threads.Message", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="openings"
    )
    key = models.ForeignKey(
        EscrowedKey, on_delete=models.DO_NOTHING, db_constraint=False, related_name="opened_messages"
    )
    # JSON text: see `threads.decryption`.
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
    digest = models.BinaryField(max_length=16)
    # Whether a key that is held for its very session does not open it: then it is not authentic.
    is_refused = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"trial of {self.message_id}"
