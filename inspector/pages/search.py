"""Search: the address is the whole state of the page. What helps while searching comes apart from it: counts beside the
hits, suggestions, saved searches, and what stands around a hit.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages as remarks
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Membership, Workspace
from inspector.audit.findings.selectors import OpenRule, list_open_about
from inspector.audit.rules import RULES
from inspector.browsing.transcripts import load_sentences
from inspector.database import on_replica
from inspector.search.aids import SavedSearchError, forget_search, list_saved, mend_terms, save_search, suggest
from inspector.search.language import MAX_CHARACTERS, SEVERITIES, QueryError, Term, list_terms
from inspector.search.refining import (
    Facet,
    Part,
    can_be_asked,
    choose,
    count_facets,
    cut_parts,
    find_choice,
    find_droppable,
    take_away,
    unchoose,
    write_term,
)
from inspector.search.registry import ALIASES, names
from inspector.search.selectors import SlowQueryError, count_hidden, read_query, write_cursor
from inspector.search.selectors import search as search_messages
from inspector.threads.agents import load_labels
from inspector.threads.models import Message
from inspector.threads.selectors import find_message, list_around, load_records
from inspector.threads.terms import fold

from .lists import cut_page, read_place
from .live import watch
from .shell import address_each, asking, render_page, render_part, within_workspace, write_query
from .shown.agents import AgentMark, Casts, cast_conversation
from .shown.fields import fit_wire, mask_wire, weigh_wire
from .shown.markup import HIT_CHARACTERS, OPEN_CHARACTERS, Stretch, fit, join_ranges, mark_cut, share_out, weigh
from .shown.told import Line, link_search, make_line, name_conversations, name_dialect, shorten

# Of so many who are only called by a name the facets say who they are.
MAX_CALLED: Final = 3
# So much of a sentence around a hit the template unfolds.
MAX_AROUND: Final = 300


@within_workspace("GET")
@on_replica
def show_facets(request: HttpRequest, membership: Membership) -> HttpResponse:
    """How the newest matches are spread: a part of the search page that comes when it is counted."""
    query = request.GET.get("q", "").strip()
    slug = membership.workspace.slug
    try:
        found = count_facets(**asking(membership, query))
    except QueryError as error:
        return HttpResponse(str(error), status=400, content_type="text/plain; charset=utf-8")
    context = {
        "query": query,
        "search_url": link_search(slug, query),
        "found": found,
        "facets": [_describe_facet(facet, query, slug) for facet in found.facets] if found else [],
    }
    if request.headers.get("HX-Request") != "true":
        return render_page(request, membership, "search/narrow.html", context, section="search")
    return render_part(request, membership, "search/_facets.html", context)


def _describe_facet(facet: Facet, query: str, slug: str) -> dict[str, Any]:
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
                "url": link_search(slug, (unchoose if count.is_chosen else choose)(query, facet.name, count.value))
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


def _describe_part(part: Part, query: str, slug: str) -> dict[str, Any]:
    """A part of a query that can be understood, with the address of the search without it."""
    return {
        "name": part.name,
        "value": part.value,
        "is_negated": part.is_negated,
        "written": query[part.start : part.end],
        "url": link_search(slug, take_away(query, part)),
    }


@within_workspace("GET")
@on_replica
def suggest_terms(request: HttpRequest, membership: Membership) -> HttpResponse:
    """What may be meant by the end of a query, as JSON: where it begins, and what may stand there."""
    found = suggest(workspace=membership.workspace, text=request.GET.get("q", "")[:MAX_CHARACTERS])
    items = [{"text": item.text, "about": item.about} for item in found.items]
    return JsonResponse({"start": found.start, "items": items})


@within_workspace("GET", of=find_message)
def show_around(request: HttpRequest, membership: Membership, message: Message) -> HttpResponse:
    """The messages before and after one in its conversation, as a part that opens below a hit."""
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
    }
    return render_part(request, membership, "search/_surroundings.html", context)


def describe_saved(membership: Membership) -> list[dict[str, Any]]:
    """The saved searches of a page, each with its address."""
    return [
        {
            "row": saved,
            "url": link_search(membership.workspace.slug, saved.query),
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
    return redirect(link_search(membership.workspace.slug, query))


@within_workspace("POST")
def forget(request: HttpRequest, membership: Membership, saved_id: uuid.UUID) -> HttpResponse:
    """Forget a saved search."""
    if not forget_search(membership=membership, saved_id=saved_id):
        raise Http404
    remarks.success(request, "The saved search is forgotten.")
    return redirect("pages:search", membership.workspace.slug)


PAGE_ROWS = 25
# To know what is masked in a wire that may hold a secret it is read anew: of 25 hits that is bounded by their size.
MAX_WIRE_BYTES = 8_000

# What is asked by each name, for instance; a name whose values are of the reader's own making has none.
_EXAMPLES: Final = (
    "dialect:nslip,clowl from:oscar to:radar performative:request,query conversation:conv-001 trace:t-1 task:1 "
    "id:m001 topic:search status:queued act:REQ version:0.2 parent:m001 target:human delegation:fork "
    "capability:search note:nslip.unclosed group:security after:7d before:2026-11-21 has:reply is:unanswered "
    "severity:>=warning turn:>5 part:>1 broadcast:true run:>1 progress:>=50 score:<0.5 priority:<=2 channel:main "
    'en:refactor raw:"|k1|" state:failed reviewed:no review:violation finding:>=warning rule:unanswered'
)
EXAMPLES: Final = dict(each.split(":", 1) for each in _EXAMPLES.split())
SIDES: Final = ("from", "to")
Asked = Mapping[str, frozenset[str]]


@within_workspace("GET")
@on_replica
def search(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Messages that the query means, newest first, by keyset; an error that says what was meant."""
    workspace = membership.workspace
    query = request.GET.get("q", "").strip()
    slug = workspace.slug
    asked_by = asking(membership, query)
    context: dict[str, Any] = {"query": query, "error": None, "hits": [], "older_url": None, "newest_url": None}
    context |= {"parts": [], "literals": []}
    context |= {"hidden_count": 0, "searched_back_to": None, "saved": describe_saved(membership)}
    context["facets_url"] = f"{reverse('pages:facets', args=[workspace.slug])}?{urlencode({'q': query})}"
    status = 200
    if query:
        before = read_place(request, membership)
        context["live"] = watch(membership, of="search", load=before is None, q=query)
        try:
            terms = list(list_terms(read_query(query)))
            answer = search_messages(before=before, limit=PAGE_ROWS + 1, **asked_by)
            found = answer.rows
        except SlowQueryError as error:
            context |= {"live": None, "error": {"message": f"{error}.", "suggestion": ""}}
            status = 503
        except QueryError as error:
            context["live"] = None
            context["error"], status = _describe_error(error, query, slug), 400
        else:
            context["parts"] = [_describe_part(part, query, slug) for part in cut_parts(query)]
            page, last = cut_page(found, PAGE_ROWS)
            cursor = write_cursor((last.order_time, last.pk), workspace.pk) if last else None
            context["hidden_count"] = count_hidden(
                workspace=workspace, query=query, may_see_secrets=membership.is_auditor
            )
            asked = read_asked(terms)
            context["hits"] = _make_hits(page, terms, workspace, query) if page else []
            for hit in context["hits"]:
                hit["called"] = list_called(hit["line"], asked)
            if any(hit["called"] for hit in context["hits"]):
                context["literals"] = [
                    {**each, "url": link_search(slug, each["query"])} for each in describe_literal(query, asked)
                ]
            context["older_url"] = write_query(request, before=cursor) if cursor else None
            if answer.searched_back_to is not None:
                context["searched_back_to"] = answer.searched_back_to[0]
                context["further_url"] = write_query(
                    request, before=write_cursor(answer.searched_back_to, workspace.pk)
                )
            if not found:
                # The parts without which it finds something.
                context["droppable"] = [_describe_part(part, query, slug) for part in find_droppable(**asked_by)]
                mended = mend_terms(workspace=workspace, query=query, terms_of_query=terms)
                context |= {"mended": mended, "mended_url": link_search(slug, mended)}
                if '"' not in query and all(term.name is None for term in terms):
                    raw = f'raw:"{query}"'
                    context |= {"raw": raw, "raw_url": link_search(slug, raw)}
            context["newest_url"] = write_query(request, before=None) if before else None
    if not context["hits"]:
        context["fields"] = [_describe_name(name, about, slug) for name, about in names().items()]
    return render_page(request, membership, "search/search.html", context, section="search", status=status)


