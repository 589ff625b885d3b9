"""Writes of threads: messages arrive, conversations are resolved."""

from __future__ import annotations

from .inserting.inserts import hold_records, read_record
from .inserting.marking import ask_to_examine, mark_conversations
from .resolving.arrivals import follow_weighing, insert_arrivals, prepare
from .resolving.resolver import resolve
from .trees.tracing import draw_traces

__all__ = [
    "ask_to_examine",
    "draw_traces",
    "follow_weighing",
    "hold_records",
    "insert_arrivals",
    "mark_conversations",
    "prepare",
    "read_record",
    "resolve",
]
