"""The layers of a record's text: a field tree as rows of a table, its leaves as stretches of each layer, a wire as a
list shows it, cut at its fields and as much of it as the page can carry; and the raw text in two more ways, its bytes
in hexadecimal, and with every unusual character escaped.

Both keep the pieces of the text and their spans, so that they light up with the English and the fields.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from dialects import Field, Layer, Reading, get_dialect
from inspector.intake.readings import may_be_masked, may_hold_secret
from inspector.threads.models import Message
from inspector.threads.selectors import has_record, reread

from .markup import Span, Stretch, fit, name_spans, share, weigh, write_lit, write_wire

MAX_DEPTH = 8
MAX_ROWS = 500
MAX_LAYERS = 20

_KINDS = {"syntax": "syntax", "unread": "unread", "key": "key"}


def list_rows(reading: Reading) -> tuple[list[dict[str, Any]], int]:
    """The first rows of the tree, parents before children, and how many more there are.

    Separators are left to `measure_syntax`.
    """
    pairs = _walk(_without_lone_root(reading.fields))
    rows = [_make_row(field, depth, reading.dialect) for field, depth in islice(pairs, MAX_ROWS)]
    return rows, sum(1 for _ in pairs)


def _without_lone_root(fields: Sequence[Field]) -> Sequence[Field]:
    """A root that only says "the message" costs a level of indentation and tells nothing."""
    return fields[0].children if len(fields) == 1 and fields[0].children else fields


def _walk(fields: Iterable[Field]) -> Iterator[tuple[Field, int]]:
    stack = [(field, 0) for field in reversed(list(fields))]
    while stack:
        field, depth = stack.pop()
        if field.name == "syntax":
            continue
        yield field, depth
        value = _find_value(field)
        inner = field.children if value is None else value.children
        stack.extend((child, depth + 1) for child in reversed(inner) if child.name not in ("syntax", "key"))


def _make_row(field: Field, depth: int, dialect: str) -> dict[str, Any]:
    value = _find_value(field)
    shown = value or field
    meaning = field.meaning or shown.meaning or ""
    return {
        "depth": min(depth, MAX_DEPTH),
        "label": field.label,
        "raw": shown.raw,
        "meaning": meaning,
        "spans": (field.span,),
        # The layer stands beside its meaning: three panes have no room for it twice.
        "offsets": write_offsets((0, *field.span[1:])),
        "layer": f"layer {field.span[0]}" if field.span[0] else "",
        "is_branch": value is None and any(child.name not in ("syntax", "key") for child in field.children),
        "is_masked": shown.is_masked,
        "is_unread": field.name == "unread",
        "code": find_code(dialect, shown.raw, field.label) if meaning and not shown.is_masked else "",
        "dialect": dialect,
    }


def find_code(dialect: str, raw: str, label: str) -> str:
    """The code of the dialect's glossary that these characters are: whole, in quotes, or a slot with its value."""
    names = _name_codes(dialect)
    for code in (raw, raw.strip('"')):
        if code in names:
            return code
    return raw[:1] if label in names.get(raw[:1], ()) else ""


@cache
def _name_codes(dialect: str) -> dict[str, set[str]]:
    names: dict[str, set[str]] = defaultdict(set)
    for term in get_dialect(dialect).glossary:
        names[term.code].add(term.name)
    return dict(names)


def _find_value(field: Field) -> Field | None:
    """The value of a pair of key and value, which the table shows in one row."""
    if not any(child.name == "key" for child in field.children):
        return None
    values = [child for child in field.children if child.name not in ("key", "syntax")]
    return values[0] if len(values) == 1 and values[0].name == "value" else None


def write_offsets(span: Span | None) -> str:
    """A span in words: `25–27`, with its layer where that is not the wire; none is the whole."""
    if span is None:
        return "whole"
    layer, start, end = span
    place = f"{start:,}" if start == end else f"{start:,}–{end:,}"
    return f"{place} in layer {layer}" if layer else place


def measure_syntax(stretches: Iterable[Stretch]) -> dict[str, Any]:
    """How much of a layer stands between its fields."""
    lengths = [stretch.end - stretch.start for stretch in stretches if stretch.kind == "syntax"]
    return {"places": len(lengths), "characters": sum(lengths)}


