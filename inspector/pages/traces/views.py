"""Traces: the list, one as a tree beside its bars over time, and the tree of one conversation drawn likewise."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from inspector.accounts.models import Membership
from inspector.lookups import or_404
from inspector.replica import on_replica
from inspector.threads.agents.names import load_labels
from inspector.threads.models import Trace
from inspector.threads.selectors import sum_up
from inspector.threads.trees.traces import filter_traces, find_trace, list_namesakes, select_traces

from ..agents.marks import Casts, list_first
from ..conversations.frame import frame_conversation, open_conversation
from ..forms import TraceFilter
from ..shell import cut_page, read_place, render_page, within_workspace
from ..shown.told import name_dialect, shorten, write_elapsed
from ..walks import read_walk
from .trees import make_tree_context

PAGE_ROWS = 50


@within_workspace("GET")
@on_replica
def show_traces(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The list of traces, latest activity first, by keyset."""
    workspace = membership.workspace
    form = TraceFilter(request.GET)
    filters = form.read()
    before = read_place(request, membership)
    walk = read_walk(request, membership, places=("before",))
    every = filter_traces(workspace=workspace, **filters).order_by("-pk")
    if walk.is_rest:
        rows = every.filter(walk.written, **({"pk__lt": walk.after[0]} if walk.after else {}))
    else:
        rows = select_traces(workspace=workspace, before=before, **filters)
    page, last = cut_page(rows[: PAGE_ROWS + 1], PAGE_ROWS)
    rest_url = walk.find_rest(every, has_more=last is not None)
    if rest_url and not page:
        return redirect(rest_url)
    casts = Casts(load_labels(workspace_id=workspace.pk))
    context = {
        "rows": [_make_row(trace, casts) for trace in page],
        "form": form,
        "unknown": form.list_unknown(),
        "is_filtered": bool(filters),
        "has_any": bool(page or filters or not walk.is_first),
        "older_url": walk.write_older(last, "last_at"),
        "rest_url": rest_url,
        "walk": walk,
    }
    return render_page(request, membership, "trace/traces.html", context, section="traces")


def _make_row(trace: Trace, casts: Casts) -> dict[str, Any]:
    agents = list_first(trace.agents)
    return {
        "title": shorten(trace.subject or trace.native_id),
        "trace": trace,
        "agents": casts.find(trace).find_all(agents),
        "more_agents": len(trace.agents) - len(agents),
        "dialects": ", ".join(name_dialect(dialect) for dialect in trace.dialects),
    }


@within_workspace("GET")
def show_trace(request: HttpRequest, membership: Membership, trace_id: uuid.UUID) -> HttpResponse:
    """One trace: its tree and its bars over time; with `HX-Request` the rows of a window alone."""
    trace = or_404(find_trace(workspace=membership.workspace, trace_id=trace_id))
    context = make_tree_context(request, membership, trace)
    if "HX-Request" in request.headers:
        return render(request, "trace/_window.html", context)
    elapsed = trace.last_at - trace.first_at if trace.last_at and trace.first_at else None
    context |= {
        "trace": trace,
        "title": shorten(trace.subject or trace.native_id),
        "more_agents": len(trace.agents) - len(list_first(trace.agents)),
        "dialects": ", ".join(name_dialect(dialect) for dialect in trace.dialects),
        "elapsed": write_elapsed(elapsed) if elapsed else "",
        "namesakes": list(list_namesakes(trace=trace)),
        "label": f"Messages of trace {trace.native_id}",
    }
    return render_page(request, membership, "trace/trace.html", context, section="traces")


@within_workspace("GET")
def show_conversation_tree(request: HttpRequest, membership: Membership, conversation_id: uuid.UUID) -> HttpResponse:
    """The tree of one conversation and its bars over time; with `HX-Request` the rows of a window alone."""
    conversation = open_conversation(membership, conversation_id)
    context = make_tree_context(request, membership, conversation)
    if "HX-Request" in request.headers:
        return render(request, "trace/_window.html", context)
    digest = sum_up(conversation=conversation)
    context |= frame_conversation(
        membership=membership,
        conversation=conversation,
        digest=digest,
        current="conversation-tree",
        telling=context.get("telling"),
    )
    context["label"] = "Messages of this conversation"
    return render_page(request, membership, "trace/conversation.html", context, section="conversations")
