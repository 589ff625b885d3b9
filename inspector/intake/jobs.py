"""The job rows: asked for, leased, checkpointed, finished, and buried after three attempts.

A job is one row for its kind and subject. Whoever works on it holds a lease with a token, and every checkpoint
proves the token inside the same transaction as the work: a worker that was thought dead cannot write.

What is small is done together: a lease may be on several due jobs of a kind and a workspace, its first one and the
`companions` of that, and they end in one transaction. Where work on several fails, or kills its worker, each of them is
done alone from then on, so that the one at fault shows.

A worker that dies lets go of its sign of life, a lock of its database session under the lease's token, and the next
sweep gives its job back at once. The lease itself is for what hangs: it is renewed while the worker lives, until the
work has been silent for too long. An attempt is counted before it begins, so that one that kills its worker counts;
work that got on has all its attempts again, and failures that pass by themselves cost none.
"""

from __future__ import annotations

import json
import logging
import random
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest
from django.utils import timezone

from .failures import describe, is_busy, is_passing
from .liveness import find_alive, let_go, show, wake
from .models import Job

logger = logging.getLogger(__name__)

MAX_ATTEMPTS: Final = 3
# Reading sets the record aside that killed its worker and goes on, so that its job is buried only where not even that
# comes to pass: several workers in a row that were killed before they had begun.
MAX_DEATHS: Final = {Job.Kind.INGEST.value: 10}
# How long work may show no progress before its worker counts as hanging, though its process lives.
MAX_SILENCE_SECONDS: Final = 600.0
# What has killed its worker twice waits a little, so that one bad job does not take all workers down together.
PAUSE_AFTER_DEATHS_SECONDS: Final = 5.0
PAUSE_WHILE_AWAY_SECONDS: Final = 5.0
# Agents post a message at a time: what they post within so many seconds is worked off together.
GATHER_SECONDS = 5.0
# What is asked for so shortly before the end of a span may be committed after it, and counts among the next.
LATE_SECONDS = 0.25
DIED: Final = "the worker died at it"
APART: Final = "due together with work that failed"
_ALONE: Final[Mapping[str, int]] = MappingProxyType({})
# The lock of those who claim, one after another: two that are woken at once would part what is due together.
_CLAIMING: Final = 0x636C61696D


class LostLeaseError(Exception):
    """Another worker has taken the job over; what was done in this transaction must not be committed."""


