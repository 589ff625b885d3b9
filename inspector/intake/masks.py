"""Masked characters: where the codecs say that a secret stands, and a text without it, which is kept (`MaskedWire`): a
search by whoever may not see secrets looks there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from dialects import Context, Field, Keys, Reading, choose_dialect, get_dialect, tell
from inspector.intake.concealing import conceal_told, may_be_masked
from inspector.intake.models import Record

MARK: Final = "\N{BULLET}"
# A longer record is not looked through: nobody knows then what it holds.
MAX_BYTES_LOOKED_THROUGH: Final = 128 * 1024
Span = tuple[int, int, int]


def find_secrets(fields: Iterable[Field]) -> Iterator[Span]:
    """The spans of the masked leaves of a tree."""
    stack = list(fields)
    while stack:
        field = stack.pop()
        if field.is_masked and not any(child.is_masked for child in field.children):
            yield field.span
        stack.extend(field.children)


def find_outer_secrets(reading: Reading) -> list[Span]:
    """What is to be masked in the text itself: its secrets, and every stretch that unpacks into one with a secret."""
    return _spread_secrets(reading)[0]


def _spread_secrets(reading: Reading) -> dict[int, list[Span]]:
    """By layer what is to be masked in it. A layer that was unpacked from a piece with a secret in it would show that
    piece again in the outer layers: there the whole stretch it came from is masked. Of a layer that was put together it
    is each piece that has some of the secret."""
    secrets: dict[int, list[Span]] = defaultdict(list)
    for span in find_secrets(reading.fields):
        secrets[span[0]].append(span)
    for layer in reversed(reading.layers):
        for outer in layer.find_outer(secrets.get(layer.id, ())):
            secrets[outer[0]].append(outer)
    return secrets


def mask(text: str, spans: Iterable[Span]) -> str:
    """The text with the characters of these spans as marks, one for each."""
    pieces, at = [], 0
    for _, start, end in sorted(spans, key=lambda span: (span[1], span[2])):
        start = max(at, start)
        if end > start:
            pieces += [text[at:start], MARK * (end - start)]
            at = end
    return "".join((*pieces, text[at:]))


def mask_layers(reading: Reading) -> list[str]:
    """The text of each layer of a reading with its secrets masked, the wire first."""
    secrets = _spread_secrets(reading)
    return [mask(layer.text, secrets.get(layer.id, ())) for layer in reading.layers]


def unfold_reading(reading: Reading, keys: Keys | None = None) -> Reading:
    """A concealed reading with the layers and fields that telling adds to it; with keys, also what they open."""
    told = conceal_told(tell(choose_dialect(reading, Context()), Context(), keys), reading)
    return reading.replace(
        layers=(*reading.layers, *told.layers), tree=lambda: (*reading.fields, *told.fields), messages=told.messages
    )


def find_masked(record: Record, reading: Reading) -> bytes | None:
    """The masked text of a record, which is read and concealed, as UTF-8; None where nothing of it is masked, empty
    where it is too long to be looked through, so that nothing in it is found by who may not see secrets."""
    if len(record.source) > MAX_BYTES_LOOKED_THROUGH:
        return b""
    # Reading has looked for tokens already; telling looks only into what it unpacks.
    if not (may_be_masked(reading) or get_dialect(reading.dialect).packs(reading.wire)):
        return None
    # The dialect was settled when it was read.
    spans = find_outer_secrets(unfold_reading(reading.replace(candidates=())))
    return mask(reading.wire, spans).encode("utf-8", "surrogatepass") if spans else None
