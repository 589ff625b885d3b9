"""The sequence diagram of a conversation, window by window, with the same as a table and as Mermaid."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.audit.findings.selectors import OpenRule, list_open_about
from inspector.browsing.sequence import WINDOW_STEPS, Arrow, Step, read_sequence
from inspector.hidden_characters import spell_hidden
from inspector.threads.selectors import sum_up
from inspector.threads.timeline import Start

from ..agents.marks import Cast, cast_conversation
from ..conversations.frame import frame_conversation, open_conversation
from ..conversations.windows import make_pager, read_jump, read_start
from ..shell import read_number, render_page, within_workspace, write_query
from ..shown.budgets import shorten_name
from ..shown.told import say_fate
from .drawing import cut, draw, name_receivers, name_sender
from .lanes import choose_lanes
from .mermaid import write_mermaid

# How many messages one Mermaid text is made of at most, and how many buckets an address can open.
MAX_EXPORTED: Final = 2_000
MAX_OPENED: Final = 50
MAX_ENGLISH_LENGTH: Final = 240
MAX_CAUTIONS_LENGTH: Final = 600
# A longer text is for a download alone.
MAX_MERMAID_LENGTH: Final = 50_000
NOBODY: Final = uuid.UUID(int=0)


@within_workspace("GET")
def show_sequence(request: HttpRequest, membership: Membership, conversation_id: uuid.UUID) -> HttpResponse:
    """A window of the conversation as a sequence diagram; the address is the whole state."""
    conversation = open_conversation(membership, conversation_id)
    jump = read_jump(request, total=conversation.message_count)
    if jump is not None:
        return redirect(f"{_write_window(request, jump // WINDOW_STEPS * WINDOW_STEPS)}#s-{jump + 1}")
    opened, is_all_opened = _read_opened(request)
    start = read_start(request, conversation)
    arrows, window = read_sequence(
        conversation=conversation, start=start, size=WINDOW_STEPS, opened=opened, is_all_opened=is_all_opened
    )
    zone = ZoneInfo(membership.user.time_zone)
    cast = cast_conversation(conversation)
    is_everyone_shown = request.GET.get("agents") == "all"
    lanes = choose_lanes(steps=window.rows, agents=conversation.agents, cast=cast, is_everyone_shown=is_everyone_shown)
    findings = list_open_about(messages=window.rows)
    drawing = draw(arrows, lanes, zone, findings)
    slug = membership.workspace.slug
    pager = make_pager(conversation, window, size=WINDOW_STEPS, **_keep(request))
    mermaid = write_mermaid(arrows, cast=cast, zone=zone, heading=pager.words.replace("–", " to "))
    context = {
        **frame_conversation(
            membership=membership,
            conversation=conversation,
            digest=sum_up(conversation=conversation),
            current="sequence",
            stop=window.last,
        ),
        "drawing": drawing,
        "lanes": lanes.lanes,
        "drawn_lanes": [
            {"x": lanes.place(place), "number": lane.mark.number if lane.mark else 0}
            for place, lane in enumerate(lanes.lanes)
        ],
        "folded_count": lanes.folded_count,
        "agents_url": write_query(request, agents=None if is_everyone_shown else "all"),
        "is_everyone_shown": is_everyone_shown,
        "open_all_url": write_query(request, open="all") if drawing["bucket_count"] else "",
        "fold_url": write_query(request, open=None) if opened or is_all_opened else "",
        "open_base": _write_open_base(request, opened),
        "message_base": reverse("pages:message", args=[slug, NOBODY]).removesuffix(f"{NOBODY}/"),
        "table": _make_table(arrows, cast, findings),
        "mermaid": mermaid if len(mermaid) <= MAX_MERMAID_LENGTH else "",
        "max_exported": MAX_EXPORTED,
        "start": max(0, window.first - 1),
        "pager": pager,
        "shown": len(window.rows),
    }
    return render_page(request, membership, "sequence/sequence.html", context, section="conversations")


@within_workspace("GET")
def download_mermaid(request: HttpRequest, membership: Membership, conversation_id: uuid.UUID) -> HttpResponse:
    """The sequence as Mermaid, from `offset` on: a window, or with `all` up to `MAX_EXPORTED` messages."""
    conversation = open_conversation(membership, conversation_id)
    size = MAX_EXPORTED if "all" in request.GET else WINDOW_STEPS
    offset = read_number(request, "offset")
    arrows, window = read_sequence(conversation=conversation, start=Start(offset=offset), size=size)
    last = f"{window.last:,}" if window.rows else "none"
    text = write_mermaid(
        arrows,
        cast=cast_conversation(conversation),
        zone=ZoneInfo(membership.user.time_zone),
        heading=f"Messages {offset + 1:,} to {last} of {conversation.message_count:,}",
    )
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="sequence-{conversation.pk}-{offset + 1}.mmd"'
    return response


def _read_opened(request: HttpRequest) -> tuple[frozenset[int], bool]:
    said = request.GET.get("open", "")
    if said == "all":
        return frozenset(), True
    numbers = [piece for piece in said.split(",")[:MAX_OPENED] if piece.isascii() and piece.isdigit()]
    # In the address messages are numbered from 1, as everywhere a person sees them.
    return frozenset(int(number) - 1 for number in numbers if len(number) < 16), False


def _write_open_base(request: HttpRequest, opened: Iterable[int]) -> str:
    """The address of this page up to the number of the bucket that a link opens."""
    others = "".join(f"{position + 1}," for position in sorted(opened))
    rest = write_query(request, open=None)
    return f"{rest if rest.startswith('?') else '?'}{'&' if rest.startswith('?') else ''}open={others}"


def _keep(request: HttpRequest) -> dict[str, str]:
    """What a link to another window takes along: which agents, and whether alike messages are drawn one by one."""
    kept = {"agents": "all"} if request.GET.get("agents") == "all" else {}
    return {**kept, "open": "all"} if request.GET.get("open") == "all" else kept


def _write_window(request: HttpRequest, start: int) -> str:
    parameters = "".join(f"&{name}={value}" for name, value in _keep(request).items())
    return f"{request.path}?offset={start}{parameters}"


def _make_table(
    arrows: Sequence[Arrow], cast: Cast, findings: Mapping[uuid.UUID, Sequence[OpenRule]]
) -> list[dict[str, Any]]:
    return [
        _make_table_row(step, arrow.count if arrow.is_bucket else 0, cast, findings.get(step.id, ()))
        for arrow in arrows
        for step in arrow.steps
    ]


def _make_table_row(step: Step, alike_count: int, cast: Cast, findings: Sequence[OpenRule]) -> dict[str, Any]:
    english = shorten_name(cut(step.english, MAX_ENGLISH_LENGTH), 400)
    return {
        "number": step.position + 1,
        "step": step,
        "sender": name_sender(step, cast),
        "receivers": name_receivers(step, cast).removeprefix("to "),
        "english": english,
        "cautions": shorten_name(cut(step.cautions, MAX_CAUTIONS_LENGTH), MAX_CAUTIONS_LENGTH),
        "left_out": max(0, step.english_length - len(english)) if english.endswith("…") else 0,
        "alike_count": alike_count,
        "missing_name": shorten_name(step.missing_name),
        "fate": say_fate(step.bearers) if step.missing else "",
        "why": cut(spell_hidden(step.parent_why), MAX_ENGLISH_LENGTH),
        "findings": findings,
    }
