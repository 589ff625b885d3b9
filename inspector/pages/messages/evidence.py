"""The evidence behind a message: its record, where that was seen, who withdrew it, and its exact bytes."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from inspector.accounts.models import Membership
from inspector.intake.concealing import has_tokens
from inspector.intake.masks import MAX_BYTES_LOOKED_THROUGH
from inspector.intake.models import Record
from inspector.intake.selectors import find_record, has_bytes, list_sightings, measure_source, read_source
from inspector.ledger.places import Place, place_of
from inspector.ledger.selectors import find_changed, is_as_entered, leaf_hash_of, say_changed
from inspector.lookups import or_404
from inspector.opening.reveals import disclose_source
from inspector.ranges import RangeError, answer_bytes, refuse_range
from inspector.retention.selectors import find_tombstone
from inspector.threads.messages import list_messages_of, list_withdrawals_behind, unfold
from inspector.threads.models import Message

from ..deliveries.progress import name_delivery
from ..shell import within_workspace
from ..shown.fields import cut_layers, has_secret

MAX_SIGHTINGS = 10
# Unfolding takes time in proportion to the fields; beyond this a page would keep a server busy for many seconds.
MAX_UNFOLDED_BYTES = MAX_BYTES_LOOKED_THROUGH


def make_evidence(record: Record, membership: Membership, *, is_masked: bool) -> dict[str, Any]:
    """The record of a message with its digest, and the deliveries that it was seen in."""
    rows = list_sightings(record=record).annotate(
        place=place_of("record", OuterRef("record")), leaf_hash=leaf_hash_of("record", OuterRef("record"))
    )
    sightings = list(rows[: MAX_SIGHTINGS + 1])
    place = vars(sightings[0])["place"] if sightings else None
    digest = measure_source(record=record)[1]
    is_changed = bool(place) and not is_as_entered(record, bytes.fromhex(digest), vars(sightings[0])["leaf_hash"])
    return {
        "record_id": record.pk,
        "sha256": digest,
        "changed": say_changed("record", place["index"]) if place and is_changed else "",
        "place": Place(**place) if place else None,
        "may_download": membership.is_auditor or not (is_masked or has_tokens(record)),
        "sightings": [
            {"row": sighting, "name": name_delivery(sighting.delivery)} for sighting in sightings[:MAX_SIGHTINGS]
        ],
        "has_more": len(sightings) > MAX_SIGHTINGS,
    }


def list_withdrawals(message: Message) -> list[dict[str, Any]]:
    """Why the message is hidden: who withdrew which delivery; nothing where it is shown."""
    if not getattr(message, "is_hidden", False):
        return []
    return [
        {"row": withdrawal, "name": name_delivery(withdrawal.delivery)}
        for withdrawal in list_withdrawals_behind(message=message)
    ]


@within_workspace("GET")
def download_raw(request: HttpRequest, membership: Membership, record_id: uuid.UUID) -> HttpResponseBase:
    """The exact bytes of a record or a range of them, as a download that no browser will interpret.

    What holds a secret, or could not be read so far as to know, is for owners and auditors (decision 9). Bytes that are
    not those that were entered in the ledger are given to nobody as the record's.
    """
    record = or_404(find_record(workspace=membership.workspace, record_id=record_id))
    if not membership.is_auditor and not _is_free_of_secrets(record):
        raise PermissionDenied
    if tombstone := find_tombstone(workspace_id=membership.workspace_id, about=record_id):
        return HttpResponse(f"It was {tombstone.erasure}.\n", content_type="text/plain; charset=utf-8", status=410)
    for index in find_changed("record", [record.pk]).values():
        said = f"{say_changed('record', index)}\n"
        return HttpResponse(said, content_type="text/plain; charset=utf-8", status=409)
    if membership.is_auditor:
        disclose_source(record=record, by=membership)
    pieces = read_source(record=record)
    size, digest = measure_source(record=record)
    try:
        return answer_bytes(request, pieces, name=f"{record.pk}.bin", size=size, digest=digest)
    except RangeError as error:
        return refuse_range(error)


def _is_free_of_secrets(record: Record) -> bool:
    if not has_bytes(record) or len(record.source) > MAX_UNFOLDED_BYTES or has_tokens(record):
        return False
    messages = list_messages_of(record=record)
    return bool(messages) and not any(has_secret(cut_layers(unfold(message=message))) for message in messages)
