"""Tasks: the tasks of blocks and their rows; how long they took, how often they failed, and which stand still.

How a task stands is a fact that later blocks read; what it adds up to is kept beside that fact, so that one more
message on a task marks no later block unless it stands otherwise. A task's row is the latest fact and all those sums.

Measures are as of the latest record of the channel: resolving must not depend on a moment, and a log of last year
stands as it stood at its end.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any, Final

from django.db import models
from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Least, Left, Now
from django.db.models.lookups import In
from django.utils import timezone

from inspector.accounts.models import Channel, Workspace
from inspector.database import WrittenSince, insert_rows, update_rows

from .dependencies import View, digest_key, list_everywhere, make_plain
from .models import Conversation, Task
from .nodes import StoredNode
from .states import (
    ENDED,
    FAILURES,
    GOES_ON,
    HANDED_OVER,
    LINKED,
    STANDING,
    Step,
    TaskState,
    find_event,
    follow,
    get_end_of_part,
    make_task_id,
)

# A deadline further off is none.
MAX_SECONDS: Final = 10**9


def take(task: TaskState, node: StoredNode) -> None:
    """One message of a task."""
    if not task.message_count:
        task.place = node.place
    task.message_count += 1
    for concerned in (task, task.within):
        if concerned is not None:
            concerned.meet(node.at)
    time = node.at if node.is_timed else None
    if task.request == node.id:
        task.asked_at = None if node.work.is_public else time
        _apply(task, "posted" if node.work.is_public else "asked", node)
        if task.within is not None:
            _pass_on(task, task.within, node)
    else:
        by = "requester" if node.sender and node.sender == task.requester else "other"
        if by == "other":
            _hear(task, node, time)
        _follow(task, node, by)
    if node.work.deadline and (task.request == node.id or node.sender == task.requester):
        task.deadline = node.work.deadline
        task.deadline_at = _find_deadline(node, time)


def _hear(task: TaskState, node: StoredNode, time: datetime | None) -> None:
    """Somebody who did not ask says a word on it."""
    if not task.is_answered:
        task.acknowledged_at = time
    task.is_answered = True
    task.performer = task.performer or node.sender or ""


def _follow(task: TaskState, node: StoredNode, by: str) -> None:
    """Follow what a message of the requester, or of any other, is to a task."""
    parent, only = node.above, node.receivers[0] if len(node.receivers) == 1 else ""
    event = find_event(
        node.performative,
        by=by,
        status=node.meaning,
        wish=task.wish,
        answers=parent.performative if parent and node.basis in LINKED else None,
        is_retryable=bool(node.is_retryable),
        has_result=node.work.has_result,
        has_progress=node.work.has_progress,
        is_again=node.performative == (task.act or None),
        is_waiting=task.state == "waiting",
    )
    if event == "delegated":
        task.delegate, task.delegation = only, node.work.mode
    elif event == "asked-again" and len(node.receivers) == 1:
        # Who is asked again owes the end; asked of somebody else, it is no longer who was asked first.
        task.performer = only
    if event is None:
        return
    is_shown = task.is_still_done_by(node.sender) or (task.is_handed_over and event == "cancelled")
    if is_shown and follow(State.ACKNOWLEDGED, event) != State.ACKNOWLEDGED:
        # Who is still at work, or withdraws it, shows that it had not ended by the end of what was transferred.
        task.state = State.ACKNOWLEDGED.value
    _apply(task, event, node)


def _pass_on(task: TaskState, whole: TaskState, node: StoredNode) -> None:
    """What a new task is to the one in the course of which it was asked; nothing where that has ended."""
    if whole.state in ENDED and not whole.is_still_done_by(node.sender):
        task.within = None
        return
    if node.sender and node.sender == whole.requester:
        # Who asked for the whole asks for a part of it as well: that says nothing of how the whole stands.
        return
    _hear(whole, node, node.at if node.is_timed else None)
    _follow(whole, node, "other")


def _apply(task: TaskState, event: str, node: StoredNode) -> None:
    """Follow an event, and where it ends a task, what that is to the one in the course of which it was asked."""
    cause: str | None = event
    is_transferred = False
    while cause is not None:
        state = follow(task.state, cause)
        has_changed, task.state, task.is_touched = state != task.state, state, True
        task.retries += cause == "asked-again"
        task.failures += cause in FAILURES
        if has_changed or cause in FAILURES or cause == "asked-again":
            task.steps.append(Step(node.id, cause, state, node.link))
            task.is_inferred = task.is_inferred or bool(node.link)
        if has_changed:
            task.finished_at = node.at if state in ENDED and node.is_timed else None
            if is_transferred or task.is_handed_over:
                task.ending = HANDED_OVER if is_transferred and state in ENDED else GOES_ON
        cause = None
        if has_changed and state in ENDED and task.within is not None:
            cause = get_end_of_part(task.wish, task.mode, state)
            # A task that was made of its request's answer has no act: its end is an end of the request itself.
            is_transferred, task = task.mode == "transfer" and bool(task.act), task.within
            if is_transferred and task.is_handed_over:
                # Of several that were transferred the latest end counts.
                task.state = State.DELEGATED.value


def _find_deadline(node: StoredNode, time: datetime | None) -> datetime | None:
    """The instant of a deadline; of one that counts from now on None where the time of its message is not known."""
    work = node.work
    if work.instant is not None:
        try:
            said = datetime.fromisoformat(work.instant)
            return said.astimezone(UTC) if said.tzinfo else said.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            return None
    if work.seconds is None or time is None or not 0 <= work.seconds <= MAX_SECONDS:
        return None
    return time + timedelta(seconds=work.seconds)


# Of a task that changes more often, so many of its first and of its last changes are kept, and how many there were.
MAX_STEPS: Final = 100

TaskRow = tuple[Any, ...]
COLUMNS: Final = (
    *("id", "conversation_id", "workspace_id", "channel_id", "place", "key"),
    *("within_key", "native_id", "request", "act", "requester", "performer", "delegate", "delegation", "state"),
    *("deadline", "deadline_at", "first_at", "last_at", "asked_at", "acknowledged_at", "finished_at"),
    *("acknowledge_seconds", "finish_seconds", "message_count", "retries", "failures"),
    *("is_answered", "is_inferred", "steps", "step_count"),
)


def write_steps(task: TaskState) -> str:
    """The changes of a task as JSON text: a list of [id of the message, event, state, link]."""
    return json.dumps(_bound_steps(task.steps)[0], separators=(",", ":"), default=make_plain)


def _bound_steps(steps: list[Step]) -> tuple[list[Step], int]:
    """Of many changes the first and the last, and how many are left out."""
    left_out = max(0, len(steps) - 2 * MAX_STEPS)
    return ([*steps[:MAX_STEPS], *steps[-MAX_STEPS:]], left_out) if left_out else (steps, 0)


def read_steps(text: str) -> list[Step]:
    """The changes that `write_steps` wrote; their `link` is empty where the wire says that the message belongs here."""
    return [Step(uuid.UUID(hex=name), *said) for name, *said in json.loads(text or "[]")]


def make_row(conversation: Conversation, task: TaskState) -> TaskRow:
    """The columns of a task's row: those of `COLUMNS`."""
    said: dict[str, Any] = {
        "conversation_id": conversation.pk,
        "workspace_id": conversation.workspace_id,
        "channel_id": conversation.channel_id,
        "within_key": task.within.key if task.within is not None else None,
        "request": task.request or task.asked_elsewhere,
        "state": task.state or STANDING[0].value,
        "acknowledge_seconds": _count_seconds(task.asked_at, task.acknowledged_at),
        "finish_seconds": _count_seconds(task.asked_at, task.finished_at),
        "steps": write_steps(task),
        "step_count": len(task.steps) + task.left_out,
    }
    return tuple(said[name] if name in said else getattr(task, name) for name in COLUMNS)


