"""Around what is said: who says it to whom, and what stands beside it; and what a setting says, as a verb phrase:
`define ta as "build Lambda skill"`.

With a known speaker the sentence is `oscar asks radar: Do you know about consciousness?`; without one it is the plain
sentence in the speaker's own person. No quotation marks stand around it: the words are our reading and not the
speaker's own. What the sentence does not say goes to the also-list.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from .._english import escape, join_words, quote, say_name
from .._record import Definition, Message, Span
from .contexts import Setting
from .nodes import Piece
from .protocol import ERRORS, TRUST, Act
from .statements import Part
from .vocabulary import TITLES
from .wording import delimit


class Phrase(NamedTuple):
    """A verb in its plain and its third-person form, and the rest of the phrase."""

    base: str
    third: str
    rest: str


# What definitions, namespaces, domains and topics have in common.
_LASTS = " for the rest of the conversation"


def say_setting(setting: Setting, defines: Sequence[Definition], names: Mapping[str, str]) -> Phrase | None:
    """The phrase of a setting, or None where the sentence or another phrase says it.

    `names` are the names of domains in the release in use, as `Vocabulary.names` has them.
    """
    kind, raw = setting.kind, delimit(setting.raw)
    if kind == "reference":
        return Phrase("refer to", "refers to", f"the vocabulary {delimit(str(setting.value))} (shown, never fetched)")
    if kind == "inline":
        return Phrase("speak", "is read", f"in the domain {_say_domain(setting.value, names)}")
    if kind == "def":
        return Phrase("define", "defines", f"{delimit(setting.name)} as {raw}{_LASTS}")
    if kind == "ns":
        values = setting.value if isinstance(setting.value, list) else [setting.value]
        said = join_words([_say_domain(str(value), names) for value in values])
        return Phrase("set", "sets", f"the namespace to {said}{_LASTS}")
    if kind == "domain":
        if setting.value == "*":
            return Phrase("leave", "leaves", f"every domain{_LASTS}")
        return Phrase("switch", "switches", f"to the domain {_say_domain(setting.value, names)}{_LASTS}")
    if kind == "group":
        members = setting.value if isinstance(setting.value, list) else []
        named = delimit(setting.name if members else str(setting.value))
        also = f" with the members {join_words([delimit(str(name)) for name in members])}" if members else ""
        return Phrase("name", "names", f"the group {named}{also}")
    if kind == "members":
        return None if any(one.kind == "group" for one in defines) else Phrase("name", "names", f"the members {raw}")
    if kind == "chunk":
        message, number, count = setting.value
        return Phrase("send", "is", f"part {number} of {count} of message {delimit(str(message))}")
    if kind == "signature":
        name, value = setting.value
        return Phrase("sign", "is signed", f"with {delimit(f'{name}:{value}')} (a claim, not verified)")
    if kind == "other":
        return Phrase("give", "gives", f"{delimit(setting.name)} = {raw}" if setting.name else raw)
    if kind == "broken-header":
        return Phrase("begin", "begins", f"with {quote(setting.raw)}, a broken header that sets nothing")
    found = _SIMPLE.get(kind)
    return Phrase(found[0], found[1], found[2].format(raw)) if found else None


_SIMPLE = {
    "topic": ("set", "sets", "the topic to {}" + _LASTS),
    "version": ("speak", "speaks", "Lambda v{}"),
    "id": ("give this", "has", "the message id {}"),
    "ctx": ("refer to", "refers to", "the context {}"),
    "time": ("state", "states", "the time {}"),
    "auth": ("authenticate", "authenticates", "with {} (a claim, not verified)"),
    "enc": ("mark this", "is marked", "as encrypted with {}"),
    "trust-level": ("mark this", "is marked", "with the trust level {} (a claim, not verified)"),
    "vocabulary": ("point to", "points to", "the vocabulary {} (shown, never fetched)"),
}


def _say_domain(name: str, names: Mapping[str, str]) -> str:
    title = "the core" if name == "cr" else TITLES.get(names.get(name, ""))
    return delimit(name) if title is None or title == name else f"{title} ({delimit(name)})"


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
