"""The raw of a message as text, escaped or in hexadecimal: each layer of it ready for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..shown.dumps import MAX_BYTES, dump_bytes, escape_text
from ..shown.markup import Span, write_wire

VIEWS: Final = {"": "Text", "escaped": "Escaped", "hex": "Hex"}


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
