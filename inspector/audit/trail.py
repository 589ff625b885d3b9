"""The trail, as reviews and findings write to it; the table stands in `inspector.trail`, below all that records."""

from __future__ import annotations

from inspector.trail.services import Thing as Thing
from inspector.trail.services import record_deed as record_deed

__all__ = ["Thing", "record_deed"]
