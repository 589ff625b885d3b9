"""The rows of a tree as markup: who says what on the left; on the right the bars, when it was said and until when it
lasted, and the whole of it as a small map.

A window has two hundred of them, so they are put together here and not by a template; whatever comes from a log passes
through `write_visible`, `spell_hidden` or `escape_text`.
"""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, lru_cache
from itertools import groupby
from typing import Final
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from dialects import title_of
from inspector.audit.findings.selectors import OpenRule
from inspector.characters import spell_hidden
from inspector.threads.keys import count_microseconds, read_instant
from inspector.threads.lines import ADJACENCY, Kind, Line, Outcome
from inspector.threads.models import Conversation, Message, Trace
from inspector.threads.nodes import write_bearers
from inspector.threads.selectors import mark_noted, split_mark
from inspector.threads.states import ASKS
from inspector.threads.trees import Band, Contents, Ghost, WindowRow

from .shown.agents import AgentMark, Cast
from .shown.markup import escape_text, write_visible
from .shown.told import ABOUT, TIME_WORDS, is_said, say_fate, shorten, strip_names, write_elapsed
from .templatetags.marks import SEVERITIES, TO, act, icon, severity, tile

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


def draw_ghost(line: Line, *, axis: Axis, bearers: int | None, is_withdrawn: bool = False) -> str:
    """In place of the bar of a message that is not here: why it is not."""
    short = {None: "not here", 0: "not received"}
    words = short[bearers] if bearers in short else f"{write_bearers(bearers or 0)} bear this id"
    words = "withdrawn" if is_withdrawn else words
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


# Deeper rows are indented no further, and say how deep they are.
MAX_DEPTH: Final = 12

MAX_RECEIVERS: Final = 3

# So many rows alike one after another are one row behind the first.
MIN_ALIKE: Final = 5

MAX_SUBJECT_LENGTH: Final = 160

_NOBODY: Final = uuid.UUID(int=0)

