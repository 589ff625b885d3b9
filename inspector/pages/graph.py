"""Who talks with whom, drawn: senders to the left, receivers to the right, a line for each pair, as thick as its talk.

Each agent stands once on a side, the busiest on top; the same pairs are in the table below. The drawing stretches to
the width that there is, so that its names are as large on a telephone. What is drawn follows from the rows alone.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from inspector.accounts.models import Membership
from inspector.audit.agents import Waiting, count_asked_between, list_waiting
from inspector.browsing.directory import PairSum, list_pairs, measure_pairs
from inspector.database import on_replica
from inspector.pages.agents import Gallery
from inspector.threads.models import PairTotal

from .agents import Narrowing
from .shell import render_page, within_workspace
from .shown.agents import AgentMark

PAGE_PAIRS: Final = 40

MAX_WAITING: Final = 8

# The drawing's own units: its width, and the height of all its rows together.
WIDTH, HEIGHT = 100.0, 1000.0


_THINNEST, _THICKEST = 1.5, 14.0

# How much of a row the lines that end in it spread over, and where along a line its failures are marked.
_SPREAD, _MARK_AT = 0.5, 0.86

# With more rows than this they stand closer.
_MAX_WIDE_ROWS: Final = 14


@within_workspace("GET")
@on_replica
def show_graph(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The pairs that talk most, drawn and as a table, by keyset."""
    workspace = membership.workspace
    narrowing = Narrowing(request, membership, of="pairs", address="agents-graph")
    choice, after = narrowing.choice, narrowing.after
    found = list_pairs(
        workspace=workspace,
        choice=choice,
        after=(after[0], uuid.UUID(after[1]), uuid.UUID(after[2]), after[3]) if after else None,
        limit=PAGE_PAIRS + 1,
        since=narrowing.since,
    )
    page, last = narrowing.walk.cut(found, PAGE_PAIRS, PairTotal.objects.filter(workspace=workspace))
    extent = measure_pairs(workspace=workspace, choice=choice)
    # A task belongs to no dialect, and the list stands once, with the busiest pairs.
    is_first = narrowing.walk.is_first and not choice.dialect
    waiting = list_waiting(workspace=workspace, choice=choice, limit=MAX_WAITING) if is_first else []
    talking = [side for pair in page for side in (pair.sender, pair.receiver)]
    gallery = Gallery(workspace, [*talking, *(side for each in waiting for side in (each.requester, each.performer))])
    outcomes = count_asked_between(workspace=workspace, pairs=page)
    pairs = [gallery.make_pair(pair, outcomes) for pair in page]
    drawn = sum(pair.messages for pair in page)
    context = {
        "pairs": pairs,
        "waiting": _show_waiting(waiting, gallery),
        "drawing": draw(page, pairs),
        "extent": extent,
        "drawn_messages": drawn,
        "left_pairs": extent.pairs - len(pairs),
        "left_messages": extent.messages - drawn,
        **narrowing.frame(is_empty=not page, last=_write_place(last) if last else None),
    }
    return render_page(request, membership, "agents/graph.html", context, section="agents")


def _show_waiting(waiting: Sequence[Waiting], gallery: Gallery) -> list[dict[str, Any]]:
    return [
        {
            "requester": gallery.find(each.requester),
            "requester_url": gallery.make_url(each.requester),
            "performer": gallery.find(each.performer),
            "performer_url": gallery.make_url(each.performer),
            "requests": each.requests,
            "since": each.since,
            "url": gallery.make_search(each.requester, each.performer),
        }
        for each in waiting
    ]


def _write_place(pair: PairSum) -> tuple[int, str, str, bool]:
    messages, source, target, is_broadcast = pair.key
    return messages, str(source), str(target), is_broadcast


