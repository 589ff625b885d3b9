"""The sequence diagram of a conversation, window by window, with the same as a table, and in Mermaid's language, to be
pasted elsewhere.

No text from a log can become syntax there: whatever is neither a letter nor a digit is written as Mermaid's own numeric
code (`#59;`), so that no line ends, no comment begins and no tag opens but by this module.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.audit.findings.selectors import OpenRule, list_open_about
from inspector.browsing.sequence import WINDOW_STEPS, Arrow, Step, read_sequence
from inspector.characters import spell_hidden
from inspector.threads.models import Conversation
from inspector.threads.selectors import find_conversation
from inspector.threads.timeline import Start

from ..shell import read_number, within_workspace, write_query
from ..shown.agents import Cast, cast_conversation
from ..shown.markup import shorten_name
from ..shown.told import say_fate
from .drawing import (
    MAX_LABEL_LENGTH,
    MAX_NAME_LENGTH,
    MAX_NAMES,
    choose_lanes,
    cut,
    draw,
    gather_names,
    name_receivers,
    name_sender,
    write_about,
    write_clock,
)
from .frame import make_pager, read_jump, read_start, render_view

# An arrow to more receivers than these is drawn to the first, and says how many there are.
MAX_RECEIVERS = 4

_PLAIN = re.compile(r"[^A-Za-z0-9 ]")

# Words that Mermaid reads as keywords wherever they stand.
_KEYWORD = re.compile(r"\b(end)\b", re.IGNORECASE)


def write_mermaid(arrows: Sequence[Arrow], *, cast: Cast, zone: ZoneInfo, heading: str) -> str:
    """The diagram.

    Args:
        arrows: the messages in their order.
        cast: who the agents are, in the order of the columns; those who have no part in the messages are left out.
        zone: the reader's, for the clock.
        heading: which messages it holds, in our own words.
    """
    named = gather_names(filter(None, _list_names(arrows)), cast)
    if any(not arrow.first.sender for arrow in arrows):
        named.append([""])
    ids = {name: f"a{number}" for number, names in enumerate(named, start=1) for name in names}
    lines = ["sequenceDiagram", f"    %% {_PLAIN.sub(' ', heading)}"]
    lines += [f"    participant {ids[names[0]]} as {_name_participant(names, cast)}" for names in named]
    for arrow in arrows:
        lines += (f"    {line}" for line in _write_arrow(arrow, ids, zone))
    return "\n".join(lines) + "\n"


def _name_participant(names: Sequence[str], cast: Cast) -> str:
    """What an agent is known by, and what it is called on the wire where that is another name or several."""
    shown = cast.find(names[0]).shown
    called = escape(shown, MAX_NAME_LENGTH) or "someone"
    if list(names) == [shown] or not shown:
        return called
    others = [escape(name, MAX_NAME_LENGTH) for name in names[:MAX_NAMES]]
    more = [f"{len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    return f"{called} #40;{'#44; '.join([*others, *more])}#41;"


def _list_names(arrows: Sequence[Arrow]) -> Iterator[str]:
    for arrow in arrows:
        yield arrow.first.sender
        yield from (name for name in arrow.first.receivers[:MAX_RECEIVERS] if name)


def _write_arrow(arrow: Arrow, ids: Mapping[str, str], zone: ZoneInfo) -> Iterator[str]:
    step = arrow.first
    source = ids[step.sender]
    if step.missing:
        name = escape(step.missing_name, MAX_LABEL_LENGTH) or "a cited message"
        yield f"Note over {source}: {name} {say_fate(step.bearers, is_withdrawn=step.is_withdrawn)}"
    text = " ".join(filter(None, _describe(arrow, zone)))
    targets = list(dict.fromkeys(ids[name] for name in step.receivers[:MAX_RECEIVERS]))
    if not targets and not step.is_broadcast:
        yield f"Note over {source}: {text} to nobody named"
        return
    if not targets:
        targets = [name for name in ids.values() if name != source][:MAX_RECEIVERS] or [source]
    for target in targets:
        yield f"{source}{_choose_line(step)}{target}: {text}"


def _describe(arrow: Arrow, zone: ZoneInfo) -> Iterator[str]:
    step = arrow.first
    yield escape(write_clock(step, zone))
    yield escape("not readable" if step.performative is None else step.performative)
    yield escape(write_about(arrow), MAX_LABEL_LENGTH)
    if arrow.is_bucket:
        yield escape(f"×{arrow.count}")
    if step.is_sealed:
        yield "sealed"
    if step.is_inferred:
        yield escape("(inferred)")
    if step.is_broadcast and not step.receivers:
        yield "to everyone"
    if len(step.receivers) > MAX_RECEIVERS:
        yield f"to {len(step.receivers)} receivers"


def _choose_line(step: Step) -> str:
    """Solid for what is direct, dashed for broadcast and inferred, a cross for what failed."""
    is_dashed = step.is_broadcast or step.is_inferred
    return ("--" if is_dashed else "-") + ("x" if step.is_failed else ">>")


def escape(text: str, length: int = 200) -> str:
    """A text that Mermaid shows as it is and reads as nothing else."""
    shown = spell_hidden(cut(text, length))
    safe = _PLAIN.sub(lambda match: f"#{ord(match[0])};", shown)
    return _KEYWORD.sub(lambda match: f"#{ord(match[0][0])};{match[0][1:]}", safe)


# How many messages one Mermaid text is made of at most, and how many buckets an address can open.
MAX_EXPORTED: Final = 2_000

MAX_OPENED: Final = 50

MAX_ENGLISH_LENGTH: Final = 240

MAX_CAUTIONS_LENGTH: Final = 600

# A longer text is for a download alone.
MAX_MERMAID_LENGTH: Final = 50_000

NOBODY: Final = uuid.UUID(int=0)


@within_workspace("GET", of=find_conversation)
def show_sequence(request: HttpRequest, membership: Membership, conversation: Conversation) -> HttpResponse:
    """A window of the conversation as a sequence diagram; the address is the whole state."""
    jump = read_jump(request, total=conversation.message_count)
    if jump is not None:
        kept = urlencode({"offset": jump // WINDOW_STEPS * WINDOW_STEPS, **_keep(request)})
        return redirect(f"{request.path}?{kept}#s-{jump + 1}")
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
        "table": [
            _make_table_row(step, arrow.count if arrow.is_bucket else 0, cast, findings.get(step.id, ()))
            for arrow in arrows
            for step in arrow.steps
        ],
        "mermaid": mermaid if len(mermaid) <= MAX_MERMAID_LENGTH else "",
        "max_exported": MAX_EXPORTED,
        "start": max(0, window.first - 1),
        "pager": pager,
        "shown": len(window.rows),
    }
    template = "sequence/sequence.html"
    return render_view(request, membership, conversation, template, context, current="sequence", stop=window.last)


@within_workspace("GET", of=find_conversation)
def download_mermaid(request: HttpRequest, membership: Membership, conversation: Conversation) -> HttpResponse:
    """The sequence as Mermaid, from `offset` on: a window, or with `all` up to `MAX_EXPORTED` messages."""
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
    headers = {"Content-Disposition": f'attachment; filename="sequence-{conversation.pk}-{offset + 1}.mmd"'}
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers=headers)


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
        "fate": say_fate(step.bearers, is_withdrawn=step.is_withdrawn) if step.missing else "",
        "why": cut(spell_hidden(step.parent_why), MAX_ENGLISH_LENGTH),
        "findings": findings,
    }
