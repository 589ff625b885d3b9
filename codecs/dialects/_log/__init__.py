"""Logs as people have them, framed into records: bytes in, records with envelopes and the scaffold between them out."""

from __future__ import annotations

from .reader import LogReader, read_log
from .tape import Item, LogOptions, LogRecord, Piece, Problem, Scaffold
from .warnings import LogWarning, warning_of_end, warnings_of

__all__ = [
    "Item",
    "LogOptions",
    "LogReader",
    "LogRecord",
    "LogWarning",
    "Piece",
    "Problem",
    "Scaffold",
    "read_log",
    "warning_of_end",
    "warnings_of",
]
