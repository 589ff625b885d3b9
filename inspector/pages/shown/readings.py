"""A reading as the panes of a page show it: its messages, all its notes, its fields and its layers."""

from __future__ import annotations

from typing import Any, Final

from dialects import Message, Reading

from .fields import MAX_LAYERS, cut_layers, has_secret, list_layers, list_rows, measure_syntax
from .told import NoteLine, read_notes, read_segments

MAX_PARTS: Final = 10


def show_parts(reading: Reading) -> dict[str, Any]:
    """The first messages of a reading as `parts`, and how many more there are."""
    return {
        "parts": [_make_part(message) for message in reading.messages[:MAX_PARTS]],
        "more_parts": max(0, len(reading.messages) - MAX_PARTS),
    }


def _make_part(message: Message) -> dict[str, Any]:
    return {
        "performative": message.performative,
        "native_act": message.native_act or "",
        "english": read_segments(segment.to_dict() for segment in message.english),
        "also": read_segments((segment.to_dict() for segment in message.also), are_apart=True),
        "gloss": read_segments(segment.to_dict() for segment in message.gloss),
        "reference_line": message.reference_line or "",
    }


def show_pieces(reading: Reading) -> dict[str, Any]:
    """The fields and the layers of a reading."""
    stretches = cut_layers(reading)
    fields, more_fields = list_rows(reading)
    return {
        "is_unfolded": True,
        "fields": fields,
        "more_fields": more_fields,
        "syntax": measure_syntax(stretches.get(0, ())),
        "layers": list_layers(reading, stretches),
        "more_layers": max(0, len(reading.layers) - MAX_LAYERS),
        "is_masked": has_secret(stretches),
    }


def list_all_notes(reading: Reading) -> list[NoteLine]:
    """The notes of a record and of all its messages, the gravest first."""
    notes = (*reading.notes, *(note for message in reading.messages for note in message.notes))
    return read_notes([note.to_dict() for note in notes])
