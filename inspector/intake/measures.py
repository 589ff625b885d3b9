"""How intake stands, in numbers over all workspaces: what came in, what waits, and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Count, Min, Sum
from django.utils import timezone

from .models import DeadLetter, Delivery, Job
from .selectors import count_backlog

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number, or one for each of its labels. `kind` is counter for what only grows, else gauge."""

    name: str
    kind: str
    about: str
    values: Sequence[tuple[Labels, float]]

    @property
    def labels(self) -> set[str]:
        """The names of its labels."""
        return {name for labels, _ in self.values for name, _ in labels}


def list_measures() -> Iterator[Measure]:
    """Every measure, each by one query or two."""
    doors = Delivery.objects.values_list("door", "state").annotate(count=Count("pk")).order_by("door", "state")
    yield Measure(
        name="inspector_deliveries",
        kind="gauge",
        about="Deliveries by door and state.",
        values=[((("door", door), ("state", state)), count) for door, state, count in doors],
    )
    sums = Delivery.objects.aggregate(stored=Sum("stored"), duplicate=Sum("duplicate"), quarantined=Sum("quarantined"))
    yield Measure(
        name="inspector_records_total",
        kind="counter",
        about="Records received, by what came of them.",
        values=[((("outcome", outcome),), count or 0) for outcome, count in sums.items()],
    )
    yield Measure(
        name="inspector_backlog_records",
        kind="gauge",
        about="Stored records that wait to be read.",
        values=[((), count_backlog())],
    )
    waiting = Job.objects.filter(state__in=[Job.State.QUEUED, Job.State.RUNNING])
    dead = Job.objects.filter(state=Job.State.DEAD)
    counts = {
        (kind, state): count
        for jobs in (waiting, dead)
        for kind, state, count in jobs.values_list("kind", "state").annotate(count=Count("pk"))
    }
    states = (Job.State.QUEUED, Job.State.RUNNING, Job.State.DEAD)
    yield Measure(
        name="inspector_jobs",
        kind="gauge",
        about="Jobs that wait, run, or were given up, by kind.",
        values=[
            ((("kind", kind), ("state", state)), counts.get((kind, state), 0))
            for kind in Job.Kind.values
            for state in states
        ],
    )
    yield Measure(
        name="inspector_dead_letters",
        kind="gauge",
        about="Records that could not be read and were given up.",
        values=[((), DeadLetter.objects.filter(state=DeadLetter.State.DEAD).count())],
    )
    used, most, size = ask_server()
    yield Measure(
        name="inspector_database_sessions",
        kind="gauge",
        about="Sessions of clients that the database server has.",
        values=[((), used)],
    )
    yield Measure(
        name="inspector_database_max_sessions",
        kind="gauge",
        about="Sessions that the database server takes from roles like the application's.",
        values=[((), most)],
    )
    yield Measure(
        name="inspector_database_bytes", kind="gauge", about="Bytes of the database on its disk.", values=[((), size)]
    )
    oldest = dict(waiting.values_list("kind").annotate(due=Min("due_at")))
    now = timezone.now()
    yield Measure(
        name="inspector_oldest_due_seconds",
        kind="gauge",
        about="For how long the longest waiting job has been due; of settle it is the oldest conversation.",
        values=[
            ((("kind", kind),), max(0.0, (now - oldest[kind]).total_seconds()) if kind in oldest else 0)
            for kind in Job.Kind.values
        ],
    )


def ask_server() -> tuple[int, int, int]:
    """Its sessions, how many it takes, and the bytes of the database."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
                   current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
                   pg_database_size(current_database())
            """
        )
        used, most, size = cursor.fetchone()
    return used, most, size