def _describe_name(name: str, about: str, slug: str) -> dict[str, str]:
    value = EXAMPLES.get(name, "")
    return {"name": name, "about": about, "value": value, "url": link_search(slug, f"{name}:{value}")}


def _describe_error(error: QueryError, query: str, slug: str) -> dict[str, str]:
    better = query[: error.start] + error.instead + query[error.end :] if error.instead else ""
    # What stands in its place is offered as a link beside it, and said once.
    text = f"{error.problem}." if better else str(error)
    return {
        # A name of the language stays as it is written.
        "message": text if re.match(r"[\w.-]+:", text) else text[:1].upper() + text[1:],
        "suggestion": better,
        "suggestion_url": link_search(slug, better),
    }


def _make_hits(
    messages: Sequence[Message], terms: Sequence[Term], workspace: Workspace, query: str
) -> list[dict[str, Any]]:
    load_records(messages=messages, max_bytes=MAX_WIRE_BYTES)
    casts = Casts(load_labels(workspace_id=workspace.pk))
    pattern = make_pattern(terms)
    alarms = list_open_about(messages=messages)
    # Where the things of a hit are: each gives the address to an id.
    links = {name: address_each(f"pages:{name}", workspace.slug) for name in ("message", "conversation", "around")}
    sought = urlencode({"q": query})
    told = load_sentences(messages)
    names = name_conversations(message.conversation for message in messages)
    hits = [
        _make_hit(message, told[message.pk], pattern, casts, links, sought, alarms.get(message.pk, ()), names)
        for message in messages
    ]
    most = share_out(
        weight
        for hit in hits
        for weight in (weigh(hit["english"], HIT_CHARACTERS), weigh_wire(hit["wire"], hit["stretches"]))
    )
    for message, hit in zip(messages, hits, strict=True):
        hit["english_characters"] = fit(hit["english"], most, HIT_CHARACTERS)
        hit["mark"] = mark_cut(hit["english"], message.english, min(hit["english_characters"], OPEN_CHARACTERS))
        hit["wire_characters"] = fit_wire(hit["wire"], hit["stretches"], most)
    return hits


