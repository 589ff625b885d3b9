"""Conversations: the list, one with its transcript, the same record by record as it came, and the verdict on it."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages as flashes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Membership, Workspace
from inspector.audit.comments import count_comments
from inspector.audit.findings.selectors import OpenCount, survey_conversations, tell_findings
from inspector.audit.models import Review
from inspector.audit.reviews.bindings import SignOff, find_sign_offs
from inspector.audit.reviews.selectors import list_queues_around
from inspector.audit.reviews.verdicts import give_verdict
from inspector.browsing.transcripts import write_text
from inspector.database import on_replica, or_404
from inspector.intake.models import Sighting
from inspector.intake.selectors import find_first_sightings
from inspector.search.selectors import fetch
from inspector.threads.agents import load_labels
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import (
    WORST,
    TreeRow,
    count_hidden,
    filter_conversations,
    find_at,
    find_conversation,
    has_record,
    load_records,
    read_body,
    read_tree,
    select_conversations,
    sum_up,
)
from inspector.threads.tasks import get_state
from inspector.threads.timeline import read_timeline
from inspector.threads.trees import read_place as read_tree_place

from ..lists import ConversationFilter, read_place, read_scope, read_walk
from ..live import watch
from ..shell import PageForm, read_number, render_page, require_auditor, within_workspace
from ..shown.agents import Cast, Casts, cast_conversation, list_first
from ..shown.fields import MAX_RECORD_BYTES, MAX_SHOWN_RECORD_BYTES, cut_wire, fit_wire, has_secret, weigh_wire
from ..shown.markup import share_out, shorten_name
from ..shown.told import make_line, name_conversations, name_delivery, name_dialect, name_dialects, shorten
from ..traces import link_traces
from .frame import Pager, make_pager, name_standing, read_jump, read_start, render_view, say_doubt
from .transcript import make_anchor, make_rows, open_for


class VerdictForm(PageForm):
    """A verdict on a conversation as it was shown: `seen` is the digest of what the auditor saw."""

    verdict = forms.ChoiceField(
        choices=Review.Verdict.choices, widget=forms.RadioSelect, error_messages={"required": "Choose a verdict."}
    )
    # Whoever has new messages loaded into the page signs what it shows then.
    seen = forms.RegexField(r"\A[0-9a-f]{64}\Z", widget=forms.HiddenInput(attrs={"data-live-part": "seen"}))
    comment = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="What you saw, for the next reader.",
    )

    def read(self) -> dict[str, Any]:
        """What `give_verdict` takes, of a valid form."""
        return {**self.cleaned_data, "seen": bytes.fromhex(self.cleaned_data["seen"])}


PAGE_ROWS = 50
PATIENCE_MS = 2500
AT_ONCE_MS = 300
MAX_COUNTED = 1000
WINDOW_ROWS = 50


@within_workspace("GET")
@on_replica
def show_conversations(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The list of conversations, latest activity first, by keyset."""
    workspace = membership.workspace
    form = ConversationFilter(request.GET)
    filters, order = form.read(), form.read_order()
    before = read_place(request, membership)
    walk = read_walk(request, membership, places=("before", "grade", "since"))
    scope = read_scope(request, membership)
    delivery = scope.delivery
    # What comes is not asked whether it has this fault, nor how grave it is: the chip says that there is news.
    watched = {name: value for name, value in filters.items() if name != "fault"}
    loads = walk.is_first and "fault" not in filters and not order
    # What a delivery brought is all there: nothing that comes later is of it.
    since = None if walk.is_first else request.GET.get("since")
    live = None if delivery else watch(membership, of="conversations", load=loads, since=since, **watched)
    grade = read_number(request, "grade", default=Message.Severity.ERROR) if order else None
    every = filter_conversations(workspace=workspace, **filters).order_by("-pk")
    if walk.is_rest:
        rows = walk.narrow(every, "pk__lt")
    else:
        rows = select_conversations(workspace=workspace, before=before, order=order, grade=grade, **filters)
    # Those of a delivery may all be old: everything newer would have to be gone through for them.
    listed = fetch(rows[: PAGE_ROWS + 1], PATIENCE_MS) if delivery else list(rows[: PAGE_ROWS + 1])
    page, last = walk.cut(listed or [], PAGE_ROWS, every)
    sign_offs = find_sign_offs(conversations=page)
    names = name_conversations(page)
    open_findings, reversals = survey_conversations(conversation_ids=[one.pk for one in page])
    casts = Casts(load_labels(workspace_id=workspace.pk))
    context = {
        "live": live,
        "rows": [
            _make_row(
                conversation,
                casts,
                sign_offs.get(conversation.pk),
                names[conversation.pk],
                open_findings.get(conversation.pk),
                reversals,
            )
            for conversation in page
        ],
        "form": form,
        "unknown": form.list_unknown(),
        "count": None if listed is None else _count(workspace, filters),
        "is_filtered": bool(filters),
        "scope": scope,
        "is_slow": listed is None,
        "is_worst_first": order == WORST,
        "export_query": urlencode({"conversations": 1, **filters}),
        "has_any": bool(page or filters or not walk.is_first),
        "hidden_count": count_hidden(workspace=workspace),
        "older_url": walk.write_older(
            last,
            "last_at",
            grade=str(last.open_severity) if last and order else None,
            since=live["after"] if live else None,
        ),
        "walk": walk,
    }
    return render_page(request, membership, "conversations/conversations.html", context, section="conversations")


