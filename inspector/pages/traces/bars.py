"""Bars over time: when each row of a tree was said and until when it lasted, and the whole of it as a small map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from zoneinfo import ZoneInfo

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from inspector.threads.models import Conversation, Trace
from inspector.threads.placing.citations import write_bearers
from inspector.threads.placing.places import count_microseconds, read_instant
from inspector.threads.trees.lines import Kind, Line, Outcome
from inspector.threads.trees.windows import Band, WindowRow

from ..shown.told import write_elapsed
from ..templatetags.marks import SEVERITIES

# Where a bar ends further right than this, its words stand to the left of it.
_RIGHT_EDGE: Final = 80.0
_MAP_HEIGHT: Final = 52
_OUTCOMES: Final = {
    Outcome.ANSWERED: "answered",
    Outcome.DONE: "done",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "cancelled",
}


def write_span(microseconds: int) -> str:
    """A span of time in words, down to the millisecond: `60 s`, `420 ms`."""
    if microseconds < 1_000_000:
        return f"{microseconds // 1000} ms" if microseconds else "0 s"
    return write_elapsed(timedelta(microseconds=microseconds))


@dataclass(frozen=True, slots=True)
class Axis:
    """The time that the bars are drawn against, in microseconds since 1970."""

    first: int
    last: int
    zone: ZoneInfo

    def place(self, at: int) -> float:
        """Where a time stands, in percent of the width; what lies outside stands at the edge."""
        if self.last <= self.first:
            return 0.0
        return min(100.0, max(0.0, (at - self.first) / (self.last - self.first) * 100))

    def write_clock(self, at: int) -> str:
        """A time of day; with its day where the axis is longer than one."""
        here = read_instant(at).astimezone(self.zone)
        clock = f"{here.hour:02}:{here.minute:02}:{here.second:02}"
        return f"{here:%-d %b}, {clock}" if self.last - self.first > 86_400_000_000 else clock

    def draw(self) -> SafeString:
        """The head of the column: the times at its quarters."""
        texts = format_html_join(
            "",
            '<text x="{}%" dx="4" y="22">{}</text>',
            (
                (percent, self.write_clock(self.first + (self.last - self.first) * percent // 100))
                for percent in ((0, 25, 50, 75) if self.last > self.first else (0,))
            ),
        )
        words = f"Time axis, {self.write_clock(self.first)} to {self.write_clock(self.last)}"
        return format_html('<svg class="waterfall" role="img" aria-label="{}">{}</svg>', words, texts)


def draw_bar(line: Line, *, axis: Axis, agent: str, is_failing: bool, is_critical: bool, flag: int = 0) -> str:
    """The bar of one row, as markup: percentages across, so that it fits any width.

    Args:
        line: the row's line.
        axis: what it is drawn against.
        agent: the attribute that colours it, or nothing.
        is_failing: whether the message says that something failed.
        is_critical: whether it lies on the critical path.
        flag: the severity of the most severe open finding about the message, 0 for none.
    """
    start, end = axis.place(line.start), axis.place(line.end)
    words, drawn = _draw_line(line, start, end, is_failing=is_failing)
    label = f"{axis.write_clock(line.start)}, {words}"
    beneath = ""
    if is_critical:
        label += ", on the critical path"
        beneath = f'<rect class="critical" x="{start:.2f}%" width="{max(end - start, 0.5):.2f}%" y="29" height="2.5"/>'
    if flag:
        agent += f' data-severity="{SEVERITIES[flag]}"'
        beneath += f'<text class="flag" x="{start:.2f}%" y="9">⚑</text>'
    return f'<svg class="waterfall"{agent} role="img" aria-label="{label}">{drawn}{beneath}</svg>'


def draw_ghost(line: Line, *, axis: Axis, bearers: int | None) -> str:
    """In place of the bar of a message that is not here: why it is not, as `shown.ghosts` has it."""
    short = {None: "not here", 0: "not received"}
    words = short[bearers] if bearers in short else f"{write_bearers(bearers or 0)} bear this id"
    return f'<svg class="waterfall" role="img" aria-label="{words}">{_write_words(axis.place(line.start), words)}</svg>'


def _draw_line(line: Line, start: float, end: float, *, is_failing: bool) -> tuple[str, str]:
    """What a bar says in words, and its shapes."""
    elapsed = write_span(line.end - line.start)
    if line.kind is Kind.CONVERSATION:
        shape = f'<line class="envelope" x1="{start:.2f}%" x2="{end:.2f}%" y1="18" y2="18"/>'
        return elapsed, shape + _write_words(end, elapsed, y=13 if end > _RIGHT_EDGE else 22)
    if line.outcome is Outcome.NONE:
        shape = f'<line class="tick" x1="{start:.2f}%" x2="{start:.2f}%" y1="10" y2="26"/>'
        if is_failing:
            shape += f'<text class="cross" x="{start:.2f}%" y="23" text-anchor="middle">×</text>'
        return "a failure" if is_failing else "one message", shape
    if line.outcome is Outcome.OPEN:
        shape = f'<rect class="span" data-basis="open" x="{start:.2f}%" width="{100 - start:.2f}%" y="10" height="16"/>'
        return "no answer", shape + _write_words(start, "no answer")
    outcome = _OUTCOMES[line.outcome]
    state = ' data-state="failed"' if line.outcome is Outcome.FAILED else ""
    shape = f'<rect class="span"{state} x="{start:.2f}%" width="{max(end - start, 0.3):.2f}%" y="10" height="16"/>'
    is_plain = line.outcome in (Outcome.DONE, Outcome.ANSWERED)
    return f"{elapsed}, {outcome}", shape + _write_words(end, elapsed if is_plain else f"{elapsed}, {outcome}")


def _write_words(at: float, words: str, *, y: int = 22) -> str:
    """Words at the end of a bar, at `y` of its row; to its left where there is no room to the right."""
    if at > _RIGHT_EDGE:
        return f'<text x="{at:.2f}%" dx="-6" y="{y}" text-anchor="end">{words}</text>'
    return f'<text x="{at:.2f}%" dx="6" y="{y}">{words}</text>'


def draw_map(bands: Sequence[Band], rows: Sequence[WindowRow], axis: Axis) -> SafeString:
    """The whole tree over time: how much was said when, how severe it was, and the time of the window in it."""
    most = max((band.messages for band in bands), default=1)
    drawn = SafeString(
        "".join(
            f'<rect class="mass" data-severity="{band.severity}" x="{axis.place(band.first):.2f}%"'
            f' width="{max(axis.place(band.last) - axis.place(band.first), 0.36):.2f}%"'
            f' y="{_MAP_HEIGHT - 4 - height:.2f}" height="{height:.2f}"/>'
            for band in bands
            for height in (max(2.0, (_MAP_HEIGHT - 8) * band.messages / most),)
        )
    )
    reach = find_reach(rows, axis.zone) if rows else axis
    left, right = axis.place(reach.first), axis.place(reach.last)
    words = f"Map of the whole tree, {axis.write_clock(axis.first)} to {axis.write_clock(axis.last)}"
    return format_html(
        '<svg class="minimap" role="img" aria-label="{}" data-first="{}" data-last="{}">'
        '<rect class="window" x="{}%" width="{}%" y="1" height="{}" rx="3"/>{}</svg>',
        words,
        axis.first,
        axis.last,
        f"{left:.2f}",
        f"{max(0.6, right - left):.2f}",
        _MAP_HEIGHT - 2,
        drawn,
    )


def find_axis(owner: Conversation | Trace, zone: ZoneInfo) -> Axis:
    """The time of the whole tree."""
    first, last = (count_microseconds(at) if at else 0 for at in (owner.first_at, owner.last_at))
    return Axis(first, last, zone)


def find_reach(rows: Sequence[WindowRow], zone: ZoneInfo) -> Axis:
    """The time of these rows."""
    return Axis(min(row.line.start for row in rows), max(row.line.end for row in rows), zone)