def _count_seconds(start: datetime | None, end: datetime | None) -> float | None:
    """The seconds between two moments; None where either is not known, or the clocks contradict the order."""
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds()


def write_tasks(rows: Iterable[TaskRow], *, known: QuerySet[Task]) -> None:
    """Write the rows that are new or came out otherwise, and drop others of the `known` tasks, which these are all of;
    call where their conversations are held."""
    given = {row[0]: row for row in rows}
    stored = {
        row[0]: tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
        for row in known.values_list(*COLUMNS)
    }
    if gone := stored.keys() - given.keys():
        Task.objects.filter(pk__in=gone).delete()
    fresh = [row for pk, row in given.items() if pk not in stored]
    changed = [row for pk, row in given.items() if pk in stored and row != stored[pk]]
    insert_rows(model=Task, columns=COLUMNS, rows=fresh, order_by=("conversation_id", "key"))
    update_rows(model=Task, columns=COLUMNS, rows=changed, key_columns=2)


def write_touched(conversation: Conversation, touched: Iterable[uuid.UUID]) -> None:
    """Write the rows of tasks of which something was said in some blocks, as all blocks say; inside the transaction."""
    keys = {digest_key(("task", task_id.hex)): task_id for task_id in touched}
    rows: list[TaskRow] = []
    for key, found in list_everywhere(conversation.pk, keys).items():
        task = None
        if found:
            task, within = read_task(keys[key], found[-1].value)
            for each in found:
                if each.extra is not None:
                    _add_sums(task, each.extra)
            if within is not None:
                task.within = TaskState(within, make_task_id(conversation.pk, within))
        if task is not None and task.message_count:
            rows.append(make_row(conversation, task))
    write_tasks(rows, known=Task.objects.filter(conversation=conversation, pk__in=list(keys.values())))


