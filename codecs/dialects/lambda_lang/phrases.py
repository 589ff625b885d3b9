"""What a setting says, as a verb phrase: `define ta as "build Lambda skill"`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .._english import join_words, quote
from .._record import Definition
from .atoms import TITLES
from .settings import Setting
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