def ask(*, kind: str, subjects: Iterable[uuid.UUID], workspace_id: uuid.UUID, due: float = 0) -> None:
    """Ask for work on these subjects; call inside the transaction that makes the work necessary.

    A job that is queued or running is not doubled: its count of requests grows, so that it runs once more. A dead
    letter that is asked for again has its attempts anew.

    Args:
        kind: of work.
        subjects: whose work it is.
        workspace_id: theirs.
        due: when, in seconds since 1970; 0 for now. What is due at the same moment is done together.
    """
    rows = [(uuid.uuid4(), subject) for subject in sorted(subjects)]
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO intake_job AS job (id, workspace_id, kind, subject, state, requests, attempts, due_at,
                                           checkpoint, failure, created_at, updated_at)
            SELECT fresh.id, %(workspace)s, %(kind)s, fresh.subject, 'queued', 1, 0,
                   GREATEST(clock_timestamp(), to_timestamp(%(due)s)), '{}', '', now(), now()
              FROM unnest(%(ids)s::uuid[], %(subjects)s::uuid[]) AS fresh (id, subject)
             ORDER BY fresh.subject
            ON CONFLICT (kind, subject) DO UPDATE
               SET requests = job.requests + 1,
                   updated_at = now(),
                   attempts = CASE WHEN job.state IN ('done', 'dead') THEN 0 ELSE job.attempts END,
                   due_at = CASE WHEN job.state IN ('done', 'dead') THEN excluded.due_at ELSE job.due_at END,
                   state = CASE WHEN job.state IN ('done', 'dead') THEN 'queued' ELSE job.state END
            """,
            {
                "workspace": workspace_id,
                "kind": kind,
                "due": due,
                "ids": [row[0] for row in rows],
                "subjects": [row[1] for row in rows],
            },
        )


@transaction.atomic
def hurry(*, kind: str, workspace_id: uuid.UUID) -> None:
    """Let what was put off in a workspace be due now; what is being worked on, or has failed, keeps its time."""
    waiting = Job.objects.filter(kind=kind, workspace_id=workspace_id, state=Job.State.QUEUED, failure="")
    # Whoever asks for several locks them in an order of their own: none of them is waited for.
    free = waiting.filter(due_at__gt=timezone.now()).select_for_update(skip_locked=True).values("pk")
    Job.objects.filter(pk__in=free).update(due_at=timezone.now())


def is_half_read(*, workspace_id: uuid.UUID, reader: uuid.UUID | None = None) -> bool:
    """Whether a delivery of a workspace has been read in part, so that more of it may follow.

    Args:
        reader: a job that has read its delivery to the end, and says so right after.
    """
    begun = Q(kind=Job.Kind.FRAME) | Q(kind__in=[Job.Kind.INGEST, Job.Kind.WEIGH], checkpoint__has_key="index")
    states = [Job.State.QUEUED, Job.State.RUNNING]
    others = Job.objects.filter(begun, workspace_id=workspace_id, state__in=states)
    return (others if reader is None else others.exclude(pk=reader)).exists()


def wake_workers() -> None:
    """Wake a worker once the transaction is committed. Never raises: the next look for due jobs finds the work."""
    transaction.on_commit(wake, robust=True)


def wake_workers_for(due: float) -> None:
    """Wake a worker for what is due then, once from this process for the same moment.

    Args:
        due: in seconds since 1970; 0 for now.
    """
    transaction.on_commit(partial(_gathering.wake, due), robust=True)


def find_end(span_seconds: float) -> float:
    """The end of the span of time that goes on, in seconds since 1970; spans are the same for all processes."""
    at = time.time() + LATE_SECONDS
    return at - at % span_seconds + span_seconds


class Gathering:
    """When that is due which agents post a message at a time, as a process sees it.

    The first after a pause is due at once. What follows is worked off together, at the end of its span.
    """

    def __init__(self) -> None:
        self._posted_at = 0.0
        self._woken_for = 0.0

    def find_due(self) -> float:
        """When that is due which is posted now, in seconds since 1970; 0 for now."""
        now, before = time.time(), self._posted_at
        self._posted_at = now
        if now - before >= GATHER_SECONDS:
            return 0.0
        return find_end(GATHER_SECONDS)

    def wake(self, due: float) -> None:
        """Wake a worker for that moment, unless one was woken for it already."""
        if due and due == self._woken_for:
            return
        self._woken_for = due
        wake(delay_seconds=max(0.0, due - time.time()) if due else 0.0)


_gathering = Gathering()
find_due = _gathering.find_due


def claim(
    *,
    kinds: Iterable[str] = tuple(Job.Kind.values),
    otherwise: Iterable[str] = (),
    together: Mapping[str, int] = _ALONE,
) -> Job | None:
    """Lease the job that has been due longest, or None. One that has used up its attempts is buried instead.

    The sign of life comes first: no lease is ever seen without it.

    Args:
        kinds: of which kind it is to be.
        otherwise: of which, where no job of those kinds is due.
        together: of a kind, how many jobs more are leased with it, as its `companions`, that were never begun.
    """
    token = uuid.uuid4()
    show(token)
    job = None
    try:
        job = _lease(token, list(kinds), list(otherwise), together)
    finally:
        if job is None:
            let_go(token)
    return job


def _lease(token: uuid.UUID, kinds: list[str], otherwise: list[str], together: Mapping[str, int]) -> Job | None:
    while True:
        rows = Job.objects.raw(
            """
            WITH chosen AS MATERIALIZED (
                SELECT COALESCE((SELECT id FROM intake_job
                                  WHERE (SELECT pg_advisory_xact_lock(%(turn)s)) IS NOT NULL
                                    AND state IN ('queued', 'running') AND due_at <= clock_timestamp()
                                    AND kind = ANY(%(kinds)s)
                                  ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED),
                                (SELECT id FROM intake_job
                                  WHERE state IN ('queued', 'running') AND due_at <= clock_timestamp()
                                    AND kind = ANY(%(otherwise)s)
                                  ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)) AS id),
            companion AS MATERIALIZED (
                SELECT job.id FROM intake_job AS job
                  JOIN (SELECT * FROM intake_job JOIN chosen USING (id)) AS first
                    ON job.kind = first.kind AND job.workspace_id = first.workspace_id AND job.id <> first.id
                 WHERE first.attempts = 0 AND first.failure = '' AND job.attempts = 0 AND job.failure = ''
                   AND job.state = 'queued' AND job.due_at <= clock_timestamp()
                 ORDER BY job.due_at
                 LIMIT (SELECT COALESCE((%(together)s::jsonb ->> kind)::int, 0) FROM intake_job JOIN chosen USING (id))
                   FOR UPDATE OF job SKIP LOCKED)
            UPDATE intake_job
               SET state = CASE WHEN attempts >= (%(most)s::jsonb ->> kind)::int THEN 'dead' ELSE 'running' END,
                   attempts = CASE WHEN attempts >= (%(most)s::jsonb ->> kind)::int THEN attempts ELSE attempts + 1 END,
                   failure = CASE WHEN attempts >= (%(most)s::jsonb ->> kind)::int AND failure = ''
                                  THEN %(died)s ELSE failure END,
                   lease_until = clock_timestamp() + make_interval(secs => %(lease)s), lease_token = %(token)s,
                   due_at = clock_timestamp() + make_interval(secs => %(lease)s),
                   updated_at = clock_timestamp()
             WHERE id IN (SELECT id FROM chosen UNION ALL SELECT id FROM companion)
         RETURNING *, id = (SELECT id FROM chosen) AS is_first
            """,
            {
                "most": json.dumps({kind: MAX_DEATHS.get(kind, MAX_ATTEMPTS) for kind in Job.Kind.values}),
                "died": DIED,
                "lease": settings.JOB_LEASE_SECONDS,
                "token": token,
                "turn": _CLAIMING,
                "kinds": kinds,
                "otherwise": otherwise,
                "together": json.dumps(dict(together)),
            },
        )
        leased = sorted(rows, key=lambda row: not row.is_first)  # type: ignore[attr-defined]  # a column of the statement
        if not leased:
            return None
        job, *companions = leased
        if job.state == Job.State.RUNNING:
            job.companions = companions
            return job
        logger.error("job %s is a dead letter", job.pk)


def part(job: Job, others: Collection[Job], *, failure: str = "", pause: float = 0.0) -> None:
    """Give companions of a leased job back, which are not done together with it after all: they are due again.

    Args:
        job: leased.
        others: of its companions.
        failure: why they are to be done alone from now on.
        pause: seconds until they are due.
    """
    if not others:
        return
    ids = {each.pk for each in others}
    _give_back(Job.objects.filter(pk__in=ids, lease_token=job.lease_token), pause=pause, attempts=0, failure=failure)
    job.companions = [each for each in job.companions if each.pk not in ids]


def _give_back(rows: QuerySet[Job], *, pause: float = 0.0, **changes: Any) -> int:
    now = timezone.now()
    return rows.filter(state=Job.State.RUNNING).update(
        state=Job.State.QUEUED,
        lease_token=None,
        lease_until=None,
        due_at=now + timedelta(seconds=pause),
        updated_at=now,
        **changes,
    )


def take_back() -> int:
    """Give the jobs back whose workers are gone, long before their leases end; how many there were.

    Those that had one lease are each done alone, and have all their attempts: nobody knows which of them it was.
    """
    # A lease that runs is due in the future, so that the index on what is due finds the few.
    rows = Job.objects.filter(state=Job.State.RUNNING, due_at__gt=timezone.now(), lease_token__isnull=False)
    leases: dict[uuid.UUID, list[Job]] = defaultdict(list)
    for row in rows.only("lease_token", "attempts"):
        if row.lease_token:
            leases[row.lease_token].append(row)
    taken = 0
    for token in leases.keys() - find_alive(leases):
        held = Job.objects.filter(lease_token=token)
        job, *companions = leases[token]
        if companions:
            taken += _give_back(held, attempts=0, failure=APART)
        else:
            taken += _give_back(held, pause=PAUSE_AFTER_DEATHS_SECONDS if job.attempts > 1 else 0.0)
        logger.warning("the worker of job %s is gone; it is due again", job.pk)
    return taken


@contextmanager
def working_on(job: Job) -> Iterator[None]:
    """Keep the lease while the block works, and give the sign of life away at its end.

    A thread renews the lease where the work does not do it itself for a while, for as long as it is not silent for
    too long: what hangs loses its lease, and what is only slow does not.
    """
    is_over = threading.Event()
    renewing = threading.Thread(target=_keep_renewing, args=(job, is_over), name=f"lease of {job.pk}", daemon=True)
    _heard_at[job.pk] = time.monotonic()
    renewing.start()
    try:
        yield
    finally:
        is_over.set()
        renewing.join()
        _heard_at.pop(job.pk, None)
        if job.lease_token:
            let_go(job.lease_token)


# When the work on a job of this process last wrote a checkpoint.
_heard_at: dict[uuid.UUID, float] = {}


def _keep_renewing(job: Job, is_over: threading.Event) -> None:
    try:
        while not is_over.wait(settings.JOB_LEASE_SECONDS / 3):
            if time.monotonic() - _heard_at.get(job.pk, 0) > MAX_SILENCE_SECONDS:
                logger.error("job %s has shown no progress for too long; its lease runs out", job.pk)
                return
            try:
                _extend(job)
            except DatabaseError:
                logger.warning("the lease of job %s could not be renewed", job.pk, exc_info=True)
                connection.close()
    finally:
        connection.close()


def _extend(job: Job, *, state: dict[str, Any] | None = None, attempts: int | None = None) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE intake_job
               SET lease_until = %(until)s, due_at = %(until)s, updated_at = %(now)s,
                   checkpoint = CASE WHEN id = %(id)s THEN COALESCE(%(state)s::jsonb, checkpoint) ELSE checkpoint END,
                   attempts = CASE WHEN id = %(id)s THEN COALESCE(%(attempts)s, attempts) ELSE attempts END
             WHERE id = ANY(%(ids)s) AND lease_token = %(token)s AND state = 'running'
            """,
            {
                "id": job.pk,
                "ids": [job.pk, *(each.pk for each in job.companions)],
                "token": job.lease_token,
                "state": None if state is None else json.dumps(state),
                "attempts": attempts,
                "now": timezone.now(),
                "until": timezone.now() + timedelta(seconds=settings.JOB_LEASE_SECONDS),
            },
        )
        return bool(cursor.rowcount == 1 + len(job.companions))


