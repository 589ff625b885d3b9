"""What templates ask for by name: the small signs of a page (icons, performatives, states, severities, agents, times,
numbers), and text from outside as markup, which passes through one of these.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from django import template
from django.templatetags.static import static
from django.utils.safestring import SafeString

from inspector.bounds import check_effort
from inspector.characters import spell_hidden
from inspector.pages.shown.agents import AgentMark
from inspector.pages.shown.markup import (
    HIT_CHARACTERS,
    NOTHING,
    OPEN_CHARACTERS,
    PAGE_CHARACTERS,
    SENTENCE_CHARACTERS,
    fill,
    fit,
    join,
    mark_ranges,
    name_spans,
    share,
    shorten_name,
    write_english,
    write_lit,
    write_visible,
    write_wire,
)
from inspector.pages.shown.told import ABOUT, TIME_WORDS, Line, is_said, shorten_id
from inspector.threads.models import Conversation

register = template.Library()

# Five families of acts, each with its own sign: what asks, tells, commits, breaks off, and manages the exchange.
FAMILIES = {
    **dict.fromkeys(("request", "query", "propose", "delegate", "subscribe"), "ask"),
    **dict.fromkeys(("inform", "observe", "progress", "evaluate", "advertise"), "tell"),
    **dict.fromkeys(("accept", "commit", "acknowledge", "done"), "commit"),
    **dict.fromkeys(("reject", "failure", "not-understood", "cancel", "unsubscribe"), "break"),
    **dict.fromkeys(("handshake", "control", "unknown"), "meta"),
}

# How a state is coloured and drawn: which states, each with its word where that is another.
_SHAPES = {
    "open": "open, empty, n/a: not applicable",
    "running": "acknowledged, in progress, in-progress: in progress, delegated, receiving, reading: decoding, writing,"
    "framing: splitting into records, examining: checking by rules, sealing: hashing,"
    "weighing: updating visibility, second: needs a second reviewer",
    "waiting": "waiting, stalled, queued, expired, maker deactivated, workspace archived: archived, concern, snoozed",
    "done": "done, ready, active, fine: no issues, pass, accepted, fixed, resolved",
    "failed": "failed, timed out, timed-out: timed out, broken: broken off, stuck: failed, quarantined, violation,"
    "refused: failed, disputed, fail",
    "cancelled": "cancelled, removed, withdrawn, revoked, suppressed, false-alarm: false alarm,"
    "closed: no longer applies",
}
# A state: (how it is coloured and drawn, its word).
STATES = {
    "settling": ("running", "processing"),
    "settled": ("done", "signed off"),
} | {
    name.strip(): (shape, (word or name).strip())
    for shape, states in _SHAPES.items()
    for name, _, word in (each.partition(":") for each in states.split(","))
}

# A longer name is cut with its length beside it; the pointer shows more of it, and the wire the whole.
MAX_NAME_LENGTH = 48
# With more than a few hidden characters the badges of a name would outweigh its line.
MAX_NAME_BYTES = 200
MAX_TITLE_LENGTH = 200

SEVERITIES = ("none", "info", "notice", "warning", "error")


@cache
def find_sprite() -> str:
    """The address of the icons, which a process that serves pages has one of."""
    return static("icons.svg")


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """An icon of the sprite; without a label it is hidden from a screen reader."""
    href = f"{find_sprite()}#{name}"
    if label:
        return fill('<svg class="icon" role="img" aria-label="{}"><use href="{}"/></svg>', label, href)
    return fill('<svg class="icon" aria-hidden="true"><use href="{}"/></svg>', href)


# From whom to whom. A list shows it in each row, where a browser takes far longer over a drawing than over a letter.
TO = SafeString('<span class="to" role="img" aria-label="to">→</span>')


@register.simple_tag
def to() -> SafeString:
    """The arrow between who says something and to whom."""
    return TO


@register.simple_tag
def act(performative: str | None, native_act: str | None = None) -> SafeString:
    """A performative with the sign of its family; the dialect's own word stands in the title."""
    if performative is None:
        return SafeString('<span class="act" data-family="break">not readable</span>')
    family = FAMILIES.get(performative, "meta")
    title = f"{native_act} in the raw message" if native_act else performative
    return fill('<span class="act" data-family="{}" title="{}">{}</span>', family, spell_hidden(title), performative)