_FOUND: Final = ("native_id", "requester", "act", "ends", "ending")
_PLAYED: Final = ("wish", "performer", "delegate", "delegation", "mode", "state", "deadline", "is_answered")
_TIMES: Final = ("deadline_at", "asked_at", "acknowledged_at", "finished_at")


class Tasks:
    """The tasks that the messages of a block may belong to, by id; those of earlier blocks as they stood there."""

    def __init__(self, conversation_id: uuid.UUID, view: View) -> None:
        self._conversation_id = conversation_id
        self._view = view
        self.states: dict[uuid.UUID, TaskState] = {}

    def find(self, task_id: uuid.UUID) -> TaskState | None:
        """A task that some message belonged to, or that another is part of."""
        held = self.states.get(task_id)
        if held is None and (written := self._view.get(("task", task_id.hex))) is not None:
            held, within = read_task(task_id, written)
            self.states[task_id] = held
            # It goes on within another only where that is known as well.
            held.within = self.find(make_task_id(self._conversation_id, within)) if within is not None else None
        return held

    def make(self, key: bytes, native_id: str = "") -> TaskState:
        """The task of a key, which is new where it is none yet."""
        task_id = make_task_id(self._conversation_id, key)
        return self.find(task_id) or self.states.setdefault(task_id, TaskState(key, task_id, native_id))

    def note(self) -> None:
        """Say how each of those stands that anything was said of."""
        for task_id, task in self.states.items():
            if task.is_touched:
                self._view.put(("task", task_id.hex), _write_task(task), _write_sums(task))


def _write_task(task: TaskState) -> list[Any]:
    said = ([getattr(task, name) for name in names] for names in (_FOUND, _PLAYED, _TIMES))
    return [task.key, task.request, task.asked_elsewhere, task.part_of, task.within and task.within.key, *said]


