"""The tasks of conversations, and which of them a rule may have to look at."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Left

from inspector.accounts.models import make_id

from .. import states
from ..keys import PLACE_BYTES
from .conversations import OfChannel

# Remarkable tasks are those that a rule may have to look at: most are asked for, answered and done, and are none.
_IS_ASKED: Final = Q(request__isnull=False)
_IS_STANDING: Final = Q(state__in=states.STANDING)
_IS_NAMED: Final = ~Q(requester="") | ~Q(performer="")
# Nobody said a word on it, and somebody is owed one.
_UNHEARD: Final = (
    _IS_ASKED
    & _IS_STANDING
    & Q(is_answered=False)
    & (Q(act="delegate") | (Q(act__in=("request", "query"), deadline_at__isnull=True) & _IS_NAMED))
)
_OVERDUE: Final = (
    _IS_ASKED
    & Q(deadline_at__isnull=False)
    & (Q(finished_at__gt=F("deadline_at")) | (Q(finished_at__isnull=True) & _IS_STANDING))
)
# It failed, was refused, or was asked again.
_TURNED: Final = Q(failures__gt=0) | Q(steps__contains='"refused"') | Q(steps__contains='"asked-again"')
_UNASKED: Final = Q(request__isnull=True)
_WITHDRAWN: Final = _IS_ASKED & Q(state="cancelled", last_at__gt=F("finished_at"))
# A question or a proposal in the course of work: whether the work waited for the answer is to be seen.
ASKED_BACK: Final = _IS_ASKED & Q(within_key__isnull=False, act__in=("query", "propose"))

# It may be a link of work that is handed round; alone it says nothing.
HANDED_ON: Final = _IS_ASKED & Q(act="delegate")
# It is to be looked at by itself.
ALONE: Final = _UNHEARD | _OVERDUE | _TURNED | _UNASKED | _WITHDRAWN | ASKED_BACK
# What the index holds.
REMARKABLE: Final = ALONE | HANDED_ON


class Task(OfChannel):
    """One thing asked in a conversation, and how it stands by its messages: those of one task id (and run), or a
    request without one together with what hangs below it.

    Names are those on the wire, "" where none is: `requester` asked, `performer` was asked (last, where it was asked
    again) or took it up first, `delegate` has it now where it was passed on, in the mode `delegation`. `first_at` and
    `last_at` are the order times of its first and last message; the other times are None where it did not happen, or
    where wire and envelope carry no time for it: `acknowledged_at` is the first word of anyone but the requester
    (`is_answered`), `finished_at` when it reached its present end. Seconds count from `asked_at` on. `is_inferred`: a
    step rests on a link that no wire says. "Stalled" and "timed out" by the deadline depend on the moment of reading
    and are never stored: see `tasks.annotate_state`.
    """

    State = states.State

    id = models.UUIDField(primary_key=True, default=make_id, editable=False)
    conversation = models.ForeignKey(
        "threads.Conversation", on_delete=models.CASCADE, related_name="tasks", db_index=False
    )
    # What makes it this task within its conversation; its id follows from both (`states.make_task_id`).
    key = models.BinaryField(max_length=32)
    # The key of the task in the course of which it was asked.
    within_key = models.BinaryField(max_length=32, null=True)
    # The task id as the wire says; empty where the request itself is the task.
    native_id = models.TextField(blank=True)
    # The message that asked, and what act it is; null and empty where it was not received.
    request = models.UUIDField(null=True)
    act = models.CharField(max_length=24, blank=True)
    # Where it begins in the timeline of its conversation: see `keys`.
    place = models.BinaryField(max_length=PLACE_BYTES, default=bytes)
    requester = models.TextField(blank=True)
    performer = models.TextField(blank=True)
    delegate = models.TextField(blank=True)
    delegation = models.TextField(blank=True)
    state = models.CharField(max_length=16, choices=states.State.choices, default=states.State.OPEN)
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
    is_inferred = models.BooleanField(default=False)
    # Its changes of state as JSON text, see `tasks`: all, or the first and last hundred of so many.
    steps = models.TextField(blank=True)
    step_count = models.IntegerField(default=0)

    class Meta:
        indexes = [
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
            # Serves search: whether a message asked for something that stands so.
            models.Index(fields=["request"], name="task_of_request", condition=_IS_ASKED),
        ]

    def __str__(self) -> str:
        return self.native_id or str(self.id)

    @property
    def is_received(self) -> bool:
        """Whether the message that asked was received."""
        return self.request is not None
