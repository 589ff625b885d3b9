"""The dialects that a message may be read in, why, and how it would read in another: a view that is kept nowhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.http import Http404

import dialects
from dialects import Reading
from inspector.intake.facts import read_with_facts
from inspector.intake.masks import mask_layers
from inspector.threads.models import Message

from ..shown.markup import share
from ..shown.readings import list_all_notes, show_parts, show_pieces
from ..shown.told import Segments, name_dialect

_NO_SIGN: Final = "nothing in the text speaks for it"


def list_choices(
    message: Message, body: Mapping[str, Any], *, shown: str, address: Callable[[str | None], str]
) -> list[dict[str, Any]]:
    """Every dialect, the likeliest first: what detection said when it was stored, and of the others what it says now.

    Detection stops at a dialect that is certain; here a reader asks about all of them.

    Args:
        message: with its record.
        body: what telling wrote.
        shown: the dialect that the page shows it in.
        address: writes the address of the page in a dialect, or as it is stored for None.
    """
    found = {each["dialect"]: (each["score"], each.get("why") or "") for each in body["record"].get("candidates") or ()}
    for dialect in dialects.all_dialects():
        if dialect.slug not in found and (candidate := dialect.sniff(message.record.wire_text)):
            found[dialect.slug] = (candidate.score, candidate.why)
    choices = [
        {
            "slug": dialect.slug,
            "title": dialect.title,
            "percent": round(100 * found[dialect.slug][0]) if dialect.slug in found else None,
            "why": found.get(dialect.slug, (0, _NO_SIGN))[1],
            "is_stored": dialect.slug == message.dialect,
            "is_shown": dialect.slug == shown,
            "url": address(None if dialect.slug == message.dialect else dialect.slug),
        }
        for dialect in dialects.all_dialects()
    ]
    return sorted(choices, key=lambda choice: -1 if choice["percent"] is None else choice["percent"], reverse=True)


def read_choice(text: str, message: Message) -> str | None:
    """The dialect that an address asks for; None where it asks for none, or for the one that is stored.

    Raises:
        Http404: for a dialect that does not exist.
    """
    if not text or text == message.dialect:
        return None
    if text not in {dialect.slug for dialect in dialects.all_dialects()}:
        raise Http404
    return text


def read_otherwise(message: Message, stored: Reading, dialect: str) -> dict[str, Any]:
    """A message as it would read in a dialect, without the conversation before it: what the page shows of it.

    What the stored reading masks is masked before: no other dialect would know that it is a secret.
    """
    record = message.record
    wire = mask_layers(stored)[0]
    reading = read_with_facts(wire, record.envelope, record.facts, dialect=dialect)
    told = dialects.tell(reading, dialects.Context())
    whole = told.whole
    return {
        "title": name_dialect(dialect, whole.version),
        **show_parts(whole),
        "notes": list_all_notes(whole),
        "is_masked": wire != stored.wire,
        "pieces": show_pieces(whole),
    }


def find_doubts(segments: Segments, notes: Sequence[Any]) -> list[dict[str, Any]]:
    """The pieces of a sentence that are not said by the wire itself, each with the notes about the same characters."""
    return [
        {
            "text": text.strip(),
            "spans": spans,
            "basis": basis,
            "notes": [note.text for note in notes if note.spans and share(spans, note.spans)][:3],
        }
        for text, spans, basis in segments
        if basis != "exact" and text.strip()
    ]
