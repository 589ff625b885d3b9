"""Secrets in a file for somebody who may not see them: masked texts stand in the place of the exact ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dialects import Context, choose_dialect, tell
from inspector.intake.concealing import conceal_around, conceal_told
from inspector.intake.facts import read_with_facts
from inspector.threads.telling.masks import find_outer_secrets, mask

from .reading import Row

# A record that is longer is not looked through: nobody knows then what it holds.
MOST_BYTES_LOOKED_THROUGH: Final = 1024 * 1024


def mask_row(row: Row) -> None:
    """Set what stands for the record's text, where it holds a secret or is too long to be looked through."""
    if len(row.source) > MOST_BYTES_LOOKED_THROUGH or not row.source:
        row.is_withheld = True
        return
    spans, envelope = [], row.envelope
    for dialect in {part.dialect for part in row.parts}:
        reading = read_with_facts(row.text, row.envelope, row.facts, dialect=dialect)
        told = conceal_told(tell(choose_dialect(reading, Context()), Context(), None), reading)
        whole = reading.replace(
            layers=(*reading.layers, *told.layers),
            tree=lambda reading=reading, told=told: (*reading.fields, *told.fields),
        )
        spans += find_outer_secrets(whole)
        envelope = conceal_around(reading, envelope)
    if spans or envelope != row.envelope:
        row.masked, row.envelope = mask(row.text, spans), envelope


def shows_all(row: Row, needles: Sequence[str]) -> bool:
    """Whether what may be seen of the record's text holds everything that was asked for."""
    if row.is_withheld:
        return not needles
    text = row.text if row.masked is None else row.masked
    return all(needle in text for needle in needles)
