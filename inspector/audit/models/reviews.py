"""Who is to look at which conversation, what they made of it, and what exactly they saw: tables of reviews; of audit
samples, which conversations a seed drew, out of how many of what, so that anybody can draw them again; and of comments.

A comment is bound to a stretch of raw characters. It keeps them and the digest of their record, so that it can be shown
truthfully whatever the reading of that record becomes. Nothing of it is ever changed but how it stands: what happens
to it is added as a turn.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from inspector.accounts.models import User, Workspace, make_id
from inspector.intake.models import Record
from inspector.threads.models import Conversation, Message

MAX_NAME_LENGTH = 120


class Verdict(models.TextChoices):
    """What an auditor found."""

    FINE = "fine", "No issues"
    CONCERN = "concern", "Concern"
    VIOLATION = "violation", "Violation"


class ReviewQueue(models.Model):
    """A line of conversations that people are to look at, and how many of them at each.

    One queue of a workspace `is_standing`: it holds the verdicts that were given on the page of a conversation.
    """

    class Source(models.TextChoices):
        """What puts conversations into it."""

        HAND = "hand", "People, by hand"
        FINDINGS = "findings", "Open findings"
        SEARCH = "search", "A search"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    name = models.CharField(max_length=MAX_NAME_LENGTH)
    about = models.TextField(blank=True)
    # How many have to say the same, each without knowing what the other said: 1 or 2.
    reviewers = models.SmallIntegerField(default=1)
    source = models.CharField(max_length=16, choices=Source.choices, default=Source.HAND)
    # Findings of these rules, or of any; at least so grave.
    rules = ArrayField(models.CharField(max_length=48), default=list)
    severity = models.SmallIntegerField(choices=Message.Severity.choices, default=Message.Severity.NONE)
    query = models.TextField(blank=True)
    is_standing = models.BooleanField(default=False)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    # Nothing comes into a closed queue; what is in it can be finished.
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(reviewers__in=[1, 2]), name="review_queue_of_one_or_two"),
            # Serves finding the standing queue, and keeps a workspace from having two.
            models.UniqueConstraint(
                fields=["workspace"], name="review_queue_standing_once", condition=models.Q(is_standing=True)
            ),
        ]
        # Serves the list of queues, and what findings fill.
        indexes = [models.Index(fields=["workspace", "source", "created_at"], name="review_queue_by_source")]

    def __str__(self) -> str:
        return self.name


class Rubric(models.Model):
    """What is to be answered of each conversation of a queue. Versions are added, never changed; the latest holds."""

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    queue = models.ForeignKey(ReviewQueue, on_delete=models.CASCADE, related_name="rubrics", db_index=False)
    number = models.IntegerField()
    criteria = ArrayField(models.TextField(), default=list)
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["-number"]
        # Serves the latest, and keeps two people from writing the same version.
        constraints = [models.UniqueConstraint(fields=["queue", "number"], name="rubric_version_once")]

    def __str__(self) -> str:
        return f"version {self.number}"


class ReviewItem(models.Model):
    """A conversation in a queue: who holds it, how far it is, and the verdict that settled it.

    `needed` is how many have to speak. `rubric` is what they answer, as it stood when the first of them took it. It is
    held until `held_until`, or until somebody else takes it after that.
    """

    class State(models.TextChoices):
        """How far it is."""

        WAITING = "waiting", "Waiting"
        SECOND = "second", "Needs a second reviewer"
        DISPUTED = "disputed", "Disputed"
        SETTLED = "settled", "Signed off"
        REMOVED = "removed", "Taken out"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    queue = models.ForeignKey(ReviewQueue, on_delete=models.CASCADE, related_name="items", db_index=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="review_items")
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    needed = models.SmallIntegerField(default=1)
    rubric = models.ForeignKey(Rubric, on_delete=models.RESTRICT, null=True, related_name="+")
    # Why it is here, in words, and who put it here; nobody where a rule did.
    why = models.TextField(blank=True)
    added_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    added_at = models.DateTimeField(default=timezone.now)
    holder = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+", db_index=False)
    held_until = models.DateTimeField(null=True)
    verdict = models.CharField(max_length=16, choices=Verdict.choices, blank=True)
    # When it was settled or taken out.
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # Keeps a conversation from waiting twice in one queue, also between concurrent writers.
            models.UniqueConstraint(
                fields=["queue", "conversation"],
                name="review_item_open_once",
                condition=models.Q(state__in=["waiting", "second", "disputed"]),
            ),
            models.CheckConstraint(
                condition=models.Q(holder__isnull=True, held_until__isnull=True)
                | models.Q(holder__isnull=False, held_until__isnull=False),
                name="review_lease_whole",
            ),
        ]
        indexes = [
            # Serves a queue's items of a state, the one that waits longest first, by keyset; and its counts.
            models.Index(fields=["workspace", "queue", "state", "added_at", "id"], name="review_item_in_queue"),
            # Serves what a person holds.
            models.Index(
                fields=["workspace", "holder"], name="review_item_held", condition=models.Q(holder__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.state} in {self.queue_id}"

    @property
    def is_open(self) -> bool:
        """Whether somebody is still to speak."""
        return self.state in OPEN_STATES

    @property
    def is_blind(self) -> bool:
        """Whether what was said of it is to be seen by nobody but who said it."""
        return self.needed > 1 and self.state in BLIND_STATES

    @property
    def is_held(self) -> bool:
        """Whether somebody's lease on it has not expired."""
        return self.held_until is not None and self.held_until > timezone.now()


OPEN_STATES = (ReviewItem.State.WAITING, ReviewItem.State.SECOND, ReviewItem.State.DISPUTED)
BLIND_STATES = (ReviewItem.State.WAITING, ReviewItem.State.SECOND)


