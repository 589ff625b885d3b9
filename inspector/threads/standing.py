"""How conversations and traces stand, one word each."""

from __future__ import annotations

from django.db import models


class Standing(models.TextChoices):
    """How a conversation stands, and the traces through it; derived, never said by a wire."""

    OPEN = "open", "Open"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    STALLED = "stalled", "Stalled"
