"""The job rows: asked for, leased, checkpointed, finished, and buried after three attempts. Celery only rings.

A job is one row for its kind and subject. Whoever works on it holds a lease with a token, and every checkpoint
proves the token inside the same transaction as the work: a worker that was thought dead cannot write.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from .models import Job

logger = logging.getLogger(__name__)

MOST_ATTEMPTS = 3


class LostLeaseError(Exception):
    """Another worker has taken the job over; what was done in this transaction must not be committed."""


def ask(*, kind: str, subjects: Iterable[uuid.UUID], workspace_id: uuid.UUID, delay_seconds: float = 0) -> None:
    """Ask for work on these subjects; call inside the transaction that makes the work necessary.

    A job that is queued or running is not doubled: its count of requests grows, so that it runs once more. A dead
    letter that is asked for again has its attempts anew.
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
                   clock_timestamp() + make_interval(secs => %(delay)s), '{}', '', now(), now()
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
                "delay": delay_seconds,
                "ids": [row[0] for row in rows],
                "subjects": [row[1] for row in rows],
            },
        )


def ring() -> None:
    """Ring the doorbell once the transaction is committed. Never raises: the sweeper finds what was not rung for."""
    transaction.on_commit(partial(_ring), robust=True)


def _ring() -> None:
    try:
        current_app.send_task("inspector.work", retry=False, ignore_result=True)
    except Exception:
        logger.warning("the broker did not take the doorbell; the sweeper will find the work", exc_info=True)


def claim(*, kinds: Iterable[str] = tuple(Job.Kind.values)) -> Job | None:
    """Lease the job that has been due longest, or None. One that has used up its attempts is buried instead."""
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                """
                UPDATE intake_job
                   SET state = CASE WHEN attempts >= %(most)s THEN 'dead' ELSE 'running' END,
                       attempts = CASE WHEN attempts >= %(most)s THEN attempts ELSE attempts + 1 END,
                       failure = CASE WHEN attempts >= %(most)s AND failure = ''
                                      THEN 'the worker died at it' ELSE failure END,
                       lease_until = clock_timestamp() + make_interval(secs => %(lease)s), lease_token = %(token)s,
                       due_at = clock_timestamp() + make_interval(secs => %(lease)s), updated_at = clock_timestamp()
                 WHERE id = (SELECT id FROM intake_job
                              WHERE state IN ('queued', 'running') AND due_at <= clock_timestamp()
                                AND kind = ANY(%(kinds)s)
                              ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
             RETURNING id, state
                """,
                {
                    "most": MOST_ATTEMPTS,
                    "lease": settings.JOB_LEASE_SECONDS,
                    "token": uuid.uuid4(),
                    "kinds": list(kinds),
                },
            )
            row = cursor.fetchone()
        if row is None:
            return None
        if row[1] == Job.State.RUNNING:
            return Job.objects.select_related("workspace").get(pk=row[0])
        logger.error("job %s is a dead letter", row[0])


def checkpoint(job: Job, state: dict[str, Any]) -> None:
    """Keep how far the job is, in the transaction of the work itself; progress gives it all its attempts back.

    Raises:
        LostLeaseError: if the lease has passed to another worker.
    """
    until = timezone.now() + timedelta(seconds=settings.JOB_LEASE_SECONDS)
    held = Job.objects.filter(pk=job.pk, lease_token=job.lease_token, state=Job.State.RUNNING)
    if not held.update(checkpoint=state, attempts=1, lease_until=until, due_at=until, updated_at=timezone.now()):
        raise LostLeaseError(str(job.pk))
    job.checkpoint = state


def finish(job: Job, *, again_after_seconds: float = 0) -> None:
    """End the job; if it was asked for again since it was claimed, it is queued once more after this long.

    Raises:
        LostLeaseError: if the lease has passed to another worker.
    """
    held = Job.objects.select_for_update().filter(pk=job.pk, lease_token=job.lease_token, state=Job.State.RUNNING)
    with transaction.atomic():
        row = held.first()
        if row is None:
            raise LostLeaseError(str(job.pk))
        is_asked_again = row.requests != job.requests
        row.state = Job.State.QUEUED if is_asked_again else Job.State.DONE
        row.due_at = timezone.now() + timedelta(seconds=again_after_seconds if is_asked_again else 0)
        row.attempts, row.failure, row.lease_token, row.lease_until = 0, "", None, None
        row.updated_at = timezone.now()
        row.save()


def release(job: Job, *, delay_seconds: float = 0) -> None:
    """Give the lease back with work left: the job is due again."""
    Job.objects.filter(pk=job.pk, lease_token=job.lease_token).update(
        state=Job.State.QUEUED,
        attempts=0,
        lease_token=None,
        lease_until=None,
        due_at=timezone.now() + timedelta(seconds=delay_seconds),
        updated_at=timezone.now(),
    )


def fail(job: Job, error: BaseException) -> None:
    """Note why the job failed: it is due again after a growing pause, or a dead letter after its last attempt."""
    is_dead = job.attempts >= MOST_ATTEMPTS
    Job.objects.filter(pk=job.pk, lease_token=job.lease_token).update(
        state=Job.State.DEAD if is_dead else Job.State.QUEUED,
        failure=f"{type(error).__name__}: {error}"[:2000],
        lease_token=None,
        lease_until=None,
        due_at=timezone.now() + timedelta(seconds=2**job.attempts),
        updated_at=timezone.now(),
    )


def has_due() -> bool:
    """Whether any job is due now: what the sweeper asks."""
    return Job.objects.filter(state__in=[Job.State.QUEUED, Job.State.RUNNING], due_at__lte=timezone.now()).exists()