_FAILING: Final = frozenset({"failure", "reject", "not-understood"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Painter:
    """What every row of a page is drawn with.

    `titles` are what the conversations of a trace are called. `names` knows what people call agents in a channel.
    `doubtful` are messages that others make doubtful. `withdrawn` are those that cite what was received and is
    withdrawn.
    """

    slug: str
    owner: Conversation | Trace
    names: Cast
    axis: Axis
    contents: Contents
    findings: Mapping[uuid.UUID, Sequence[OpenRule]]
    titles: Mapping[uuid.UUID, str] = field(default_factory=dict)
    doubtful: frozenset[uuid.UUID] = frozenset()
    withdrawn: frozenset[uuid.UUID] = frozenset()
    hits: frozenset[uuid.UUID] = frozenset()
    current: uuid.UUID | None = None
    _tiles: dict[tuple[uuid.UUID, str, str], str] = field(default_factory=dict)
    _addresses: dict[str, list[str]] = field(default_factory=dict)

    def draw_all(self, rows: Sequence[WindowRow], links: Mapping[uuid.UUID, str], apart_url: str) -> SafeString:
        """The rows of a window.

        Args:
            rows: in their order.
            links: by place, to the same window with that row opened or closed.
            apart_url: to the same window with a row for each of many messages alike, which are one row else; empty
                where each has one.
        """
        drawn: list[str] = []
        above: uuid.UUID | None = None
        alike = self._find_alike(rows) if apart_url else {}
        left_out = 0
        for at, row in enumerate(rows):
            if left_out:
                left_out -= 1
                continue
            said = self.contents.said.get(row.line.id)
            if said is not None and (left_out := alike.get(at, 0)):
                drawn.append(self._draw_alike(rows[at : at + left_out], said, apart_url))
                left_out -= 1
                continue
            drawn.append(self._draw(row, links.get(row.place, ""), above))
            if row.line.kind is Kind.CONVERSATION:
                above = row.line.id
            elif said is not None:
                above = said.conversation_id
        return SafeString("".join(drawn))

    def _find_alike(self, rows: Sequence[WindowRow]) -> dict[int, int]:
        """Where rows begin that are alike one after another, behind the first of them, and how many these are."""
        found: dict[int, int] = {}
        at = 0
        for key, run in groupby(rows, key=self._key_alike):
            count = sum(1 for _ in run)
            if key is not None and count >= MIN_ALIKE:
                found[at + 1] = count - 1
            at += count
        return found

    def _key_alike(self, row: WindowRow) -> Hashable:
        """What rows alike have in common; None for one that stands by itself, as a finding, a hit and a parent do."""
        said = self.contents.said.get(row.line.id)
        if said is None or row.is_parent or row.place == self.current or row.place in self.hits:
            return None
        if row.line.severity > 1 or said.id in self.findings or said.id in self.doubtful:
            return None
        return row.depth, said.sender, tuple(said.receivers), said.performative, said.conversation_id

    def _draw_alike(self, rows: Sequence[WindowRow], said: Message, url: str) -> str:
        """One row for messages alike."""
        first, last = rows[0], rows[-1]
        span = first.line._replace(end=max(row.line.end for row in rows))
        times = f"{self.axis.write_clock(first.line.start)} to {self.axis.write_clock(last.line.start)}"
        bar = draw_bar(
            span,
            axis=self.axis,
            agent=self._find_colour(said),
            is_failing=said.performative in _FAILING,
            is_critical=any(row.is_critical for row in rows),
        )
        return (
            f'<tr role="row" id="row-{first.place.hex}" aria-level="{first.depth + 1}" data-item tabindex="-1">'
            f'<th role="rowheader"><span class="label-line" data-level="{min(first.depth, MAX_DEPTH)}">'
            f"{self._write_agents(said)}{write_act(said.performative, said.native_act)}"
            f'<a class="subject" href="{escape_text(url)}#row-{first.place.hex}" data-open>×{len(rows):,} more alike, '
            f"{times}</a></span></th>"
            f'<td role="gridcell">{bar}</td></tr>'
        )

    def _draw(self, row: WindowRow, link: str, above: uuid.UUID | None) -> str:
        said = self.contents.said.get(row.line.id)
        if row.line.kind is Kind.CONVERSATION:
            left, agent = self._write_heading(row), ""
        elif row.line.kind is Kind.GHOST:
            left, agent = self._write_ghost(row), ""
        else:
            left, agent = self._write_message(row, said, above), self._find_colour(said)
        is_open = "true" if row.is_open else "false"
        expanded = f' aria-expanded="{is_open}" data-fold="{row.place.hex}"' if row.is_parent else ""
        hit = " data-hit" if row.place in self.hits else ""
        current = ' aria-current="true"' if row.place == self.current else ""
        return (
            f'<tr role="row" id="row-{row.place.hex}" aria-level="{row.depth + 1}"{expanded} data-item'
            f' tabindex="-1"{hit}{current}{" data-critical" if row.is_critical else ""}>'
            f'<th role="rowheader"><span class="label-line" data-level="{min(row.depth, MAX_DEPTH)}">'
            f"{_write_twist(row, link)}{left}</span></th>"
            f'<td role="gridcell">{self._draw_bar(row, said, agent)}</td></tr>'
        )

    def _write_heading(self, row: WindowRow) -> str:
        conversation = self.contents.conversations.get(row.line.id)
        if conversation is None:
            return "<strong>A conversation</strong>"
        url = self._link("conversation", conversation.pk)
        name = write_visible(shorten(self.titles[conversation.pk]))
        count = f"{conversation.message_count:,} message{'' if conversation.message_count == 1 else 's'}"
        return (
            f'<a class="subject" href="{url}" data-open><strong>{name}</strong></a>'
            f'<span class="quiet small">{count}</span>{_write_severity(row.line.severity)}'
        )

    def _write_ghost(self, row: WindowRow) -> str:
        ghost = self.contents.ghosts.get(row.place)
        shown = f"<bdi>{write_visible(shorten(ghost.name, 60))}</bdi>" if ghost and ghost.name else "A message"
        fate = say_fate(ghost.bearers if ghost else None, is_withdrawn=self._is_withdrawn(ghost))
        return f'<span class="missing">{draw_icon("ghost")}{shown} {fate}</span>{_write_hidden(row)}'

    def _is_withdrawn(self, ghost: Ghost | None) -> bool:
        return ghost is not None and ghost.citing in self.withdrawn

    def _write_message(self, row: WindowRow, said: Message | None, above: uuid.UUID | None) -> str:
        if said is None:
            return '<span class="quiet">a message that is gone: look again</span>'
        url = self._link("message", said.id)
        deeper = f'<span class="quiet small">level {row.depth + 1:,}</span>' if row.depth > MAX_DEPTH else ""
        sentence = said.english or said.topic or "not processed yet"
        is_doubtful = said.id in self.doubtful
        stripped = mark_noted(self._strip_names(said, sentence), said.severity, is_doubtful=is_doubtful)
        shown = shorten(stripped, MAX_SUBJECT_LENGTH)
        whole = escape_text(spell_hidden(mark_noted(sentence, said.severity, is_doubtful=is_doubtful)))
        title = f' title="{whole}"' if split_mark(shown)[0].endswith("…") else ""
        return (
            f"{deeper}{self._write_agents(said)}{write_act(said.performative, said.native_act)}"
            f'<a class="subject" href="{url}"{title} data-open>{write_visible(shown)}</a>'
            f"{_write_hidden(row)}{self._write_findings(said) or _write_severity(row.line.severity)}"
            f"{draw_icon('lock', 'sealed') if said.is_sealed else ''}{self._write_link(row, said, above)}"
        )

    def _strip_names(self, said: Message, sentence: str) -> str:
        """What a sentence says beyond who says it to whom, which the tiles before it show; several are named in it."""
        if not said.sender:
            return sentence
        sender = self.mark(said.sender, said.channel_id, (said.dialect,)).shown
        receivers = [] if said.receivers else ["everyone"]
        if len(said.receivers) == 1:
            receiver = self.mark(said.receivers[0], said.channel_id, (said.dialect,)).shown
            receivers = [f"the {receiver} (agent {said.receivers[0]})", said.receivers[0]]
        return strip_names(sentence, senders=[f"The {sender} (agent {said.sender})", said.sender], receivers=receivers)

    def _write_findings(self, said: Message) -> str:
        """The most severe open finding about a message, by its rule, and how many more."""
        rules = self.findings.get(said.id)
        if not rules:
            return ""
        more = f" +{len(rules) - 1}" if len(rules) > 1 else ""
        return severity(rules[0].severity, rules[0].title + more)

    def _write_link(self, row: WindowRow, said: Message, above: uuid.UUID | None) -> str:
        """How it hangs where it hangs: inferred, out of this tree, carried by, or from another conversation."""
        words = ""
        if not is_said(said.order_basis):
            why = TIME_WORDS[said.order_basis]
            sign = f"{ABOUT.strip()}{_write_aside(why)}"
            words += f'<span class="basis" data-basis="inferred" title="{why}">{sign}</span>'
        if said.parent_basis == "turn":
            why = escape_text(spell_hidden(said.parent_why))
            words += f'<span class="basis" data-basis="inferred" title="{why}">inferred{_write_aside(why)}</span>'
        answered = self.contents.answered.get(said.parent) if said.parent is not None else None
        if answered is not None and answered.is_inside:
            words += f'<span class="basis">circle{_write_aside("what it answers goes round, and is cut here")}</span>'
        elif answered is not None and said.parent_basis != ADJACENCY:
            url = self._link("message", said.parent)
            name = write_visible(shorten(answered.native_id, 40)) or "a message"
            words += f'<a class="basis" href="{url}">answers <bdi>{name}</bdi>, which is not here</a>'
        if said.id in self.contents.carrying:
            url = self._link("message", self.contents.carrying[said.id])
            words += f'<a class="basis" href="{url}">carried by {title_of(said.carrier)}</a>'
        if isinstance(self.owner, Trace) and above is not None and said.conversation_id != above:
            conversation = self.contents.conversations.get(said.conversation_id)
            if conversation is not None:
                url = self._link("conversation", conversation.pk)
                name = write_visible(shorten(self.titles[conversation.pk], 40))
                words += f'<a class="basis" href="{url}">in {name}</a>'
        return words

    def _write_agents(self, said: Message) -> str:
        sender = self._write_tile(said, said.sender) if said.sender else '<span class="quiet small">someone</span>'
        receivers = [name for name in said.receivers if name]
        if said.is_broadcast:
            to = '<span class="quiet small">everyone</span>'
        else:
            to = "".join(self._write_tile(said, name) for name in receivers[:MAX_RECEIVERS])
            more = len(receivers) - MAX_RECEIVERS
            to += f'<span class="quiet small">+{more:,}</span>' if more > 0 else ""
        return f'<span class="agents">{sender}{TO + to if to else ""}</span>'

    def _write_tile(self, said: Message, name: str) -> str:
        key = (said.channel_id, said.dialect, name)
        found = self._tiles.get(key)
        if found is None:
            found = self._tiles[key] = tile(self.mark(name, said.channel_id, (said.dialect,)))
        return found

    def mark(self, name: str, channel_id: uuid.UUID | None, dialects: tuple[str, ...]) -> AgentMark:
        """The mark of an agent, called as in its channel."""
        return self.names.find(name, channel_id=channel_id, dialects=dialects)

    def _link(self, name: str, pk: uuid.UUID | None) -> str:
        """The address of a message or a conversation: worked out once, for a window names hundreds."""
        if name not in self._addresses:
            self._addresses[name] = reverse(f"pages:{name}", args=[self.slug, _NOBODY]).split(str(_NOBODY))
        return str(pk).join(self._addresses[name])

    def _draw_bar(self, row: WindowRow, said: Message | None, agent: str) -> str:
        if row.line.kind is Kind.GHOST:
            ghost = self.contents.ghosts.get(row.place)
            bearers, is_withdrawn = ghost.bearers if ghost else None, self._is_withdrawn(ghost)
            return draw_ghost(row.line, axis=self.axis, bearers=bearers, is_withdrawn=is_withdrawn)
        is_failing = said is not None and said.performative in _FAILING
        rules = self.findings.get(said.id, ()) if said else ()
        flag = max((rule.severity for rule in rules), default=0)
        return draw_bar(
            row.line, axis=self.axis, agent=agent, is_failing=is_failing, is_critical=row.is_critical, flag=flag
        )

    def _find_colour(self, said: Message | None) -> str:
        """A request has the colour of who is to do it, anything else that of who says it."""
        if said is None:
            return ""
        receivers = [name for name in said.receivers if name]
        name = receivers[0] if said.performative in ASKS and receivers else said.sender
        return f' data-agent="{self.mark(name, said.channel_id, (said.dialect,)).number}"' if name else ""


def _write_aside(words: str) -> str:
    """Words for a screen reader, which others find by the pointer."""
    return f'<span class="sr">: {words}</span>'


def _write_twist(row: WindowRow, link: str) -> str:
    if not row.is_parent:
        return ""
    sign, words = ("▾", "Collapse") if row.is_open else ("▸", f"Open, {_count_hidden(row)} below")
    return f'<a class="twist" href="{escape_text(link)}" data-twist aria-label="{words}">{sign}</a>'


def _write_hidden(row: WindowRow) -> str:
    return f'<span class="quiet small">{_count_hidden(row)} below</span>' if row.hidden else ""


def _count_hidden(row: WindowRow) -> str:
    """How many rows a closed one hides; of very many at least how many."""
    return f"{row.hidden:,}{'+' if row.is_more else ''}"


@cache
def draw_icon(name: str, label: str = "") -> str:
    """An icon as markup; the same few are drawn again and again."""
    return icon(name, label)


@cache
def _write_severity(number: int) -> str:
    return severity(number) if number > 1 else ""


@lru_cache(maxsize=2048)
def write_act(performative: str | None, native_act: str) -> str:
    """A performative as markup; the same few are drawn again and again."""
    return act(performative, native_act)
