"""The raw view of a conversation: its records one after the other, each with the messages that were read from it."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from inspector.accounts.models import Membership
from inspector.intake.models import Sighting
from inspector.intake.selectors import find_first_sightings
from inspector.threads.messages import has_record, load_records
from inspector.threads.models import Message
from inspector.threads.selectors import sum_up
from inspector.threads.timeline import read_timeline

from ..agents.marks import Cast, cast_conversation
from ..deliveries.progress import name_delivery
from ..shell import render_page, within_workspace
from ..shown.budgets import share_out, shorten_name
from ..shown.fields import has_secret
from ..shown.told import make_line, name_dialect
from ..shown.wires import MAX_RECORD_BYTES, MAX_SHOWN_RECORD_BYTES, cut_wire, fit_wire, weigh_wire
from .frame import frame_conversation, open_conversation
from .windows import make_pager, read_jump, read_start

WINDOW_ROWS: Final = 50


@within_workspace("GET")
def show_raw(request: HttpRequest, membership: Membership, conversation_id: uuid.UUID) -> HttpResponse:
    """A window of the conversation's records as they were received, in the order of time, secrets masked."""
    conversation = open_conversation(membership, conversation_id)
    jump = read_jump(request, total=conversation.message_count)
    if jump is not None:
        return redirect(f"{request.path}?offset={jump // WINDOW_ROWS * WINDOW_ROWS}#r-{jump + 1}")
    window = read_timeline(conversation=conversation, start=read_start(request, conversation), size=WINDOW_ROWS)
    context = {
        **frame_conversation(
            membership=membership,
            conversation=conversation,
            digest=sum_up(conversation=conversation),
            current="conversation-raw",
            stop=window.last,
        ),
        "rows": _make_rows(window.rows, cast_conversation(conversation)),
        "pager": make_pager(conversation, window, size=WINDOW_ROWS),
    }
    return render_page(request, membership, "conversation/raw.html", context, section="conversations")


def _make_rows(messages: Sequence[Message], cast: Cast) -> list[dict[str, Any]]:
    left_out = load_records(messages=messages, max_bytes=MAX_SHOWN_RECORD_BYTES, max_in_all=MAX_RECORD_BYTES)
    seen = find_first_sightings(record_ids={message.record_id for message in messages})
    made = [
        _make_row(list(parts), left_out.get(record_id), seen.get(record_id), cast)
        for record_id, parts in groupby(messages, key=lambda message: message.record_id)
    ]
    most = share_out(weigh_wire(row["wire"], row["stretches"]) for row in made)
    return [{**row, "wire_characters": fit_wire(row["wire"], row["stretches"], most)} for row in made]


def _make_row(parts: Sequence[Message], left_out: int | None, sighting: Sighting | None, cast: Cast) -> dict[str, Any]:
    """A record: its wire, where it was seen first, and the messages of this window that were read from it.

    `size_bytes` and `sha256` are those of its source; `is_left_out` where it is too large for this page.
    """
    first = parts[0]
    wire, stretches = cut_wire(first)
    source = bytes(first.record.source) if has_record(first) else b""
    return {
        "anchor": f"r-{first.number}",
        "parts": [{"row": part, "line": make_line(part, cast)} for part in parts],
        "dialect": name_dialect(first.dialect),
        "record_id": first.record_id,
        "size_bytes": len(source) if left_out is None else left_out,
        "is_left_out": left_out is not None,
        "sha256": hashlib.sha256(source).hexdigest() if has_record(first) else "",
        "wire": wire,
        "stretches": stretches,
        "is_masked": has_secret({0: stretches}),
        "sighting": sighting,
        "seen_in": shorten_name(name_delivery(sighting.delivery)) if sighting else "",
    }
