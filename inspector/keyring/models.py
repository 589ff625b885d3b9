"""Keys held in escrow, each sealed at rest, and the trace of everything that was done with them."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from inspector.accounts.models import User, Workspace, make_id


class EscrowedKeyQuerySet(models.QuerySet["EscrowedKey"]):
    """Keys, and those of them that may open messages now."""

    def in_force(self) -> EscrowedKeyQuerySet:
        """Those that are released and have not expired, though they may wait for being removed."""
        return self.filter(
            models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now()), ~models.Q(released_at=None)
        )


class EscrowedKey(models.Model):
    """A key that opens sealed messages. Its secret is sealed under a data key, and that under a key outside of here.

    The data key also seals what the key has opened: with this row gone, nothing that is left can be read.
    """

    class Kind(models.TextChoices):
        """What the secret is."""

        X25519 = "x25519", "X25519 private key"
        PSK = "psk", "Pre-shared key"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="escrowed_keys")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    label = models.CharField(max_length=120)
    # The session that the key belongs to; empty where it may serve any.
    session = models.TextField(blank=True)
    # The other side's public key of 32 bytes; empty where those that a conversation's handshakes show are tried.
    peer = models.BinaryField(max_length=32, default=bytes)
    # Of an X25519 key the SHA-256 of its public key, as handshakes write it. Of a pre-shared key a code made with the
    # key-encryption key: the same secret has the same, and nobody can try guesses against it.
    fingerprint = models.CharField(max_length=64)
    kek_id = models.CharField(max_length=16)
    data_key = models.BinaryField(max_length=60)
    secret = models.BinaryField(max_length=2048)
    added_by = models.ForeignKey(User, on_delete=models.PROTECT)
    added_at = models.DateTimeField(default=timezone.now)
    # Who let it open messages, and when: whoever added it, at once, or a second owner where the workspace wants two.
    released_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    released_at = models.DateTimeField(null=True)
    # When it and what it opened are removed; none where somebody has to.
    expires_at = models.DateTimeField(null=True)

    objects = EscrowedKeyQuerySet.as_manager()

    class Meta:
        constraints = [
            # Serves the list of a workspace's keys, and refuses one that is here already.
            models.UniqueConstraint(fields=["workspace", "fingerprint", "session", "peer"], name="escrowed_key_once"),
        ]

    def __str__(self) -> str:
        return self.label


class PeriodKey(models.Model):
    """What the records are sealed with that a workspace received in a month. Destroyed, it opens nothing any more.

    Its data key is wrapped as that of an escrowed key is. See `periods`.
    """

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, db_index=False, related_name="+")
    # The month, in UTC: 2026-11.
    period = models.CharField(max_length=7)
    # Both are empty once it is destroyed.
    kek_id = models.CharField(max_length=16, blank=True)
    data_key = models.BinaryField(max_length=60)
    made_at = models.DateTimeField(default=timezone.now)
    destroyed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # Serves the key in use, and the list of a workspace's.
            models.UniqueConstraint(fields=["workspace", "period"], name="period_key_once"),
            models.CheckConstraint(
                name="period_key_or_destroyed",
                condition=models.Q(destroyed_at=None) ^ models.Q(kek_id="", data_key=b""),
            ),
        ]

    def __str__(self) -> str:
        return self.period


class KeyEvent(models.Model):
    """Something that was done with a key. Rows are only added: a trigger refuses to change or delete one.

    A key is named by its id, label and fingerprint, and a message by its id, because either may be gone by now.
    """

    class Kind(models.TextChoices):
        """What was done."""

        ADDED = "added", "added"
        RELEASED = "released", "released"
        REMOVED = "removed", "removed"
        EXPIRED = "expired", "expired"
        OPENED = "opened", "opened"
        SHOWN = "shown", "shown"

    class Door(models.TextChoices):
        """Where opened text was shown."""

        MESSAGE = "message", "the message's page"
        CONVERSATION = "conversation", "the conversation's page"
        API = "api", "the API"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    key = models.UUIDField()
    label = models.CharField(max_length=120)
    fingerprint = models.CharField(max_length=64)
    # Who did it: a member, or an API key by its name; neither where the product did it by itself.
    by = models.ForeignKey(User, null=True, on_delete=models.PROTECT)
    by_api_key = models.CharField(max_length=160, blank=True)
    door = models.CharField(max_length=16, choices=Door.choices, blank=True)
    # How many messages were opened, shown, or have become unreadable; and which were opened or shown.
    count = models.BigIntegerField(default=0)
    messages = ArrayField(models.UUIDField(), default=list)
    conversation = models.UUIDField(null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Serve the trace on the page, newest first by keyset, and when each key was last of use.
        indexes = [
            models.Index(fields=["workspace", "-at", "-id"], name="key_event_newest"),
            models.Index(fields=["workspace", "key", "-at"], name="key_event_by_key"),
        ]

    def __str__(self) -> str:
        return f"{self.label} {self.kind}"
