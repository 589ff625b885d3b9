"""The numbers of messages: the directories of timelines as they are stored, written by settling, read by every page."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from django.db import connection

from ..models import Conversation, Message, PlaceDirectory
from .places import BlockSize, Places, read_sizes, write_sizes


def load_places(conversation: Conversation) -> Places:
    """The places of a conversation; of one that was never settled there are none. One statement for each instance."""
    try:
        return Places(read_sizes(bytes(conversation.places.blocks)))
    except PlaceDirectory.DoesNotExist:
        return Places()


def load_all_places(conversation_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Places]:
    """The places of these conversations; one statement."""
    rows = PlaceDirectory.objects.filter(pk__in=list(conversation_ids)).values_list("pk", "blocks")
    return {pk: Places(read_sizes(bytes(blocks))) for pk, blocks in rows}


def number_messages(messages: Iterable[Message]) -> None:
    """Give these messages their numbers, counted from 1 in the conversation of each; one statement."""
    every = list(messages)
    known = load_all_places({message.conversation_id for message in every}) if every else {}
    for message in every:
        places = known.get(message.conversation_id)
        message.number = places.find_position(message.place) + 1 if places else 0


def write_directories(rows: Sequence[tuple[Conversation, Sequence[BlockSize]]]) -> None:
    """Write the directories that came out otherwise; call inside the transaction that holds their conversations."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO threads_placedirectory AS held (conversation_id, workspace_id, blocks)
            SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::bytea[])
            ON CONFLICT (conversation_id) DO UPDATE SET blocks = excluded.blocks WHERE held.blocks <> excluded.blocks
            """,
            [
                [conversation.pk for conversation, _ in rows],
                [conversation.workspace_id for conversation, _ in rows],
                [write_sizes(blocks) for _, blocks in rows],
            ],
        )