def read_task(task_id: uuid.UUID, written: Sequence[Any]) -> tuple[TaskState, bytes | None]:
    """A task as it was written, and the key of the one that it goes on within."""
    key, request, elsewhere, part_of, within, *said, times = written
    task = TaskState(bytes.fromhex(key), task_id, part_of=bytes.fromhex(part_of) if part_of else None)
    task.request, task.asked_elsewhere = (uuid.UUID(hex=each) if each else None for each in (request, elsewhere))
    for name, value in zip((*_FOUND, *_PLAYED, *_TIMES), chain(*said, map(_read_time, times)), strict=True):
        setattr(task, name, value)
    return task, bytes.fromhex(within) if within else None


def _write_sums(task: TaskState) -> list[Any]:
    """What the messages of one block add to a task; of many changes the first and the last."""
    steps, left_out = _bound_steps(task.steps)
    counts = (task.message_count, task.retries, task.failures, task.is_inferred)
    return [task.place, *counts, task.first_at, task.last_at, steps, task.left_out + left_out]


def _add_sums(task: TaskState, written: Sequence[Any]) -> None:
    """Add what the messages of the next block add to a task."""
    place, count, retries, failures, is_inferred, *times, steps, left_out = written
    if count and not task.message_count:
        task.place = bytes.fromhex(place)
    task.message_count += count
    task.retries += retries
    task.failures += failures
    task.is_inferred = task.is_inferred or is_inferred
    for at in times:
        task.meet(_read_time(at))
    task.steps += [Step(uuid.UUID(hex=name), *said) for name, *said in steps]
    task.left_out += left_out
    if len(task.steps) > 4 * MAX_STEPS:
        task.steps, left_out = _bound_steps(task.steps)
        task.left_out += left_out


def _read_time(written: str | None) -> datetime | None:
    return None if written is None else datetime.fromisoformat(written)


# Its request was received here: what answers a missing message, or one of another conversation, is a task as well.
IS_SENT: Final = ~Q(act="")
# A task of which nobody has said a word for so long, while its channel went on, stands still.
STALLED_AFTER: Final = timedelta(hours=1)
INDEXED_CHARACTERS: Final = 100
EVERY: Final = Q()

State = Task.State
# A name on the wire in a channel: names are told apart by it.
Name = tuple[uuid.UUID, str]


def latest_in_channel(channel: str = "channel") -> Subquery:
    """The time of the latest resolved record of the channel that a row names, by a field of it."""
    rows = Conversation.objects.filter(
        workspace=OuterRef("workspace"), channel=OuterRef(channel), last_at__isnull=False
    )
    return Subquery(rows.order_by("-last_at", "-id").values("last_at")[:1])


def list_channels_at(*, workspace: Workspace) -> tuple[list[Channel], dict[uuid.UUID, datetime]]:
    """The channels by name, and the moment of each: its latest record, never later than now; one statement."""
    rows = Channel.objects.filter(workspace=workspace).annotate(latest=latest_in_channel("pk"))
    channels: list[Channel] = list(rows.order_by("name"))
    moments = {channel.pk: vars(channel)["latest"] for channel in channels}
    return channels, {pk: min(at, timezone.now()) for pk, at in moments.items() if at is not None}


def find_moment(*, conversation: Conversation) -> datetime | None:
    """The time of the latest record of a conversation's channel, and never later than now."""
    at = Conversation.objects.filter(pk=conversation.pk).values_list(latest_in_channel(), flat=True).first()
    return None if at is None else min(at, timezone.now())


