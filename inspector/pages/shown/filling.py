"""Filling forms of markup with text: every value is escaped that is not markup already.

This is Django's `format_html` with a short way for what the signs of a page are made of: texts, markup and whole
numbers. A page of messages asks for it a thousand times; whatever else it is given goes Django's own way.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

from django.utils.html import conditional_escape
from django.utils.safestring import SafeString

NOTHING = SafeString("")


def escape_text(text: str) -> SafeString:
    """A text with everything escaped that would be markup in it; markup as it is."""
    return text if isinstance(text, SafeString) else SafeString(html.escape(text))


def fill(form: str, *values: str | int) -> SafeString:
    """The form with these values in its places, as `str.format` puts them there."""
    return SafeString(form.format(*map(_escape, values)))


def _escape(value: Any) -> object:
    if isinstance(value, str):
        return escape_text(value)
    return value if type(value) is int else conditional_escape(value)


def join(pieces: Iterable[str]) -> SafeString:
    """Texts and markup one after the other."""
    return SafeString("".join([escape_text(piece) for piece in pieces]))