def _count(workspace: Workspace, filters: Mapping[str, str]) -> int | None:
    """How many conversations there are, at most one more than is counted; None where that takes too long."""
    rows = filter_conversations(workspace=workspace, **filters).order_by().values_list("pk")
    counted = fetch(rows[: MAX_COUNTED + 1], AT_ONCE_MS)
    return None if counted is None else len(counted)


def _make_row(
    conversation: Conversation,
    casts: Casts,
    sign_off: SignOff | None,
    name: str,
    findings: OpenCount | None,
    reversals: Mapping[tuple[uuid.UUID, str], str],
) -> dict[str, Any]:
    agents = list_first(conversation.agents)
    state = get_state(conversation)
    reversed_end = reversals.get((conversation.pk, state))
    return {
        "title": shorten(name),
        "conversation": conversation,
        "agents": casts.find(conversation).find_all(agents),
        "more_agents": len(conversation.agents) - len(agents),
        "dialects": name_dialects(conversation.dialects),
        "state": state,
        "doubt": say_doubt(state, reversed_end) if reversed_end else "",
        "findings": findings,
        "review": sign_off.verdict if sign_off else None,
        "standing": name_standing(sign_off.standing) if sign_off else "",
        "reviewer": " and ".join(sign_off.reviewers) if sign_off else "",
    }


@within_workspace("GET", of=find_conversation)
def show_conversation(request: HttpRequest, membership: Membership, conversation: Conversation) -> HttpResponse:
    """One conversation: its answers and a window of its transcript."""
    # Everything else is read after this, so that nothing falls between.
    live = watch(membership, of="conversation", id=str(conversation.pk), snapshot=getattr(conversation, "snapshot", ""))
    form = _make_verdict_form(membership, conversation)
    return _answer(request, membership, conversation, form, live=live)


@within_workspace("POST", of=find_conversation)
def review_conversation(request: HttpRequest, membership: Membership, conversation: Conversation) -> HttpResponse:
    """An auditor's verdict on the conversation as it was shown."""
    require_auditor(membership)
    form = VerdictForm(request.POST)
    form.hand_to(lambda: give_verdict(membership=membership, conversation=conversation, **form.read()))
    if not form.errors:
        flashes.success(request, "Your verdict is kept, bound to what you saw.")
        return redirect("pages:conversation", membership.workspace.slug, conversation.pk)
    errors = [str(error) for name in form.errors for error in form.errors[name]]
    again = _make_verdict_form(membership, conversation, said=form.data)
    return _answer(request, membership, conversation, again, errors=errors, status=422)


def _make_verdict_form(
    membership: Membership, conversation: Conversation, *, said: Mapping[str, Any] | None = None
) -> VerdictForm | None:
    """An empty form, or the refused one: bound now to what this answer shows, so that the next try signs that."""
    if not membership.is_auditor or conversation.settled_digest is None:
        return None
    kept = {name: said.get(name, "") for name in ("verdict", "comment")} if said else {}
    return VerdictForm(initial={**kept, "seen": bytes(conversation.settled_digest).hex()})


