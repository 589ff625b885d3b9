"""A window of a sequence as shapes: where each arrow, gap and ghost stands. Across in shares of the width, down in px.

The columns are an agent each, in the order of first appearance, so that they stand still. The template writes the
shapes as SVG. Nothing here is markup, and every text has its hidden characters spelled out.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median
from textwrap import wrap
from typing import Any, Final
from zoneinfo import ZoneInfo

from inspector.audit.findings.selectors import OpenRule
from inspector.browsing.sequence import Arrow, Step
from inspector.characters import spell_hidden
from inspector.threads.nodes import write_bearers
from inspector.threads.selectors import mark_noted, split_mark

from ..shown.agents import AgentMark, Cast
from ..shown.markup import shorten_name
from ..shown.told import ABOUT, is_said, say_fate, strip_names, write_elapsed
from ..templatetags.marks import SEVERITIES
from .transcript import make_ghost_anchor

# With so few, also those that are silent in this window keep their column.
FEW_LANES: Final = 6

# So many of its names on the wire stand at the head of an agent that is known by several.
MAX_NAMES: Final = 4

# More columns than this cannot be told apart; what is beyond stands in one column together.
MAX_LANES: Final = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """A column: an agent (`mark`), the one for messages that name no sender, or the one for all that are too many.

    `names` are the first of those that the agent bears on the wire, where it bears several, and `more_names` counts the
    others.
    """

    kind: str
    mark: AgentMark | None
    sent_count: int
    agent_count: int = 1
    names: Sequence[str] = ()
    more_names: int = 0


@dataclass(frozen=True, slots=True)
class Lanes:
    """The columns of a window; `folded_count` agents of the conversation have none in it."""

    lanes: Sequence[Lane]
    folded_count: int
    cast: Cast
    _places: dict[str, int]

    def find(self, name: str) -> int:
        """The number of the column of whoever bears a name; an empty one is a sender whom nothing names."""
        return self._places.get(name, len(self.lanes) - 1)

    def place(self, number: float) -> str:
        """The middle of a column across the width; a half lies between two columns."""
        return write_share((number + 0.5) / len(self.lanes) * 100)


def choose_lanes(*, steps: Sequence[Step], agents: Sequence[str], cast: Cast, is_everyone_shown: bool = False) -> Lanes:
    """The columns of these messages; those whom an auditor joined are one agent and have one column.

    Args:
        steps: the messages of a window.
        agents: all of the conversation, in the order of first appearance.
        cast: who they are, and their colours.
        is_everyone_shown: whether those that neither send nor receive in the window have a column too.
    """
    sent = Counter(step.sender for step in steps)
    everyone = {cast.find_place(name) for name in agents}
    is_whole = is_everyone_shown or len(everyone) <= FEW_LANES
    present = (name for step in steps for name in (step.sender, *step.receivers) if name)
    named = gather_names((*present, *(agents if is_whole else ())), cast)
    # The last column is kept for the others where there are too many.
    shown = named if len(named) <= MAX_LANES else named[: MAX_LANES - 1]
    others = named[len(shown) :]
    lanes = [_make_lane(names, sent, cast) for names in shown]
    if sent[""] or not lanes:
        lanes.insert(0, Lane(kind="nobody", mark=None, sent_count=sent[""]))
    first = len(lanes) - len(shown)
    places = {name: place for place, names in enumerate(shown, start=first) for name in names} | {"": 0}
    if others:
        count = sum(sent[name] for names in others for name in names)
        lanes.append(Lane(kind="others", mark=None, sent_count=count, agent_count=len(others)))
    return Lanes(lanes, 0 if is_whole else len(everyone) - len(named), cast, places)


def gather_names(names: Iterable[str], cast: Cast) -> list[list[str]]:
    """The names of each agent together, those that appear first in front."""
    found: dict[int, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        found[cast.find_place(name)].append(name)
    return [found[place] for place in sorted(found)]


def _make_lane(names: Sequence[str], sent: Counter[str], cast: Cast) -> Lane:
    mark = cast.find(names[0])
    count = sum(sent[name] for name in names)
    if len(names) == 1:
        return Lane(kind="agent", mark=mark, sent_count=count)
    # At its head it is called what it is known by; what it is called on the wire stands below.
    known = replace(mark, name=mark.shown, label="")
    more = max(0, len(names) - MAX_NAMES)
    shown = [shorten_name(name) for name in names[:MAX_NAMES]]
    return Lane(kind="agent", mark=known, sent_count=count, names=shown, more_names=more)


def write_share(share: float) -> str:
    """Hundredths of the width as an attribute: `12.5%`."""
    return f"{share:.2f}".rstrip("0").rstrip(".") + "%"


ARROW_HEIGHT, BUCKET_HEIGHT, LOOP_HEIGHT, BAND_HEIGHT, GHOST_HEIGHT = 44, 56, 54, 32, 44

# What a line below an arrow takes that names what rules found of it.
ALARM_HEIGHT: Final = 16

MAX_ALARMS: Final = 2

# As much of it as fits over two columns of the least width.
ALARM_WIDTH: Final = 30

# How much of a text a label holds: at least, and over each column that its arrow spans. The whole stands in its title.
MAX_LABEL_LENGTH: Final = 34

LABEL_OF_A_COLUMN: Final = 14

MAX_NAME_LENGTH: Final = 48

MAX_SPELLED_LENGTH: Final = 500

# A silence is said from so many seconds on, if it is also so many times as long as is usual in the window.
MIN_GAP, UNUSUAL = timedelta(seconds=10), 4

# Whose clock it is, where that changes: without and with none but that of receipt.
# What the clock shows from here on, by how the times are known.
_CLOCKS = {
    "": "From here on the messages have times",
    "start": "No time in the messages: the clock shows the start that was declared",
    "receipt": "No time in the messages: the clock shows when they were received",
}


def draw(
    arrows: Sequence[Arrow], lanes: Lanes, zone: ZoneInfo, findings: Mapping[uuid.UUID, Sequence[OpenRule]]
) -> dict[str, Any]:
    """The shapes of a window from top to bottom, and what the page says of them.

    Args:
        arrows: the messages in their order.
        lanes: their columns.
        zone: the reader's, for the clock at the left.
        findings: the rules whose findings stand open about each message, the gravest first.
    """
    pen = _Pen(lanes, zone, _find_usual_gap(arrows), findings)
    shapes = [shape for arrow in arrows for shape in pen.draw(arrow)]
    buckets = [arrow for arrow in arrows if arrow.is_bucket]
    return {
        "shapes": shapes,
        "height": pen.y + 12,
        "arrow_count": len(arrows),
        "bucket_count": len(buckets),
        "hidden_count": sum(arrow.count - 1 for arrow in buckets),
        "ghost_count": sum(shape["kind"] == "ghost" for shape in shapes),
    }


def _find_usual_gap(arrows: Sequence[Arrow]) -> timedelta:
    gaps = [arrow.since.total_seconds() for arrow in arrows if arrow.since is not None]
    return timedelta(seconds=median(gaps)) if gaps else timedelta()


class _Pen:
    """Goes down the page, shape by shape."""

    def __init__(
        self, lanes: Lanes, zone: ZoneInfo, usual_gap: timedelta, findings: Mapping[uuid.UUID, Sequence[OpenRule]]
    ) -> None:
        self._findings = findings
        self.y = 8
        self._lanes = lanes
        self._zone = zone
        self._least_gap = max(MIN_GAP, usual_gap * UNUSUAL)
        self._day: str | None = None
        self._clock = ""
        self._known_ghosts: set[str] = set()

    def draw(self, arrow: Arrow) -> Iterator[dict[str, Any]]:
        """The gap before an arrow, the ghost that it cites, and the arrow itself."""
        said = list(self._say_before(arrow))
        if said:
            yield {"kind": "band", "y": self._go(BAND_HEIGHT), "words": " · ".join(said)}
        step = arrow.first
        if step.missing and step.missing not in self._known_ghosts:
            self._known_ghosts.add(step.missing)
            yield self._draw_ghost(step)
        yield self._draw_arrow(arrow)

    def _say_before(self, arrow: Arrow) -> Iterator[str]:
        here = arrow.first.at.astimezone(self._zone)
        day = f"{here.day} {here:%b %Y}"
        if day != self._day:
            yield day
        self._day = day
        clock = "" if is_said(arrow.first.at_basis) else arrow.first.at_basis
        if clock != self._clock:
            yield _CLOCKS[clock]
        self._clock = clock
        if arrow.is_new_run:
            yield f"Run {arrow.first.run}: the conversation id starts over here"
        if arrow.since is not None and arrow.since >= self._least_gap:
            yield f"{write_elapsed(arrow.since)} without a message"
        elif arrow.since is not None and arrow.since <= timedelta(seconds=-1):
            yield f"{write_elapsed(-arrow.since)} back in time: the turns decide the order here"

    def _draw_ghost(self, step: Step) -> dict[str, Any]:
        """A message that is cited and stands for none here, over the message that cites it."""
        name = cut(spell_hidden(step.missing_name), MAX_LABEL_LENGTH - 8) if step.missing_name else "A cited message"
        fate = "withdrawn" if step.is_withdrawn else "not received"
        source, targets = self._find_ends(step)
        return {
            "kind": "ghost",
            "y": self._go(GHOST_HEIGHT),
            "x": self._lanes.place((source + targets[0]) / 2 if targets else source),
            "anchor": make_ghost_anchor(step.missing),
            "words": f"{name}: {write_bearers(step.bearers)} bear it" if step.bearers else f"{name} {fate}",
            "title": f"{spell_hidden(cut(step.missing_name, 200)) or 'A message'}, cited by message "
            f"{step.position + 1:,}, {say_fate(step.bearers, is_withdrawn=step.is_withdrawn)}",
        }

    def _draw_arrow(self, arrow: Arrow) -> dict[str, Any]:
        """A message, or a bucket of them."""
        step = arrow.first
        source, targets = self._find_ends(step)
        form = "direct" if targets else "loop" if step.receivers else "stub"
        act = "not readable" if step.performative is None else step.performative
        room = max(MAX_LABEL_LENGTH, LABEL_OF_A_COLUMN * abs(targets[0] - source)) if targets else MAX_LABEL_LENGTH
        height = BUCKET_HEIGHT if arrow.is_bucket else LOOP_HEIGHT if form == "loop" else ARROW_HEIGHT
        rules = sorted(
            {rule for each in arrow.steps for rule in self._findings.get(each.id, ())},
            key=lambda rule: (-rule.severity, rule.title),
        )
        alarms = [(SEVERITIES[rule.severity], f"{SEVERITIES[rule.severity]}: {rule.title}") for rule in rules]
        alarm = "; ".join(words for _, words in alarms)
        if len(alarms) > MAX_ALARMS:
            alarms[MAX_ALARMS - 1 :] = [(alarms[MAX_ALARMS - 1][0], f"{len(rules) - MAX_ALARMS + 1} more findings")]
        lines = [wrap(words, ALARM_WIDTH) for _, words in alarms]
        height += ALARM_HEIGHT * sum(map(len, lines))
        return {
            "kind": "arrow",
            "number": step.position + 1,
            "step": step,
            "count": arrow.count,
            "y": self._go(height),
            "height": height,
            # Direct, loop (to itself) or stub (to nobody that is named).
            "form": form,
            "clock": write_clock(step, self._zone),
            # Lines are (from, to) and heads (where, direction) across.
            "lines": [(self._lanes.place(source), self._lanes.place(end)) for end in _find_outer(source, targets)],
            "heads": [(self._lanes.place(end), "right" if end > source else "left") for end in targets],
            "x": self._lanes.place(source),
            "side": "left" if source * 2 >= len(self._lanes.lanes) else "right",
            # Beside the sender, where several are spoken to: the far end may lie beyond the window's edge.
            "label_x": self._lanes.place((source + targets[0]) / 2 if targets else source),
            "act": f"! {act}" if step.is_failed else act,
            "about": cut(spell_hidden(write_about(arrow, room)), room),
            "title": write_title(arrow, self._zone, self._lanes.cast, alarm),
            # What the style sheet draws it by.
            "cast": "broadcast" if step.is_broadcast else "",
            "basis": "inferred" if step.is_inferred else "",
            "state": "failed" if step.is_failed else "",
            # Of each open finding its severity, its words line by line, and how far above the next arrow they begin.
            "alarms": [
                (severity, lines[at], ALARM_HEIGHT * (sum(map(len, lines[at:])) - 1) + 8)
                for at, (severity, _) in enumerate(alarms)
            ],
        }

    def _find_ends(self, step: Step) -> tuple[int, list[int]]:
        """The column of the sender, and the other columns that it speaks to, the farthest last."""
        source = self._lanes.find(step.sender)
        named = step.receivers or ()
        if step.is_broadcast and not named:
            agents = [number for number, lane in enumerate(self._lanes.lanes) if lane.kind != "nobody"]
        else:
            agents = [self._lanes.find(name) for name in named]
        return source, sorted(set(agents) - {source}, key=lambda number: (abs(number - source), number))

    def _go(self, height: int) -> int:
        y = self.y
        self.y += height
        return y


def _find_outer(source: int, targets: Sequence[int]) -> list[int]:
    """The ends of the lines: the farthest column on each side."""
    left = [end for end in targets if end < source]
    right = [end for end in targets if end > source]
    return [end for end in (min(left, default=None), max(right, default=None)) if end is not None]


def write_clock(step: Step, zone: ZoneInfo) -> str:
    """The time of day of a message, with a sign before one that no message says."""
    return f"{'' if is_said(step.at_basis) else ABOUT}{step.at.astimezone(zone):%H:%M:%S}"


def cut(text: str, length: int) -> str:
    """The beginning of a text on one line; an ellipsis stands for the rest, and the mark of cautions stays."""
    line, mark = split_mark(" ".join(text.split()))
    room = length - len(mark)
    return f"{line if len(line) <= room else f'{line[: room - 1].rstrip()}…'}{mark}"


def cut_name(name: str) -> str:
    """An agent's name for a line of text, its hidden characters spelled out."""
    return cut(spell_hidden(name[: 2 * MAX_NAME_LENGTH]), MAX_NAME_LENGTH)


