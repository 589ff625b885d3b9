"""Traces: the list, one as a tree beside its bars over time, and the tree of one conversation drawn likewise, a window
at a time, folded, searched and scaled as its address says; and links from messages to their traces.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from inspector.accounts.models import Membership, Workspace
from inspector.audit.findings.selectors import list_open_about, tell_findings
from inspector.browsing.transcripts import find_doubtful, find_doubts
from inspector.browsing.withdrawn import find_cited, find_withdrawn
from inspector.database import make_storable, on_replica
from inspector.threads.agents import load_labels
from inspector.threads.keys import count_microseconds, read_instant
from inspector.threads.lines import OPEN, Fold
from inspector.threads.models import Conversation, Message, Trace
from inspector.threads.selectors import find_conversation
from inspector.threads.trees import (
    MAX_FOUND,
    MAX_TOGGLED,
    Contents,
    Place,
    Tree,
    Window,
    WindowRow,
    filter_traces,
    find_matching,
    find_trace,
    find_traces_of,
    list_namesakes,
    load_contents,
    load_tree,
    match_rows,
    select_traces,
)
from inspector.threads.trees import read_place as read_tree_place

from .conversations.frame import render_view
from .lists import TraceFilter, read_place, read_walk
from .shell import parse_id, read_number, render_page, within_workspace
from .shown.agents import AgentMark, Casts, cast_conversation, list_first
from .shown.told import name_conversations, name_dialects, shorten, write_elapsed
from .tree import Axis, Painter, draw_map, find_axis, find_reach

WINDOW_ROWS: Final = 200

MAX_FIND_LENGTH: Final = 200

# (value of the address, how it is called, the depth down to which rows are open)
LEVELS: Final[tuple[tuple[str, str, int | None], ...]] = (
    ("0", "Collapse all", 0),
    ("1", "One level", 1),
    ("all", "All", None),
)

_TOKEN: Final = re.compile(r"[0-9a-f]{32}")

# How many rows are shown before the one that an address leads to.
_BEFORE: Final = 3


@dataclass(frozen=True, slots=True)
class Wish:
    """What the address asks for: the window at a row, else at a time (microseconds since 1970), else around what is
    found, that of a hit above all; and whether messages alike have a row each."""

    at: Place | None
    time: int | None
    level: str
    tokens: tuple[str, ...]
    find: str
    hit: int
    message: uuid.UUID | None
    scale: tuple[int, int] | None
    is_apart: bool

    def write(self, **changes: str | int | None) -> str:
        """The address of this page with some of it changed, None taking it away."""
        said: dict[str, str | int | None] = {
            "level": self.level if self.level != "all" else None,
            "fold": ",".join(self.tokens) or None,
            "find": self.find or None,
            "hit": self.hit or None,
            "at": self.at.write() if self.at else None,
            "time": self.time,
            "scale": "-".join(map(str, self.scale)) if self.scale else None,
            "alike": "apart" if self.is_apart else None,
        }
        kept = {name: value for name, value in (said | changes).items() if value not in (None, "")}
        return f"?{urlencode(kept)}" if kept else "?"


def read_wish(request: HttpRequest) -> Wish:
    """The parameters; what cannot be meant is passed over, as a folded row that is gone is."""
    level = request.GET.get("level", "all")
    tokens = [token for token in request.GET.get("fold", "").split(",") if _TOKEN.fullmatch(token)]
    scale = re.fullmatch(r"(\d{1,17})-(\d{1,17})", request.GET.get("scale", ""))
    return Wish(
        at=read_tree_place(request.GET.get("at", "")),
        time=_read_time(request.GET.get("time", "")),
        level=level if level in {name for name, *_ in LEVELS} else "all",
        tokens=tuple(dict.fromkeys(tokens))[:MAX_TOGGLED],
        find=make_storable(" ".join(request.GET.get("find", "").split()))[:MAX_FIND_LENGTH],
        hit=read_number(request, "hit"),
        message=parse_id(request.GET.get("message", "")),
        scale=(int(scale[1]), int(scale[2])) if scale else None,
        is_apart=request.GET.get("alike") == "apart",
    )


def _read_time(text: str) -> int | None:
    """Microseconds since 1970, or a time as a form gives it, in UTC."""
    if re.fullmatch(r"\d{1,17}", text):
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return count_microseconds(at if at.tzinfo else at.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Found:
    """What a search within the tree found, by time, and the number of the current one, 0 for none."""

    hits: Sequence[tuple[datetime, uuid.UUID]]
    number: int
    has_more: bool

    @property
    def current(self) -> uuid.UUID | None:
        """The message that is the current one."""
        return self.hits[self.number - 1][1] if self.number else None


def search_tree(owner: Conversation | Trace, wish: Wish) -> Found | None:
    """The messages that hold what is looked for, the earliest first; None where nothing is."""
    if not wish.find:
        return None
    hits = find_matching(owner=owner, text=wish.find, limit=MAX_FOUND + 1)
    # Whoever goes on from what was found, by windows, stands at none of it.
    is_elsewhere = (wish.at is not None or wish.time is not None) and not wish.hit
    number = 0 if is_elsewhere else min(max(1, wish.hit), len(hits[:MAX_FOUND]))
    return Found(hits[:MAX_FOUND], number, len(hits) > MAX_FOUND)


def make_tree_context(request: HttpRequest, membership: Membership, owner: Conversation | Trace) -> dict[str, Any]:
    """The context of `trace/_tree.html`, `tree` None where nothing is drawn yet; and `agents`, the first of them.

    Of a conversation also `telling`: what findings say of it, where they were asked for.
    """
    tree = load_tree(owner)
    wish = read_wish(request)
    if tree is None:
        return {"tree": None, "agents": cast_conversation(owner).find_all(list_first(owner.agents))}
    # Rows alone come without what is said of the whole.
    found = search_tree(owner, wish) if "HX-Request" not in request.headers else None
    fold, stale = _read_fold(tree, wish)
    at, current = wish.at, wish.message or (found.current if found is not None else None)
    if current is not None:
        # What is found must be seen: the tree is open around it.
        fold = OPEN if tree.is_hidden(current, fold) else fold
        at = tree.find_before(current, _BEFORE, fold)
    elif at is None and wish.time is not None:
        moment = tree.find_at(read_instant(wish.time))
        at = Place(moment) if moment else None
    window = tree.read_window(at=at, limit=WINDOW_ROWS, fold=fold)
    if not window.rows and at is None:
        return {"tree": None, "agents": cast_conversation(owner).find_all(list_first(owner.agents))}
    at = Place(window.rows[0].place, window.rows[0].depth) if window.rows else at
    zone = ZoneInfo(membership.user.time_zone or "UTC")
    axis = Axis(*wish.scale, zone) if wish.scale else find_axis(owner, zone)
    contents = load_contents(owner=owner, rows=window.rows)
    said = list(contents.said.values())
    telling = tell_findings(conversation=owner, messages=said) if isinstance(owner, Conversation) else None
    painter = Painter(
        slug=membership.workspace.slug,
        owner=owner,
        names=cast_conversation(owner),
        axis=axis,
        contents=contents,
        titles=name_conversations(contents.conversations.values()) if isinstance(owner, Trace) else {},
        withdrawn=_find_withdrawn(membership, contents),
        findings=telling.name_rules() if telling else list_open_about(messages=said),
        doubtful=_find_doubtful(said, contents.conversations),
        hits=match_rows(rows=window.rows, text=wish.find) if wish.find else frozenset(),
        current=current,
    )
    return {
        "agents": _list_agents(painter, owner),
        "telling": telling,
        "tree": {
            "rows": painter.draw_all(
                window.rows,
                _write_links(window.rows, wish, at),
                "" if wish.is_apart else wish.write(at=at.write() if at else None, time=None, hit=None, alike="apart"),
            ),
            "critical": window.critical and {"count": window.critical[0], "elapsed": write_elapsed(window.critical[1])},
            "together_url": wish.write(alike=None) if wish.is_apart else None,
            "map": draw_map(tree.list_bands(), window.rows, find_axis(owner, zone)),
            "axis": axis.draw(),
            "count": owner.message_count,
            "shown": len(window.rows),
            "first": axis.write_clock(window.rows[0].line.start) if window.rows else "",
            "last": axis.write_clock(window.rows[-1].line.start) if window.rows else "",
            "at": at.write() if at else "",
            "next_url": window.next and wish.write(at=window.next.write(), time=None, hit=None),
            "is_stopped": window.next is not None and window.next.is_after,
            "previous_url": window.previous and wish.write(at=window.previous.write(), time=None, hit=None),
            "levels": [
                {
                    "name": words,
                    "value": name,
                    "url": wish.write(level=name if name != "all" else None, fold=None, at=None, time=None, hit=None),
                    "is_current": name == wish.level,
                }
                for name, words, _ in LEVELS
            ],
            "kept": _list_kept(wish),
            "find": wish.find,
            "found": found and _describe_found(found, wish, window.rows),
            "stale": stale,
            "is_scaled": wish.scale is not None,
            "scale_url": wish.write(scale=None) if wish.scale else _write_scale(window, wish, zone),
        },
    }


def _find_doubtful(said: Sequence[Message], conversations: Mapping[uuid.UUID, Conversation]) -> frozenset[uuid.UUID]:
    """Which of these messages others make doubtful. What they answer is doubted only where all messages of their
    conversation are among them: one that is not may have been the answer."""
    found = find_doubtful(said)
    for pk, conversation in conversations.items():
        together = [each for each in said if each.conversation_id == pk and each.place is not None]
        if len(together) == conversation.message_count:
            found |= find_doubts(sorted(together, key=lambda each: bytes(each.place or b""))).keys()
    return frozenset(found)


def _find_withdrawn(membership: Membership, contents: Contents) -> frozenset[uuid.UUID]:
    """Which messages of the window cite, below a ghost, what was received and is withdrawn."""
    citing = (contents.said.get(ghost.citing) for ghost in contents.ghosts.values())
    cited = {message.pk: find_cited(message) for message in citing if message is not None}
    found = find_withdrawn(workspace_id=membership.workspace_id, cited=cited.values())
    return frozenset(pk for pk, each in cited.items() if each in found)


def _list_agents(painter: Painter, owner: Conversation | Trace) -> list[AgentMark]:
    """The first agents of the tree, by what they are called where all that is shown is of one channel."""
    channels = {said.channel_id for said in painter.contents.said.values()}
    channel_id = next(iter(channels)) if len(channels) == 1 else None
    return [painter.mark(name, channel_id, tuple(owner.dialects)) for name in list_first(owner.agents)]


def _read_fold(tree: Tree, wish: Wish) -> tuple[Fold, int]:
    """The fold, and how many of its rows are not in the tree any more."""
    level = next(depth for name, _, depth in LEVELS if name == wish.level)
    wanted = [uuid.UUID(token) for token in wish.tokens]
    held = tree.find_held(wanted) if wanted else frozenset()
    return Fold(level, held), len(wanted) - len(held)


def _write_links(rows: Sequence[WindowRow], wish: Wish, at: Place | None) -> Mapping[uuid.UUID, str]:
    links = {}
    # Whoever looks for something, or came for a message, stays where the row is and is not led back to that.
    here: dict[str, str] = {"at": at.write()} if at and (wish.find or wish.at or wish.time or wish.message) else {}
    # Of the addresses of two hundred rows only the tokens differ.
    before, _, after = wish.write(fold="0", hit=None, time=None, **here).partition("fold=0")
    for row in rows:
        if row.is_parent:
            token = row.place.hex
            tokens = [each for each in wish.tokens if each != token]
            if len(tokens) == len(wish.tokens):
                tokens.append(token)
            address = (
                f"{before}fold={'%2C'.join(tokens)}{after}"
                if tokens
                else wish.write(fold=None, hit=None, time=None, **here)
            )
            links[row.place] = f"{address}#row-{row.place.hex}"
    return links


def _list_kept(wish: Wish) -> list[tuple[str, str]]:
    """What a form of the page takes along."""
    kept = [("level", wish.level if wish.level != "all" else ""), ("fold", ",".join(wish.tokens))]
    kept.append(("alike", "apart" if wish.is_apart else ""))
    return [(name, value) for name, value in kept if value]


def _describe_found(found: Found, wish: Wish, rows: Sequence[WindowRow]) -> dict[str, Any]:
    count = len(found.hits)
    # How many stand before the current one, or before the window where none is current; and up to the next one.
    first = read_instant(rows[0].line.start) if rows else None
    before = found.number - 1 if found.number else sum(first is not None and at < first for at, _ in found.hits)
    passed = found.number or before
    has_others = count > 1 or (count == 1 and not found.number)
    return {
        "count": count,
        "number": found.number,
        "has_more": found.has_more,
        "next_url": wish.write(hit=passed % count + 1, at=None, time=None) if has_others else None,
        "previous_url": wish.write(hit=(before - 1) % count + 1, at=None, time=None) if has_others else None,
    }


def _write_scale(window: Window, wish: Wish, zone: ZoneInfo) -> str | None:
    """The address of the same window with the bars drawn against its own time; None where that is the whole."""
    if window.next is None and window.previous is None:
        return None
    axis = find_reach(window.rows, zone)
    return wish.write(scale=f"{axis.first}-{axis.last}")


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
        rows = walk.narrow(every, "pk__lt")
    else:
        rows = select_traces(workspace=workspace, before=before, **filters)
    page, last = walk.cut(rows[: PAGE_ROWS + 1], PAGE_ROWS, every)
    casts = Casts(load_labels(workspace_id=workspace.pk))
    context = {
        "rows": [_make_row(trace, casts) for trace in page],
        "form": form,
        "unknown": form.list_unknown(),
        "is_filtered": bool(filters),
        "has_any": bool(page or filters or not walk.is_first),
        "older_url": walk.write_older(last, "last_at"),
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
        "dialects": name_dialects(trace.dialects),
    }


@within_workspace("GET", of=find_trace)
def show_trace(request: HttpRequest, membership: Membership, trace: Trace) -> HttpResponse:
    """One trace: its tree and its bars over time; with `HX-Request` the rows of a window alone."""
    context = make_tree_context(request, membership, trace)
    if "HX-Request" in request.headers:
        return render(request, "trace/_window.html", context)
    elapsed = trace.last_at - trace.first_at if trace.last_at and trace.first_at else None
    context |= {
        "trace": trace,
        "title": shorten(trace.subject or trace.native_id),
        "more_agents": len(trace.agents) - len(list_first(trace.agents)),
        "dialects": name_dialects(trace.dialects),
        "elapsed": write_elapsed(elapsed) if elapsed else "",
        "namesakes": list(list_namesakes(trace=trace)),
        "label": f"Messages of trace {trace.native_id}",
    }
    return render_page(request, membership, "trace/trace.html", context, section="traces")


@within_workspace("GET", of=find_conversation)
def show_conversation_tree(request: HttpRequest, membership: Membership, conversation: Conversation) -> HttpResponse:
    """The tree of one conversation and its bars over time; with `HX-Request` the rows of a window alone."""
    context = make_tree_context(request, membership, conversation)
    if "HX-Request" in request.headers:
        return render(request, "trace/_window.html", context)
    context["label"] = "Messages of this conversation"
    telling, template = context.get("telling"), "trace/conversation.html"
    return render_view(
        request, membership, conversation, template, context, current="conversation-tree", telling=telling
    )


MAX_TRACES: Final = 5


def link_traces(workspace: Workspace, messages: Sequence[Message]) -> list[dict[str, str]]:
    """The first traces of these messages."""
    return [
        {
            "url": reverse("pages:trace", args=[workspace.slug, trace["id"]]),
            "name": shorten(trace["name"], 40),
            "id": trace["name"],
        }
        for trace in find_traces_of(messages=messages)[:MAX_TRACES]
    ]


def link_trace(workspace: Workspace, message: Message) -> list[dict[str, str]]:
    """The trace of a message that `find_message` found, to its row there; nothing where it has none."""
    trace = getattr(message, "trace", None)
    if trace is None:
        return []
    url = reverse("pages:trace", args=[workspace.slug, trace["id"]])
    return [{"url": f"{url}?message={message.pk}", "name": shorten(trace["name"], 40)}]
