"""What stands behind a message: its record, where that was seen and its exact bytes; why it is told as it is, and what
it was told as before; and how it would read in another dialect, a view that is kept nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase

import dialects
from dialects import Reading
from inspector.accounts.models import Membership
from inspector.bounds import RangeError, answer_bytes, refuse_range
from inspector.intake.models import Record
from inspector.intake.readings import MAX_BYTES_LOOKED_THROUGH, has_tokens, mask_layers, read_with_facts
from inspector.intake.selectors import find_record, has_bytes, list_sightings, measure_source, read_source
from inspector.ledger.proofs import Place, find_changed, is_as_entered, leaf_hash_of, place_of, say_changed
from inspector.opening import disclose_source
from inspector.retention.services import find_tombstone
from inspector.threads.dependencies import list_dependencies
from inspector.threads.models import Message
from inspector.threads.resolving.writing import list_wordings, read_words
from inspector.threads.selectors import list_messages_of, list_withdrawals_behind, unfold

from .shell import within_workspace
from .shown.fields import cut_layers, has_secret
from .shown.markup import share
from .shown.told import Segments, list_all_notes, name_delivery, name_dialect, name_dialect_of, show_parts, show_pieces

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


@within_workspace("GET", of=find_record)
def download_raw(request: HttpRequest, membership: Membership, record: Record) -> HttpResponseBase:
    """The exact bytes of a record or a range of them, as a download that no browser will interpret.

    What holds a secret, or could not be read so far as to know, is for owners and auditors (decision 9). Bytes that are
    not those that were entered in the ledger are given to nobody as the record's.
    """
    if not membership.is_auditor and not _is_free_of_secrets(record):
        raise PermissionDenied
    if tombstone := find_tombstone(workspace_id=membership.workspace_id, about=record.pk):
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


# A longer sentence is shown whole, without the difference: to find it would take too long.
MAX_COMPARED_LENGTH: Final = 4000

MAX_SHOWN: Final = 10

_SPELLED: Final = "domain topic vocabulary session group context setting floor handshake public-key fingerprint nonce"
_KINDS: Final = {
    **{kind: kind.replace("-", " ").capitalize() for kind in _SPELLED.split()},
    "def": "Definition",
    "ns": "Namespace",
    "session-use": "Use of the session",
    "security": "Security offered",
    "agent-name": "Name",
    "agent-number": "Number",
    "conversation-name": "Name of the conversation",
    "goal-name": "Name of the goal",
    "clowl-task": "State of the task",
    "clowl-latest-task": "Latest task between the two",
    "clowl-conversation": "State of the conversation",
}
# States of CLowl's published state machines, which are empty where a machine does not allow the step that was taken.
_STATES: Final = frozenset({"clowl-task", "clowl-conversation"})
_NO_STATE: Final = "none, as a published state machine of CLowl does not allow this step"

_CAUSES: Final = {
    "late": "an earlier message arrived late",
    "withdrawal": "a delivery it depends on was withdrawn",
    "return": "a delivery it depends on is shown again",
    "decoder": "the decoder was changed",
    "dialect": "its conversation turned out to speak another dialect",
    "moved": "it, or a message it depends on, was moved",
}

_WORD = re.compile(r"\s+|\w+|[^\w\s]")


def explain_english(message: Message, body: Mapping[str, Any]) -> dict[str, Any]:
    """The context behind a message's English: what was in force and asked for, vocabulary, and other readings."""
    record = body["record"]
    leanings = list_dependencies(message=message, body=body)
    others = [each for each in record.get("candidates") or () if each["dialect"] not in (message.read_in, "prose")]
    return {
        "leanings": [
            {
                "kind": _KINDS.get(entry.kind, entry.kind),
                "name": "" if entry.name == "active" else entry.name,
                "without": _NO_STATE if entry.kind in _STATES and not entry.value else "",
                "entry": entry,
            }
            for entry in leanings.entries
        ],
        "is_whole": leanings.is_whole,
        "dialect": name_dialect_of(message, record),
        "vocabulary": record.get("vocabulary") or "",
        "decoder": record.get("decoder") or "",
        "others": [
            {
                "dialect": name_dialect(each["dialect"]),
                "url": f"?as={each['dialect']}",
                "why": each.get("why") or "",
                "percent": round(each["score"] * 100),
            }
            for each in others
        ],
    }


def show_wordings(message: Message) -> dict[str, Any]:
    """The earlier wordings of a message, the latest first, each with what changed after it."""
    earlier = list_wordings(message=message)
    following = [*((each.english, each.also) for each in earlier[1:]), read_words(message.body)]
    lines = [
        {
            "row": each,
            "why": _CAUSES.get(each.cause, each.cause),
            "pieces": find_difference(each.english, english),
            "also_gone": [text for text in each.also if text not in also],
            "also_new": [text for text in also if text not in each.also],
        }
        for each, (english, also) in zip(earlier, following, strict=False)
    ]
    return {"wordings": lines[::-1][:MAX_SHOWN], "more_wordings": max(0, len(lines) - MAX_SHOWN)}


def find_difference(before: str, after: str) -> list[tuple[str, str]]:
    """What two sentences share and what differs, word by word: pieces (`same`, `gone` or `new`, text), in order."""
    if max(len(before), len(after)) > MAX_COMPARED_LENGTH:
        return [("gone", before), ("new", after)]
    old, new = _WORD.findall(before), _WORD.findall(after)
    pieces: list[tuple[str, str]] = []
    for what, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            pieces.append(("same", "".join(old[start:end])))
            continue
        pieces += [("gone", "".join(old[start:end]))] if end > start else []
        pieces += [("new", "".join(new[new_start:new_end]))] if new_end > new_start else []
    return pieces


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