def draw(pairs: Sequence[PairSum], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The drawing of these pairs; `rows` are the same as the table shows them."""
    sides = _Side(), _Side()
    for pair, row in zip(pairs, rows, strict=True):
        sides[0].add(_key_sender(pair), row["sender"], row["sender_url"], "someone", pair.messages)
        sides[1].add(_key_receiver(pair), row["receiver"], row["receiver_url"], _say_receiver(pair), pair.messages)
    for side in sides:
        side.order(pairs)
    most = max((pair.messages for pair in pairs), default=0)
    ends = [(_key_sender(pair), _key_receiver(pair)) for pair in pairs]
    for left, right in ends:
        sides[0].attach(left, right, sides[1])
        sides[1].attach(right, left, sides[0])
    flows = [
        _make_flow(pair, row, sides[0].find_place(left, right), sides[1].find_place(right, left), most)
        for pair, row, (left, right) in zip(pairs, rows, ends, strict=True)
    ]
    return {
        "view_box": f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        "senders": sides[0].ends,
        "receivers": sides[1].ends,
        "flows": flows,
        "is_dense": max(len(side.ends) for side in sides) > _MAX_WIDE_ROWS,
        "most": most,
        "least": min((pair.messages for pair in pairs), default=0),
    }


def _key_sender(pair: PairSum) -> str:
    return str(pair.sender.pk) if pair.sender else "someone"


def _key_receiver(pair: PairSum) -> str:
    return str(pair.receiver.pk) if pair.receiver else _say_receiver(pair)


def _say_receiver(pair: PairSum) -> str:
    return "everyone" if pair.is_broadcast else "no recipient"


class _Side:
    """One side of the drawing: its rows in order, and where in each row a line ends."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[AgentMark | None, str, str]] = {}
        self._totals: dict[str, int] = defaultdict(int)
        self._rows: dict[str, int] = {}
        self._lines: dict[str, list[tuple[int, str]]] = defaultdict(list)

    def add(self, key: str, mark: AgentMark | None, url: str, words: str, messages: int) -> None:
        """Give a row to whoever stands at the end of a pair."""
        self._ends.setdefault(key, (mark, url, words))
        self._totals[key] += messages

    def order(self, pairs: Sequence[PairSum]) -> None:
        """Who talks most on both sides together stands on top; who has no name stands below."""
        totals: dict[str, int] = defaultdict(int)
        for pair in pairs:
            for key in (_key_sender(pair), _key_receiver(pair)):
                totals[key] += pair.messages
        keys = sorted(self._ends, key=lambda key: (self._ends[key][0] is None, -totals[key], key))
        self._rows = {key: row for row, key in enumerate(keys)}

    def attach(self, key: str, other: str, side: _Side) -> None:
        """Note a line that ends in this row, by the row at which it ends on the other side."""
        self._lines[key].append((side._rows[other], other))

    @property
    def ends(self) -> list[dict[str, Any]]:
        """The rows from above."""
        return [
            {"mark": mark, "url": url, "words": words, "messages": self._totals[key]}
            for key in self._rows
            for mark, url, words in (self._ends[key],)
        ]

    def find_place(self, key: str, other: str) -> float:
        """How high the line to this row of the other side ends in its own: spread, so that lines do not cross there."""
        height = HEIGHT / len(self._rows)
        lines = sorted(self._lines[key])
        place = next(place for place, (_, name) in enumerate(lines) if name == other)
        offset = (place + 0.5) / len(lines) - 0.5
        return (self._rows[key] + 0.5 + offset * _SPREAD) * height


def _make_flow(pair: PairSum, row: dict[str, Any], left: float, right: float, most: int) -> dict[str, Any]:
    width = max(_THINNEST, _THICKEST * pair.messages / most)
    failed = max(_THINNEST, width * pair.failures / pair.messages) if pair.failures else 0.0
    middle = WIDTH / 2
    # The point of the curve at which it has come so far: a Bézier curve with both handles in the middle.
    along, back = _MARK_AT, 1 - _MARK_AT
    x = 3 * along * back * back * middle + 3 * along * along * back * middle + along**3 * WIDTH
    y = (back**3 + 3 * along * back * back) * left + (3 * along * along * back + along**3) * right
    return {
        "path": f"M0 {left:.1f}C{middle:.0f} {left:.1f} {middle:.0f} {right:.1f} {WIDTH:.0f} {right:.1f}",
        "width": f"{width:.2f}",
        "failed_width": f"{failed:.2f}",
        "number": row["sender"].number if row["sender"] else 0,
        "is_broadcast": pair.is_broadcast,
        "url": row["search_url"] or row["sender_url"] or row["receiver_url"],
        "words": _say_flow(pair, row),
        "failures": pair.failures,
        "mark_x": f"{x:.2f}%",
        "mark_y": f"{y / HEIGHT * 100:.2f}%",
    }


def _say_flow(pair: PairSum, row: dict[str, Any]) -> str:
    sender = row["sender"].shown if row["sender"] else "someone"
    receiver = row["receiver"].shown if row["receiver"] else _say_receiver(pair)
    failed = f", {pair.failures:,} of them failures" if pair.failures else ""
    count = f"{pair.messages:,} message{'' if pair.messages == 1 else 's'}"
    return f"{sender} to {'itself' if row['is_to_itself'] else receiver}: {count}{failed}; {row['dialects']}"
