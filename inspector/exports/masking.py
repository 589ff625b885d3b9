"""Secrets in a file for somebody who may not see them: masked texts stand in the place of the exact ones."""

from __future__ import annotations

from inspector.intake.concealing import conceal_around
from inspector.intake.facts import read_with_facts
from inspector.intake.masks import MAX_BYTES_LOOKED_THROUGH, find_outer_secrets, mask, unfold_reading

from .entries import Row


def mask_row(row: Row) -> None:
    """Set what stands for the record's text, where it holds a secret or is too long to be looked through."""
    if len(row.source) > MAX_BYTES_LOOKED_THROUGH or not row.source:
        row.is_withheld = True
        return
    spans, envelope = [], row.envelope
    for dialect in {part.read_in for part in row.parts}:
        reading = read_with_facts(row.text, row.envelope, row.facts, dialect=dialect)
        spans += find_outer_secrets(unfold_reading(reading))
        envelope = conceal_around(reading, envelope)
    if spans or envelope != row.envelope:
        row.masked, row.envelope = mask(row.text, spans), envelope
