"""The raw of a message as text, escaped or in hexadecimal: each layer of it ready for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.safestring import SafeString

from ..shown.dumps import MAX_BYTES, dump_bytes, escape_text
from ..shown.fields import LayerText
from ..shown.markup import Span, write_wire

VIEWS: Final = {"": "Text", "escaped": "Escaped", "hex": "Hex"}


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerView:
    """A layer as it is shown; `spans` is the piece of the outer layer that it was unpacked from.

    `shown`, of a dump, says which bytes it has; empty where that is all of them.
    """

    id: int
    title: str
    spans: tuple[Span, ...]
    markup: SafeString
    shown: str


def show_layers(layers: Sequence[LayerText], view: str, light: Sequence[Span]) -> list[LayerView]:
    """The layers in one of `VIEWS`. A dump has a budget of bytes for all of them."""
    left = MAX_BYTES
    found = []
    for layer in layers:
        shown = ""
        if view == "hex":
            dump = dump_bytes(layer.text, layer.stretches, light=light, most=left, layer=layer.id)
            left = max(0, left - (dump.end - dump.start))
            markup = dump.markup
            if dump.end - dump.start < dump.total:
                shown = f"bytes {dump.start:,}–{dump.end:,} of {dump.total:,}"
        else:
            text, stretches = (
                escape_text(layer.text, layer.stretches) if view == "escaped" else (layer.text, layer.stretches)
            )
            # Escaped, a text has other positions than its layer.
            markup = write_wire(text, stretches, is_linked=True, light=light, layer=None if view else layer.id)
        found.append(LayerView(id=layer.id, title=layer.title, spans=layer.of, markup=markup, shown=shown))
    return found
