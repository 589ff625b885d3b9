"""The piece of a message that is selected: what it is, its bytes, and the search that finds what carries the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from dialects import Field, Reading
from inspector.intake.readings import mask_layers
from inspector.search import registry
from inspector.search.language import quote
from inspector.search.refining import write_term
from inspector.search.registry import PATHS, SEARCHABLE
from inspector.threads import terms
from inspector.threads.models import Message
from inspector.threads.terms import MARK_CHARACTERS, write_value

from ..shown.fields import escape_character, write_offsets
from ..shown.markup import Span, name_spans

MAX_SHOWN_LENGTH: Final = 200
MAX_FILTER_LENGTH: Final = 80
MAX_BYTES: Final = 16
MAX_MAPPED: Final = 40
MAX_CHOSEN_LENGTH: Final = 2000
_WORD: Final = re.compile(r"[a-z]+")
_NAMES: Final = {term.atom: term.name for term in SEARCHABLE}
# So many spans a piece of English may come from; an address that names more is no piece of a page.
MAX_SPANS: Final = 40
_SPAN: Final = re.compile(r"(\d{1,9}):(\d{1,9})-(\d{1,9})")


def select(message: Message, reading: Reading, light: Sequence[Span], slug: str) -> dict[str, Any] | None:
    """What the first of the lit spans selects; None where no layer has these characters."""
    if not light:
        return None
    layer, start, end = light[0]
    texts = dict(zip((each.id for each in reading.layers), mask_layers(reading), strict=True))
    whole = {each.id: each.text for each in reading.layers}
    if layer not in texts or not start < end <= len(texts[layer]):
        return None
    raw, is_masked = texts[layer][start:end], texts[layer][start:end] != whole[layer][start:end]
    field = _find_field(reading.fields, (layer, start, end))
    encoded = b"" if is_masked else raw.encode("utf-8", "surrogatepass")
    query = "" if is_masked else find_query(message, field, raw)
    return {
        "label": field.label if field else "",
        "meaning": (field.meaning or "") if field else "",
        "raw": "" if is_masked else raw[:MAX_SHOWN_LENGTH],
        "is_masked": is_masked,
        "characters": end - start,
        "offsets": write_offsets((layer, start, end)),
        "hexadecimal": encoded[:MAX_BYTES].hex(" "),
        "more_bytes": max(0, len(encoded) - MAX_BYTES),
        "escaped": "".join(map(escape_character, raw[:MAX_SHOWN_LENGTH])) if not (is_masked or _is_plain(raw)) else "",
        "span": name_spans(light),
        "query": query,
        "query_url": f"{reverse('pages:search', args=[slug])}?{urlencode({'q': query})}" if query else "",
        "on_wire": find_on_wire(reading, light),
    }


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


def narrow(reading: Reading, light: Sequence[Span], chosen: str) -> Sequence[Span]:
    """The lit spans of one layer narrowed to the characters that a reader chose there, where these are found once.

    A browser counts otherwise than the server: it says which pieces it touched, and what was chosen in them.
    """
    if not light or not chosen or len(chosen) > MAX_CHOSEN_LENGTH:
        return light
    layer = light[0][0]
    texts = dict(zip((each.id for each in reading.layers), mask_layers(reading), strict=True))
    if layer not in texts or any(each[0] != layer for each in light):
        return light
    start, end = min(each[1] for each in light), max(each[2] for each in light)
    # What is chosen may begin or end in the signs between two pieces.
    begins = max(0, start - len(chosen))
    around = texts[layer][begins : end + len(chosen)]
    places = [begins + place for place in _find_all(around, chosen)]
    places = [place for place in places if place < end and start < place + len(chosen)]
    return [(layer, places[0], places[0] + len(chosen))] if len(places) == 1 else [(layer, start, end)]


def _find_all(text: str, piece: str) -> Iterator[int]:
    place = text.find(piece)
    while place >= 0:
        yield place
        place = text.find(piece, place + 1)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _find_field(fields: Sequence[Field], span: Span) -> Field | None:
    """The innermost field that holds a span; the pair of a key and its value stands for both."""
    found, inside = None, fields
    while True:
        layer, start, end = span
        holder = next((each for each in inside if _holds(each, layer, start, end)), None)
        if holder is None:
            return found
        if holder.name not in ("key", "value", "syntax") or found is None:
            found = holder
        inside = holder.children


def _holds(field: Field, layer: int, start: int, end: int) -> bool:
    of, begins, ends = field.span
    if of == layer:
        return begins <= start and end <= ends
    # What was unpacked hangs below the field that it was packed in.
    return any(_holds(child, layer, start, end) for child in field.children)


def find_query(message: Message, field: Field | None, raw: str) -> str:
    """The condition that finds what carries the same value: by its name where the message's own terms have it.

    Else by its characters on the wire; empty where these are too many to be asked for.
    """
    best = max(_list_matches(message, field), key=lambda match: match[2], default=None)
    if best is not None:
        return write_term(best[0], (best[1],))
    if not raw.strip() or len(raw) > MAX_FILTER_LENGTH or not _is_plain(raw):
        return ""
    return f"raw:{quote(raw)}"


def _list_matches(message: Message, field: Field | None) -> Iterator[tuple[str, str, int]]:
    """Names of the search language under which this message has the field's value, with how well they fit its label."""
    value = None if field is None else _find_value(field)
    if field is None or value in (None, "", ()):
        return
    folded = terms.fold(write_value(value))
    said = set(_WORD.findall(f"{field.label} {field.name}".lower()))
    for atom in message.atoms:
        name, _, held = atom[MARK_CHARACTERS:].partition("=")
        if held != folded or (named := _name(name)) is None:
            continue
        fits = len(said & set(_WORD.findall(f"{name} {named}".replace("_", " "))))
        # A short value stands in many places: only its own name may speak for it.
        if fits or len(folded) > 3:
            yield named, write_value(value), fits


def _find_value(field: Field) -> Any:
    values = [child.value for child in field.children if child.name == "value"]
    value = values[0] if len(values) == 1 else field.value
    return value if isinstance(value, (str, int, float, bool)) and len(str(value)) <= MAX_FILTER_LENGTH else None


def _name(atom: str) -> str | None:
    if atom in _NAMES:
        return _NAMES[atom]
    known = atom.startswith(PATHS) or atom in registry.names()
    return atom if known and atom != "has" else None


def read_light(request: HttpRequest) -> tuple[Span, ...]:
    """The spans that `?span=0:25-27` names, several with a space or a + between them; what is none is passed over."""
    given = request.GET.get("span", "").replace("+", " ").split()[:MAX_SPANS]
    found = (_SPAN.fullmatch(text) for text in given)
    return tuple((int(each[1]), int(each[2]), int(each[3])) for each in found if each)
