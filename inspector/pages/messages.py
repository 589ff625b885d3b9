"""One message: English, fields and raw, linked to the character; as it is stored, or read in another dialect; and the
piece of it that is selected: what it is, its bytes, and the search that finds what carries the same.

The search that it was opened from travels in its address, so that one can go from match to match.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from dialects import Field, Reading
from inspector.accounts.models import Membership
from inspector.audit.findings.selectors import list_of_message
from inspector.browsing.transcripts import find_conflicts, find_rekeyed, load_doubts, mark_sentences, say_cautions_of
from inspector.browsing.withdrawn import Withdrawn, find_cited, find_withdrawn
from inspector.database import or_404
from inspector.intake.concealment import find_every
from inspector.intake.readings import mask_layers
from inspector.pages.shown.fields import VIEWS, show_layers
from inspector.retention.services import find_tombstone
from inspector.search import registry
from inspector.search.language import MAX_CHARACTERS, QueryError, quote
from inspector.search.refining import write_term
from inspector.search.registry import PATHS, SEARCHABLE
from inspector.search.selectors import find_beside
from inspector.threads import terms
from inspector.threads.keys import name_cited
from inspector.threads.models import Message
from inspector.threads.nodes import count_bearers
from inspector.threads.selectors import (
    find_message,
    find_messages_by_ids,
    find_neighbours,
    list_beside,
    mark_noted,
    read_body,
    unfold,
)
from inspector.threads.terms import MARK_CHARACTERS, write_value
from inspector.threads.trees import find_carrying

from .comments import show_threads
from .conversations.transcript import Disclosed, describe_carrying, describe_reply, find_verb, name_message, open_for
from .evidence import (
    MAX_UNFOLDED_BYTES,
    explain_english,
    find_doubts,
    list_choices,
    list_withdrawals,
    make_evidence,
    read_choice,
    read_otherwise,
    show_wordings,
)
from .shell import asking, render_page, within_workspace, write_query
from .shown.agents import cast_conversation
from .shown.fields import escape_character, find_on_wire, write_offsets
from .shown.findings import describe_findings
from .shown.markup import Span, name_spans
from .shown.told import (
    TIME_WORDS,
    link_rekeyed,
    link_search,
    list_notes,
    make_line,
    name_conversations,
    name_dialect_of,
    read_segments,
    shorten,
    show_pieces,
)
from .traces import link_trace

MAX_SHOWN_LENGTH: Final = 200

MAX_FILTER_LENGTH: Final = 80

MAX_BYTES: Final = 16

MAX_CHOSEN_LENGTH: Final = 2000

_WORD: Final = re.compile(r"[a-z]+")

_NAMES: Final = {term.atom: term.name for term in SEARCHABLE}

# So many spans a piece of English may come from; an address that names more is no piece of a page.
MAX_SPANS: Final = 40

_SPAN: Final = re.compile(r"(\d{1,9}):(\d{1,9})-(\d{1,9})")


def select(message: Message, reading: Reading, light: Sequence[Span], slug: str) -> dict[str, Any] | None:
    """What the first of the lit spans selects; None where no layer has these characters."""
    if not light:
        return None
    layer, start, end = light[0]
    texts = dict(zip((each.id for each in reading.layers), mask_layers(reading), strict=True))
    whole = {each.id: each.text for each in reading.layers}
    if layer not in texts or not start < end <= len(texts[layer]):
        return None
    raw, is_masked = texts[layer][start:end], texts[layer][start:end] != whole[layer][start:end]
    field = _find_field(reading.fields, (layer, start, end))
    encoded = b"" if is_masked else raw.encode("utf-8", "surrogatepass")
    query = "" if is_masked else find_query(message, field, raw)
    return {
        "label": field.label if field else "",
        "meaning": (field.meaning or "") if field else "",
        "raw": "" if is_masked else raw[:MAX_SHOWN_LENGTH],
        "is_masked": is_masked,
        "characters": end - start,
        "offsets": write_offsets((layer, start, end)),
        "hexadecimal": encoded[:MAX_BYTES].hex(" "),
        "more_bytes": max(0, len(encoded) - MAX_BYTES),
        "escaped": "".join(map(escape_character, raw[:MAX_SHOWN_LENGTH])) if not (is_masked or _is_plain(raw)) else "",
        "span": name_spans(light),
        "query": query,
        "query_url": link_search(slug, query) if query else "",
        "on_wire": find_on_wire(reading, light),
    }


def narrow(reading: Reading, light: Sequence[Span], chosen: str) -> Sequence[Span]:
    """The lit spans of one layer narrowed to the characters that a reader chose there, where these are found once.

    A browser counts otherwise than the server: it says which pieces it touched, and what was chosen in them.
    """
    if not light or not chosen or len(chosen) > MAX_CHOSEN_LENGTH:
        return light
    layer = light[0][0]
    texts = dict(zip((each.id for each in reading.layers), mask_layers(reading), strict=True))
    if layer not in texts or any(each[0] != layer for each in light):
        return light
    start, end = min(each[1] for each in light), max(each[2] for each in light)
    # What is chosen may begin or end in the signs between two pieces.
    begins = max(0, start - len(chosen))
    around = texts[layer][begins : end + len(chosen)]
    places = [begins + place for place in find_every(around, chosen)]
    places = [place for place in places if place < end and start < place + len(chosen)]
    return [(layer, places[0], places[0] + len(chosen))] if len(places) == 1 else [(layer, start, end)]


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _find_field(fields: Sequence[Field], span: Span) -> Field | None:
    """The innermost field that holds a span; the pair of a key and its value stands for both."""
    found, inside = None, fields
    while True:
        layer, start, end = span
        holder = next((each for each in inside if _holds(each, layer, start, end)), None)
        if holder is None:
            return found
        if holder.name not in ("key", "value", "syntax") or found is None:
            found = holder
        inside = holder.children


def _holds(field: Field, layer: int, start: int, end: int) -> bool:
    of, begins, ends = field.span
    if of == layer:
        return begins <= start and end <= ends
    # What was unpacked hangs below the field that it was packed in.
    return any(_holds(child, layer, start, end) for child in field.children)


def find_query(message: Message, field: Field | None, raw: str) -> str:
    """The condition that finds what carries the same value: by its name where the message's own terms have it.

    Else by its characters on the wire; empty where these are too many to be asked for.
    """
    best = max(_list_matches(message, field), key=lambda match: match[2], default=None)
    if best is not None:
        return write_term(best[0], (best[1],))
    if not raw.strip() or len(raw) > MAX_FILTER_LENGTH or not _is_plain(raw):
        return ""
    return f"raw:{quote(raw)}"


def _list_matches(message: Message, field: Field | None) -> Iterator[tuple[str, str, int]]:
    """Names of the search language under which this message has the field's value, with how well they fit its label."""
    value = None if field is None else _find_value(field)
    if field is None or value in (None, "", ()):
        return
    folded = terms.fold(write_value(value))
    said = set(_WORD.findall(f"{field.label} {field.name}".lower()))
    for atom in message.atoms:
        name, _, held = atom[MARK_CHARACTERS:].partition("=")
        if held != folded or (named := _name(name)) is None:
            continue
        fits = len(said & set(_WORD.findall(f"{name} {named}".replace("_", " "))))
        # A short value stands in many places: only its own name may speak for it.
        if fits or len(folded) > 3:
            yield named, write_value(value), fits


