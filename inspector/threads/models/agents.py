"""Agents, each a name within a channel, what is known of them by conversation, and what auditors said of them."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

from inspector.accounts.models import Channel, User, Workspace, make_id
from inspector.intake.identity import digest_texts

from ..terms import fold
from .conversations import OfChannel

MAX_FRIENDLY_NAME = 80


def make_agent_id(workspace_id: uuid.UUID, channel_id: uuid.UUID, name: str) -> uuid.UUID:
    """The id of the agent of that name in a channel: it follows from them, so that nobody has to look it up."""
    digest = digest_texts("agent", str(workspace_id), str(channel_id), name)
    return uuid.UUID(bytes=digest[:16], version=5)


def key_of_name(name: str) -> bytes:
    """The key by which search finds a name in any case; 32 bytes, however long the name is."""
    return digest_texts("agent name", fold(name))


class Agent(models.Model):
    """A name that was seen in a channel, and what auditors say of it now; who said so is in `AgentWord`. A row is made
    when a conversation first names the agent, and stays when its last message is withdrawn."""

    id = models.UUIDField(primary_key=True, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT)
    # As the wire or the envelope says.
    name = models.TextField()
    name_key = models.BinaryField(max_length=32)
    friendly_name = models.CharField(max_length=MAX_FRIENDLY_NAME, blank=True)
    friendly_key = models.BinaryField(max_length=32, null=True)
    same_as = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="aliases")

    class Meta:
        indexes = [
            # Serves search: the agents of a name in any case, and the names of a workspace.
            models.Index(fields=["workspace", "name_key"], name="agent_by_name"),
            # Serves every page that shows agents: those of whom auditors said something.
            models.Index(
                fields=["workspace", "id"],
                name="agent_spoken_of",
                condition=models.Q(friendly_key__isnull=False) | models.Q(same_as__isnull=False),
            ),
            # Serves search: the agents of a friendly name.
            models.Index(
                fields=["workspace", "friendly_key"],
                name="agent_by_friendly_name",
                condition=models.Q(friendly_key__isnull=False),
            ),
        ]
        constraints = [
            models.CheckConstraint(name="agent_same_as_another", condition=~models.Q(same_as=models.F("id")))
        ]

    def __str__(self) -> str:
        return self.friendly_name or self.name


class AgentWord(models.Model):
    """What an auditor said of an agent: its friendly name, or that it is one with another. Undone, never deleted."""

    class Kind(models.TextChoices):
        """What was said."""

        NAME = "name", "Named"
        SAME = "same", "Joined"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="words")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    friendly_name = models.CharField(max_length=MAX_FRIENDLY_NAME, blank=True)
    same_as = models.ForeignKey(Agent, null=True, on_delete=models.CASCADE, related_name="words_of_others")
    reason = models.TextField(blank=True, max_length=2000)
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    undone_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # Lets one word of a kind be in force, and serves finding it.
            models.UniqueConstraint(
                fields=["agent", "kind"], name="agent_word_in_force_once", condition=models.Q(undone_at__isnull=True)
            ),
            models.CheckConstraint(
                name="agent_word_undone_by_someone",
                condition=models.Q(undone_at__isnull=True, undone_by__isnull=True)
                | models.Q(undone_at__isnull=False, undone_by__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.by}"


class _OfPair(models.Model):
    """Of two agents in a dialect, where either may be nobody by name."""

    sender = models.ForeignKey(Agent, null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    receiver = models.ForeignKey(Agent, null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    is_broadcast = models.BooleanField()
    dialect = models.CharField(max_length=32)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.sender_id} to {self.receiver_id}"


class Exchange(_OfPair):
    """How much one agent said to another in one conversation in one dialect; a message to three counts with each.
    `sender` is null where nobody is named, `receiver` where it went to everyone (`is_broadcast`) or to nobody by name.
    Each message is among the `sent` of one exchange alone; `failed` are those of them that say that something failed.
    """

    conversation = models.ForeignKey("threads.Conversation", on_delete=models.CASCADE, related_name="exchanges")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    messages = models.IntegerField()
    failures = models.IntegerField()
    sent = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        # Serve an agent's conversations, and the first and last times of a total that is taken back.
        indexes = [
            models.Index(fields=["sender"], name="exchange_of_sender"),
            models.Index(fields=["receiver"], name="exchange_of_receiver"),
        ]


class AgentTotal(OfChannel):
    """What the exchanges of an agent come to: in a dialect, or in all ("" as dialect); kept by `threads.agents`."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="totals", db_index=False)
    dialect = models.CharField(max_length=32, blank=True)
    sent = models.BigIntegerField(default=0)
    received = models.BigIntegerField(default=0)
    failures = models.BigIntegerField(default=0)
    conversations = models.BigIntegerField(default=0)
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # Decides which row a sum goes to; serves the dialects of an agent.
            models.UniqueConstraint(fields=["agent", "dialect"], name="agent_total_once")
        ]
        # Serves the directory: the agents of a workspace, in a dialect or in all.
        indexes = [models.Index(fields=["workspace", "dialect"], name="agent_total_of_workspace")]

    def __str__(self) -> str:
        return f"{self.agent_id} in {self.dialect or 'all'}"


class PairTotal(_OfPair, OfChannel):
    """What the exchanges of a pair in a dialect come to; kept by `threads.agents`."""

    messages = models.BigIntegerField(default=0)
    failures = models.BigIntegerField(default=0)
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # Decides which row a sum goes to; serves the graph, and what one agent said.
            models.UniqueConstraint(
                fields=["workspace", "sender", "receiver", "is_broadcast", "dialect", "channel"],
                name="pair_total_once",
                nulls_distinct=False,
            )
        ]
        # Serves one agent's page: what was said to it.
        indexes = [models.Index(fields=["workspace", "receiver"], name="pair_total_by_receiver")]


class Declaration(models.Model):
    """One thing that an agent said of itself in one message: an ability, or a key it showed."""

    class Kind(models.TextChoices):
        """What is declared; "more" says how many further things of one message are not kept here."""

        ABILITY = "ability", "Ability"
        KEY = "key", "Key"
        MORE = "more", "More"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    conversation = models.ForeignKey("threads.Conversation", on_delete=models.CASCADE, related_name="declarations")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="declarations", db_index=False)
    message = models.UUIDField()
    dialect = models.CharField(max_length=32)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    value = models.TextField()
    # Under which name a key was shown.
    name = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        # Serves one agent's page: what it declared, the latest first.
        indexes = [models.Index(fields=["workspace", "agent", "kind", "-at"], name="declaration_of_agent")]

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"
