"""Who is to look at which conversation, what they made of it, and what exactly they saw: tables of reviews."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from inspector.accounts.models import User, Workspace, make_id
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