def _find_value(field: Field) -> Any:
    values = [child.value for child in field.children if child.name == "value"]
    value = values[0] if len(values) == 1 else field.value
    return value if isinstance(value, (str, int, float, bool)) and len(str(value)) <= MAX_FILTER_LENGTH else None


def _name(atom: str) -> str | None:
    if atom in _NAMES:
        return _NAMES[atom]
    known = atom.startswith(PATHS) or atom in registry.names()
    return atom if known and atom != "has" else None


def read_light(request: HttpRequest) -> tuple[Span, ...]:
    """The spans that `?span=0:25-27` names, several with a space or a + between them; what is none is passed over."""
    given = request.GET.get("span", "").replace("+", " ").split()[:MAX_SPANS]
    found = (_SPAN.fullmatch(text) for text in given)
    return tuple((int(each[1]), int(each[2]), int(each[3])) for each in found if each)


def find_steps(request: HttpRequest, membership: Membership, message: Message) -> dict[str, Any] | None:
    """The steps of the search in the address; None where it names none."""
    query = request.GET.get("q", "").strip()[: MAX_CHARACTERS + 1]
    if not query:
        return None
    slug = membership.workspace.slug
    problem, newer, older = "", None, None
    try:
        found = find_beside(message=message, **asking(membership, query))
        newer, older = found.newer, found.older
        problem = "" if found.is_known else "finding the matches beside it takes too long"
    except QueryError as error:
        problem = str(error)
    return {
        "query": query,
        "url": link_search(slug, query),
        "previous_url": _link(slug, newer, query),
        "next_url": _link(slug, older, query),
        "problem": problem,
    }


def _link(slug: str, message_id: uuid.UUID | None, query: str = "") -> str | None:
    """The address of a message's page that knows the search it was opened from; None for no message."""
    if message_id is None:
        return None
    address = reverse("pages:message", args=[slug, message_id])
    return f"{address}?{urlencode({'q': query})}" if query else address


MAX_ANSWERS = 20

