"""Writes of threads: messages arrive, conversations are settled."""

from __future__ import annotations

from .arriving import hold_records, insert_arrivals
from .inserts import read_record
from .marking import mark_conversations
from .settling import settle
from .tracing import draw_traces
from .withdrawing import follow_weighing

__all__ = [
    "draw_traces",
    "follow_weighing",
    "hold_records",
    "insert_arrivals",
    "mark_conversations",
    "read_record",
    "settle",
]