def checkpoint(job: Job, state: dict[str, Any], *, attempts: int | None = None) -> None:
    """Keep how far the job is, in the transaction of the work itself.

    Args:
        job: leased, and its companions with it.
        state: how far it is; another one than before is progress, which gives the job all its attempts back. The same
            again is a sign of life only. Where one was given lately nothing is written; a transaction locks the rows.
        attempts: how many attempts count as begun from here on, for work that keeps count itself.

    Raises:
        LostLeaseError: if the lease has passed to another worker.
    """
    count = attempts or (1 if state != job.checkpoint else job.attempts)
    is_known = time.monotonic() - _heard_at.get(job.pk, 0) < settings.JOB_LEASE_SECONDS
    is_written = not is_known or (state, count) != (job.checkpoint, job.attempts)
    if not (_extend(job, state=state, attempts=count) if is_written else _hold(job)):
        raise LostLeaseError(str(job.pk))
    job.checkpoint, job.attempts = state, count
    _heard_at[job.pk] = time.monotonic()


def _hold(job: Job) -> bool:
    """Whether a job and its companions are still leased to us; a thread renews the lease. Inside a transaction nobody
    takes them over until it ends."""
    ids = [job.pk, *(each.pk for each in job.companions)]
    ours = "SELECT id FROM intake_job WHERE id = ANY(%s) AND lease_token = %s AND state = 'running' ORDER BY id"
    with connection.cursor() as cursor:
        cursor.execute(ours + (" FOR NO KEY UPDATE" if connection.in_atomic_block else ""), [ids, job.lease_token])
        return bool(cursor.rowcount == len(ids))


