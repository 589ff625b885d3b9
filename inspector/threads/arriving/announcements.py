"""Announcements: which messages were told for the first time, each row written by the transaction that told them.

They are the feed that readers follow: see `feed`. Nothing that settling decides asks for them, and they are kept for a
day, so that the table is as large as a day's news. A row names many messages, for whoever follows counts them by the
hundred, and a million rows more for a million messages would be the larger part of the work.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models

from inspector.accounts.models import Workspace

# Of so many messages one row is written, and for so long it is kept.
MOST_TOGETHER: Final = 500
KEPT: Final = timedelta(days=1)
# What one sweep deletes at most.
MOST_FORGOTTEN: Final = 5000


class Announcement(models.Model):
    """That these messages of a workspace were told for the first time.

    `transaction` is the number of the transaction that wrote it. The sequence of `id` is drawn before a transaction
    commits, so that a smaller one may come to light after a larger one; what no transaction can be behind any more is
    told by the oldest one that still runs. `messages` are their ids in the order of their timelines.
    """

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    transaction = models.BigIntegerField()
    at = models.DateTimeField()
    messages = ArrayField(models.UUIDField())

    class Meta:
        indexes: ClassVar = [
            # Serves following a workspace, in the order in which transactions began to write.
            models.Index(fields=["workspace", "transaction", "id"], name="announcement_in_order"),
            # Serves forgetting what is old.
            models.Index(fields=["at"], name="announcement_age"),
        ]

    def __str__(self) -> str:
        return f"{len(self.messages)} messages by transaction {self.transaction}"


def announce(*, messages: Sequence[uuid.UUID], workspace_id: uuid.UUID) -> None:
    """Announce messages that the open transaction tells for the first time."""
    rows = [
        (workspace_id, list(messages[start : start + MOST_TOGETHER]))
        for start in range(0, len(messages), MOST_TOGETHER)
    ]
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO threads_announcement (workspace_id, transaction, at, messages)"
            " VALUES (%s, pg_current_xact_id()::text::bigint, now(), %s)",
            rows,
        )


def forget_announcements() -> int:
    """Delete announcements that are older than they are kept; how many. A part at a time, so that no sweep is long."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM threads_announcement WHERE id IN"
            " (SELECT id FROM threads_announcement WHERE at < now() - make_interval(secs => %s) ORDER BY at LIMIT %s)",
            [KEPT.total_seconds(), MOST_FORGOTTEN],
        )
        return int(cursor.rowcount)
