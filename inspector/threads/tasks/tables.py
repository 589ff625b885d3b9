"""The tasks of conversations, as settling writes them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Left

from inspector.accounts.models import Channel, Workspace, make_id

from ..placing.places import PLACE_BYTES
from .remarkable import REMARKABLE


class Task(models.Model):
    """One thing asked in a conversation, and how it stands: written by settling, a row only where it came out new.

    What it is: the messages of one task id (and run), or a request without one together with what hangs below it.

    who: `requester` asked; `performer` was asked (last, where it was asked again), or took it up first where several or
    nobody by name were asked;
    `delegate` has it now where it was passed on, in the mode `delegation` ("" where none was said). Each is the name on
    the wire, "" where none is.
    when: `first_at`, `last_at` are the order times of its first and last message (always known). `asked_at`,
    `acknowledged_at` (the first word of anyone but the requester), `finished_at` (it reached its present end) and
    `deadline_at` are None where it did not happen, or where wire and envelope carry no time for it.
    how long: `acknowledge_seconds`, `finish_seconds`, from `asked_at` on; None where either time is.
    how often: `retries` (it was asked again), `failures` (failures reported, also those that were tried again).
    `is_answered`: anyone but the requester said a word on it. `is_received`: the message that asked was received.
    `is_inferred`: a step rests on a link that no wire says.
    `state` says what the messages say. What depends on the moment of reading, "stalled" and "timed out" by the
    deadline, is never stored: see `measures.state_at`.
    """

    class State(models.TextChoices):
        """How a task stands."""

        OPEN = "open", "Open"
        ACKNOWLEDGED = "acknowledged", "Acknowledged"
        IN_PROGRESS = "in-progress", "In progress"
        WAITING = "waiting", "Waiting"
        DELEGATED = "delegated", "Delegated"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"
        TIMED_OUT = "timed-out", "Timed out"
        STALLED = "stalled", "Stalled"

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    conversation = models.ForeignKey(
        "threads.Conversation", on_delete=models.CASCADE, related_name="tasks", db_index=False
    )
    # What makes it this task within its conversation.
    key = models.BinaryField(max_length=32)
    # The key of the task in the course of which it was asked.
    within_key = models.BinaryField(max_length=32, null=True)
    # The task id as the wire says; empty where the request itself is the task.
    native_id = models.TextField(blank=True)
    # The message that asked, and what act it is; null and empty where it was not received.
    request = models.UUIDField(null=True)
    act = models.CharField(max_length=24, blank=True)
    # Where it begins in the timeline of its conversation: see `places`.
    place = models.BinaryField(max_length=PLACE_BYTES, default=bytes)
    requester = models.TextField(blank=True)
    performer = models.TextField(blank=True)
    delegate = models.TextField(blank=True)
    delegation = models.TextField(blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    # In which mode it was itself passed on; and how often its messages say that it ended, and how it stands by them:
    # see `asked`.
    mode = models.TextField(blank=True, db_default="")
    ends = models.IntegerField(default=0, db_default=0)
    ending = models.CharField(max_length=16, blank=True, db_default="")
    # The deadline as the wire says, and its instant.
    deadline = models.TextField(blank=True)
    deadline_at = models.DateTimeField(null=True)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    asked_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    acknowledge_seconds = models.FloatField(null=True)
    finish_seconds = models.FloatField(null=True)
    message_count = models.BigIntegerField(default=0)
    retries = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    is_answered = models.BooleanField(default=False)
    is_received = models.BooleanField(default=True)
    is_inferred = models.BooleanField(default=False)
    # Its changes of state as JSON text, see `plays`: all, or the first and last hundred of so many.
    steps = models.TextField(blank=True)
    step_count = models.IntegerField(default=0)
    # What settling compares, so that a row that came out the same is not written.
    digest = models.BinaryField(max_length=32)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["conversation", "key"], name="task_once")]
        indexes: ClassVar = [
            # Serves the tasks of a conversation in its order, by keyset.
            models.Index(fields=["conversation", "place", "id"], name="task_in_order"),
            # Serves the measures of a pair and of a requester.
            # Names may be longer than an entry of an index may be: their beginnings find them, they themselves decide.
            models.Index("workspace", Left("requester", 100), Left("performer", 100), name="task_of_pair"),
            # Serves the measures of a performer.
            models.Index("workspace", Left("performer", 100), name="task_of_performer"),
            # Serves those that stand in a state, latest word first: what stands still, what waits.
            models.Index(fields=["workspace", "state", "-last_at"], name="task_by_state"),
            # Serves examining: those that a rule may have to look at, in order.
            models.Index(fields=["conversation", "first_at", "key"], name="task_remarkable", condition=REMARKABLE),
            # Serves playing a task again together with what is part of it.
            models.Index(
                fields=["conversation", "within_key"],
                name="task_within",
                condition=models.Q(within_key__isnull=False),
            ),
            # Serves search: whether a message asked for something that stands so.
            models.Index(fields=["workspace", "request"], name="task_of_request"),
        ]

    def __str__(self) -> str:
        return self.native_id or str(self.id)