def list_layers(reading: Reading, stretches: Mapping[int, Sequence[Stretch]]) -> list[dict[str, Any]]:
    """The texts of a record, the wire first, cut by the leaves that lie in them; at most `MAX_LAYERS`."""
    return [
        {
            "id": layer.id,
            "title": _write_title(layer),
            "text": layer.text,
            "stretches": tuple(stretches.get(layer.id, ())),
            "of": (layer.of,) if layer.of else (),
        }
        for layer in reading.layers[:MAX_LAYERS]
    ]


def _write_title(layer: Layer) -> str:
    kind = layer.kind.replace("-", " ").capitalize()
    return f"{kind}, from {write_offsets(layer.of)}" if layer.of else kind


def cut_layers(reading: Reading) -> dict[int, list[Stretch]]:
    """For each layer the stretches of its leaves in order. A leaf of a layer has no child in the same layer."""
    found: dict[int, list[Stretch]] = defaultdict(list)
    stack = list(reversed(reading.fields))
    while stack:
        field = stack.pop()
        layer, start, end = field.span
        if not any(child.span[0] == layer for child in field.children):
            kind = "masked" if field.is_masked else _KINDS.get(field.name, "field")
            spans = () if kind == "syntax" else (field.span,)
            found[layer].append(Stretch(start=start, end=end, kind=kind, spans=spans))
        stack.extend(reversed(field.children))
    for stretches in found.values():
        stretches.sort(key=lambda stretch: (stretch.start, stretch.end))
    return found


def find_masked(reading: Reading) -> list[Stretch]:
    """The masked stretches of the wire, in order: those of `cut_layers`, without growing a tree that has none."""
    if not may_be_masked(reading):
        return []
    return [stretch for stretch in cut_layers(reading).get(0, ()) if stretch.kind == "masked"]


def has_secret(stretches: Mapping[int, Sequence[Stretch]]) -> bool:
    """Whether a piece of a record, cut by `cut_layers`, is masked."""
    return any(stretch.kind == "masked" for layer in stretches.values() for stretch in layer)


WIRE_CHARACTERS: Final = 5_000
# What the mark of a field costs in a wire.
MARK_BYTES: Final = 12
# A longer record is shown on its own page only: in a list it would cost more than all the others together.
MAX_SHOWN_RECORD_BYTES: Final = 100_000
# And a window of a conversation shows so much together: each is read anew, a megabyte of fields in six seconds.
MAX_RECORD_BYTES: Final = 500_000


def cut_wire(message: Message) -> tuple[str, Sequence[Stretch]]:
    """The text of a message's record cut at its fields, so that secrets are masked; nothing where it is not loaded."""
    if not has_record(message):
        return "", ()
    return message.record.wire_text, cut_layers(reread(message=message)).get(0, ())


def mask_wire(message: Message) -> tuple[str, Sequence[Stretch]]:
    """The text of a message's record with its masked stretches alone; nothing where it is not loaded.

    Most records hold nothing that could be a secret: they are shown as they are, without being read.
    """
    if not has_record(message):
        return "", ()
    record = message.record
    wire = record.wire_text
    if not may_hold_secret(wire, record.envelope + record.facts, dialect=message.read_in):
        return wire, ()
    return wire, find_masked(reread(message=message))


def weigh_wire(wire: str, stretches: Sequence[Stretch]) -> int:
    """What the wire of a row weighs, the marks of its fields among it."""
    return weigh(wire, WIRE_CHARACTERS) + MARK_BYTES * bisect_left(stretches, WIRE_CHARACTERS, key=attrgetter("start"))


def fit_wire(wire: str, stretches: Sequence[Stretch], max_bytes: int) -> int:
    """How many characters of the wire weigh at most so much."""
    weight = weigh_wire(wire, stretches)
    shown = min(len(wire), WIRE_CHARACTERS)
    return shown if weight <= max_bytes else min(fit(wire, max_bytes, shown), shown * max_bytes // weight)


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


MAX_MAPPED: Final = 40


def find_on_wire(reading: Reading, spans: Sequence[Span]) -> tuple[int, int] | None:
    """The stretch of the wire from the first to the last of these spans; what was unpacked stands for its packing."""
    outer = {layer.id: layer.of for layer in reading.layers}
    length = len(reading.wire)
    found = []
    for span in spans[:MAX_MAPPED]:
        layer, start, end = span
        for _ in reading.layers:
            above = outer.get(layer)
            if above is None:
                break
            layer, start, end = above
        if layer == 0 and start < end <= length:
            found.append((start, end))
    return (min(start for start, _ in found), max(end for _, end in found)) if found else None
