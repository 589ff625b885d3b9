"""The rows of a tree as markup: who says what on the left, when and for how long on the right.

A window has two hundred of them, so they are put together here and not by a template; whatever comes from a log passes
through `write_visible`, `spell_hidden` or `escape_text`.
"""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import groupby
from typing import Final

from django.urls import reverse
from django.utils.safestring import SafeString

from dialects import title_of
from inspector.audit.findings.selectors import OpenRule
from inspector.hidden_characters import HIDDEN, spell_hidden
from inspector.threads.messages import mark_noted, split_mark
from inspector.threads.models import Conversation, Message, Trace
from inspector.threads.tasks.events import ASKS
from inspector.threads.trees.lines import ADJACENCY, Kind, Line
from inspector.threads.trees.traces import Contents
from inspector.threads.trees.windows import WindowRow

from ..agents.marks import AgentMark, Cast
from ..shown.filling import escape_text
from ..shown.markup import write_visible
from ..shown.told import name_conversation, say_fate, shorten, strip_names
from ..templatetags.marks import TO, act, icon, severity, tile
from .bars import Axis, draw_bar, draw_ghost

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

    `names` knows what people call agents in a channel. `doubtful` are messages that others make doubtful.
    """

    slug: str
    owner: Conversation | Trace
    names: Cast
    axis: Axis
    contents: Contents
    findings: Mapping[uuid.UUID, Sequence[OpenRule]]
    doubtful: frozenset[uuid.UUID] = frozenset()
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
        expanded = f' aria-expanded="{is_open}" data-fold="{write_token(row)}"' if row.is_parent else ""
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
        name = write_text(shorten(name_conversation(conversation)))
        count = f"{conversation.message_count:,} message{'' if conversation.message_count == 1 else 's'}"
        return (
            f'<a class="subject" href="{url}" data-open><strong>{name}</strong></a>'
            f'<span class="quiet small">{count}</span>{_write_severity(row.line)}'
        )

    def _write_ghost(self, row: WindowRow) -> str:
        ghost = self.contents.ghosts.get(row.place)
        shown = f"<bdi>{write_text(shorten(ghost.name, 60))}</bdi>" if ghost and ghost.name else "A message"
        fate = say_fate(ghost.bearers if ghost else None)
        return f'<span class="missing">{draw_icon("ghost")}{shown} {fate}</span>{_write_hidden(row)}'

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
            f'<a class="subject" href="{url}"{title} data-open>{write_text(shown)}</a>'
            f"{_write_hidden(row)}{self._write_findings(said) or _write_severity(row.line)}"
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
        if said.parent_basis == "turn":
            why = escape_text(spell_hidden(said.parent_why))
            words += f'<span class="basis" data-basis="inferred" title="{why}">inferred{_write_aside(why)}</span>'
        answered = self.contents.answered.get(said.parent) if said.parent is not None else None
        if answered is not None and answered.is_inside:
            words += f'<span class="basis">circle{_write_aside("what it answers goes round, and is cut here")}</span>'
        elif answered is not None and said.parent_basis != ADJACENCY:
            url = self._link("message", said.parent)
            name = write_text(shorten(answered.native_id, 40)) or "a message"
            words += f'<a class="basis" href="{url}">answers <bdi>{name}</bdi>, which is not here</a>'
        if said.id in self.contents.carrying:
            url = self._link("message", self.contents.carrying[said.id])
            words += f'<a class="basis" href="{url}">carried by {title_of(said.carrier)}</a>'
        if isinstance(self.owner, Trace) and above is not None and said.conversation_id != above:
            conversation = self.contents.conversations.get(said.conversation_id)
            if conversation is not None:
                url = self._link("conversation", conversation.pk)
                name = write_text(shorten(name_conversation(conversation), 40))
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
            return draw_ghost(row.line, axis=self.axis, bearers=ghost.bearers if ghost else None)
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


def write_text(text: str) -> str:
    """Text from a log; most of it holds nothing that is hidden."""
    return write_visible(text) if HIDDEN.search(text) else escape_text(text)


@cache
def draw_icon(name: str, label: str = "") -> str:
    """An icon as markup; the same few are drawn again and again."""
    return icon(name, label)


@cache
def _write_severity_of(number: int) -> str:
    return severity(number) if number > 1 else ""


def _write_severity(line: Line) -> str:
    return _write_severity_of(line.severity)


@lru_cache(maxsize=2048)
def write_act(performative: str | None, native_act: str) -> str:
    """A performative as markup; the same few are drawn again and again."""
    return act(performative, native_act)


def write_token(row: WindowRow) -> str:
    """What stands for a row in the address of a fold."""
    return row.place.hex
