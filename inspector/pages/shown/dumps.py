"""The raw text of a layer in two more ways: its bytes in hexadecimal, and with every unusual character escaped.

Both keep the pieces of the text and their spans, so that they light up with the English and the fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from .markup import Span, Stretch, name_spans, share, write_lit, write_wire

ROW_BYTES: Final = 8
# Where there is room two rows stand in one line: a dump begins at the first of two.
LINE_BYTES: Final = 2 * ROW_BYTES
# A byte is shown twice and may be a piece of its own: more of them than this make a page too heavy.
MAX_BYTES: Final = 1536
# A view that begins at a lit piece shows so many lines before it.
LINES_BEFORE: Final = 1
# Of a text of many megabytes only so many characters are looked at.
MAX_DUMPED_LENGTH: Final = 200_000
_SHORT: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_NONE: Final = Stretch(start=0, end=0, kind="plain")
VIEWS: Final = {"": "Text", "escaped": "Escaped", "hex": "Hex"}


def dump_bytes(
    text: str, stretches: Sequence[Stretch], *, light: Sequence[Span] = (), most: int = MAX_BYTES, layer: int = 0
) -> dict[str, Any]:
    """The bytes of a text in UTF-8 by rows of eight, each row with its offset and its signs; from the lit piece on.

    A masked byte is two marks: neither its value nor its sign reaches the page.
    """
    begins = min((start for of, start, _ in light if of == layer), default=0)
    skipped = len(text[: min(begins, MAX_DUMPED_LENGTH)].encode("utf-8", "surrogatepass"))
    first = max(0, skipped // LINE_BYTES - LINES_BEFORE) * LINE_BYTES
    every = list(_list_bytes(text[:MAX_DUMPED_LENGTH], stretches))
    total = len(text.encode("utf-8", "surrogatepass"))
    shown = every[first : first + most]
    rows = (
        (f"{first + at:04x}", *_write_row(shown[at : at + ROW_BYTES], light)) for at in range(0, len(shown), ROW_BYTES)
    )
    markup = format_html_join("\n", "<u>{}</u>  <span>{}{}</span>  <span>{}</span>", rows)
    return {"markup": markup, "start": first, "end": first + len(shown), "total": total}


def _list_bytes(text: str, stretches: Sequence[Stretch]) -> Iterator[dict[str, Any]]:
    waiting = iter(stretches)
    at = next(waiting, None)
    for index, character in enumerate(text):
        while at is not None and at.end <= index:
            at = next(waiting, None)
        stretch = at if at is not None and at.start <= index else _NONE
        encoded = character.encode("utf-8", "surrogatepass")
        sign = character if character.isascii() and character.isprintable() else "·"
        for place, value in enumerate(encoded):
            yield {"value": value, "sign": sign if not place else "·", "stretch": stretch}


def _write_row(row: Sequence[dict[str, Any]], light: Sequence[Span]) -> tuple[SafeString, str, SafeString]:
    """Bytes, what fills a short row, and signs; each cut where another piece begins."""
    pieces = [(stretch, list(held)) for stretch, held in groupby(row, key=lambda byte: byte["stretch"])]
    numbers = format_html_join(
        " ",
        "{}",
        ((_link(stretch, " ".join(_show(byte) for byte in held), light, is_stop=True),) for stretch, held in pieces),
    )
    signs = format_html_join(
        "",
        "{}",
        (
            (
                _link(
                    stretch,
                    "•" * len(held) if stretch.kind == "masked" else "".join(byte["sign"] for byte in held),
                    light,
                    is_stop=False,
                ),
            )
            for stretch, held in pieces
        ),
    )
    return numbers, "   " * (ROW_BYTES - len(row)), signs


def _show(byte: dict[str, Any]) -> str:
    return "••" if byte["stretch"].kind == "masked" else f"{byte['value']:02x}"


def _link(stretch: Stretch, text: str, light: Sequence[Span], *, is_stop: bool) -> SafeString:
    if not stretch.spans:
        return format_html("{}", text)
    lit, _ = write_lit(is_lit=bool(light) and share(stretch.spans, light))
    form = '<span data-span="{}" tabindex="0"{}>{}</span>' if is_stop else '<span data-span="{}"{}>{}</span>'
    return format_html(form, name_spans(stretch.spans), lit, text)


def escape_text(text: str, stretches: Sequence[Stretch]) -> tuple[str, list[Stretch]]:
    r"""The text in printable ASCII, with `\n`, `\\` and `\u{1F47D}` for the rest; its pieces at their new places."""
    shown = text[:MAX_DUMPED_LENGTH]
    places, pieces = [0], []
    for character in shown:
        written = escape_character(character)
        pieces.append(written)
        places.append(places[-1] + len(written))
    moved = [
        Stretch(start=places[each.start], end=places[min(each.end, len(shown))], kind=each.kind, spans=each.spans)
        for each in stretches
        if each.start < len(shown)
    ]
    return "".join(pieces), moved


def escape_character(character: str) -> str:
    """A character as printable ASCII from which it can be read back."""
    if character in _SHORT:
        return _SHORT[character]
    if character.isascii() and character.isprintable():
        return character
    return f"\\u{{{ord(character):X}}}"


def show_layers(layers: Sequence[dict[str, Any]], view: str, light: Sequence[Span]) -> list[dict[str, Any]]:
    """The layers in one of `VIEWS`. A dump has a budget of bytes for all of them."""
    left = MAX_BYTES
    found = []
    for layer in layers:
        shown = ""
        if view == "hex":
            dump = dump_bytes(layer["text"], layer["stretches"], light=light, most=left, layer=layer["id"])
            left = max(0, left - (dump["end"] - dump["start"]))
            markup = dump["markup"]
            if dump["end"] - dump["start"] < dump["total"]:
                shown = f"bytes {dump['start']:,}–{dump['end']:,} of {dump['total']:,}"
        else:
            text, stretches = layer["text"], layer["stretches"]
            if view == "escaped":
                text, stretches = escape_text(text, stretches)
            # Escaped, a text has other positions than its layer.
            markup = write_wire(text, stretches, is_linked=True, light=light, layer=None if view else layer["id"])
        found.append({**layer, "spans": layer["of"], "markup": markup, "shown": shown})
    return found
