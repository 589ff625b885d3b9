"""Writes of threads: messages arrive, conversations are settled."""

from __future__ import annotations

from .arriving.arrivals import hold_records, insert_arrivals
from .arriving.inserts import foretell_arrivals, read_record
from .arriving.marking import mark_conversations
from .arriving.withdrawing import follow_weighing
from .resolving.resolver import resolve
from .trees.tracing import draw_traces

__all__ = [
    "draw_traces",
    "follow_weighing",
    "foretell_arrivals",
    "hold_records",
    "insert_arrivals",
    "mark_conversations",
    "read_record",
    "resolve",
]