class Binding(models.Model):
    """What exactly a verdict was given on: each shown message's bytes, decoder and English. See `bindings`.

    `changes` says in what the conversation differs by now, empty where in nothing; as it was found at `checked_at`,
    when the conversation was settled as `checked_digest` says.
    """

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="bindings", db_index=False)
    digest = models.BinaryField(max_length=32)
    messages = models.BigIntegerField()
    manifest = models.BinaryField()
    created_at = models.DateTimeField(default=timezone.now)
    checked_digest = models.BinaryField(max_length=32)
    checked_at = models.DateTimeField(default=timezone.now)
    changes = models.TextField(blank=True)

    class Meta:
        # Serves the check of a conversation, and lets two who saw the same share it.
        constraints = [models.UniqueConstraint(fields=["conversation", "digest"], name="binding_once")]

    def __str__(self) -> str:
        return bytes(self.digest).hex()


class Review(models.Model):
    """One auditor's verdict on a conversation, bound to what was seen. Added, never changed.

    One that is withdrawn before another has spoken stays, as withdrawn. A later item of the conversation supersedes
    what was said in earlier ones. `answers` answer the criteria of the rubric, in their order.
    """

    Verdict = Verdict

    class Answer(models.TextChoices):
        """What is said of a criterion."""

        PASS = "pass", "Pass"
        FAIL = "fail", "Fail"
        NONE = "n/a", "Not applicable"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="reviews")
    item = models.ForeignKey(ReviewItem, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(User, on_delete=models.PROTECT)
    verdict = models.CharField(max_length=16, choices=Verdict.choices)
    comment = models.TextField(blank=True, max_length=10_000)
    rubric = models.ForeignKey(Rubric, on_delete=models.RESTRICT, null=True, related_name="+")
    answers = ArrayField(models.CharField(max_length=8, choices=Answer.choices), default=list)
    # Whether it was to decide between two that differ.
    is_adjudication = models.BooleanField(default=False)
    seen_digest = models.BinaryField(max_length=32)
    seen_messages = models.BigIntegerField()
    # None where it was given before verdicts were bound to bytes.
    binding = models.ForeignKey(Binding, on_delete=models.RESTRICT, null=True, related_name="reviews")
    created_at = models.DateTimeField(default=timezone.now)
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # Keeps one person from speaking twice on an item, also between concurrent requests.
            models.UniqueConstraint(
                fields=["item", "reviewer"], name="review_once", condition=models.Q(withdrawn_at__isnull=True)
            ),
        ]
        # Serves the reviews of a conversation, newest first, and `reviewed:` in search.
        indexes = [models.Index(fields=["conversation", "-created_at"], name="review_newest")]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.reviewer}"


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
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    place = models.IntegerField()
    stratum = models.TextField()
    identity = models.BinaryField(max_length=32)

    class Meta:
        ordering: ClassVar = ["place"]
        # Serves the drawn ones in their order, by keyset.
        constraints = [models.UniqueConstraint(fields=["sample", "place"], name="sampled_place_once")]

    def __str__(self) -> str:
        return f"{self.place}: {self.conversation_id}"


class Comment(models.Model):
    """Words about the characters [start, end) of a record's text. It belongs to a record and a part, as findings do.

    `quoted` is these characters in UTF-8, lone surrogates as they are. `source_sha256` is of the record's exact bytes,
    `english_sha256` of the sentence that the message was told as when the comment was written, `decoder` by what.
    """

    class State(models.TextChoices):
        """How it stands: what the latest turn about it says."""

        OPEN = "open", "Open"
        RESOLVED = "resolved", "Resolved"
        WITHDRAWN = "withdrawn", "Withdrawn"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="comments", db_index=False)
    part = models.IntegerField()
    start = models.IntegerField()
    end = models.IntegerField()
    quoted = models.BinaryField()
    source_sha256 = models.BinaryField(max_length=32)
    english_sha256 = models.BinaryField(max_length=32)
    decoder = models.CharField(max_length=32)
    author = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    words = models.TextField()
    # Whether its author saw what others may not, so that its words are for owners and auditors.
    is_restricted = models.BooleanField(default=False)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(end__gt=models.F("start")), name="comment_has_span")]
        indexes = [
            # Serves the comments on a message, and their number on each message of a window.
            models.Index(fields=["workspace", "record", "part", "created_at"], name="comment_by_record"),
            # Serves the list of those that stand so, newest first, by keyset.
            models.Index(fields=["workspace", "state", "-created_at", "-id"], name="comment_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.start}-{self.end} by {self.author_id}"

    @property
    def quoted_text(self) -> str:
        """The characters it was written about."""
        return bytes(self.quoted).decode("utf-8", "surrogatepass")


class CommentTurn(models.Model):
    """What somebody did about a comment: replied, resolved it, opened it again, or took words of theirs back.

    `of` is the reply that was taken back; without it a withdrawal is of the comment itself.
    """

    class Kind(models.TextChoices):
        """What was done."""

        REPLY = "reply", "Replied"
        RESOLVED = "resolved", "Resolved"
        REOPENED = "reopened", "Opened again"
        WITHDRAWN = "withdrawn", "Withdrew"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    comment = models.ForeignKey(Comment, on_delete=models.CASCADE, related_name="turns", db_index=False)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    words = models.TextField(blank=True)
    is_restricted = models.BooleanField(default=False)
    of = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="withdrawals", db_index=False)

    class Meta:
        ordering: ClassVar = ["at", "id"]
        # Serves what happened to a comment, in its order.
        indexes = [models.Index(fields=["comment", "at", "id"], name="comment_turn_in_order")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.by_id}"
