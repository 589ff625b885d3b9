"""Dead letters: records that could not be read, set aside so that the rest of their delivery could be.

A record fails with others in its batch, then alone; then it is a letter and the rest goes on. Its last attempt comes
when the rest is done, for it may kill the worker again. A person can ask for three more, after the cause is mended.
What framing counted never moves; `set_aside` counts a delivery's new records that wait here, beside those `read`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from inspector.accounts.models import Membership

from . import jobs
from .failures import describe
from .models import DeadLetter, Delivery, Job, Sighting

_CHANGED = ["state", "attempts", "failure", "updated_at"]


def set_aside(*, delivery_id: uuid.UUID, index: int, failure: str) -> None:
    """Put the record at this index aside; call inside the transaction that moves the checkpoint past it.

    The record itself is not loaded: that may be what failed.
    """
    sighting = Sighting.objects.get(delivery_id=delivery_id, index=index)
    DeadLetter.objects.create(
        workspace_id=sighting.workspace_id,
        delivery_id=delivery_id,
        record_id=sighting.record_id,
        sighting=sighting,
        attempts=jobs.MAX_ATTEMPTS - 1,
        failure=failure,
    )
    _count(sighting, F("set_aside") + 1)


def begin_attempt(job: Job) -> DeadLetter | None:
    """The next letter of the delivery that is to be tried, its attempt counted; None where there is none.

    One whose attempts are used up has killed its worker at the last of them, and is given up.
    """
    while True:
        with jobs.together(job):
            # It is counted on the letter alone: the job begins anew with each.
            jobs.checkpoint(job, job.checkpoint, attempts=1)
            waiting = DeadLetter.objects.filter(delivery_id=job.subject, state=DeadLetter.State.WAITING)
            letter = waiting.select_related("sighting").order_by("created_at", "id").first()
            if letter is None:
                return None
            is_spent = letter.attempts >= jobs.MAX_ATTEMPTS
            if is_spent:
                letter.state = DeadLetter.State.DEAD
                letter.failure = letter.failure or jobs.DIED
            letter.attempts += not is_spent
            letter.updated_at = timezone.now()
            letter.save(update_fields=_CHANGED)
        if not is_spent:
            return letter


def note_failure(letter: DeadLetter, error: BaseException) -> None:
    """It failed: it waits for its next attempt, or is given up after the last."""
    is_spent = letter.attempts >= jobs.MAX_ATTEMPTS
    letter.state = DeadLetter.State.DEAD if is_spent else DeadLetter.State.WAITING
    letter.failure, letter.updated_at = describe(error), timezone.now()
    letter.save(update_fields=_CHANGED)


def forgive(letter: DeadLetter) -> None:
    """Take the attempt back: what failed was not the record."""
    DeadLetter.objects.filter(pk=letter.pk).update(attempts=F("attempts") - 1)


def close(letter: DeadLetter) -> None:
    """It has been read after all; call inside the transaction that inserts its messages."""
    letter.state, letter.failure, letter.updated_at = DeadLetter.State.READ, "", timezone.now()
    letter.save(update_fields=_CHANGED)
    _count(letter.sighting, F("set_aside") - 1)


def _count(sighting: Sighting, value: object) -> None:
    # A duplicate that is only read again in another place is in none of the counts.
    if sighting.outcome == Sighting.Outcome.STORED:
        Delivery.objects.filter(pk=sighting.delivery_id).update(set_aside=value)


@transaction.atomic
def retry(*, membership: Membership, ids: Iterable[uuid.UUID] | None = None) -> int:
    """Ask for new attempts of dead letters and of work that was given up, in the workspace of who asks.

    Args:
        membership: an owner or an auditor.
        ids: of letters and jobs; None means all there are.

    Returns:
        how many are tried again.

    Raises:
        PermissionDenied: for a viewer.
    """
    membership.require_auditor(membership.workspace_id, "has work tried again")
    workspace_id = membership.workspace_id
    letters = DeadLetter.objects.filter(workspace_id=workspace_id, state=DeadLetter.State.DEAD)
    dead = Job.objects.filter(workspace_id=workspace_id, state=Job.State.DEAD)
    if ids is not None:
        wanted = list(ids)
        letters, dead = letters.filter(pk__in=wanted), dead.filter(pk__in=wanted)
    given_up = list(dead.order_by("kind", "subject").values_list("kind", "subject"))
    deliveries = set(letters.values_list("delivery_id", flat=True))
    for kind in Job.Kind.values:
        subjects = {subject for one, subject in given_up if one == kind}
        if kind == Job.Kind.INGEST:
            subjects |= deliveries
        jobs.ask(kind=kind, subjects=subjects, workspace_id=workspace_id)
    count = letters.update(
        state=DeadLetter.State.WAITING, attempts=0, asked_by=membership.user, asked_at=timezone.now()
    )
    jobs.wake_workers()
    return count + len(given_up)
