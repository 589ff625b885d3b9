"""Secrets in what the API hands out: who may have a record's exact bytes, and what everyone else gets instead.

What is secret is what the codecs mask: the leaves of the field tree that say so. A masked character becomes one mark,
so that every span of the tree still points at its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dialects import Reading, read
from inspector.accounts.models import ApiKey
from inspector.intake.models import Record
from inspector.intake.readings import (
    MAX_BYTES_LOOKED_THROUGH,
    conceal_reading,
    find_outer_secrets,
    has_tokens,
    mask,
    mask_layers,
)
from inspector.intake.selectors import has_bytes, measure_source
from inspector.keyring.models import KeyEvent
from inspector.opening import Opening, disclose, find_openings_of
from inspector.threads.models import Message
from inspector.threads.selectors import list_messages_of, unfold


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """What stands for bytes that a key may not have: the text with its secrets masked, if it could be looked through.

    `sha256` is of the exact bytes.
    """

    masked: str | None
    sha256: str


def may_see_secrets(key: ApiKey) -> bool:
    """Whether an owner gave this key the scope for it."""
    return ApiKey.Scope.SECRETS in key.scopes


def withhold(record: Record) -> Withheld | None:
    """What a key that may see no secrets gets of a record, or None where there is nothing to keep from it."""
    if not has_bytes(record) or len(record.source) > MAX_BYTES_LOOKED_THROUGH or not record.source:
        return Withheld(masked=None, sha256=digest_source(record))
    spans = [span for reading in _read_all(record) for span in find_outer_secrets(reading)]
    if not spans and not has_tokens(record):
        return None
    return Withheld(masked=mask(_text_of(record), spans), sha256=digest_source(record))


def _read_all(record: Record) -> Iterator[Reading]:
    """The record as its messages were settled, as it would be read without them, and as the bytes stand."""
    messages: list[Message] = list_messages_of(record=record)
    for message in messages:
        yield unfold(message=message)
    if not messages:
        yield conceal_reading(read(_text_of(record)))


def _text_of(record: Record) -> str:
    """The text; of bytes that are none, what can be read in them."""
    wire = bytes(record.source if record.wire is None else record.wire)
    return wire.decode("utf-8", "replace" if record.is_quarantined else "surrogatepass")


def digest_source(record: Record) -> str:
    """The SHA-256 of the exact bytes."""
    return measure_source(record=record)[1]


def show_layers(reading: Reading) -> list[dict[str, Any]]:
    """The layers of a reading as JSON types, their secrets masked."""
    masked = mask_layers(reading)
    return [layer.replace(text=text).to_dict() for layer, text in zip(reading.layers, masked, strict=True)]


def open_for(key: ApiKey, message: Message) -> Opening | None:
    """What keys have opened of a message, for an API key that may see it, and noted; else None."""
    if not may_see_secrets(key):
        return None
    openings = find_openings_of(messages=[message])
    disclose(openings, door=KeyEvent.Door.API, api_key=key)
    return openings.get(message.pk)
