"""Rereading: a record whose dialect is settled otherwise, or whose decoder has changed, is read anew in its place."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.db import transaction

from inspector.intake.models import Record

from ..arriving.arrivals import find_citing, find_keys, replace_parts
from ..arriving.holding import hold_channels, hold_conversations
from ..arriving.inserts import read_record
from ..arriving.marking import mark_conversations
from ..placing.links import Guess, guess_of
from ..telling.wordings import History


def read_again(
    history: History, record_id: uuid.UUID, dialect: str | None, guess: Guess | None, fence: Callable[[], None]
) -> None:
    """Put the messages of a record that is read otherwise in the place of its earlier ones, and mark who cites them."""
    conversation = history.conversation
    arrival = read_record(Record.objects.get(pk=record_id), dialect=dialect)
    guess = guess or guess_of(arrival.reading)
    with transaction.atomic():
        hold_channels([conversation.channel_id], is_shared=True)
        borne = {conversation.channel_id: {key: {conversation.pk} for key in find_keys(conversation, arrival)}}
        citing = find_citing(borne, conversation.workspace_id)
        hold_conversations({conversation.pk, *citing})
        fence()
        mark_conversations(conversation_ids=citing, workspace_id=conversation.workspace_id)
        history.read_anew(record_id, is_outdated=dialect is None)
        replace_parts(arrival, conversation, guess, at=history.at)
