"""Text as PostgreSQL can hold it."""

from __future__ import annotations


def make_storable(text: str) -> str:
    """The text with NUL as its visible symbol and lone surrogates as their escapes: nothing fails, nothing vanishes."""
    # Nearly every text is plain, and that is known without looking at it.
    if text.isascii() and "\x00" not in text:
        return text
    if "\x00" in text:
        text = text.replace("\x00", "\u2400")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text
