"""Filling forms of markup with text: every value is escaped that is not markup already.

This is Django's `format_html` for what the signs of a page are made of: texts, numbers and markup. A page of messages
asks for it a thousand times, and half of the time went into asking each value whether it is a promise of a text.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from django.utils.safestring import SafeString

NOTHING = SafeString("")


def escape_text(text: str) -> SafeString:
    """A text with everything escaped that would be markup in it; markup as it is."""
    return text if isinstance(text, SafeString) else SafeString(html.escape(text))


def fill(form: str, *values: str | int) -> SafeString:
    """The form with these values in its places, as `str.format` puts them there."""
    return SafeString(form.format(*[escape_text(value) if isinstance(value, str) else value for value in values]))


def join(pieces: Iterable[str]) -> SafeString:
    """Texts and markup one after the other."""
    return SafeString("".join([escape_text(piece) for piece in pieces]))
