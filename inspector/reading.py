"""Reading: a delivery's new records into messages, batch by batch; a record at fault is set aside.

Agents post a message at a time, so small deliveries that are due together are read together. A batch that fails, or
that killed its worker, is read record by record. Each step keeps its checkpoint in the transaction of its work; the
lock order is that of `pipeline`.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Protocol

from django.db.models import F, Q, QuerySet

from inspector.database import IsAny, cut_windows
from inspector.intake import jobs, letters
from inspector.intake.failures import describe, is_passing, limit_time
from inspector.intake.models import DeadLetter, Delivery, Job, Record, Sighting
from inspector.threads.inserting import hold_records, read_record
from inspector.threads.resolving.arrivals import insert_arrivals, prepare

logger = logging.getLogger(__name__)

BATCH_RECORDS = 1500
BATCH_BYTES = 1024 * 1024
# So many deliveries are looked at that might be read together.
MAX_TOGETHER = 500
# What takes longer to read than this is poison, whatever it would come to.
READING_SECONDS = 60.0
# One that a delivery still being read has reached waits so long for more of it, and no longer.
HALF_READ_SECONDS = 8.0


class Waiting(Protocol):
    """A record that is to be read, where it was seen: what reading needs of a sighting."""

    index: int
    record_id: uuid.UUID
    outcome: str
    is_earlier: bool


_WAITING = ("index", "record_id", "outcome", "is_earlier")
_IS_NEW = Q(outcome=Sighting.Outcome.STORED) | Q(is_earlier=True)


def ingest_together(job: Job) -> bool:
    """Read a small delivery and others that are due with it, all in one transaction that ends their jobs.

    Deliveries that are still being received, or hold records that were set aside, are read by their own jobs, and so is
    what has failed or was begun.

    Returns:
        whether that was done; False where the delivery is to be read alone.
    """
    is_begun = job.attempts > 1 or job.failure or job.checkpoint
    found = {} if is_begun else _find_small([each.subject for each in (job, *job.companions)])
    jobs.part(job, [each for each in job.companions if job.subject not in found or each.subject not in found])
    if job.subject not in found:
        return False
    rows = [each for held in found.values() for each in held]
    records = _load(each.record_id for each in rows)
    try:
        with limit_time(READING_SECONDS):
            arrivals = [read_record(record) for record in records.values()]
            prepared = prepare(arrivals, workspace_id=job.workspace_id, has_more=False)
        with jobs.together(job):
            arrivals = hold_records(arrivals)
            jobs.finish(job, subjects=found.keys())
            insert_arrivals(
                arrivals=arrivals,
                workspace_id=job.workspace_id,
                prepared=prepared,
                moved=[each.record_id for each in rows if each.is_earlier],
            )
            # All of each is read, also where that is the second time.
            Delivery.objects.filter(pk__in=found).update(read=F("stored"))
    except jobs.LostLeaseError:
        raise
    except Exception as error:
        if is_passing(error):
            raise
        logger.warning("deliveries fail together and are read one by one: %s", describe(error))
        if job.companions:
            jobs.part(job, job.companions, failure=jobs.APART)
        else:
            # As a whole it has had its try: its records have theirs.
            jobs.checkpoint(job, job.checkpoint, attempts=2)
        return False
    return True


def _load(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Record]:
    return {record.pk: record for record in Record.objects.filter(IsAny("id", ids))}


def _find_small(delivery_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, list[Any]]:
    """What is to be read of these deliveries, as far as they are small; the first of them in one batch."""
    whole = Delivery.objects.filter(pk__in=delivery_ids, state=Delivery.State.FRAMED, set_aside=0)
    counts = dict(whole.filter(received__lte=BATCH_RECORDS).values_list("pk", "received"))
    chosen: list[uuid.UUID] = []
    count = 0
    for delivery_id in delivery_ids:
        if delivery_id in counts and count + counts[delivery_id] <= BATCH_RECORDS:
            count += counts[delivery_id]
            chosen.append(delivery_id)
    rows = Sighting.objects.filter(_IS_NEW, delivery_id__in=chosen).order_by("delivery_id", "index")
    held: dict[uuid.UUID, list[Any]] = defaultdict(list)
    for row in rows.values_list("delivery_id", "length", *_WAITING, named=True):
        held[row.delivery_id].append(row)
    sizes = ((each, sum(row.length for row in held[each])) for each in chosen if held[each])
    small = (each for each in sizes if each[1] <= BATCH_BYTES)
    windows = cut_windows(small, size_of=itemgetter(1), max_items=MAX_TOGETHER, max_bytes=BATCH_BYTES)
    return {each: held[each] for each, _ in next(windows, [])}


def ingest_batch(job: Job) -> bool:
    """One batch, or one record where its batch failed or killed its worker; whether there was one."""
    alone_until = job.checkpoint.get("alone_until", -1)
    batch = _find_batch(job, most=1 if job.checkpoint.get("index", -1) < alone_until else BATCH_RECORDS)
    if not batch:
        return False
    if batch[-1] <= alone_until:
        _read_alone(job, batch[-1], alone_until)
        return True
    if job.attempts == 1:
        try:
            _insert(job, batch, {"index": batch[-1]})
        except jobs.LostLeaseError:
            raise
        except Exception as error:
            if is_passing(error):
                raise
            logger.warning("a batch of job %s fails and is read record by record: %s", job.pk, describe(error))
        else:
            return True
    # From here on each attempt is counted by record, until this batch is behind.
    state = {name: value for name, value in job.checkpoint.items() if name == "index"} | {"alone_until": batch[-1]}
    jobs.checkpoint(job, state, attempts=2)
    return True


def _find_batch(job: Job, *, most: int) -> list[int]:
    """The indexes of the next records of the delivery that are to be read."""
    sizes = _waiting(job).order_by("index").values_list("index", "length")[:most]
    batches = cut_windows(sizes, size_of=itemgetter(1), max_items=most, max_bytes=BATCH_BYTES)
    return [index for index, _ in next(batches, [])]


def _waiting(job: Job) -> QuerySet[Sighting]:
    return Sighting.objects.filter(_IS_NEW, delivery_id=job.subject, index__gt=job.checkpoint.get("index", -1))


def _insert(job: Job, batch: Sequence[int], state: dict[str, Any], *, attempts: int = 1) -> None:
    """A batch's messages, its conversations' generations and the checkpoint in one transaction."""
    rows = _waiting(job).filter(index__lte=batch[-1]).order_by("index")
    _insert_sightings(job, list(rows.values_list(*_WAITING, named=True)), state, attempts=attempts)


def _insert_sightings(
    job: Job, sightings: Sequence[Waiting], state: dict[str, Any], *, attempts: int, letter: DeadLetter | None = None
) -> None:
    records = _load(sighting.record_id for sighting in sightings)
    stored = sum(sighting.outcome == Sighting.Outcome.STORED for sighting in sightings)
    moved = [sighting.record_id for sighting in sightings if sighting.is_earlier]
    has_more = _waiting(job).filter(index__gt=sightings[-1].index).exists()
    # What is tried alone is resolved by its conversation's own job, so that what fails there is not held against it.
    is_alone = attempts > 1 or letter is not None
    with limit_time(READING_SECONDS):
        arrivals = [read_record(records[pk]) for pk in dict.fromkeys(sighting.record_id for sighting in sightings)]
        prepared = None if is_alone else prepare(arrivals, workspace_id=job.workspace_id, has_more=has_more)
    with jobs.together(job):
        arrivals = hold_records(arrivals)
        jobs.checkpoint(job, state, attempts=attempts)
        insert_arrivals(
            arrivals=arrivals,
            workspace_id=job.workspace_id,
            prepared=prepared,
            moved=moved,
            resolve_after_seconds=HALF_READ_SECONDS if has_more else 0,
            reader=None if has_more else job.pk,
        )
        if letter is not None:
            letters.close(letter)
        Delivery.objects.filter(pk=job.subject).update(read=F("read") + stored)


def _read_alone(job: Job, index: int, alone_until: int) -> None:
    """Read one record; what fails also alone, or has killed its worker twice, is set aside, and the rest goes on."""
    is_last = index == alone_until
    state = {"index": index} | ({} if is_last else {"alone_until": alone_until})
    attempts = 1 if is_last else 2
    failure = jobs.DIED
    if job.attempts < jobs.MAX_ATTEMPTS:
        try:
            _insert(job, [index], state, attempts=attempts)
        except jobs.LostLeaseError:
            raise
        except Exception as error:
            if is_passing(error):
                raise
            failure = describe(error)
        else:
            return
    with jobs.together(job):
        jobs.checkpoint(job, state, attempts=attempts)
        letters.set_aside(delivery_id=job.subject, index=index, failure=failure)
    logger.error("record %d of delivery %s is set aside: %s", index, job.subject, failure)


def retry_letter(job: Job) -> bool:
    """Try one record again that was set aside; whether there was one."""
    letter = letters.begin_attempt(job)
    if letter is None:
        return False
    try:
        _insert_sightings(job, [letter.sighting], job.checkpoint, attempts=1, letter=letter)
    except jobs.LostLeaseError:
        raise
    except Exception as error:
        if is_passing(error):
            letters.forgive(letter)
            raise
        letters.note_failure(letter, error)
    return True
