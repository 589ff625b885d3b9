"""Shelves: what a conversation has established and does not carry, each name in a row of its own.

A row says what a name stood for from a place in the timeline on, until a later row of that name. It is never changed.
So whoever goes on from an earlier end of the conversation finds what stood there.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection

from inspector.intake.bulk import copy_rows

from ..models import Conversation, ShelvedName

if TYPE_CHECKING:
    from .carried import CarriedContext

# A name for the shelf: the question for it, the place from which it holds, and what is said of it.
ShelvedRow = tuple[str, bytes, str]

_COLUMNS = ("conversation_id", "workspace_id", "question", "since", "said")


class Shelved(NamedTuple):
    """A name as it stands on a shelf: its kind, and what `CarriedContext` wrote of it."""

    kind: str
    since: bytes
    said: Any


@dataclass(frozen=True, slots=True)
class Shelf:
    """The shelf of a conversation as it was when the next message was to stand at a place, or behind it."""

    conversation_id: uuid.UUID
    border: bytes

    def find(self, questions: Collection[str]) -> Iterator[Shelved]:
        """The names that these questions ask for, by their digests; one query."""
        return self._read([bytes.fromhex(question) for question in questions])

    def find_all(self) -> Iterator[Shelved]:
        """Every name, those of kinds that were forgotten since among them."""
        return self._read(None)

    def _read(self, questions: Collection[bytes] | None) -> Iterator[Shelved]:
        rows = ShelvedName.objects.filter(conversation_id=self.conversation_id, since__lte=self.border)
        if questions is not None:
            rows = rows.filter(question__in=questions)
        for since, text in rows.order_by("question", "-since").distinct("question").values_list("since", "said"):
            kind, *said = json.loads(text)
            yield Shelved(kind, bytes(since), said)


def write_shelves(carried: Sequence[tuple[Conversation, CarriedContext]]) -> None:
    """Put on their shelves what these contexts no longer carry; call inside the transaction that holds them.

    What was put there after the message that a context was gone on from is dropped: it was settled again.
    """
    if not carried:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM threads_shelvedname AS shelved
             USING unnest(%s::uuid[], %s::bytea[]) AS started (conversation_id, border)
             WHERE shelved.conversation_id = started.conversation_id AND shelved.since > started.border
            """,
            [[conversation.pk for conversation, _ in carried], [context.started for _, context in carried]],
        )
    rows = [row for each, context in carried for row in _make_rows(each, context.take_shelved())]
    if rows:
        copy_rows(model=ShelvedName, columns=_COLUMNS, rows=rows)


def put_on_shelf(conversation: Conversation, shelved: Sequence[ShelvedRow]) -> None:
    """Put names on the shelf of a conversation beside what is there; call inside the transaction that holds it."""
    if shelved:
        copy_rows(model=ShelvedName, columns=_COLUMNS, rows=_make_rows(conversation, shelved))


def _make_rows(conversation: Conversation, shelved: Iterable[ShelvedRow]) -> list[tuple[Any, ...]]:
    head = (conversation.pk, conversation.workspace_id)
    return [(*head, bytes.fromhex(question), since, said) for question, since, said in shelved]
