"""Writes of threads: messages arrive, conversations are settled."""

from __future__ import annotations

from .arriving import hold_records, insert_arrivals, mark_dirty, read_record
from .settling import settle
from .withdrawing import follow_weighing

__all__ = ["follow_weighing", "hold_records", "insert_arrivals", "mark_dirty", "read_record", "settle"]
