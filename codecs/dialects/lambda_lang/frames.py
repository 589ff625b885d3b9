"""Around what is said: who says it to whom, and what stands beside it.

With a known speaker the sentence is `oscar asks radar: Do you know about consciousness?`; without one it is the plain
sentence in the speaker's own person. No quotation marks stand around it: the words are our reading and not the
speaker's own. What the sentence does not say goes to the also-list.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from .._english import escape, join_words, say_name
from .._record import Message, Span
from .phrases import say_setting
from .pieces import Piece
from .protocol import ERRORS, TRUST, Act
from .settings import Setting
from .statements import Part

_SAYS = {"tells": "says", "asks": "asks", "instructs": "commands", "offers": "offers", "answers": "answers"}


def frame(act: Act, part: Part, message: Message, first: str) -> tuple[Piece | None, str]:
    """What stands before the words of a statement, where a speaker or a receiver is known, and their first segment.

    `first` is that segment as it opens a sentence; `Word by word:` goes on behind the speaker, with a comma.
    """
    if message.sender is None and not message.receivers and not message.broadcast:
        return None, first
    to = "everyone" if message.broadcast else join_words([say_name(name) for name in message.receivers])
    spans: tuple[Span, ...] = tuple(
        (0, item.start, item.end) for item in part.items if item.kind in ("speaker", "address", "relay")
    )
    if act.verb == "offers":
        spans = (*spans, (0, *part.symbol_at))
    if message.sender is None:
        return Piece(f"To {to}: ", spans), first
    verb = f"{act.verb} {to}" if to else _SAYS[act.verb]
    way = f" by way of {join_words([say_name(name) for name in message.path[1:-1]])}" if len(message.path) > 2 else ""
    joint = ":"
    if first[-1:] == ":" and not first.startswith("I "):
        joint, first = ",", f"{first[0].lower()}{first[1:]}"
    return Piece(f"{say_name(message.sender)} {verb}{way}{joint} ", spans), first


def is_said(setting: Setting, said: Container[str]) -> bool:
    """Whether a setting is among those that the sentence says."""
    return setting.kind in said or f"{setting.kind}@{setting.start}" in said


def say_carried(part: Part, settings: Sequence[Setting], message: Message, names: Mapping[str, str]) -> list[Piece]:
    """What a statement also sets, claims and gives, as a sentence behind it."""
    told: list[tuple[str, str, Span]] = []
    for setting in settings:
        phrase = say_setting(setting, message.defines, names)
        if phrase is not None:
            # The marks around a broken header are the program's own.
            rest = phrase.rest if setting.kind == "broken-header" else escape(phrase.rest)
            told.append((phrase.third, rest, (0, setting.start, setting.end)))
    trusts = [item for item in part.items if item.kind == "trust"]
    told += [("is", TRUST[item.data][1], (0, item.start, item.end)) for item in trusts]
    said: list[Piece] = []
    for third, rest, span in told:
        verb, _, participle = third.partition(" ")
        first = f"also {verb}" if verb != "is" else "is also"
        joint = f" and {verb}" if said else f" The message {first}"
        said.append(Piece(" ".join((joint, *filter(None, (participle, rest)))), (span,)))
    return [*said, Piece(".", ())] if said else said


def say_beside(
    part: Part, settings: Sequence[Setting], message: Message, said: Container[str], names: Mapping[str, str]
) -> list[Piece]:
    """What the sentence does not say; `said` are the settings that it does."""
    also: list[Piece] = []
    for setting in settings:
        if is_said(setting, said):
            continue
        if message.native_act == "data" and setting.kind in ("other", "members"):
            continue
        phrase = say_setting(setting, message.defines, names)
        if phrase is not None:
            also.append(Piece(f"it {phrase.third} {phrase.rest}", ((0, setting.start, setting.end),)))
    if part.form == "context":
        trusts = (item for item in part.items if item.kind == "trust")
        also.extend(Piece(TRUST[item.data][1], ((0, item.start, item.end),)) for item in trusts)
    if part.checksum:
        start, end, count = part.checksum
        counted = part.body[1] - part.body[0] + len(part.symbol)
        also.append(Piece(f"it states a checksum of {count}; we count {counted} characters", ((0, start, end),)))
    error = message.error
    if error is not None and error.code in ERRORS:
        at = part.body[0]
        also.append(Piece(ERRORS[error.code].remedy, ((0, at, at + 5),)))
    return also