MAX_NOTES = 200

MAX_HEADING_LENGTH: Final = 240

MAX_FINDINGS = 50


@within_workspace("GET")
def show_message(request: HttpRequest, membership: Membership, message_id: uuid.UUID) -> HttpResponse:
    """One message in three linked panes, with its notes, its neighbours and its evidence.

    The address is the whole state: `span` what is lit, `view` how the raw stands, `as` a dialect to read it in for
    once, `q` the search it was opened from.
    """
    try:
        message = or_404(find_message(workspace=membership.workspace, message_id=message_id))
    except Http404:
        tombstone = find_tombstone(workspace_id=membership.workspace_id, about=message_id)
        if tombstone is None:
            raise
        return render_page(
            request, membership, "message/erased.html", {"tombstone": tombstone}, section="conversations", status=410
        )
    slug = membership.workspace.slug
    light = read_light(request)
    disclosed = open_for(membership, [message], door="message")
    opening = disclosed.openings.get(message.pk)
    # What is too large is not read anew, and what is not unfolded cannot be masked either.
    is_small = vars(message)["record_bytes"] <= MAX_UNFOLDED_BYTES
    reading = unfold(message=message, keys=opening.resolver if opening else None) if is_small else None
    if request.htmx:  # type: ignore[attr-defined]
        # The part of the page that says what is selected, for a script that has just lit it.
        chosen = request.GET.get("chosen", "")
        selection = select(message, reading, narrow(reading, light, chosen), slug) if reading else None
        part = {"selection": selection, "may_comment": membership.is_auditor}
        return render(request, "message/_selected.html", part)
    body = opening.lay_over(read_body(message)) if opening else read_body(message)
    dialect = read_choice(request.GET.get("as", ""), message)
    if dialect and reading is None:
        raise Http404
    pieces = show_pieces(reading) if reading else {"is_unfolded": False, "is_masked": True}
    forced = read_otherwise(message, reading, dialect) if dialect and reading else None
    steps = find_steps(request, membership, message)
    before, after = (None, None) if steps else find_neighbours(message=message)
    notes = forced["notes"] if forced else list_notes(message, body)
    shown = forced["pieces"] if forced else pieces
    rekeyed = find_rekeyed([message])
    conflicts = find_conflicts([message], rekeyed)
    doubts = load_doubts(message)
    evidence = make_evidence(message.record, membership, is_masked=pieces["is_masked"])
    context = {
        "message": _describe(message, body, disclosed, is_doubtful=bool(conflicts or doubts)),
        "conversation_title": shorten(name_conversations([message.conversation])[message.conversation_id], 40),
        "traces": link_trace(membership.workspace, message),
        "steps": steps,
        "previous_url": steps["previous_url"] if steps else _link(slug, before),
        "next_url": steps["next_url"] if steps else _link(slug, after),
        **shown,
        **_frame_raw(request, shown, light),
        "light": light,
        "selection": select(message, reading, light, slug) if reading and not forced else None,
        "forced": forced,
        # What is lit belongs to one reading alone.
        "stored_url": write_query(request, **{"as": None, "span": None}),
        "choices": list_choices(
            message,
            body,
            shown=dialect or message.dialect,
            address=lambda slug: write_query(request, **{"as": slug, "span": None}),
        )
        if reading
        else [],
        "findings": describe_findings(list_of_message(message=message)[:MAX_FINDINGS]),
        "notes": notes[:MAX_NOTES],
        "more_notes": max(0, len(notes) - MAX_NOTES),
        "evidence": evidence,
        "withdrawals": list_withdrawals(message),
        "may_comment": membership.is_auditor and not forced,
    }
    if not forced:
        context |= show_threads(message, reading, membership, sha256=evidence["sha256"], light=light)
        # What no other note says of it: that another message bears its id, its number or turn, or shows another key,
        # and that nobody can tell what it answers.
        context |= _tell(message, body, notes, (*conflicts.values(), *doubts), slug)
        context["others"] = link_rekeyed(rekeyed.get(message.pk, ()), slug)
        context["around"] = _make_around(message, body, membership, is_unclear=bool(doubts))
    return render_page(request, membership, "message/message.html", context, section="conversations")


@within_workspace("GET", of=find_message)
def show_json(request: HttpRequest, membership: Membership, message: Message) -> HttpResponse:
    """The message as it was told, as JSON to be copied: the names that it has, and about its record."""
    opening = open_for(membership, [message], door="message").openings.get(message.pk)
    body = opening.lay_over(read_body(message)) if opening else read_body(message)
    english = opening.english if opening else message.english
    answer = {
        "id": str(message.pk),
        "record": str(message.record_id),
        "conversation": str(message.conversation_id),
        "english": english + say_cautions_of(message, body),
        "message": body["message"],
        "about": body["record"],
    }
    return JsonResponse(answer, json_dumps_params={"indent": 2, "ensure_ascii": True})


