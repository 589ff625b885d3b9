"""Writes of intake: open a delivery, take a file in; `framing` takes a stream in.

Of an upload the bytes are durable first, as they came, and are framed slice by slice afterwards. A gzip or zstd file is
one delivery, whose size and digest are those of the file and whose stream is what it holds. A zip is one delivery for
each file in it, or it is refused and nothing of it is stored. What cannot be opened to its end leaves a broken
delivery: its whole records are stored, and the file is kept as it arrived.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from inspector.accounts.models import ApiKey, Channel, User, Workspace
from inspector.accounts.workspaces import check_open
from inspector.database import make_storable
from inspector.keyring.encryption import LockedError, SealError
from inspector.keyring.periods import hold_seal
from inspector.tokens import hide_tokens

from . import jobs
from .containers import (
    ZIP,
    Archive,
    Arrival,
    ContainerError,
    RefusedArchiveError,
    name_container,
    peek,
    skip_bytes,
    unfold,
)
from .framing import Framer
from .liveness import alive
from .models import Chunk, Delivery, Job
from .object_store import StoreError

CHUNK_BYTES = 1024 * 1024
SLICE_SECONDS = 20.0


def describe_file(delivery: Delivery) -> dict[str, Any]:
    """What the audit log keeps of a file that a person sent: what shows later which one it was."""
    return {
        "sha256": bytes(delivery.sha256 or b"").hex(),
        "bytes": delivery.size_bytes,
        "channel": delivery.options.get("channel") or delivery.channel.name,
        "received_at": delivery.received_at.isoformat(),
    }


def take_file(*, delivery: Delivery, chunks: Iterable[bytes]) -> list[Delivery]:
    """Keep an upload's bytes; when this returns they are durable, and framing jobs follow unless it is staged.

    Args:
        delivery: just opened; it becomes the first of those that are given back.
        chunks: the file.

    Raises:
        RefusedArchiveError: for a zip that is not taken; nothing of it is stored, and the delivery is gone.
        LockedError, StoreError: where nothing can be sealed, or the object store takes nothing; likewise.
    """
    with alive(delivery.pk):
        try:
            return _take_file_alive(delivery, chunks)
        except (LockedError, StoreError):
            delivery.delete()
            raise


def _take_file_alive(delivery: Delivery, chunks: Iterable[bytes]) -> list[Delivery]:
    head, pieces = peek(chunks)
    kind = name_container(head)
    if kind == ZIP:
        return _take_archive(delivery, pieces)
    if kind:
        delivery.options = delivery.options | {"container": kind}
    with transaction.atomic():
        _keep(delivery, pieces)
    jobs.wake_workers()
    return [delivery]


def keep_arrival(*, delivery: Delivery, chunks: Iterable[bytes]) -> None:
    """Keep the file of a broken import as it arrived, beside what was framed of it."""
    with transaction.atomic():
        _keep_chunks(delivery, chunks)


def name_member(archive_name: str, member: str) -> str:
    """What a file of an archive is called: `archive.zip/member`."""
    return make_storable(f"{archive_name}/{member}")[:1024]


def tell_nested(head: bytes) -> str | None:
    """Why a file of an archive is not opened, by its first bytes; None where it is no container."""
    inner = name_container(head)
    return f"the file is a {inner} within a zip: a container within a container is not opened" if inner else None


def _take_archive(delivery: Delivery, pieces: Iterable[bytes]) -> list[Delivery]:
    with tempfile.TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as file:
        arrival = Arrival(pieces)
        for piece in arrival:
            file.write(piece)
        try:
            archive = Archive(file, max_bytes=settings.LIMITS["delivery_bytes"])
        except RefusedArchiveError:
            delivery.delete()
            raise
        except ContainerError as error:
            file.seek(0)
            delivery.options = delivery.options | {"is_closed": True, "broken": str(error)}
            with transaction.atomic():
                _keep(delivery, iter(lambda: file.read(CHUNK_BYTES), b""))
            jobs.wake_workers()
            return [delivery]
        name, sha256 = delivery.file_name, arrival.sha256.hex()
        options = delivery.options | {"archive": {"name": name, "size_bytes": arrival.size_bytes, "sha256": sha256}}
        deliveries = [delivery, *(_copy(delivery) for _ in archive.members[1:])]
        with transaction.atomic():
            for one, member in zip(deliveries, archive.members, strict=True):
                one.file_name, one.options = name_member(name, hide_tokens(member.filename)), options
                _take_member(one, archive.read(member))
    jobs.wake_workers()
    return deliveries


def _take_member(delivery: Delivery, pieces: Iterable[bytes]) -> None:
    """One file of an archive as a delivery of its own."""
    failures: list[str] = []
    head, pieces = peek(read_until_broken(pieces, failures))
    nested = tell_nested(head)
    if nested:
        delivery.options = delivery.options | {"is_closed": True, "broken": nested}
    _keep(delivery, pieces)
    if failures and not nested:
        delivery.options = delivery.options | {"broken": failures[0]}
        delivery.save(update_fields=["options"])


def read_until_broken(pieces: Iterable[bytes], failures: list[str]) -> Iterator[bytes]:
    """The bytes up to where their container is broken, which `failures` says then."""
    try:
        yield from pieces
    except ContainerError as error:
        failures.append(make_storable(str(error)))


def _copy(delivery: Delivery) -> Delivery:
    """A delivery by the same hand through the same door at the same time."""
    return Delivery(
        workspace=delivery.workspace,
        channel=delivery.channel,
        door=delivery.door,
        state=delivery.state,
        received_at=delivery.received_at,
        declared_start=delivery.declared_start,
        sent_by_user=delivery.sent_by_user,
        sent_by_key=delivery.sent_by_key,
        remote_address=delivery.remote_address,
        content_type=delivery.content_type,
        options=delivery.options,
    )


def _keep(delivery: Delivery, pieces: Iterable[bytes]) -> None:
    """The bytes, the delivery and its framing job; call inside a transaction. What is staged has no job yet."""
    is_staged = delivery.state == Delivery.State.STAGED
    if not is_staged:
        delivery.state = Delivery.State.FRAMING
    if delivery._state.adding:
        delivery.save()
    arrival = Arrival(pieces)
    _keep_chunks(delivery, arrival)
    delivery.size_bytes, delivery.sha256 = arrival.size_bytes, arrival.sha256
    delivery.save(update_fields=["size_bytes", "sha256", "state", "file_name", "options"])
    if not is_staged:
        jobs.ask(kind=Job.Kind.FRAME, subjects=[delivery.pk], workspace_id=delivery.workspace_id)


def _keep_chunks(delivery: Delivery, pieces: Iterable[bytes]) -> None:
    offset, seal = 0, hold_seal(delivery.workspace)
    for data in _cut_evenly(pieces):
        chunk = Chunk(delivery=delivery, offset=offset, sealed_with_id=seal.id if seal else None)
        chunk.keep(seal.seal(data, *chunk.place_of("data")) if seal else data)
        chunk.save(force_insert=True)
        offset += len(data)


def _cut_evenly(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in chunks of `CHUNK_BYTES`, and what is left: a row or an object is no smaller than it need be."""
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) >= CHUNK_BYTES:
            yield bytes(held[:CHUNK_BYTES])
            del held[:CHUNK_BYTES]
    if held:
        yield bytes(held)


