"""Holding conversations for the transactions that settling writes in."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from django.db import transaction

from ..arriving.holding import hold_conversations

# Called inside every writing transaction, and as the sign of life between them; raises when another has taken over.
Fence = Callable[[], None]


@contextmanager
def hold_alone(conversation_ids: Iterable[uuid.UUID], fence: Fence) -> Iterator[None]:
    """A transaction that locks conversations and then their jobs, in the order in which arriving locks them."""
    with transaction.atomic():
        hold_conversations(conversation_ids)
        fence()
        yield