@contextmanager
def together(job: Job) -> Iterator[None]:
    """A transaction for work and its checkpoint; what is undone in the database is undone in memory."""
    before = job.checkpoint, job.attempts
    try:
        with transaction.atomic():
            yield
    except BaseException:
        job.checkpoint, job.attempts = before
        raise


def finish(job: Job, *, subjects: Collection[uuid.UUID] = (), again_after_seconds: float = 0) -> None:
    """End the job; if it was asked for again since it was claimed, it is queued once more after this long.

    Args:
        job: leased.
        subjects: of its companions, which end with it; the others are given back.
        again_after_seconds: the pause.

    Raises:
        LostLeaseError: if the lease has passed to another worker.
    """
    held = [job, *job.companions]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE intake_job AS job
               SET state = CASE WHEN is_done AND job.requests = held.requests THEN 'done' ELSE 'queued' END,
                   due_at = %(now)s + CASE WHEN is_done THEN %(pause)s ELSE 0 END * interval '1 second',
                   attempts = 0, failure = '', lease_token = NULL, lease_until = NULL, updated_at = %(now)s
              FROM unnest(%(ids)s::uuid[], %(requests)s::bigint[], %(done)s::boolean[]) AS held (id, requests, is_done)
             WHERE job.id = held.id AND lease_token = %(token)s AND state = 'running'
            """,
            {
                "ids": [each.pk for each in held],
                "requests": [each.requests for each in held],
                "done": [each is job or each.subject in subjects for each in held],
                "token": job.lease_token,
                "pause": again_after_seconds,
                "now": timezone.now(),
            },
        )
        if cursor.rowcount != len(held):
            raise LostLeaseError(str(job.pk))


def release(job: Job, *, delay_seconds: float = 0) -> None:
    """Give the lease back with work left: the job is due again."""
    part(job, job.companions)
    held = Job.objects.filter(pk=job.pk, lease_token=job.lease_token)
    _give_back(held, pause=delay_seconds, attempts=Greatest(F("attempts") - 1, 0))


def fail(job: Job, error: BaseException) -> None:
    """Note why the job failed: it is due again after a growing pause, or a dead letter after its last attempt.

    A failure that passes by itself costs no attempt. Two that got in each other's way try again at once, each after
    another moment; while the database cannot take anything, the job waits. What failed together is tried alone at once.
    """
    attempts, pause, is_dead = job.attempts, float(2**job.attempts), job.attempts >= MAX_ATTEMPTS
    if is_passing(error):
        attempts, is_dead = max(job.attempts - 1, 0), False
        pause = random.uniform(0.05, 0.5) if is_busy(error) else PAUSE_WHILE_AWAY_SECONDS
    if job.companions:
        passes = is_passing(error)
        part(job, [job, *job.companions], failure="" if passes else APART, pause=pause if passes else 0.0)
        return
    Job.objects.filter(pk=job.pk, lease_token=job.lease_token).update(
        state=Job.State.DEAD if is_dead else Job.State.QUEUED,
        attempts=attempts,
        failure=describe(error),
        lease_token=None,
        lease_until=None,
        due_at=timezone.now() + timedelta(seconds=pause),
        updated_at=timezone.now(),
    )


def has_due() -> bool:
    """Whether any job is due now."""
    return Job.objects.filter(state__in=[Job.State.QUEUED, Job.State.RUNNING], due_at__lte=timezone.now()).exists()


def find_next_due() -> datetime | None:
    """When the next job is due, which may be past; None where none waits."""
    waiting = Job.objects.filter(state__in=[Job.State.QUEUED, Job.State.RUNNING])
    return waiting.order_by("due_at").values_list("due_at", flat=True).first()
