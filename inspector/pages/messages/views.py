"""One message: English, fields and raw, linked to the character; as it is stored, or read in another dialect.

The search that it was opened from travels in its address, so that one can go from match to match.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from dialects import Keys, Reading
from inspector.accounts.models import Membership
from inspector.audit.findings.selectors import list_of_message
from inspector.browsing.transcripts import find_conflicts, find_rekeyed, load_doubts, mark_sentences, say_cautions_of
from inspector.database import or_404
from inspector.pages.shown.fields import VIEWS, show_layers
from inspector.retention.selectors import find_tombstone
from inspector.search.language import MAX_CHARACTERS, QueryError
from inspector.search.selectors import find_beside
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
from inspector.threads.trees import find_carrying

from ..agents.marks import cast_conversation
from ..conversations.transcript import Disclosed, describe_carrying, find_verb, name_message, open_for
from ..findings.rows import describe_findings
from ..reviews.comment_rows import show_threads
from ..shell import render_page, within_workspace, write_query
from ..shown.markup import Span
from ..shown.told import (
    link_rekeyed,
    list_notes,
    make_line,
    name_conversations,
    name_dialect_of,
    read_segments,
    shorten,
    show_pieces,
)
from ..traces.views import link_trace
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
from .selection import narrow, read_light, select


def find_steps(request: HttpRequest, membership: Membership, message: Message) -> dict[str, Any] | None:
    """The steps of the search in the address; None where it names none."""
    query = request.GET.get("q", "").strip()[: MAX_CHARACTERS + 1]
    if not query:
        return None
    slug = membership.workspace.slug
    problem, newer, older = "", None, None
    try:
        found = find_beside(
            workspace=membership.workspace,
            query=query,
            message=message,
            zone=ZoneInfo(membership.user.time_zone),
            may_see_secrets=membership.is_auditor,
        )
        newer, older = found.newer, found.older
        problem = "" if found.is_known else "finding the matches beside it takes too long"
    except QueryError as error:
        problem = str(error)
    return {
        "query": query,
        "url": f"{reverse('pages:search', args=[slug])}?{urlencode({'q': query})}",
        "previous_url": link_message(slug, newer, query) if newer else None,
        "next_url": link_message(slug, older, query) if older else None,
        "problem": problem,
    }


def link_message(slug: str, message_id: uuid.UUID, query: str) -> str:
    """The address of a message's page that knows the search it was opened from."""
    address = reverse("pages:message", args=[slug, message_id])
    return f"{address}?{urlencode({'q': query})}" if query else address


MAX_ANSWERS = 20
MAX_NOTES = 200
MAX_HEADING_LENGTH: Final = 240
MAX_FINDINGS = 50

ORDERS = {
    "wire": "",
    "envelope": "the message does not say when it was sent: the time of its envelope",
    "start": "the message does not say when it was sent: ordered by the declared start",
    "receipt": "the message does not say when it was sent: ordered by receipt",
}


@within_workspace("GET")
def show_message(request: HttpRequest, membership: Membership, message_id: uuid.UUID) -> HttpResponse:
    """One message in three linked panes, with its notes, its neighbours and its evidence.

    The address is the whole state: `span` what is lit, `view` how the raw stands, `as` a dialect to read it in for
    once, `q` the search it was opened from.
    """
    try:
        message = get_message(membership, message_id)
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
    reading = _unfold(message, opening.resolver if opening else None)
    if request.htmx:  # type: ignore[attr-defined]
        return _answer_selection(request, membership, message, reading, light)
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
        "stored_url": write_query(request, **{"as": None, "span": None}),
        "choices": list_choices(
            message, body, shown=dialect or message.dialect, address=lambda slug: _choose(request, slug)
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


def get_message(membership: Membership, message_id: uuid.UUID) -> Message:
    """The message of the reader's workspace. Http404 where there is none."""
    return or_404(find_message(workspace=membership.workspace, message_id=message_id))


@within_workspace("GET")
def show_json(request: HttpRequest, membership: Membership, message_id: uuid.UUID) -> HttpResponse:
    """The message as it was told, as JSON to be copied: the names that it has, and about its record."""
    message = get_message(membership, message_id)
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


def _answer_selection(
    request: HttpRequest, membership: Membership, message: Message, reading: Reading | None, light: Sequence[Span]
) -> HttpResponse:
    """The part of the page that says what is selected, for a script that has just lit it."""
    light = narrow(reading, light, request.GET.get("chosen", "")) if reading else light
    selection = select(message, reading, light, membership.workspace.slug) if reading else None
    context = {"selection": selection, "may_comment": membership.is_auditor}
    return render(request, "message/_selected.html", context)


def _unfold(message: Message, keys: Keys | None) -> Reading | None:
    """The record read anew; None of one too large for that: what is not unfolded cannot be masked either."""
    return None if vars(message)["record_bytes"] > MAX_UNFOLDED_BYTES else unfold(message=message, keys=keys)


def _link(slug: str, message_id: uuid.UUID | None) -> str | None:
    return reverse("pages:message", args=[slug, message_id]) if message_id else None


def _choose(request: HttpRequest, dialect: str | None) -> str:
    """This page in another dialect, or as it is stored; what is lit belongs to one reading alone."""
    return write_query(request, **{"as": dialect, "span": None})


def _frame_raw(request: HttpRequest, pieces: dict[str, Any], light: Sequence[Span]) -> dict[str, Any]:
    """How the raw stands: as text, escaped or in hexadecimal, and the addresses of the other ways."""
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
        "address": _begin_query(request),
    }


def _begin_query(request: HttpRequest) -> str:
    kept = {name: request.GET[name] for name in ("q", "as", "view") if request.GET.get(name)}
    return f"?{urlencode(kept)}&span=" if kept else "?span="


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
        "order_words": ORDERS.get(message.order_basis, ""),
        # A text that is not unfolded is not loaded to be counted.
        "characters": len(message.record.wire_text) if vars(message)["record_bytes"] <= MAX_UNFOLDED_BYTES else None,
        "bytes": vars(message)["wire_bytes"],
        "parts": getattr(message, "parts", 1),
    }


def _make_around(message: Message, body: Any, membership: Membership, *, is_unclear: bool) -> dict[str, Any]:
    slug = membership.workspace.slug
    parent, answers = list_beside(message=message, limit=MAX_ANSWERS + 1)
    said = mark_sentences([*answers, *([parent] if parent else [])])
    carrying = find_messages_by_ids(workspace=membership.workspace, message_ids=[*find_carrying([message]).values()])
    return {
        "within": describe_carrying(next(iter(carrying.values()), None), slug),
        "parent": _describe_parent(message, parent, said, body, slug, is_unclear=is_unclear),
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
) -> dict[str, Any] | None:
    if not message.parent_basis:
        return None
    return {
        "basis": "inferred" if message.parent_basis == "turn" else "explicit",
        "verb": find_verb(message, parent, is_unclear=is_unclear),
        "anchor": reverse("pages:message", args=[slug, parent.pk]) if parent else "",
        "name": f"{name_message(parent)}: {shorten(said[parent.pk])}"
        if parent
        else (name_cited(body["message"]) or "a message"),
        "why": message.parent_why,
        "is_missing": parent is None and not count_bearers(message.parent_why),
    }