def annotate_state(
    tasks: QuerySet[Task], moment: datetime | Mapping[uuid.UUID, datetime] | models.Func | None
) -> QuerySet[Any]:
    """The same tasks, each with `stands`: how it stands at a moment, or at that of each channel. What stands too long
    is stalled, what stands beyond its deadline timed out."""
    if not moment:
        return tasks.annotate(stands=F("state"))
    at: models.Expression = (
        moment
        if isinstance(moment, models.Func)
        else Value(moment)
        if isinstance(moment, datetime)
        else Case(*(When(channel_id=channel_id, then=Value(each)) for channel_id, each in sorted(moment.items())))
    )
    is_standing = Q(state__in=STANDING)
    return tasks.annotate(as_of=at).annotate(
        stands=Case(
            When(is_standing & Q(deadline_at__lt=F("as_of")), then=Value(State.TIMED_OUT.value)),
            When(is_standing & Q(last_at__lt=F("as_of") - STALLED_AFTER), then=Value(State.STALLED.value)),
            default=F("state"),
            output_field=CharField(),
        )
    )


def annotate_stands(conversations: QuerySet[Conversation]) -> QuerySet[Any]:
    """The same conversations, each with `stands`: its state as of the latest record of its channel. It is stalled when
    it is open, something asked in it stands, and nobody has said a word in it for too long."""
    asked = Task.objects.filter(conversation_id=OuterRef("pk"), state__in=STANDING)
    moment = Least(latest_in_channel(), Now())
    is_silent = Q(state=Conversation.State.OPEN, last_at__lt=moment - Value(STALLED_AFTER))
    return conversations.annotate(
        stands=Case(
            When(is_silent & Exists(asked), then=Value(Conversation.State.STALLED.value)),
            default=F("state"),
            output_field=CharField(),
        )
    )


def get_state(conversation: Conversation) -> str:
    """How a conversation stands: as of its channel's latest record where it was asked for so, else what is stored."""
    return str(getattr(conversation, "stands", conversation.state))


@dataclass(frozen=True, slots=True)
class Times:
    """How long it took, in seconds: of those tasks whose times are known, the median and the 95th percentile."""

    measured: int
    median: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Measures:
    """What a set of tasks comes to. `states` counts them by how they stand at the moment, without those that none is
    in. `unanswered` are those that stand though nobody but the requester said a word on them, `late` those that ended
    after their deadline."""

    asked: int
    answered: int
    unanswered: int
    states: Mapping[str, int]
    retries: int
    failures: int
    late: int
    acknowledge: Times
    finish: Times


@dataclass(frozen=True, slots=True)
class AgentMeasures:
    """Of what was asked of an agent, and of what it asked of others."""

    asked_of: Measures
    asked_by: Measures


def measure_conversation(*, conversation: Conversation, moment: datetime | None = None) -> Measures:
    """The tasks of a conversation, as of a moment; by default the latest record of its channel."""
    at = moment or find_moment(conversation=conversation)
    return _read_sums(annotate_state(Task.objects.filter(conversation=conversation), at).aggregate(**_SUMS))


def measure_agent(
    *, workspace: Workspace, names: Sequence[Name], moment: Mapping[uuid.UUID, datetime] | None = None
) -> AgentMeasures:
    """What was asked of an agent and by it, under all the names given, as of each channel's latest record."""
    moments = list_channels_at(workspace=workspace)[1] if moment is None else moment
    tasks = annotate_state(Task.objects.filter(IS_SENT, workspace=workspace), moments)
    sides = [
        tasks.filter(_is_any(column, names)).values(side=Value(column, output_field=CharField())).annotate(**_SUMS)
        for column in ("performer", "requester")
    ]
    found = {row["side"]: row for row in sides[0].union(sides[1], all=True)}
    return AgentMeasures(asked_of=_read_sums(found.get("performer")), asked_by=_read_sums(found.get("requester")))


def _is_any(column: str, names: Sequence[Name]) -> Q:
    """Whether a column holds one of these names in its channel; of no names nothing does."""
    return reduce(or_, (Q(is_one_of(column, [name]), channel_id=at) for at, name in names), Q(pk__in=[]))


