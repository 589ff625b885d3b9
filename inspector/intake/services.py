"""Writes of intake: open a delivery, take a stream in; uploads and their framing stand in `uploads`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from inspector.accounts.models import ApiKey, Channel, User, Workspace
from inspector.accounts.workspaces import check_open
from inspector.tokens import hide_tokens

from .containers import Arrival
from .framing import EmptyError, frame_stream
from .models import Delivery
from .store import AbandonedError, TwinError
from .text import make_storable
from .uploads import frame_upload, take_file, take_upload
from .withdrawals import take_back, weigh_records, withdraw_delivery

__all__ = [
    "AbandonedError",
    "EmptyError",
    "TwinError",
    "frame_upload",
    "open_delivery",
    "take_back",
    "take_file",
    "take_stream",
    "take_upload",
    "weigh_records",
    "withdraw_delivery",
]


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
    """A delivery that is about to be received. What it carries comes by `take_stream` or `take_upload`.

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


def take_stream(*, delivery: Delivery, chunks: Iterable[bytes], arrival: Arrival | None = None) -> Delivery:
    """Frame a stream as it arrives; every complete record is durable when this returns (API, import command).

    Args:
        delivery: just opened.
        chunks: the stream.
        arrival: the file that the stream is unfolded from, if it is one.

    Raises:
        EmptyError, TwinError: for one without a row, of which nothing is stored then: see `frame_stream`.
        Exception: what reading the stream raised, after its complete records were stored.
    """
    return frame_stream(delivery=delivery, chunks=chunks, arrival=arrival)
