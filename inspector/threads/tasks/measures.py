"""How long tasks took, how often they failed, and which stand still, as of the latest record of the channel: resolving
must not depend on a moment, and a log of last year stands as it stood at its end."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, Final

from django.db import models
from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Least, Left, Now
from django.db.models.lookups import In
from django.utils import timezone

from inspector.accounts.models import Channel, Workspace
from inspector.lookups import WrittenSince

from ..models import Conversation, Message, Task
from .states import STANDING, make_task_id

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
    tasks = annotate_state(Task.objects.filter(workspace=workspace), moments)
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


def select_maybe_answered(*, workspace: Workspace, channel: Channel | None = None) -> QuerySet[Task]:
    """The requests without a readable reply for an hour, up to the moment of their channel, which is that of
    `audit.findings.storing`: the time of its latest message, and now where that was posted within an hour of its time.
    So a request counts here when it would be a finding, were nothing sealed."""
    sealed = Message.objects.shown().filter(workspace=workspace, is_sealed=True)
    there = Q(sender=OuterRef("requester"), receivers__contains=[OuterRef("performer")])
    back = Q(sender=OuterRef("performer"), receivers__contains=[OuterRef("requester")])
    rows = Task.objects.filter(
        workspace=workspace,
        state__in=STANDING,
        act__in=("request", "query"),
        request__isnull=False,
        is_answered=False,
        deadline_at=None,
        # Told first where anything is sealed, which is in few conversations.
        conversation__in=sealed.values("conversation"),
    ).exclude(requester="", performer="")
    if channel is not None:
        rows = rows.filter(channel=channel)
    beside = sealed.filter(there | back, conversation=OuterRef("conversation"))
    posted = Message.objects.filter(
        workspace=OuterRef("workspace"),
        channel=OuterRef("channel"),
        order_time=OuterRef("latest"),
        record__is_from_file=False,
        record__created_at__lt=F("record__order_time") + STALLED_AFTER,
    )
    moment = Case(When(Exists(posted), then=Now()), default=Least(Now(), F("latest")))
    rows = rows.alias(latest=latest_in_channel()).alias(moment=moment)
    return rows.filter(Exists(beside), moment__gt=F("last_at") + STALLED_AFTER).order_by()
