"""Verifying on request: a worker does it, and its job keeps what came of it until it is asked for again."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.db import transaction

from inspector.intake import jobs
from inspector.intake.models import Job

from .verifying import MAX_FAULTS, verify_ledger

# So many faults are kept; the first says where to begin.
MAX_KEPT: Final = 20


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of the latest verification, and whether another one is under way.

    `at` is None before the first. Of its faults, `count` of them and at most `verifying.MAX_FAULTS`, the first
    `MAX_KEPT` are kept, each with `index`, `kind`, `subject` and `text`. `failure` says why it could not be done.
    """

    is_under_way: bool
    failure: str
    at: datetime | None
    size: int
    checkpoints: int
    waiting: int
    count: int
    faults: Sequence[Mapping[str, Any]]

    @property
    def has_more(self) -> bool:
        """Whether more is wrong than was counted."""
        return self.count >= MAX_FAULTS


@transaction.atomic
def ask_to_verify(*, workspace_id: uuid.UUID) -> None:
    """Let a worker verify the ledger of a workspace."""
    jobs.ask(kind=Job.Kind.VERIFY, subjects=[workspace_id], workspace_id=workspace_id)
    jobs.wake_workers()


def verify(job: Job) -> None:
    """Verify the ledger of the job's workspace, and keep what was found.

    Raises:
        LostLeaseError: if the lease has passed to another worker.
    """
    at = datetime.now(UTC)
    found = verify_ledger(job.workspace_id)
    kept = [[each.index, each.kind, str(each.subject or ""), each.text] for each in found.faults[:MAX_KEPT]]
    with jobs.together(job):
        jobs.checkpoint(job, {
            "at": at.isoformat(), "size": found.size, "checkpoints": found.checkpoints, "waiting": found.waiting,
            "count": len(found.faults), "faults": kept,
        })  # fmt: skip
        jobs.finish(job)


def find_checked(*, workspace_id: uuid.UUID) -> Checked | None:
    """What came of verifying the ledger of a workspace; None where nobody has asked for it."""
    job = Job.objects.filter(kind=Job.Kind.VERIFY, subject=workspace_id).first()
    if job is None:
        return None
    kept = job.checkpoint
    return Checked(
        is_under_way=job.state in (Job.State.QUEUED, Job.State.RUNNING),
        failure=job.failure if job.state == Job.State.DEAD else "",
        at=datetime.fromisoformat(kept["at"]) if kept else None,
        size=kept.get("size", 0),
        checkpoints=kept.get("checkpoints", 0),
        waiting=kept.get("waiting", 0),
        count=kept.get("count", 0),
        faults=[dict(zip(("index", "kind", "subject", "text"), each, strict=True)) for each in kept.get("faults", ())],
    )
