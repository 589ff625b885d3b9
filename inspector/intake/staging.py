"""Staging: an upload whose bytes are here while a person looks at its beginning and says how it is to be read.

Nothing of a staged file is in the log: it has chunks and choices, and no record, sighting or job. It is loaded as a
delivery like any other, or thrown away, or gone after a day.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone

from dialects import LogReader, LogRecord
from inspector.accounts.models import Channel, Membership, Workspace
from inspector.accounts.selectors import find_channel
from inspector.accounts.services import ensure_channel
from inspector.accounts.workspaces import check_open
from inspector.database import make_storable
from inspector.logs import note_about
from inspector.trail.services import Thing, record_deed

from . import jobs
from .containers import ContainerError
from .framing import PIECE_BYTES, close_broken, options_of
from .imports import Forecaster
from .models import Delivery, Door, Job
from .services import UploadStream, describe_file, open_delivery, take_file

KEPT_FOR = timedelta(hours=24)
SHOWN_RECORDS = 20
# A beginning is told while somebody waits for it.
LOOK_RECORDS, LOOK_BYTES = 1000, 2 * 1024 * 1024


# Deliveries of which bytes wait: for a person's word, for the rest, or to be framed.
WAITING = (Delivery.State.STAGED, Delivery.State.RECEIVING, Delivery.State.FRAMING)


class NotStagedError(Exception):
    """What was staged is loaded, thrown away or gone by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """How a person wants a file to be read.

    Attributes:
        channel: the name of the channel; one that does not exist is made when the file is loaded.
        dialect: a slug that every record is read in; None detects each.
        has_prefixes: whether times, labels and speakers before a text are taken apart from it.
        start: when the log begins, for records that carry no time.
        speakers: who speaks where nothing in the log says so: nobody known, one, or two that take turns.
    """

    channel: str = Channel.DEFAULT
    dialect: str | None = None
    has_prefixes: bool = True
    start: datetime | None = None
    speakers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The beginning of a file: its first records, and the numbers of as much as was looked at.

    Attributes:
        records: at most `SHOWN_RECORDS`.
        forecast: the counts of all that was looked at.
        looked_bytes: how much of the stream that was, unfolded where the file is packed.
        lines: how many lines that was.
        is_whole: whether that is the whole file.
        failure: why it cannot be read to its end, as far as was looked; empty where it can.
    """

    records: tuple[LogRecord, ...]
    forecast: Forecaster
    looked_bytes: int
    lines: int
    is_whole: bool
    failure: str


def stage_file(
    *, membership: Membership, channel: Channel, chunks: Iterable[bytes], choices: Choices, **custody: Any
) -> list[Delivery]:
    """Keep an upload's bytes until its sender decides; of an archive each file on its own.

    Args:
        membership: who uploads.
        channel: any channel of the workspace; the choice holds when the file is loaded.
        chunks: the file.
        choices: to begin with.
        custody: remote_address, file_name and content_type, as `open_delivery` takes them.

    Raises:
        RefusedArchiveError: for a zip that is not taken; nothing of it is kept.
    """
    delivery = open_delivery(
        workspace=membership.workspace,
        channel=channel,
        door=Door.UPLOAD,
        user=membership.user,
        options=_write(choices, {}),
        declared_start=choices.start,
        is_staged=True,
        **custody,
    )
    note_about(delivery=delivery.pk)
    return take_file(delivery=delivery, chunks=chunks)


def _write(choices: Choices, options: dict[str, Any]) -> dict[str, Any]:
    return options | {
        "channel": choices.channel,
        "dialect": choices.dialect,
        "prefixes": choices.has_prefixes,
        "speakers": [make_storable(name) for name in choices.speakers],
    }


def read_choices(delivery: Delivery) -> Choices:
    """How this delivery is to be read, or was."""
    said = delivery.options
    return Choices(
        channel=said.get("channel") or delivery.channel.name,
        dialect=said.get("dialect"),
        has_prefixes=said.get("prefixes", True),
        start=delivery.declared_start,
        speakers=tuple(said.get("speakers") or ()),
    )


@transaction.atomic
def choose(*, delivery: Delivery, choices: Choices) -> Delivery:
    """Keep how a staged file is to be read.

    Raises:
        NotStagedError: where it is not staged any more.
    """
    held = _hold(delivery)
    held.options, held.declared_start = _write(choices, held.options), choices.start
    held.save(update_fields=["options", "declared_start"])
    return held


@transaction.atomic
def load(*, delivery: Delivery) -> Delivery:
    """Take a staged file into the log as it was chosen to be read; its framing follows.

    Raises:
        NotStagedError: where it is not staged any more.
        ValidationError: for a channel whose name cannot be one, and where the workspace is archived.
    """
    held = _hold(delivery)
    check_open(held.workspace)
    held.channel = ensure_channel(workspace=held.workspace, name=read_choices(held).channel)
    held.options = {name: value for name, value in held.options.items() if name != "channel"}
    held.options["loaded_at"] = timezone.now().isoformat()
    held.state = Delivery.State.FRAMING
    held.save(update_fields=["channel", "options", "state"])
    jobs.ask(kind=Job.Kind.FRAME, subjects=[held.pk], workspace_id=held.workspace_id)
    jobs.wake_workers()
    record_deed(
        "delivery.imported",
        workspace_id=held.workspace_id,
        on=Thing("delivery", held.pk, held.file_name),
        details=describe_file(held),
    )
    return held


@transaction.atomic
def discard(*, delivery: Delivery) -> None:
    """Throw a staged file away; the audit log keeps who did and which file it was.

    Raises:
        NotStagedError: where it is not staged any more.
    """
    held = _hold(delivery)
    pk, details = held.pk, describe_file(held)
    held.delete()
    record_deed(
        "delivery.discarded", workspace_id=held.workspace_id, on=Thing("file", pk, held.file_name), details=details
    )


def discard_expired() -> int:
    """Throw away what has waited longer than `KEPT_FOR`; how many files that were."""
    too_old = Delivery.objects.filter(state=Delivery.State.STAGED, received_at__lt=timezone.now() - KEPT_FOR)
    return sum(_discard_quietly(delivery) for delivery in too_old[:100])


def _discard_quietly(delivery: Delivery) -> bool:
    try:
        discard(delivery=delivery)
    except NotStagedError:
        return False  # Its sender was quicker.
    return True


def _hold(delivery: Delivery) -> Delivery:
    rows = Delivery.objects.select_for_update(of=("self",)).select_related("workspace", "channel")
    held = rows.filter(pk=delivery.pk, state=Delivery.State.STAGED).first()
    if held is None:
        raise NotStagedError(str(delivery.pk))
    return held


def count_waiting_bytes(*, workspace: Workspace) -> int:
    """How many bytes of a workspace's deliveries are here and not framed yet."""
    waiting = Delivery.objects.filter(workspace=workspace, state__in=WAITING)
    return waiting.aggregate(total=Sum("size_bytes"))["total"] or 0


