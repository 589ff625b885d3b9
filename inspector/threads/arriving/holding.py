"""Holding: what arriving, settling and looking up lock until their transaction ends, each in one order."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from django.db import connection, transaction


def hold_channels(channel_ids: Iterable[uuid.UUID], *, is_shared: bool) -> None:
    """Until the transaction ends, keep arriving (shared) and looking up cited ids (alone) apart in these channels.

    Else a message that arrives and a conversation that cites it could pass each other unseen, each before the other
    is committed, and the ghost would stay.
    """
    function = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        for channel_id in sorted(channel_ids):
            cursor.execute(f"SELECT {function}(%s)", [int.from_bytes(channel_id.bytes[8:], signed=True)])


def hold_conversations(conversation_ids: Iterable[uuid.UUID]) -> None:
    """Lock conversations until the transaction ends, in the order of their ids so that nobody deadlocks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM threads_conversation WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE",
            (sorted(conversation_ids),),
        )


# Called inside every writing transaction, and as the sign of life between them; raises when another has taken over.
Fence = Callable[[], None]


@contextmanager
def hold_alone(conversation_ids: Iterable[uuid.UUID], fence: Fence) -> Iterator[None]:
    """A transaction that locks conversations and then their jobs, in the order in which arriving locks them."""
    with transaction.atomic():
        hold_conversations(conversation_ids)
        fence()
        yield