def _answer(
    request: HttpRequest,
    membership: Membership,
    conversation: Conversation,
    verdict_form: VerdictForm | None,
    *,
    live: Mapping[str, Any] | None = None,
    errors: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    workspace = membership.workspace
    is_tree = request.GET.get("order") != "time"
    jump = read_jump(request, total=conversation.message_count)
    if jump is not None and status == 200:
        return _go_to(conversation, workspace, jump)
    rows, pager, stop = _read_tree(request, conversation) if is_tree else _read_timeline(request, conversation)
    digest = sum_up(conversation=conversation)
    cast = cast_conversation(conversation)
    messages = [row.message for row in rows if row.message]
    disclosed = open_for(membership, messages, door="conversation")
    comments = count_comments(conversation=conversation)
    waits_in, fillable = list_queues_around(conversation=conversation)
    telling = tell_findings(conversation=conversation, messages=messages)
    traces = link_traces(workspace, messages)
    named = list_first(conversation.agents)
    context = {
        "live": live,
        "orders": [
            {"name": "Threaded", "url": request.path, "is_current": is_tree},
            {"name": "Chronological", "url": f"{request.path}?order=time", "is_current": not is_tree},
        ],
        "cast": [{"mark": cast.find(name), "count": digest.tally.senders.get(name, 0)} for name in named],
        "more_agents": len(conversation.agents) - len(named),
        "rows": make_rows(
            rows,
            workspace=workspace,
            conversation=conversation,
            cast=cast,
            is_tree=is_tree,
            disclosed=disclosed,
            findings=telling.about,
            comments=comments,
            trace=traces[0]["id"] if len(traces) == 1 else "",
        ),
        "open_comments": sum(comments.values()),
        "traces": traces,
        "pager": pager,
        # What waits in a queue is judged there: else one could speak twice, and beside what is to stay unknown.
        "verdict_form": None if waits_in else verdict_form,
        "waits_in": waits_in,
        "fillable": fillable if membership.is_auditor else [],
        "verdict_errors": errors,
    }
    return render_view(
        request,
        membership,
        conversation,
        "conversation/conversation.html",
        context,
        current="conversation",
        digest=digest,
        telling=telling,
        stop=stop,
        status=status,
    )


def _read_timeline(request: HttpRequest, conversation: Conversation) -> tuple[Sequence[TreeRow], Pager, int]:
    """The rows of a window in the order of time, its pager, and the number of its last message."""
    window = read_timeline(conversation=conversation, start=read_start(request, conversation), size=WINDOW_ROWS)
    rows = [TreeRow(0, message, read_body(message)) for message in window.rows]
    return rows, make_pager(conversation, window, size=WINDOW_ROWS, order="time"), window.last


def _read_tree(request: HttpRequest, conversation: Conversation) -> tuple[Sequence[TreeRow], Pager, None]:
    """The same of a tree, whose lines, ghosts among them, have no numbers."""
    said = request.GET.get("from")
    at = or_404(read_tree_place(said)) if said else read_number(request, "offset")
    window = read_tree(conversation=conversation, at=at, limit=WINDOW_ROWS)
    shown = sum(row.message is not None for row in window.rows)
    pager = Pager(
        words=f"{shown:,} of {conversation.message_count:,} messages",
        first_url="?" if window.previous or (at and not window.rows) else "",
        previous_url=f"?from={window.previous.write()}" if window.previous else "",
        next_url=f"?from={window.next.write()}" if window.next else "",
        kept=(("order", "time"),),
        most=conversation.message_count,
    )
    return window.rows, pager, None


def _go_to(conversation: Conversation, workspace: Workspace, position: int) -> HttpResponse:
    """To the window that shows a message, in the order of time, and to its place there."""
    address = reverse("pages:conversation", args=[workspace.slug, conversation.pk])
    found = find_at(conversation=conversation, position=position)
    anchor = f"#{make_anchor(found)}" if found else ""
    return redirect(f"{address}?order=time&offset={position // WINDOW_ROWS * WINDOW_ROWS}{anchor}")


@within_workspace("GET", of=find_conversation)
def show_text(request: HttpRequest, membership: Membership, conversation: Conversation) -> HttpResponse:
    """The conversation from `offset` on, as far as one text goes; its end says which message is next."""
    text = write_text(conversation=conversation, offset=read_number(request, "offset"))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


RAW_ROWS: Final = 50


@within_workspace("GET", of=find_conversation)
def show_raw(request: HttpRequest, membership: Membership, conversation: Conversation) -> HttpResponse:
    """A window of the conversation's records as they were received, in the order of time, secrets masked."""
    jump = read_jump(request, total=conversation.message_count)
    if jump is not None:
        return redirect(f"{request.path}?offset={jump // RAW_ROWS * RAW_ROWS}#r-{jump + 1}")
    window = read_timeline(conversation=conversation, start=read_start(request, conversation), size=RAW_ROWS)
    context = {
        "rows": _make_rows(window.rows, cast_conversation(conversation)),
        "pager": make_pager(conversation, window, size=RAW_ROWS),
    }
    template = "conversation/raw.html"
    return render_view(
        request, membership, conversation, template, context, current="conversation-raw", stop=window.last
    )


def _make_rows(messages: Sequence[Message], cast: Cast) -> list[dict[str, Any]]:
    left_out = load_records(messages=messages, max_bytes=MAX_SHOWN_RECORD_BYTES, max_in_all=MAX_RECORD_BYTES)
    seen = find_first_sightings(record_ids={message.record_id for message in messages})
    made = [
        _make_record_row(list(parts), left_out.get(record_id), seen.get(record_id), cast)
        for record_id, parts in groupby(messages, key=lambda message: message.record_id)
    ]
    most = share_out(weigh_wire(row["wire"], row["stretches"]) for row in made)
    return [{**row, "wire_characters": fit_wire(row["wire"], row["stretches"], most)} for row in made]


def _make_record_row(
    parts: Sequence[Message], left_out: int | None, sighting: Sighting | None, cast: Cast
) -> dict[str, Any]:
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
