"""The messages of a conversation in the order of their keys, by keyset: what others add or withdraw moves no other."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db.models import QuerySet

from .models import Conversation, Message

_ORDER: Final = ("order_time", "order_source", "order_index", "record_id", "part")
_COMPARED: Final = f"({', '.join(f'threads_message.{name}' for name in _ORDER)})"


class Key(NamedTuple):
    """The order key of a message; of those that share one, the record and the part of it decide."""

    order_time: datetime
    order_source: bytes
    order_index: int
    record_id: uuid.UUID
    part: int

    def write(self) -> list[str | int | bool]:
        """The key as a cursor holds it."""
        source = bytes(self.order_source).hex()
        return [self.order_time.isoformat(), source, self.order_index, str(self.record_id), self.part]


def read_key(said: Sequence[Any]) -> Key:
    """The key that `Key.write` wrote."""
    at, source, index, record, part = said
    return Key(datetime.fromisoformat(at), bytes.fromhex(source), index, uuid.UUID(record), part)


def key_of(message: Message) -> Key:
    """The key of a message."""
    return Key(*(getattr(message, name) for name in _ORDER))


def select_after(*, conversation: Conversation, key: Key | None) -> QuerySet[Message]:
    """The shown messages that are placed, in order, that come after a key; without one all."""
    rows: QuerySet[Message] = Message.objects.shown().filter(conversation=conversation, place__isnull=False)
    if key is not None:
        # The columns are those above; the values are parameters.
        rows = rows.extra(where=[f"{_COMPARED} > (%s, %s, %s, %s, %s)"], params=list(key))  # noqa: S610
    return rows.order_by(*_ORDER)