def write_about(arrow: Arrow, length: int = MAX_LABEL_LENGTH) -> str:
    """What a label says beside the act: the topic, else what the sentence says beyond who, whom and how."""
    step = arrow.first
    receivers = step.receivers or ("everyone",)
    named = receivers if len(receivers) == 1 else ()
    about = step.topic or strip_names(step.english, senders=[step.sender], receivers=named)
    return cut(mark_noted(about, step.severity, is_doubtful=bool(arrow.cautions)), length)


def write_title(arrow: Arrow, zone: ZoneInfo, cast: Cast, alarm: str = "") -> str:
    """All that an arrow says, for the pointer and for a screen reader."""
    step = arrow.first
    act = "not readable" if step.performative is None else step.performative
    names = [f"{write_clock(step, zone)}, {name_sender(step, cast)} {name_receivers(step, cast)}: {act}"]
    if arrow.is_bucket:
        names.append(f"{arrow.count:,} messages alike, until {write_clock(arrow.last, zone)}; open them one by one")
    if step.topic:
        names.append(cut(step.topic, 200))
    if step.is_sealed:
        names.append("sealed")
    if step.english and not arrow.is_bucket:
        names.append(cut(mark_noted(step.english, step.severity, is_doubtful=bool(step.cautions)), 300))
    if step.is_inferred:
        names.append(f"the answer is inferred: {step.parent_why}" if step.parent_why else "the answer is inferred")
    if alarm:
        names.insert(1, f"findings: {alarm}")
    return cut(spell_hidden(". ".join(names)), MAX_SPELLED_LENGTH)


def name_agent(name: str, cast: Cast) -> str:
    """An agent as people call it, and its name on the wire where that is another: `scout (agent-2)`."""
    label = cast.find(name).label
    return f"{cut_name(label)} ({cut_name(name)})" if label else cut_name(name)


def name_sender(step: Step, cast: Cast) -> str:
    """The sender by name; `someone` where nothing names one."""
    return name_agent(step.sender, cast) if step.sender else "someone"


def name_receivers(step: Step, cast: Cast) -> str:
    """To whom, in words."""
    if step.is_to_itself:
        return "to itself"
    if not step.receivers:
        return "to everyone" if step.is_broadcast else "to nobody named"
    more = len(step.receivers) - 3
    names = ", ".join(name_agent(name, cast) for name in step.receivers[:3])
    return f"to {names} and {more:,} more" if more > 0 else f"to {names}"
