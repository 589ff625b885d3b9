"""Where evidence stands in the ledger, for those who look at it, and a checkpoint as a code to keep on paper."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass

import segno
from django.db.models import OuterRef, Subquery
from django.utils.safestring import SafeString

from .models import LedgerCheckpoint, LedgerEntry


@dataclass(frozen=True, slots=True)
class Place:
    """An entry by its index, and the size of the first checkpoint that has it; None until one is signed."""

    index: int
    size: int | None


def find_places(kind: str, subjects: Collection[uuid.UUID]) -> dict[uuid.UUID, Place]:
    """Where these rows stand in their workspace's ledger, in one statement; what is not entered yet is missing."""
    later = LedgerCheckpoint.objects.filter(workspace=OuterRef("workspace"), size__gt=OuterRef("index"))
    rows = LedgerEntry.objects.filter(kind=kind, subject__in=subjects)
    rows = rows.annotate(first=Subquery(later.order_by("size").values("size")[:1]))
    return {subject: Place(index, size) for subject, index, size in rows.values_list("subject", "index", "first")}


def draw_note(note: str) -> SafeString:
    """A signed checkpoint as a QR code in SVG, black on white in every theme: what a telephone reads is the note."""
    code = segno.make(note, error="l", encoding="utf-8", micro=False)
    drawn = code.svg_inline(scale=4, border=4, dark="#000", light="#fff", svgclass=None, lineclass=None)
    return SafeString(drawn)  # drawn from dots, not from text