@register.simple_tag
def severity(value: str | int, words: str | int | None = None, *, is_worst: bool = False) -> SafeString:
    """A severity by its name or number: its shape, its name, and beside them `words`.

    The name follows a count; `is_worst` says that not all that is counted is as severe.
    """
    name = SEVERITIES[value] if isinstance(value, int) else value
    if name == "none":
        return SafeString('<span class="quiet">none</span>')
    is_count = str(words).replace(",", "").isdigit()
    if words is None:
        label = fill("{}", name)
    elif is_worst or is_count:
        said = f"· {name}" if is_worst else f"{name}s" if str(words) != "1" and name != "info" else name
        label = fill("{}<span> {}</span>", words, said)
    else:
        label = fill('{}<span class="what"> {}</span>', name, words)
    return fill('<span class="severity" data-severity="{}">{}{}</span>', name, icon(name), label)


@register.simple_tag
def state(value: str, words: str | None = None) -> SafeString:
    """A state of a task, conversation, delivery, key or review, with its shape; `words` replace its own."""
    shape, word = STATES.get(value, ("open", value))
    return fill('<span class="state" data-state="{}">{}{}</span>', shape, icon(shape), words or word)


@register.simple_tag
def agent(mark: AgentMark | None) -> SafeString:
    """An agent's tile, what people call it and its name in the raw message; None is an agent that nothing names."""
    if mark is None:
        return SafeString('<span class="agent quiet">someone</span>')
    return fill(
        '<span class="agent" data-agent="{}"{}><i class="tile" aria-hidden="true">{}</i>{}</span>',
        mark.number,
        fill(' title="{}"', say_mark(mark)[:MAX_TITLE_LENGTH])
        if mark.label or len(mark.name) > MAX_NAME_LENGTH
        else "",
        mark.monogram,
        agent_name(mark),
    )


@register.simple_tag
def pair(line: Line) -> SafeString:
    """Who to whom, as every list of messages shows it; a space on either side."""
    if line.is_to_itself:
        others = SafeString('<span class="self">to itself</span>')
    elif line.is_broadcast:
        others = fill('{}<span class="agent everyone">everyone</span>', TO)
    elif line.receivers:
        more = line.more_receivers
        rest = fill('<span class="quiet">and {} more</span>', number(more)) if more else ""
        others = join((TO, *map(agent, line.receivers), rest))
    else:
        others = NOTHING
    return fill(' <span class="pair">{}{}</span> ', agent(line.sender), others)


@register.simple_tag
def agent_name(mark: AgentMark) -> SafeString:
    """What people call an agent, and its name in the raw message beside it; cut where it is very long."""
    end = fit(mark.name, MAX_NAME_BYTES, MAX_NAME_LENGTH)
    shown = name = write_visible(mark.name, 0, end)
    if end < len(mark.name):
        name = fill('{}… <span class="quiet">({} characters)</span>', shown, f"{len(mark.name):,}")
    if not mark.label:
        return fill("<bdi>{}</bdi>", name)
    return fill(
        '<bdi>{}</bdi> <bdi class="on-wire"><span class="sr">raw name </span>{}</bdi>',
        write_visible(mark.label),
        name,
    )


@register.simple_tag
def tile(mark: AgentMark) -> SafeString:
    """An agent's tile alone, its names for the pointer and for a screen reader."""
    return fill(
        '<i class="tile" role="img" data-agent="{}" title="{}" aria-label="{}">{}</i>',
        mark.number,
        say_mark(mark),
        spell_hidden(f"{mark.label} ({mark.name})" if mark.label else mark.name),
        mark.monogram,
    )


def say_mark(mark: AgentMark) -> str:
    """Both names of an agent and who gave it the one, where no markup can stand."""
    name = spell_hidden(mark.name)
    return f"{spell_hidden(mark.label)}: {name} in the raw message, {mark.why}" if mark.label else name


@register.simple_tag
def conversation_id(conversation: Conversation, title: str) -> SafeString:
    """The id of a conversation in short, for behind the title that is shown; nothing where `shorten_id` has none."""
    short = shorten_name(shorten_id(conversation, title), MAX_NAME_BYTES)
    if not short:
        return NOTHING
    whole = spell_hidden(conversation.native_id[:MAX_TITLE_LENGTH])
    return fill(' <bdi class="hash quiet" title="{}">{}</bdi>', f"Conversation id {whole}", write_visible(short))


def write_moment(value: datetime, zone: str, form: str = "full") -> str:
    """A time in words, in a zone by its name.

    `form` is full (with date and zone), short (to the minute, with the date), brief (short, without the
    year where it is this one), day, clock (time of day only, where date and zone stand nearby) or hour (that without
    seconds).
    """
    here = value.astimezone(ZoneInfo(zone))
    return {
        "full": f"{here.day} {here:%b %Y, %H:%M:%S} {here.tzname()}",
        "short": f"{here.day} {here:%b %Y, %H:%M}",
        "brief": f"{here.day} {here:%b}, {here:%H:%M}"
        if here.year == datetime.now(here.tzinfo).year
        else f"{here.day} {here:%b %Y}",
        "day": f"{here.day} {here:%b}",
        "clock": f"{here:%H:%M:%S}",
        "hour": f"{here:%H:%M}",
    }[form]