def list_staged(*, membership: Membership) -> QuerySet[Delivery]:
    """What this person has staged here, in the order of its arrival: nobody else sees it."""
    mine = Delivery.objects.select_related("channel", "workspace").filter(
        workspace=membership.workspace, sent_by_user=membership.user, state=Delivery.State.STAGED
    )
    return mine.order_by("received_at", "pk")


def look_at(*, delivery: Delivery) -> Beginning:
    """Frame the beginning of a staged file as it would be framed, and count what that would do. Nothing is stored."""
    reader = LogReader(options_of(delivery))
    channel = find_channel(workspace=delivery.workspace, name=read_choices(delivery).channel)
    forecast = Forecaster(workspace=delivery.workspace, channel=channel, received_at=delivery.received_at)
    records: list[LogRecord] = []
    position, is_whole = 0, True
    failure: str | None = delivery.options.get("broken")

    def take(items: Iterable[object]) -> None:
        framed = [item for item in items if isinstance(item, LogRecord)]
        records.extend(framed[: SHOWN_RECORDS - len(records)])
        forecast.take(framed)

    try:
        for piece in UploadStream(delivery).pieces:
            for start in range(0, len(piece), PIECE_BYTES):
                part = piece[start : start + PIECE_BYTES]
                if position >= LOOK_BYTES or forecast.received >= LOOK_RECORDS:
                    is_whole = False
                    break
                take(reader.feed(part))
                position += len(part)
            if not is_whole:
                break
    except ContainerError as error:
        failure = str(error)
    if failure is not None:
        digest = bytes(delivery.sha256 or b"")
        take(close_broken(reader, position=position, reason=make_storable(failure), file_digest=digest))
    elif is_whole:
        take(reader.close())
    return Beginning(
        records=tuple(records),
        forecast=forecast,
        looked_bytes=position,
        lines=reader.state()["line"] - 1,
        is_whole=is_whole,
        failure=make_storable(failure or ""),
    )
