"""Companions: due jobs of a kind that are done together with a leased one, each in that one's last transaction.

A companion holds no lease. It is read without a lock, worked out in memory, and taken only in the transaction that
writes it and ends it, where it still stands as it was seen: queued, and not asked for again. Whoever claimed it
meanwhile goes on with it, and what was worked out here is thrown away. Where work on several fails, or kills its
worker, each of them is done alone from then on, so that the one at fault shows.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from django.db import connection, transaction
from django.utils import timezone

from .models import Job

APART: Final = "due together with work that failed"


@dataclass(frozen=True, slots=True)
class Companion:
    """A due job as it was seen: its id, its subject, and how often it had been asked for."""

    id: uuid.UUID
    subject: uuid.UUID
    requests: int


def find_companions(job: Job, *, most: int) -> list[Companion]:
    """The jobs that have been due longest, of the kind and the workspace of a leased one and never begun; none for one
    that is to be done alone."""
    if job.failure:
        return []
    rows = Job.objects.filter(
        kind=job.kind,
        workspace_id=job.workspace_id,
        state=Job.State.QUEUED,
        attempts=0,
        failure="",
        due_at__lte=timezone.now(),
    )
    return [Companion(*row) for row in rows.order_by("due_at").values_list("id", "subject", "requests")[:most]]


def end_companions(companions: Collection[Companion]) -> set[uuid.UUID]:
    """End those that still stand as they were seen; call in the transaction of their work, their subjects locked.

    Returns:
        their subjects: what may be written.
    """
    if not companions:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE intake_job AS job SET state = 'done', updated_at = now(), due_at = now()
              FROM (SELECT held.id FROM intake_job AS held
                      JOIN unnest(%s::uuid[], %s::bigint[]) AS seen (id, requests)
                        ON seen.id = held.id AND seen.requests = held.requests
                     WHERE held.state = 'queued'
                       FOR UPDATE OF held SKIP LOCKED) AS taken
             WHERE job.id = taken.id
         RETURNING job.subject
            """,
            ([each.id for each in companions], [each.requests for each in companions]),
        )
        return {row[0] for row in cursor.fetchall()}


@transaction.atomic
def set_apart(*, kind: str, workspace_id: uuid.UUID) -> None:
    """Let each job be done alone that is due of this kind in a workspace: work on several of them has failed."""
    due = Job.objects.filter(
        kind=kind, workspace_id=workspace_id, state=Job.State.QUEUED, failure="", due_at__lte=timezone.now()
    )
    Job.objects.filter(pk__in=due.select_for_update(skip_locked=True).values("pk")).update(failure=APART)
