"""What helps while searching: counts beside the hits, suggestions, saved searches, and what stands around a hit."""

from __future__ import annotations

import uuid
from typing import Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.contrib import messages as remarks
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.audit.rules import RULES
from inspector.browsing.transcripts import load_sentences
from inspector.lookups import or_404
from inspector.replica import on_replica
from inspector.search.facets import Facet, count_facets
from inspector.search.language import MAX_CHARACTERS, QueryError
from inspector.search.loosening import find_droppable
from inspector.search.parts import Part, can_be_asked, choose, cut_parts, take_away, unchoose
from inspector.search.saved import SavedSearchError, forget_search, list_saved, save_search
from inspector.search.suggestions import suggest
from inspector.search.values import SEVERITIES
from inspector.threads.messages import find_message, list_around

from ..agents.marks import cast_conversation
from ..shell import render_page, within_workspace
from ..shown.budgets import mark_cut
from ..shown.told import make_line, name_dialect

# Of so many who are only called by a name the facets say who they are.
MAX_CALLED: Final = 3
# So much of a sentence around a hit the template unfolds.
MAX_AROUND: Final = 300


@within_workspace("GET")
@on_replica
def show_facets(request: HttpRequest, membership: Membership) -> HttpResponse:
    """How the newest matches are spread: a part of the search page that comes when it is counted."""
    query = request.GET.get("q", "").strip()
    address = reverse("pages:search", args=[membership.workspace.slug])
    try:
        found = count_facets(
            workspace=membership.workspace,
            query=query,
            zone=ZoneInfo(membership.user.time_zone),
            may_see_secrets=membership.is_auditor,
        )
    except QueryError as error:
        return HttpResponse(str(error), status=400, content_type="text/plain; charset=utf-8")
    context = {
        "query": query,
        "search_url": _write_url(address, query),
        "found": found,
        "facets": [_describe_facet(facet, query, address) for facet in found.facets] if found else [],
        "workspace": membership.workspace,
    }
    if request.headers.get("HX-Request") != "true":
        return render_page(request, membership, "search/narrow.html", context, section="search")
    return render(request, "search/_facets.html", context)


def _describe_facet(facet: Facet, query: str, address: str) -> dict[str, Any]:
    most = max(count.count for count in facet.values) or 1
    return {
        "name": facet.name,
        "more": facet.more,
        "is_all": facet.is_all,
        "values": [
            {
                "title": _name_value(facet.name, count.value),
                "severity": count.value if facet.name in ("severity", "finding") and count.value in SEVERITIES else "",
                "count": count.count,
                "share": round(100 * count.count / most),
                "is_chosen": count.is_chosen,
                "is_added": facet.adds and not count.is_chosen,
                "url": _write_url(address, (unchoose if count.is_chosen else choose)(query, facet.name, count.value))
                if can_be_asked(count.value)
                else "",
                "called": [
                    {"name": name, "dialect": name_dialect(dialect), "count": number}
                    for name, dialect, number in count.called[:MAX_CALLED]
                ],
                "more_called": sum(number for _, _, number in count.called[MAX_CALLED:]),
            }
            for count in facet.values
        ],
    }


def _name_value(name: str, value: str) -> str:
    if name == "dialect":
        return name_dialect(value)
    if name == "rule" and value in RULES:
        return RULES[value].title
    return "everyone" if name == "to" and value == "*" else value


def describe_parts(query: str, address: str) -> list[dict[str, Any]]:
    """The parts of a query that can be understood, each with the address of the search without it."""
    return [_describe_part(part, query, address) for part in cut_parts(query)]


def describe_droppable(membership: Membership, query: str, address: str) -> list[dict[str, Any]]:
    """The parts of a query that finds nothing, without which it finds something; as `describe_parts` has them."""
    found = find_droppable(
        workspace=membership.workspace,
        query=query,
        zone=ZoneInfo(membership.user.time_zone),
        may_see_secrets=membership.is_auditor,
    )
    return [_describe_part(part, query, address) for part in found]


def _describe_part(part: Part, query: str, address: str) -> dict[str, Any]:
    return {
        "name": part.name,
        "value": part.value,
        "is_negated": part.is_negated,
        "written": query[part.start : part.end],
        "url": _write_url(address, take_away(query, part)),
    }


def _write_url(address: str, query: str) -> str:
    return f"{address}?{urlencode({'q': query})}" if query else address


@within_workspace("GET")
@on_replica
def suggest_terms(request: HttpRequest, membership: Membership) -> HttpResponse:
    """What may be meant by the end of a query, as JSON: where it begins, and what may stand there."""
    found = suggest(workspace=membership.workspace, text=request.GET.get("q", "")[:MAX_CHARACTERS])
    items = [{"text": item.text, "about": item.about} for item in found.items]
    return JsonResponse({"start": found.start, "items": items})


@within_workspace("GET")
def show_around(request: HttpRequest, membership: Membership, message_id: uuid.UUID) -> HttpResponse:
    """The messages before and after one in its conversation, as a part that opens below a hit."""
    message = or_404(find_message(workspace=membership.workspace, message_id=message_id))
    cast = cast_conversation(message.conversation)
    around = list_around(message=message)
    told = load_sentences(around)
    context = {
        "lines": [
            {
                "row": each,
                "line": make_line(each, cast),
                "english": told[each.pk],
                "mark": mark_cut(told[each.pk], each.english, MAX_AROUND),
            }
            for each in around
        ],
        "message": message,
        "workspace": membership.workspace,
        "time_zone": membership.user.time_zone,
    }
    return render(request, "search/_surroundings.html", context)


def describe_saved(membership: Membership) -> list[dict[str, Any]]:
    """The saved searches of a page, each with its address."""
    address = reverse("pages:search", args=[membership.workspace.slug])
    return [
        {
            "row": saved,
            "url": f"{address}?{urlencode({'q': saved.query})}",
            "by": "" if saved.saved_by_id == membership.user.pk else saved.saved_by.get_username(),
            "may_forget": saved.saved_by_id == membership.user.pk or membership.is_owner,
        }
        for saved in list_saved(membership=membership)
    ]


@within_workspace("POST")
def save(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Keep the query of the page under a name."""
    query = request.POST.get("q", "").strip()
    try:
        saved = save_search(
            membership=membership,
            name=request.POST.get("name", ""),
            query=query,
            is_shared=bool(request.POST.get("is_shared")),
        )
        remarks.success(request, f"Saved as “{saved.name}”{', shared with the workspace' if saved.is_shared else ''}.")
    except (SavedSearchError, QueryError) as error:
        remarks.error(request, f"Not saved: {error}")
    address = reverse("pages:search", args=[membership.workspace.slug])
    return redirect(f"{address}?{urlencode({'q': query})}" if query else address)


@within_workspace("POST")
def forget(request: HttpRequest, membership: Membership, saved_id: uuid.UUID) -> HttpResponse:
    """Forget a saved search."""
    if not forget_search(membership=membership, saved_id=saved_id):
        raise Http404
    remarks.success(request, "The saved search is forgotten.")
    return redirect("pages:search", membership.workspace.slug)
