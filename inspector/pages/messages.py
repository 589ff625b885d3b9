"""One message: English, fields and raw, linked; and the exact bytes of a record."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from dialects import Keys
from inspector.accounts.models import Membership
from inspector.intake.models import Record
from inspector.intake.selectors import find_record, list_sightings, read_source
from inspector.intake.withdrawals import find_withdrawals, is_hidden
from inspector.threads.hidden import list_withdrawals_behind
from inspector.threads.models import Message
from inspector.threads.numbering import number_messages
from inspector.threads.selectors import (
    find_message,
    find_messages_by_ids,
    find_neighbours,
    list_answers,
    read_body,
    unfold,
)
from inspector.threads.summaries import count_parts, find_openings, list_messages_of

from .agents import cast_conversation
from .disclosures import Disclosed, open_for
from .fields import MOST_LAYERS, cut_layers, has_secret, list_layers, list_rows, measure_syntax
from .histories import explain_english, show_wordings
from .progress import name_delivery
from .shell import render_page, within_workspace
from .told import is_named, list_notes, make_line, name_conversation, name_dialect, read_segments, shorten
from .trace_links import link_traces
from .transcript import ReplyLine, name_message

MOST_SIGHTINGS = 10
MOST_ANSWERS = 20
MOST_NOTES = 200
# Unfolding takes time in proportion to the fields; beyond this a page would keep a server busy for many seconds.
LONGEST_UNFOLDED_BYTES = 2_000_000

ORDERS = {
    "wire": "",
    "envelope": "no time on the wire: that of its envelope",
    "start": "no time on the wire: ordered by the declared start",
    "receipt": "no time on the wire: ordered by receipt",
}


@require_GET
@within_workspace
def show_message(request: HttpRequest, membership: Membership, message_id: uuid.UUID) -> HttpResponse:
    """One message in three linked panes, with its notes, its neighbours and its evidence."""
    message = find_message(workspace=membership.workspace, message_id=message_id)
    if message is None:
        raise Http404
    number_messages([message])
    slug = membership.workspace.slug
    disclosed = open_for(membership, [message], door="message")
    opening = disclosed.openings.get(message.pk)
    body = opening.lay_over(read_body(message)) if opening else read_body(message)
    told = body["message"]
    notes = list_notes(message, body)
    pieces = _unfold(message, opening.resolver if opening else None)
    before, after = find_neighbours(message=message)
    context = {
        "message": _describe(message, body, disclosed),
        "conversation": {
            "title": shorten(_name_conversation(message), 40),
            "url": reverse("pages:conversation", args=[slug, message.conversation_id]),
            "tree_url": reverse("pages:conversation-tree", args=[slug, message.conversation_id])
            + f"?message={message.pk}",
        },
        "traces": link_traces(membership.workspace, [message]),
        "previous_url": reverse("pages:message", args=[slug, before.pk]) if before else None,
        "next_url": reverse("pages:message", args=[slug, after.pk]) if after else None,
        "english": read_segments(told.get("english")) or ((message.english, (), "exact"),),
        "also": read_segments(told.get("also"), are_apart=True),
        "gloss": read_segments(told.get("gloss")),
        "reference_line": told.get("reference_line") or "",
        **pieces,
        "why": explain_english(message, body, slug),
        **show_wordings(message, slug),
        "withdrawals": _list_withdrawals(message, slug),
        "notes": notes[:MOST_NOTES],
        "more_notes": max(0, len(notes) - MOST_NOTES),
        "around": _make_around(message, body, membership),
        "evidence": _make_evidence(message.record, membership, is_masked=pieces["is_masked"]),
    }
    return render_page(request, membership, "message/message.html", context, section="conversations")


def _list_withdrawals(message: Message, slug: str) -> list[dict[str, Any]]:
    """Why the message is hidden: who withdrew which delivery; nothing where it is shown."""
    if not is_hidden(record=message.record):
        return []
    return [
        {
            "by": withdrawal.by.get_username(),
            "at": withdrawal.at,
            "reason": withdrawal.reason,
            "name": name_delivery(withdrawal.delivery),
            "url": reverse("pages:delivery", args=[slug, withdrawal.delivery_id]),
        }
        for withdrawal in list_withdrawals_behind(message=message)
    ]


def _unfold(message: Message, keys: Keys | None) -> dict[str, Any]:
    """Fields and layers; of a record too large for that, nothing: what is not unfolded cannot be masked either."""
    if len(message.record.source) > LONGEST_UNFOLDED_BYTES:
        return {"is_unfolded": False, "is_masked": True}
    reading = unfold(message=message, keys=keys)
    stretches = cut_layers(reading)
    fields, more_fields = list_rows(reading)
    return {
        "is_unfolded": True,
        "fields": fields,
        "more_fields": more_fields,
        "syntax": measure_syntax(stretches.get(0, ())),
        "layers": list_layers(reading, stretches),
        "more_layers": max(0, len(reading.layers) - MOST_LAYERS),
        "is_masked": has_secret(stretches),
    }


def _describe(message: Message, body: Any, disclosed: Disclosed) -> dict[str, Any]:
    wire = message.record.wire_text
    opening = disclosed.openings.get(message.pk)
    return {
        "title": shorten(opening.english if opening else message.english) or "A message that is not told yet",
        "line": make_line(message, cast_conversation(message.conversation)),
        "dialect": name_dialect(message.dialect, body["record"].get("version")),
        "is_sealed": message.is_sealed and opening is None,
        "is_withheld": message.pk in disclosed.withheld,
        "opened_with": disclosed.name_keys(message),
        "order_words": ORDERS.get(message.order_basis, ""),
        "channel": message.channel.name,
        "characters": len(wire),
        "bytes": len(wire.encode("utf-8", "surrogatepass")),
        "part": message.part,
        "parts": count_parts(record=message.record),
        "number": message.number,
        "run": message.run,
        "count": message.conversation.message_count,
    }


def _name_conversation(message: Message) -> str:
    conversation = message.conversation
    openings = {} if is_named(conversation) else find_openings(conversation_ids=[conversation.pk])
    return openings.get(conversation.pk) or name_conversation(conversation)


def _make_around(message: Message, body: Any, membership: Membership) -> dict[str, Any]:
    answers = list_answers(message=message, limit=MOST_ANSWERS + 1)
    return {
        "parent": _find_parent(message, body, membership),
        # Why a message that names a parent stands without one: it names itself, a circle, or nobody for certain.
        "why_none": "" if message.parent_basis else message.parent_why,
        "children": [
            {
                "url": reverse("pages:message", args=[membership.workspace.slug, answer.pk]),
                "performative": answer.performative,
                "native_act": answer.native_act,
                "sentence": shorten(answer.english),
                "basis": "inferred" if answer.parent_basis == "turn" else "explicit",
                "why": answer.parent_why,
            }
            for answer in answers[:MOST_ANSWERS]
        ],
        "has_more": len(answers) > MOST_ANSWERS,
    }


def _find_parent(message: Message, body: Any, membership: Membership) -> ReplyLine | None:
    if not message.parent_basis:
        return None
    found = find_messages_by_ids(workspace=membership.workspace, message_ids=[message.parent] if message.parent else [])
    parent = found.get(message.parent) if message.parent else None
    verbs = {"turn": "probably answers", "adjacency": "only follows"}
    return ReplyLine(
        basis="inferred" if message.parent_basis == "turn" else "explicit",
        verb=verbs.get(message.parent_basis, "answers"),
        anchor=reverse("pages:message", args=[membership.workspace.slug, parent.pk]) if parent else "",
        name=f"{name_message(parent)}: {shorten(parent.english)}"
        if parent
        else (body["message"].get("parent_id") or "a message"),
        why=message.parent_why,
        is_missing=parent is None,
    )


def _make_evidence(record: Record, membership: Membership, *, is_masked: bool) -> dict[str, Any]:
    slug = membership.workspace.slug
    digest = hashlib.sha256()
    for piece in read_source(record=record):
        digest.update(piece)
    sightings = list(list_sightings(record=record)[: MOST_SIGHTINGS + 1])
    withdrawn = find_withdrawals(delivery_ids=[sighting.delivery_id for sighting in sightings])
    return {
        "record_id": record.pk,
        "sha256": digest.hexdigest(),
        "raw_url": reverse("pages:raw", args=[slug, record.pk]) if membership.is_auditor or not is_masked else None,
        "sightings": [
            {
                "url": reverse("pages:delivery", args=[slug, sighting.delivery_id]),
                "name": name_delivery(sighting.delivery),
                "line": sighting.line,
                "at": sighting.delivery.received_at,
                "outcome": sighting.get_outcome_display().lower(),
                "is_withdrawn": sighting.delivery_id in withdrawn,
            }
            for sighting in sightings[:MOST_SIGHTINGS]
        ],
        "has_more": len(sightings) > MOST_SIGHTINGS,
    }


@require_GET
@within_workspace
def download_raw(request: HttpRequest, membership: Membership, record_id: uuid.UUID) -> StreamingHttpResponse:
    """The exact bytes of a record, as a download that no browser will interpret.

    What holds a secret, or could not be read so far as to know, is for owners and auditors (decision 9).
    """
    record = find_record(workspace=membership.workspace, record_id=record_id)
    if record is None:
        raise Http404
    if not membership.is_auditor and not _is_free_of_secrets(record):
        raise PermissionDenied
    response = StreamingHttpResponse(read_source(record=record), content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{record.pk}.bin"'
    response["Cache-Control"] = "no-store, private"
    return response


def _is_free_of_secrets(record: Record) -> bool:
    if len(record.source) > LONGEST_UNFOLDED_BYTES:
        return False
    messages = list_messages_of(record=record)
    return bool(messages) and not any(has_secret(cut_layers(unfold(message=message))) for message in messages)
