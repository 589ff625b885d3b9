"""Who may see what: workspaces, their members and roles, their channels, API keys and sign-in links."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import uuid_utils
from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.exceptions import PermissionDenied
from django.db import models
from django.utils import timezone

from inspector.trail.acting import Actor


def make_id() -> uuid.UUID:
    """A fresh UUIDv7: made by the application, in order of time."""
    return uuid.UUID(bytes=uuid_utils.uuid7().bytes)


class User(AbstractUser):
    """A person. The time zone is a name of the IANA database; times are shown in it."""

    time_zone = models.CharField(max_length=64, default="UTC")
    # What was read with the session that a request came with, see `sessions`; of any other person None.
    read_memberships: Sequence[Membership] | None = None


class Workspace(models.Model):
    """What one organisation sees, and nobody else. Everything stored belongs to exactly one."""

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(default=timezone.now)
    # An archived workspace takes no messages and its API keys are refused; its members read on.
    archived_at = models.DateTimeField(null=True, blank=True)
    # Whether its pages open only to members whose account has a second factor.
    requires_second_factor = models.BooleanField(default=False)
    # Whether the exact bytes of what comes in are sealed at rest: see `keyring.periods`.
    seals_records = models.BooleanField(default=False)
    # Whether the texts of sealed records are searched by their words, which the index of search holds in clear.
    indexes_sealed = models.BooleanField(default=True)
    # Whether a key of the keyring opens nothing before a second owner releases it.
    releases_keys_by_two = models.BooleanField(default=False)
    members = models.ManyToManyField(User, through="Membership", related_name="workspaces")

    def __str__(self) -> str:
        return self.name

    @property
    def asks_second_factor(self) -> bool:
        """Whether it requires one, or the installation does for all."""
        return settings.REQUIRE_SECOND_FACTOR or self.requires_second_factor


class Role(models.TextChoices):
    """What a member may do, each role including the ones after it: settings, verdicts, reading."""

    OWNER = "owner", "Owner"
    AUDITOR = "auditor", "Auditor"
    VIEWER = "viewer", "Viewer"


class Membership(models.Model):
    """A person's role in a workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices)
    # Given by the groups of single sign-on, which change it and take it back at the next sign-in.
    is_by_group = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.workspace}"

    def as_actor(self) -> Actor:
        """Who that is, for the trail."""
        return Actor("member", str(self.user_id), self.user.get_username())

    @property
    def is_owner(self) -> bool:
        """Whether this member may change settings, keys and members."""
        return self.role == Role.OWNER

    @property
    def is_auditor(self) -> bool:
        """Whether this member may upload, review and see what is masked."""
        return self.role in (Role.OWNER, Role.AUDITOR)

    def require_auditor(self, workspace_id: uuid.UUID, deed: str) -> None:
        """Refuse a viewer, and the member of another workspace.

        Args:
            workspace_id: where it is to be done.
            deed: what, as the end of "only an auditor of this workspace …".

        Raises:
            PermissionDenied: for either.
        """
        if not self.is_auditor or self.workspace_id != workspace_id:
            raise PermissionDenied(f"only an auditor of this workspace {deed}")


class Invitation(models.Model):
    """An open offer of a role in a workspace. Whoever has its link joins, as who they are or as somebody new: a name
    here names nobody anywhere. Stored as a hash; gone once it is accepted or withdrawn."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="invitations")
    name = models.CharField(max_length=150)
    role = models.CharField(max_length=16, choices=Role.choices)
    digest = models.BinaryField(max_length=32, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="invitation_once")]

    def __str__(self) -> str:
        return f"an invitation of {self.name} to {self.workspace}"

    @property
    def is_open(self) -> bool:
        """Whether it can still be accepted."""
        return self.expires_at > timezone.now()


class Channel(models.Model):
    """A namespace of ids: two systems that could reuse the same ids speak on different channels."""

    DEFAULT = "main"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="channels")
    name = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="channel_name_once")]

    def __str__(self) -> str:
        return self.name


class Pace(models.Model):
    """What was left of a limit a minute at a moment, in whichever workspace: see `limits`."""

    name = models.CharField(max_length=45, primary_key=True, db_column="address")
    left = models.FloatField(db_column="tries_left")
    at = models.DateTimeField(db_column="tries_at")

    class Meta:
        # That of sign-ins, which were the first to be limited so.
        db_table = "accounts_signinpace"

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """A program's key: shown once, stored as a hash. `prefix` finds it; the hash proves it."""

    class Scope(models.TextChoices):
        """What a key may do."""

        INGEST = "ingest", "Send messages"
        READ = "read", "Read messages"
        SECRETS = "secrets", "Read secrets: exact bytes, and decrypted messages"
        WITHDRAW = "withdraw", "Withdraw deliveries, in your name"
        REVIEW = "review", "Judge findings and comment in your name, and read reviews, samples and comments"
        SIGN = "sign", "Claim reviews, give verdicts and draw samples in your name"
        TRAIL = "trail", "Read the audit log: who did what, and from which address"
        WITNESS = "witness", "Cosign checkpoints of the ledger, as a witness"
        EXPORT = "export", "Make and download exports, masked unless it may have secrets"
        ERASE = "erase", "Erase messages in your name, and list what was erased"
        WORKSPACE = "workspace", "Rename and archive this workspace and make others, in your name"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=120)
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.BinaryField(max_length=32)
    scopes = models.JSONField(default=list)
    # The names under which its program speaks; empty where anybody may, as for a collector of logs.
    agents = ArrayField(models.TextField(), default=list, blank=True)
    channel = models.ForeignKey(Channel, null=True, blank=True, on_delete=models.PROTECT)
    created_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        # Serves the settings page: the keys of a workspace, newest first.
        indexes = [models.Index(fields=["workspace", "-created_at"], name="api_key_by_workspace")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def as_actor(self) -> Actor:
        """Who that is, for the trail."""
        return Actor("api-key", str(self.pk), str(self))

    @property
    def is_usable(self) -> bool:
        """Whether the key is neither revoked nor expired, and its maker not deactivated."""
        is_running = self.expires_at is None or self.expires_at > timezone.now()
        return self.revoked_at is None and is_running and (self.created_by is None or self.created_by.is_active)


class ApiKeyReads(models.Model):
    """How often a key read something in an hour, until the hour is over and the audit log says so."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE)
    # What it read, in a word or two, as an endpoint of the API calls it.
    what = models.CharField(max_length=40)
    hour = models.DateTimeField()
    count = models.BigIntegerField()

    class Meta:
        # Serves adding to a count; and what is over is few.
        constraints = [models.UniqueConstraint(fields=["key", "what", "hour"], name="api_key_reads_of_an_hour")]

    def __str__(self) -> str:
        return f"{self.count} reads of {self.what} by {self.key}"


class SignInLink(models.Model):
    """A link that signs one person in once, as notebooks print it. Stored as a hash."""

    user = models.ForeignKey(User, on_delete=models.CASCADE)
    digest = models.BinaryField(max_length=32, unique=True)
    # Signs in without the second factor: of an owner who has lost it.
    is_break_glass = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"a sign-in link for {self.user}"


class Session(AbstractBaseSession):
    """A session together with its person, so that they see theirs and can end them.

    `public_id` names it on a page, where its key must never stand. The other columns repeat what the session holds;
    they are None or empty before somebody signs in.
    """

    # Not unique: for a moment the session of a new key and that of the old one bear it.
    public_id = models.UUIDField(default=make_id, editable=False)
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="sessions")
    started_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    address = models.TextField(blank=True)
    program = models.TextField(blank=True)

    class Meta(AbstractBaseSession.Meta):
        abstract = False