def frame_upload(job: Job) -> bool:
    """One slice of framing an upload, under a minute; True when the receipt is final.

    A container is unfolded again from its start up to where the slice before ended: that costs little beside framing,
    and nothing but the reader's state has to survive a kill.

    Raises:
        LostLeaseError: if another worker has taken over; nothing of the batch at hand is then committed.
    """
    delivery = Delivery.objects.get(pk=job.subject)
    if delivery.is_framed:
        return True
    state = job.checkpoint.get("reader")
    upload = UploadStream(delivery, start=state["offset"] if state else 0)
    framer = Framer(
        delivery,
        state=state,
        keep=lambda reader: jobs.checkpoint(job, {"reader": reader}),
        measure=upload.measure,
    )
    until = None
    failure: str | None = delivery.options.get("broken")
    try:
        for piece in framer.bound(upload.pieces):
            until = until or time.monotonic() + SLICE_SECONDS
            framer.feed(piece)
            if time.monotonic() > until:
                framer.pause()
                return False
    except ContainerError as error:
        failure = str(error)
    if failure is None:
        framer.close()
    # What was cut is stored together with the end of it all, for it must not be stored again.
    with transaction.atomic():
        if failure is not None:
            framer.break_off(failure, file_digest=bytes(delivery.sha256 or b""))
            delivery.failure = f"the file could not be read to its end: {make_storable(failure)}"
        else:
            delivery.chunks.all().delete()
        delivery.framed_bytes = delivery.size_bytes
        delivery.state = Delivery.State.BROKEN if failure is not None else Delivery.State.FRAMED
        delivery.framed_at = timezone.now()
        delivery.save(update_fields=["state", "failure", "framed_at", "framed_bytes"])
    return True


class UploadStream:
    """The (unfolded) bytes of an upload that waits in chunks, from the byte `start` of the stream on (`pieces`), and
    how much of the file they have taken (`measure`)."""

    def __init__(self, delivery: Delivery, *, start: int = 0) -> None:
        kind = delivery.options.get("container")
        self.pieces: Iterable[bytes] = ()
        self.measure: Callable[[], int] | None = None
        if kind:
            arrival = Arrival(_read_chunks(delivery))
            self.pieces = skip_bytes(unfold(kind, arrival, max_bytes=settings.LIMITS["delivery_bytes"]), start)
            self.measure = lambda: arrival.size_bytes
        elif not delivery.options.get("is_closed"):
            self.pieces = _read_chunks(delivery, start)


def _read_chunks(delivery: Delivery, start: int = 0) -> Iterator[bytes]:
    for offset in list(delivery.chunks.order_by("offset").values_list("offset", flat=True)):
        if offset + CHUNK_BYTES > start:
            try:
                data = bytes(delivery.chunks.get(offset=offset).data)
            except SealError as error:
                raise ContainerError(str(error)) from error
            yield data[max(0, start - offset) :]


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
    is_staged: bool = False,
    has_row: bool = True,
) -> Delivery:
    """A delivery that is about to be received. What it carries comes by `take_stream` or `take_file`.

    One that `is_staged` waits for a person's word: see `staging`. To one that has no row yet, `take_stream` gives it
    with the first records.

    Raises:
        ValueError: for a channel of another workspace.
        ValidationError: where the workspace is archived.
    """
    check_open(workspace)
    if channel.workspace_id != workspace.pk:
        raise ValueError("the channel belongs to another workspace")
    delivery = Delivery(
        workspace=workspace,
        channel=channel,
        door=door,
        state=Delivery.State.STAGED if is_staged else Delivery.State.RECEIVING,
        sent_by_user=user,
        sent_by_key=key,
        remote_address=remote_address,
        file_name=make_storable(hide_tokens(file_name))[:1024],
        content_type=make_storable(content_type)[:120],
        options=options or {},
        declared_start=declared_start,
        idempotency_key=idempotency_key,
    )
    if has_row:
        delivery.save(force_insert=True)
    return delivery
