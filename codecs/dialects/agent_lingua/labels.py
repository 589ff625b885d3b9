"""What the keys and codes of a JSON payload mean: the standard field table, and the names handshakes spell out."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .._english import say_instant, say_seconds
from .._time import instant_of_seconds
from .tables import DOMAINS, KEYS, LEVELS, SPELT_KEYS


def label_of(key: str) -> str:
    """The label of a known key, or the key itself: a key is expanded only where the table has it."""
    return KEYS.get(key) or SPELT_KEYS.get(key) or key


def say_label(key: str, value: Any) -> str:
    """The label as a sentence says it, before its value."""
    if key == "security" and isinstance(value, list) and len(value) > 1:
        return f"{label_of(key)}s"
    return _SAID.get(key) or label_of(key)


# Where the table gives two words for a key, the one that fits any value.
_SAID = {"p": "count"}


def meaning_of(key: str | None, value: Any) -> str | None:
    """What a value means where its key says that it is a code or a time, in English."""
    if key == "capabilities" and isinstance(value, list):
        named = [domain.meaning for code in value if isinstance(code, str) and (domain := DOMAINS.get(code))]
        return ", ".join(named) if len(named) == len(value) and named else None
    if key == "security":
        letters = value if isinstance(value, list) else [value]
        levels = [LEVELS[letter] for letter in letters if isinstance(letter, str) and letter in LEVELS]
        return ", ".join(levels) if len(levels) == len(letters) and levels else None
    if key in ("ts", "ex") and isinstance(value, (int, float)):
        instant = instant_of_seconds(value)
        return say_instant(datetime.fromisoformat(instant)) if instant else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12:
        if key == "du":
            return say_seconds(value)
        if key == "sz":
            return f"{value} byte{'' if value == 1 else 's'}"
    return None
