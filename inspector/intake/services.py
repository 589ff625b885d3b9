"""Writes of intake: open a delivery, take a stream or an upload in, frame what waits."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from inspector.accounts.models import ApiKey, Channel, User, Workspace

from . import jobs
from .framing import Framer, frame_stream
from .models import Chunk, Delivery, Job
from .text import make_storable

CHUNK_BYTES = 1024 * 1024
SLICE_SECONDS = 20.0


@transaction.atomic
def open_delivery(
    *,
    workspace: Workspace,
    channel: Channel,
    door: str,
    user: User | None = None,
    key: ApiKey | None = None,
    remote_address: str = "",
    file_name: str = "",
    content_type: str = "",
    options: dict[str, Any] | None = None,
    declared_start: datetime | None = None,
    idempotency_key: str | None = None,
) -> Delivery:
    """A delivery that is about to be received. What it carries comes by `take_stream` or `take_upload`.

    Raises:
        ValueError: for a channel of another workspace.
    """
    if channel.workspace_id != workspace.pk:
        raise ValueError("the channel belongs to another workspace")
    return Delivery.objects.create(
        workspace=workspace,
        channel=channel,
        door=door,
        sent_by_user=user,
        sent_by_key=key,
        remote_address=remote_address,
        file_name=make_storable(file_name)[:1024],
        content_type=make_storable(content_type)[:120],
        options=options or {},
        declared_start=declared_start,
        idempotency_key=idempotency_key,
    )


def take_stream(*, delivery: Delivery, chunks: Iterable[bytes]) -> Delivery:
    """Frame a stream as it arrives; every complete record is durable when this returns (API, import command)."""
    return frame_stream(delivery=delivery, chunks=chunks)


def take_upload(*, delivery: Delivery, chunks: Iterable[bytes]) -> Delivery:
    """Keep an upload's bytes; when this returns they are durable, and a framing job follows."""
    digest = hashlib.sha256()
    with transaction.atomic():
        for data in _split(chunks):
            Chunk.objects.create(delivery=delivery, offset=delivery.size_bytes, data=data)
            digest.update(data)
            delivery.size_bytes += len(data)
        delivery.sha256 = digest.digest()
        delivery.state = Delivery.State.FRAMING
        delivery.save(update_fields=["size_bytes", "sha256", "state"])
        jobs.ask(kind=Job.Kind.FRAME, subjects=[delivery.pk], workspace_id=delivery.workspace_id)
    jobs.ring()
    return delivery


def _split(chunks: Iterable[bytes]) -> Iterable[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), CHUNK_BYTES):
            yield chunk[start : start + CHUNK_BYTES]


def frame_upload(job: Job) -> bool:
    """One slice of framing an upload, under a minute; True when the receipt is final.

    Raises:
        LostLeaseError: if another worker has taken over; nothing of the batch at hand is then committed.
    """
    delivery = Delivery.objects.get(pk=job.subject)
    if delivery.is_framed:
        return True
    state = job.checkpoint.get("reader")
    delivery.framed_bytes = state["offset"] if state else 0
    framer = Framer(delivery, state=state, keep=lambda reader: jobs.checkpoint(job, {"reader": reader}))
    until = time.monotonic() + SLICE_SECONDS
    for offset in list(delivery.chunks.order_by("offset").values_list("offset", flat=True)):
        if offset + CHUNK_BYTES <= delivery.framed_bytes:
            continue
        data = bytes(Chunk.objects.values_list("data", flat=True).get(delivery=delivery, offset=offset))
        framer.feed(data[max(0, delivery.framed_bytes - offset) :])
        if time.monotonic() > until:
            framer.pause()
            return False
    framer.close()
    with transaction.atomic():
        delivery.state, delivery.framed_at = Delivery.State.FRAMED, timezone.now()
        delivery.save(update_fields=["state", "framed_at", "framed_bytes"])
        delivery.chunks.all().delete()
    return True