def is_one_of(column: str, names: Collection[str]) -> Q:
    """Whether a column of tasks holds one of these names. The index holds their beginnings, and so finds them."""
    begins = In(Left(F(column), INDEXED_CHARACTERS), sorted({name[:INDEXED_CHARACTERS] for name in names}))
    return Q(begins, **{f"{column}__in": sorted(names)})


class Percentile(models.Aggregate):
    """The value below which so large a part of the values lies; those that are null do not count."""

    function = "percentile_cont"
    template = "%(function)s(%(part)s) WITHIN GROUP (ORDER BY %(expressions)s)"

    def __init__(self, expression: str, part: float) -> None:
        super().__init__(expression, part=part, output_field=models.FloatField())


# Over tasks that have `stands`.
_SUMS: Final[Mapping[str, Any]] = {
    "asked": Count("pk"),
    "answered": Count("pk", filter=Q(is_answered=True)),
    "unanswered": Count("pk", filter=Q(is_answered=False, state__in=STANDING)),
    "retried": Sum("retries"),
    "failed": Sum("failures"),
    "late": Count("pk", filter=Q(finished_at__gt=F("deadline_at"))),
    "acknowledged": Count("acknowledge_seconds"),
    "acknowledge_median": Percentile("acknowledge_seconds", 0.5),
    "acknowledge_p95": Percentile("acknowledge_seconds", 0.95),
    "finished": Count("finish_seconds"),
    "finish_median": Percentile("finish_seconds", 0.5),
    "finish_p95": Percentile("finish_seconds", 0.95),
    **{f"is_{state.name}": Count("pk", filter=Q(stands=state.value)) for state in State},
}
_NOTHING: Final = Measures(0, 0, 0, {}, 0, 0, 0, Times(0, None, None), Times(0, None, None))


def _read_sums(found: Mapping[str, Any] | None) -> Measures:
    if found is None:
        return _NOTHING
    return Measures(
        asked=found["asked"],
        answered=found["answered"],
        unanswered=found["unanswered"],
        states={state.value: count for state in State if (count := found[f"is_{state.name}"])},
        retries=found["retried"] or 0,
        failures=found["failed"] or 0,
        late=found["late"],
        acknowledge=Times(found["acknowledged"], found["acknowledge_median"], found["acknowledge_p95"]),
        finish=Times(found["finished"], found["finish_median"], found["finish_p95"]),
    )


def list_tasks(
    *,
    conversation: Conversation,
    moment: datetime | None,
    after: tuple[bytes, uuid.UUID] | None = None,
    limit: int = 50,
    states: Sequence[str] = (),
    is_by_id: bool = False,
    within: Q | WrittenSince = EVERY,
) -> list[Task]:
    """The tasks of a conversation in the order in which they begin, by keyset, each with `stands`, by which `states`
    filters. `after` is (place, id) of the last one seen. `is_by_id`: in the order of their ids, in which none moves; of
    `after` the id alone counts then."""
    rows = annotate_state(Task.objects.filter(within, conversation=conversation), moment)
    if states:
        rows = rows.filter(stands__in=states)
    if after:
        place, task_id = after
        begins_later = Q(place__gt=place) | Q(place=place, pk__gt=task_id)
        rows = rows.filter(Q(pk__gt=task_id) if is_by_id else begins_later)
    return list(rows.order_by(*(() if is_by_id else ("place",)), "pk")[:limit])


def find_task(*, conversation: Conversation, task_id: uuid.UUID) -> Task | None:
    """The task of that id in this conversation, or None."""
    return Task.objects.filter(conversation=conversation, pk=task_id).first()


def find_tasks_by_keys(*, conversation: Conversation, keys: Sequence[bytes]) -> dict[bytes, Task]:
    """The tasks of a conversation by what makes them: those in the course of which others were asked."""
    ids = [make_task_id(conversation.pk, key) for key in keys]
    rows = Task.objects.filter(conversation=conversation, pk__in=ids) if ids else ()
    return {bytes(task.key): task for task in rows}