def _make_hit(
    message: Message,
    english: str,
    pattern: re.Pattern[str] | None,
    casts: Casts,
    links: Mapping[str, Callable[[uuid.UUID], str]],
    sought: str,
    alarms: Sequence[OpenRule],
    names: Mapping[uuid.UUID, str],
) -> dict[str, Any]:
    wire, masked = mask_wire(message)
    return {
        "id": message.pk,
        "line": make_line(message, casts.find(message.conversation)),
        "dialect": name_dialect(message.dialect),
        "conversation": {
            "row": message.conversation,
            "title": shorten(names[message.conversation_id], 40),
            "url": links["conversation"](message.conversation_id),
        },
        "url": f"{links['message'](message.pk)}?{sought}",
        "around_url": links["around"](message.pk),
        "english": english,
        "ranges": find_ranges(pattern, english),
        "wire": wire,
        "stretches": add_marks(masked, find_ranges(pattern, wire)),
        "severity": message.severity,
        "alarms": alarms,
    }


def make_pattern(terms: Sequence[Term]) -> re.Pattern[str] | None:
    """What to highlight: the words, phrases and signs that are asked for, in any case; None for nothing."""
    pieces = []
    for term in terms:
        if term.name is None and not term.is_negated:
            words = [term.values[0]] if term.is_phrase else re.findall(r"\w+|[^\w\s]", term.values[0])
            pieces += [re.escape(word) for word in words if word.strip()]
    return re.compile("|".join(sorted(pieces, key=len, reverse=True)), re.IGNORECASE) if pieces else None


def find_ranges(pattern: re.Pattern[str] | None, text: str) -> list[tuple[int, int]]:
    """Where the pattern stands in the part of a text that a page shows, half-open, in code points."""
    return join_ranges(match.span() for match in pattern.finditer(text, 0, HIT_CHARACTERS)) if pattern else []


def add_marks(masked: Sequence[Stretch], ranges: Sequence[tuple[int, int]]) -> list[Stretch]:
    """Masked stretches and highlights in one order; a highlight that touches a secret is left out, never the mask."""
    marks = [
        Stretch(start=start, end=end, kind="mark")
        for start, end in ranges
        if not any(start < secret.end and secret.start < end for secret in masked)
    ]
    return sorted((*masked, *marks), key=lambda stretch: stretch.start)


def read_asked(terms: Iterable[Term]) -> Asked:
    """The names that a query asks for on either side, as they are compared."""
    found: dict[str, set[str]] = {side: set() for side in SIDES}
    for term in terms:
        side = ALIASES.get(term.name or "", term.name or "")
        if side in found and not (term.is_negated or term.operator or term.is_prefix):
            found[side].update(fold(value) for value in term.values)
    return {side: frozenset(names) for side, names in found.items()}


def list_called(line: Line, asked: Asked) -> list[AgentMark]:
    """Who in a line is called by a name that was asked for, and bears another."""
    marks = {"from": [line.sender] if line.sender else [], "to": line.receivers}
    return [
        mark
        for side in SIDES
        for mark in dict.fromkeys(marks[side])
        if mark.label and fold(mark.label) in asked[side] and fold(mark.name) not in asked[side]
    ]


def describe_literal(query: str, asked: Asked) -> list[dict[str, Any]]:
    """For each side that is asked for: the same query for those alone who bear the names on the wire themselves."""
    found = []
    for side in SIDES:
        choice = find_choice(query, side) if asked[side] else None
        if choice is None or not all(map(can_be_asked, choice.values)):
            continue
        literal = write_term(side, choice.values).replace(":", ":=", 1)
        start, end = choice.part.start, choice.part.end
        found.append({"literal": literal, "query": query[:start] + literal + query[end:]})
    return found
