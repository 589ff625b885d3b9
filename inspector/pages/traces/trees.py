"""A window of a tree as a page shows it: folded, searched and scaled as its address says."""

from __future__ import annotations

import re
import uuid
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils.http import urlencode

from inspector.accounts.models import Membership
from inspector.audit.findings.listing import list_open_about
from inspector.intake.text import make_storable
from inspector.threads.models import Conversation, Trace
from inspector.threads.trees.traces import MOST_FOUND, find_matching, match_rows, read_foliage
from inspector.threads.trees.windows import MOST_TOGGLED, Fold, StoredTree, Window, WindowRow, load_tree

from ..agents.marks import AgentMark, Cast, cast_conversation
from ..shell import read_number
from .bars import Axis, draw_map, find_axis, find_reach
from .rows import Painter, write_token

WINDOW_ROWS: Final = 200
LONGEST_FIND: Final = 200
MOST_TILES: Final = 6
# (value of the address, how it is called, the depth down to which rows are open)
LEVELS: Final[tuple[tuple[str, str, int | None], ...]] = (
    ("0", "Collapse all", 0),
    ("1", "One level", 1),
    ("all", "All", None),
)
_TOKEN: Final = re.compile(r"(\d{1,12})\.([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the address asks for: the window at a row, else the one around what is found, that of a hit above all."""

    at: int | None
    level: str
    tokens: tuple[str, ...]
    find: str
    hit: int
    message: uuid.UUID | None
    scale: tuple[int, int] | None

    def write(self, **changes: str | int | None) -> str:
        """The address of this page with some of it changed, None taking it away."""
        said: dict[str, str | int | None] = {
            "level": self.level if self.level != "all" else None,
            "fold": ",".join(self.tokens) or None,
            "find": self.find or None,
            "hit": self.hit or None,
            # The beginning is where an address leads that says nothing, but for one that looks for something.
            "at": self.at if self.find else self.at or None,
            "scale": "-".join(map(str, self.scale)) if self.scale else None,
        }
        kept = {name: value for name, value in (said | changes).items() if value not in (None, "")}
        return f"?{urlencode(kept)}" if kept else "?"


def read_wish(request: HttpRequest) -> Wish:
    """The parameters; what cannot be meant is passed over, as a folded row that is gone is."""
    level = request.GET.get("level", "all")
    tokens = [token for token in request.GET.get("fold", "").split(",") if _TOKEN.fullmatch(token)]
    scale = re.fullmatch(r"(\d{1,17})-(\d{1,17})", request.GET.get("scale", ""))
    return Wish(
        at=read_number(request, "at") if request.GET.get("at", "").strip() else None,
        level=level if level in {name for name, *_ in LEVELS} else "all",
        tokens=tuple(dict.fromkeys(tokens))[:MOST_TOGGLED],
        find=make_storable(" ".join(request.GET.get("find", "").split()))[:LONGEST_FIND],
        hit=read_number(request, "hit"),
        message=_read_id(request.GET.get("message", "")),
        scale=(int(scale[1]), int(scale[2])) if scale else None,
    )


def _read_id(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Found:
    """What a search within the tree found: the places of its rows, and which of them is the current one, 0 for none."""

    places: Sequence[int]
    number: int
    has_more: bool

    @property
    def current(self) -> int | None:
        """The place of the current one."""
        return self.places[self.number - 1] if self.number else None


def search_tree(tree: StoredTree, owner: Conversation | Trace, wish: Wish) -> Found | None:
    """The rows that match what is looked for, in the order of the tree; None where nothing is."""
    if not wish.find:
        return None
    ids = find_matching(owner=owner, text=wish.find, limit=MOST_FOUND + 1)
    places = sorted(tree.locate(ids[:MOST_FOUND]).values())
    # Whoever goes on from what was found, by windows, stands at none of it.
    number = 0 if wish.at is not None and not wish.hit else min(max(1, wish.hit), len(places))
    return Found(places, number, len(ids) > MOST_FOUND)


def make_tree_context(request: HttpRequest, membership: Membership, owner: Conversation | Trace) -> dict[str, Any]:
    """The context of `trace/_tree.html`, `tree` None where nothing is drawn yet; and `agents`, the first of them."""
    tree = load_tree(owner)
    wish = read_wish(request)
    if tree is None or not tree.count:
        return {"tree": None, "agents": Cast(owner.agents).find_all(owner.agents[:MOST_TILES])}
    # Rows alone come without what is said of the whole.
    found = search_tree(tree, owner, wish) if "HX-Request" not in request.headers else None
    fold, stale = _read_fold(tree, wish)
    at = min(wish.at or 0, tree.count - 1)
    place = _find_message(tree, wish)
    if place is not None:
        fold, at = (fold if not _is_hidden(tree, place, fold) else Fold()), max(0, place - 3)
    elif found is not None and found.current is not None:
        # What is found must be seen: the tree is open around it.
        fold, at = (fold if not _is_hidden(tree, found.current, fold) else Fold()), max(0, found.current - 3)
    at = tree.find_shown(at, fold) if fold != Fold() else at
    window = tree.read_window(at=at, limit=WINDOW_ROWS, fold=fold)
    zone = ZoneInfo(membership.user.time_zone or "UTC")
    axis = Axis(*wish.scale, zone) if wish.scale else find_axis(tree, zone)
    foliage = read_foliage(owner=owner, rows=window.rows)
    painter = Painter(
        slug=membership.workspace.slug,
        owner=owner,
        names=cast_conversation(owner),
        axis=axis,
        foliage=foliage,
        findings=list_open_about(messages=list(foliage.said.values())),
        hits=match_rows(rows=window.rows, text=wish.find) if wish.find else frozenset(),
        current=place if place is not None else found.current if found else None,
    )
    return {
        "agents": _list_agents(painter, owner),
        "tree": {
            "rows": painter.draw_all(window.rows, _write_links(window.rows, wish, at)),
            "map": draw_map(tree, window.rows, find_axis(tree, zone)),
            "axis": axis.draw(),
            "count": tree.count,
            "shown": len(window.rows),
            "first": window.rows[0].place + 1 if window.rows else 0,
            "last": _find_last(window),
            "at": at,
            "next_url": None if window.next is None else wish.write(at=window.next, hit=None),
            "previous_url": None
            if window.previous is None
            else wish.write(at=window.previous if wish.find else window.previous or None, hit=None),
            "levels": [
                {
                    "name": words,
                    "value": name,
                    "url": wish.write(level=name if name != "all" else None, fold=None, at=None, hit=None),
                    "is_current": name == wish.level,
                }
                for name, words, _ in LEVELS
            ],
            "kept": _list_kept(wish),
            "find": wish.find,
            "found": found and _describe_found(found, wish, at),
            "stale": stale,
            "is_scaled": wish.scale is not None,
            "scale_url": wish.write(scale=None) if wish.scale else _write_scale(window, wish, zone),
        },
    }


def _find_message(tree: StoredTree, wish: Wish) -> int | None:
    """The place of the message that the address names."""
    return next(iter(tree.locate([wish.message.bytes]).values()), None) if wish.message else None


def _list_agents(painter: Painter, owner: Conversation | Trace) -> list[AgentMark]:
    """The first agents of the tree, by what they are called where all that is shown is of one channel."""
    channels = {said.channel_id for said in painter.foliage.said.values()}
    channel_id = next(iter(channels)) if len(channels) == 1 else None
    return [painter.mark(name, channel_id, tuple(owner.dialects)) for name in owner.agents[:MOST_TILES]]


def _find_last(window: Window) -> int:
    return window.rows[-1].place + 1 + window.rows[-1].hidden if window.rows else 0


def _is_hidden(tree: StoredTree, place: int, fold: Fold) -> bool:
    return fold != Fold() and tree.find_shown(place, fold) != place


def _read_fold(tree: StoredTree, wish: Wish) -> tuple[Fold, int]:
    """The fold, and how many of its rows no longer stand where the address says."""
    level = next(depth for name, _, depth in LEVELS if name == wish.level)
    wanted = {int(token.partition(".")[0]): token for token in wish.tokens}
    standing = tree.read_lines_at([place for place in wanted if place < tree.count])
    places = frozenset(place for place, line in standing.items() if wanted[place].endswith(f".{line.id[-4:].hex()}"))
    return Fold(level, places), len(wanted) - len(places)


def _write_links(rows: Sequence[WindowRow], wish: Wish, at: int) -> Mapping[int, str]:
    links = {}
    # Whoever looks for something stays where the row is, and is not led back to what was found.
    here: dict[str, int] = {"at": at} if wish.find else {}
    # Of the addresses of two hundred rows only the tokens differ.
    before, _, after = wish.write(fold="0", hit=None, **here).partition("fold=0")
    for row in rows:
        if row.is_parent:
            token = write_token(row)
            tokens = [each for each in wish.tokens if each != token]
            if len(tokens) == len(wish.tokens):
                tokens.append(token)
            address = f"{before}fold={'%2C'.join(tokens)}{after}" if tokens else wish.write(fold=None, hit=None, **here)
            links[row.place] = f"{address}#row-{row.place}"
    return links


def _list_kept(wish: Wish) -> list[tuple[str, str]]:
    """What a form of the page takes along."""
    kept = [("level", wish.level if wish.level != "all" else ""), ("fold", ",".join(wish.tokens))]
    return [(name, value) for name, value in kept if value]


def _describe_found(found: Found, wish: Wish, at: int) -> dict[str, Any]:
    count = len(found.places)
    # How many stand before the current one, or before the window where none is current; and up to the next one.
    before = found.number - 1 if found.number else bisect_left(found.places, at)
    passed = found.number or before
    has_others = count > 1 or (count == 1 and not found.number)
    return {
        "count": count,
        "number": found.number,
        "has_more": found.has_more,
        "next_url": wish.write(hit=passed % count + 1, at=None) if has_others else None,
        "previous_url": wish.write(hit=(before - 1) % count + 1, at=None) if has_others else None,
    }


def _write_scale(window: Window, wish: Wish, zone: ZoneInfo) -> str | None:
    """The address of the same window with the bars drawn against its own time; None where that is the whole."""
    if window.next is None and window.previous is None:
        return None
    axis = find_reach(window.rows, zone)
    return wish.write(scale=f"{axis.first}-{axis.last}")
