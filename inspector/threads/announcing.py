"""Announcing: that messages were told for the first time, in rows that readers follow (`browsing.feed`)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db.models import BigIntegerField, Func, TextField
from django.db.models.functions import Now

from .models import Announcement

# Of so many messages one row is written, for so long it is kept, and so many rows one sweep deletes at most.
MAX_TOGETHER: Final = 500
KEPT: Final = timedelta(days=1)
MAX_FORGOTTEN: Final = 5000


class Snapshot(Func):
    """What a statement sees, in PostgreSQL's own form: one that reads a row can say so in the same go."""

    function = "pg_current_snapshot"
    template = "%(function)s()::text"
    output_field = TextField()


def announce(*, messages: Sequence[uuid.UUID], workspace_id: uuid.UUID) -> None:
    """Announce messages that the open transaction tells for the first time."""
    number = Func(
        function="pg_current_xact_id", template="%(function)s()::text::bigint", output_field=BigIntegerField()
    )
    Announcement.objects.bulk_create(
        Announcement(workspace_id=workspace_id, transaction=number, at=Now(), messages=list(each))
        for each in (messages[start : start + MAX_TOGETHER] for start in range(0, len(messages), MAX_TOGETHER))
    )


def forget_announcements() -> int:
    """Delete announcements that are older than they are kept; how many. A part at a time, so that no sweep is long."""
    old = Announcement.objects.filter(at__lt=Now() - KEPT).order_by("at").values("pk")[:MAX_FORGOTTEN]
    return Announcement.objects.filter(pk__in=old).delete()[0]
