"""How intake stands, in numbers over all workspaces: what came in, what waits, and for how long."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connection
from django.db.models import Count, Min, Sum
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from .models import DeadLetter, Delivery, Job
from .selectors import count_backlog


def list_measures() -> Iterator[Metric]:
    """Every measure, as a collector of Prometheus' library yields it, each by one query or two."""
    deliveries = GaugeMetricFamily("inspector_deliveries", "Deliveries by door and state.", labels=["door", "state"])
    doors = Delivery.objects.values_list("door", "state").annotate(count=Count("pk")).order_by("door", "state")
    for door, state, count in doors:
        deliveries.add_metric([door, state], count)
    yield deliveries
    records = CounterMetricFamily(
        "inspector_records_total", "Records received, by what came of them.", labels=["outcome"]
    )
    sums = Delivery.objects.aggregate(stored=Sum("stored"), duplicate=Sum("duplicate"), quarantined=Sum("quarantined"))
    for outcome, count in sums.items():
        records.add_metric([outcome], count or 0)
    yield records
    yield GaugeMetricFamily("inspector_backlog_records", "Stored records that wait to be read.", count_backlog())
    waiting = Job.objects.filter(state__in=[Job.State.QUEUED, Job.State.RUNNING])
    dead = Job.objects.filter(state=Job.State.DEAD)
    counts = {
        (kind, state): count
        for jobs in (waiting, dead)
        for kind, state, count in jobs.values_list("kind", "state").annotate(count=Count("pk"))
    }
    jobs_by_state = GaugeMetricFamily(
        "inspector_jobs", "Jobs that wait, run, or were given up, by kind.", labels=["kind", "state"]
    )
    for kind in Job.Kind.values:
        for state in (Job.State.QUEUED, Job.State.RUNNING, Job.State.DEAD):
            jobs_by_state.add_metric([kind, state], counts.get((kind, state), 0))
    yield jobs_by_state
    letters = DeadLetter.objects.filter(state=DeadLetter.State.DEAD).count()
    yield GaugeMetricFamily("inspector_dead_letters", "Records that could not be read and were given up.", letters)
    used, most, size = ask_server()
    yield GaugeMetricFamily("inspector_database_sessions", "Sessions of clients that the database server has.", used)
    yield GaugeMetricFamily(
        "inspector_database_max_sessions",
        "Sessions that the database server takes from roles like the application's.",
        most,
    )
    yield GaugeMetricFamily("inspector_database_bytes", "Bytes of the database on its disk.", size)
    due = GaugeMetricFamily(
        "inspector_oldest_due_seconds",
        "For how long the longest waiting job has been due; of settle it is the oldest conversation.",
        labels=["kind"],
    )
    oldest = dict(waiting.values_list("kind").annotate(due=Min("due_at")))
    now = timezone.now()
    for kind in Job.Kind.values:
        due.add_metric([kind], max(0.0, (now - oldest[kind]).total_seconds()) if kind in oldest else 0)
    yield due


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
