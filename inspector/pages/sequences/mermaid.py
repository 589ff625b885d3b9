"""A sequence in Mermaid's language, to be pasted elsewhere; no text from a log can become syntax there.

Whatever is neither a letter nor a digit is written as Mermaid's own numeric code (`#59;`), so that no line ends, no
comment begins and no tag opens but by this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from zoneinfo import ZoneInfo

from inspector.browsing.sequence import Arrow, Step
from inspector.hidden_characters import spell_hidden

from ..agents.marks import Cast
from ..shown.told import say_fate
from .drawing import MAX_LABEL_LENGTH, MAX_NAME_LENGTH, cut, write_about
from .lanes import MAX_NAMES, gather_names

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
        yield f"Note over {source}: {name} {say_fate(step.bearers)}"
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
    yield escape(f"{step.at.astimezone(zone):%H:%M:%S}")
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