def _frame_raw(request: HttpRequest, pieces: dict[str, Any], light: Sequence[Span]) -> dict[str, Any]:
    """How the raw stands: as text, escaped or in hexadecimal, and the addresses of the other ways."""
    kept = urlencode({name: request.GET[name] for name in ("q", "as", "view") if request.GET.get(name)})
    view = request.GET.get("view", "")
    view = view if view in VIEWS else ""
    return {
        "view": view,
        "views": [
            {"name": name, "url": write_query(request, view=key or None), "is_current": key == view}
            for key, name in VIEWS.items()
        ],
        "layers": show_layers(pieces.get("layers", ()), view, light),
        # Without the span, to which each piece adds its own; and ready for that.
        "address": f"?{kept}&span=" if kept else "?span=",
    }


def _tell(message: Message, body: Any, notes: Sequence[Any], cautions: Iterable[str], slug: str) -> dict[str, Any]:
    """The English of the message as it is stored, why it is so, and what it was before."""
    told = body["message"]
    english = read_segments(told.get("english")) or [(message.english, (), "exact")]
    return {
        "english": [*english, *((f" {caution}", (), "exact") for caution in cautions)],
        "also": read_segments(told.get("also"), are_apart=True),
        "gloss": read_segments(told.get("gloss")),
        "reference_line": told.get("reference_line") or "",
        "why": {**explain_english(message, body), "doubts": find_doubts(english, notes)},
        **show_wordings(message),
    }


def _describe(message: Message, body: Any, disclosed: Disclosed, *, is_doubtful: bool) -> dict[str, Any]:
    opening = disclosed.openings.get(message.pk)
    english = opening.english if opening else message.english
    return {
        "row": message,
        "title": shorten(mark_noted(english, message.severity, is_doubtful=is_doubtful), MAX_HEADING_LENGTH)
        or "A message that is not processed yet",
        "line": make_line(message, cast_conversation(message.conversation)),
        "dialect": name_dialect_of(message, body["record"]),
        "is_sealed": message.is_sealed and opening is None,
        "is_withheld": message.pk in disclosed.withheld,
        "opened_with": disclosed.name_keys(message),
        "order_words": TIME_WORDS.get(message.order_basis, ""),
        # A text that is not unfolded is not loaded to be counted.
        "characters": len(message.record.wire_text) if vars(message)["record_bytes"] <= MAX_UNFOLDED_BYTES else None,
        "bytes": vars(message)["wire_bytes"],
        "parts": getattr(message, "parts", 1),
    }


def _make_around(message: Message, body: Any, membership: Membership, *, is_unclear: bool) -> dict[str, Any]:
    slug = membership.workspace.slug
    parent, answers = list_beside(message=message, limit=MAX_ANSWERS + 1)
    said = mark_sentences([*answers, *([parent] if parent else [])])
    cited = find_cited(message)
    withdrawn = find_withdrawn(workspace_id=membership.workspace_id, cited=[cited]).get(cited) if cited else None
    carrying = find_messages_by_ids(workspace=membership.workspace, message_ids=[*find_carrying([message]).values()])
    return {
        "within": describe_carrying(next(iter(carrying.values()), None), slug),
        "parent": _describe_parent(message, parent, said, body, slug, is_unclear=is_unclear, withdrawn=withdrawn),
        # Why a message that names a parent stands without one: it names itself, a circle, or nobody for certain.
        "why_none": "" if message.parent_basis else message.parent_why,
        "children": [{"row": answer, "sentence": shorten(said[answer.pk])} for answer in answers[:MAX_ANSWERS]],
        "has_more": len(answers) > MAX_ANSWERS,
    }


def _describe_parent(
    message: Message,
    parent: Message | None,
    said: Mapping[uuid.UUID, str],
    body: Any,
    slug: str,
    *,
    is_unclear: bool,
    withdrawn: Withdrawn | None,
) -> dict[str, Any] | None:
    if not message.parent_basis:
        return None
    target = parent.pk if parent else withdrawn.message if withdrawn else None
    return describe_reply(
        find_verb(message, parent, is_unclear=is_unclear),
        reverse("pages:message", args=[slug, target]) if target else "",
        f"{name_message(parent)}: {shorten(said[parent.pk])}" if parent else name_cited(body["message"]) or "a message",
        "; ".join(filter(None, (message.parent_why, "withdrawn" if withdrawn else ""))),
        is_inferred=message.parent_basis == "turn",
        is_missing=parent is None and withdrawn is None and not count_bearers(message.parent_why),
    )
