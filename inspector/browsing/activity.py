"""What goes on in a workspace, for its overview: numbers, and messages over time."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db.models import Count, DateTimeField, Min, Q, QuerySet, Subquery, Sum
from django.db.models.expressions import RawSQL

from inspector.accounts.models import Channel, Workspace
from inspector.threads.models import Conversation, Message

SLOTS: Final = 48
DAY: Final = timedelta(days=1)


def _select(workspace: Workspace, channel: Channel | None) -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(workspace=workspace, last_at__isnull=False)
    return rows if channel is None else rows.filter(channel=channel)


def find_newest(*, workspace: Workspace, channel: Channel | None = None) -> Subquery:
    """The time of the newest message of a workspace or a channel, for the statement that counts up to it."""
    rows = _select(workspace, channel).order_by("-last_at", "-id")
    return Subquery(rows.values("last_at")[:1], output_field=DateTimeField())


def split_days(name: str, newest: Subquery) -> tuple[Q, Q]:
    """Whether the time of this name is within the 24 hours up to the newest message, and within the 24 before them."""
    latest = Q(**{f"{name}__gt": newest - DAY})
    return latest, Q(**{f"{name}__gt": newest - 2 * DAY}) & ~latest


class Days(NamedTuple):
    """How much falls into the 24 hours up to the newest message, and into the 24 before them."""

    latest: int
    before: int


def count_days(*, workspace: Workspace, channel: Channel | None = None) -> QuerySet[Message, tuple[int, int]]:
    """The messages of the latest 24 hours and of the 24 before them: one row, or none."""
    latest, before = split_days("order_time", find_newest(workspace=workspace, channel=channel))
    rows = Message.objects.shown().filter(latest | before, workspace=workspace)
    if channel is not None:
        rows = rows.filter(channel=channel)
    counts = {"latest": Count("pk", filter=latest), "before": Count("pk", filter=before)}
    return rows.order_by().values("workspace").annotate(**counts).values_list(*counts)


class Numbers(NamedTuple):
    """Sums over a workspace's settled conversations; `begun` counts those that began lately."""

    messages: int
    conversations: int
    failed: int
    with_errors: int
    with_missing: int
    begun: Days


def count_all(*, workspace: Workspace, channel: Channel | None = None) -> Numbers:
    """The numbers of a workspace or a channel: one statement over small rows, none over messages."""
    latest, before = split_days("first_at", find_newest(workspace=workspace, channel=channel))
    found = _select(workspace, channel).aggregate(
        latest=Count("pk", filter=latest),
        before=Count("pk", filter=before),
        messages=Sum("message_count"),
        conversations=Count("pk"),
        failed=Count("pk", filter=Q(state=Conversation.State.FAILED)),
        with_errors=Count("pk", filter=Q(severity=Message.Severity.ERROR)),
        with_missing=Count("pk", filter=Q(missing_count__gt=0)),
    )
    begun = Days(found.pop("latest"), found.pop("before"))
    return Numbers(**{**found, "messages": int(found["messages"] or 0)}, begun=begun)


def sum_messages(*, workspace: Workspace) -> QuerySet[Any, Any]:
    """How many messages the settled conversations hold: one row, or none where there are none."""
    rows = _select(workspace, None).order_by().values("workspace")
    return rows.annotate(total=Sum("message_count")).values_list("total", flat=True)


class Span(NamedTuple):
    """A stretch of the timeline in slots of equal width."""

    start: datetime
    width: timedelta

    @property
    def end(self) -> datetime:
        return self.start + self.width * SLOTS


def find_span(*, workspace: Workspace, period: timedelta | None, channel: Channel | None = None) -> Span | None:
    """The slots of a period that ends with the newest message, or of the whole timeline; None where there is none."""
    rows = _select(workspace, channel)
    newest = rows.order_by("-last_at", "-id").values_list("last_at", flat=True).first()
    if newest is None:
        return None
    # The newest message falls into the last slot and is not its end; what rounding takes away is given back.
    end, second, rounded = newest + timedelta(seconds=1), timedelta(seconds=1), timedelta(microseconds=1)
    if period is not None:
        width = max(period / SLOTS, second)
        return Span(end - width * SLOTS, width + rounded)
    start = rows.aggregate(first=Min("first_at"))["first"] or newest
    return Span(start, max((end - start) / SLOTS, second) + rounded)


def count_over_time(
    *, workspace: Workspace, span: Span, channel: Channel | None = None
) -> QuerySet[Message, tuple[str, int, int]]:
    """(dialect, slot, number) of the messages in a span, to be fetched within a reader's patience."""
    rows = Message.objects.shown().filter(workspace=workspace, order_time__gte=span.start, order_time__lt=span.end)
    if channel is not None:
        rows = rows.filter(channel=channel)
    slot = RawSQL(
        'floor(extract(epoch FROM "threads_message"."order_time" - %s) / %s)::int',
        [span.start, span.width.total_seconds()],
    )
    return rows.annotate(slot=slot).order_by().values_list("dialect", "slot").annotate(count=Count("pk"))


def fill_slots(counts: list[tuple[str, int, int]]) -> dict[str, list[int]]:
    """The numbers of each dialect slot by slot, the dialect with most messages first."""
    found: dict[str, list[int]] = defaultdict(lambda: [0] * SLOTS)
    for dialect, slot, number in counts:
        found[dialect][min(max(slot, 0), SLOTS - 1)] += number
    return dict(sorted(found.items(), key=lambda item: (-sum(item[1]), item[0])))