@register.simple_tag(takes_context=True)
def moment(context: Any, value: datetime | None, form: str = "full", basis: str = "wire") -> SafeString:
    """A time in the reader's zone as `write_moment` has it, ISO 8601 for the pointer; one that no message says, by its
    `basis`, with a sign for that and the reason.
    """
    if value is None:
        return SafeString('<span class="quiet">no time</span>')
    shown = write_moment(value, str(context.get("time_zone") or "UTC"), form)
    iso = value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if basis and not is_said(basis):
        why = TIME_WORDS[basis]
        marked = '<time datetime="{}" title="{}; {}">{}{}<span class="sr"> ({})</span></time>'
        return fill(marked, iso, iso, why, ABOUT, shown, why)
    return fill('<time datetime="{}" title="{}">{}</time>', iso, iso, shown)


@register.filter
def number(value: int | None) -> str:
    """A count with its thousands apart; None is a dash for "not known"."""
    return "–" if value is None else f"{value:,}"


# The units of a span of time as `write_elapsed` has them, in words.
UNITS = {"d": "day", "h": "hour", "min": "minute", "s": "second", "ms": "millisecond"}
_AMOUNT = re.compile(r"([0-9.,]+) (d|h|min|s|ms)\b")


@register.filter
def elapsed(value: str) -> SafeString:
    """A span of time such as `4 d 10 h`, with its units in words for a screen reader."""
    words = _AMOUNT.sub(lambda found: f"{found[1]} {UNITS[found[2]]}{'' if found[1] == '1' else 's'}", value)
    return fill('<span aria-hidden="true">{}</span><span class="sr">{}</span>', value, words)


@register.filter
def size(value: int) -> str:
    """Bytes in words, powers of 1000: `2.4 MB`."""
    amount = float(value)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


@register.filter
def unbroken(names: str) -> SafeString:
    """Names with commas between them, where a line ends between two of them and within none."""
    return SafeString(", ".join(fill('<span class="unbroken">{}</span>', name) for name in names.split(", ")))


@register.filter
def plural(value: int, words: str) -> str:
    """A count with its noun: `3|plural:"message,messages"`."""
    one, many = words.split(",")
    return f"{value:,} {one if value == 1 else many}"


@register.filter
def visible(text: str | None) -> SafeString:
    """Text from outside, hidden characters as badges; None is empty."""
    return write_visible(text or "")


@register.filter
def coded(text: str) -> SafeString:
    """Words of ours in which what is written just so stands between backticks: that as code."""
    pieces = map(write_visible, text.split("`"))
    return join(fill("<code>{}</code>", piece) if at % 2 else piece for at, piece in enumerate(pieces))


@register.filter
def spelled(text: str | None) -> str:
    """Text from outside for an attribute or a title: hidden characters as `[U+200B]`."""
    return spell_hidden(text or "")


@register.filter
def spans(value: Any) -> str:
    """Spans as the value of `data-span`."""
    return name_spans(value or ())


@register.simple_tag
def wire(
    text: str,
    stretches: Any = (),
    linked: bool = False,
    open_characters: int = OPEN_CHARACTERS,
    page_characters: int = PAGE_CHARACTERS,
    light: Any = (),
) -> SafeString:
    """A wire cut at its stretches; over `open_characters` it is folded, over `page_characters` left out."""
    check_effort()
    return write_wire(
        text,
        stretches,
        is_linked=linked,
        open_characters=open_characters,
        page_characters=page_characters,
        light=light or (),
    )


@register.simple_tag
def english(
    segments: Any,
    linked: bool = False,
    open_characters: int = OPEN_CHARACTERS,
    page_characters: int = SENTENCE_CHARACTERS,
    light: Any = (),
) -> SafeString:
    """A sentence from its segments (text, spans, basis); folded over `open_characters`, cut at `page_characters`."""
    check_effort()
    return write_english(
        segments,
        is_linked=linked,
        open_characters=open_characters,
        page_characters=page_characters,
        light=light or (),
    )


@register.filter
def lit(value: Any, light: Any) -> SafeString:
    """` class="is-lit"` for what has these spans, where they share characters with the light of the page."""
    return write_lit(is_lit=bool(value and light) and share(value, light))[0]


@register.simple_tag
def marked(text: str, ranges: Any = (), page_characters: int = HIT_CHARACTERS) -> SafeString:
    """Text with what a search found in it highlighted."""
    return mark_ranges(text, ranges, page_characters=page_characters)
