"""Rereading: a record whose dialect is decided otherwise, or whose decoder has changed, is read anew in its place."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db import transaction

from inspector.intake.models import Record

from ..inserting.inserts import find_citing, find_keys, read_record, replace_parts
from ..inserting.marking import Fence, hold_channels, hold_conversations, mark_conversations
from ..placing.links import Guess
from ..placing.nodes import StoredNode, find_misread
from ..rendering.wordings import History
from .storing import mark_blocks
from .view import View


def read_again(history: History, record_id: uuid.UUID, dialect: str | None, guess: Guess | None, fence: Fence) -> None:
    """Put the messages of a record that is read otherwise in the place of its earlier ones, and mark who cites them."""
    conversation = history.conversation
    arrival = read_record(Record.objects.get(pk=record_id), dialect=dialect)
    with transaction.atomic():
        hold_channels([conversation.channel_id], is_shared=True)
        borne = {conversation.channel_id: {key: {conversation.pk} for key in find_keys(conversation, arrival)}}
        citing = find_citing(borne, conversation.workspace_id)
        hold_conversations({conversation.pk, *citing})
        fence()
        ids = citing.keys()
        mark_conversations(conversation_ids=ids, workspace_id=conversation.workspace_id, added_to=ids)
        mark_blocks(citing)
        history.read_anew(record_id, is_outdated=dialect is None)
        replace_parts(arrival, conversation, guess, at=history.at)


def read_misread(history: History, nodes: Sequence[StoredNode], view: View, fence: Fence) -> bool:
    """Read again what is to be read otherwise of these nodes of a conversation, in order key; whether there was
    anything. Its messages have to be loaded again then. `view` is what holds before them."""
    guessed = {slug for node in nodes if node.guess is not None for slug in node.guess.scores}
    spoken = {slug: None for slug in sorted(guessed) if view.get(("spoken", slug))}
    misread = list(find_misread(nodes, spoken))
    for record_id, dialect, guess in misread:
        fence()
        read_again(history, record_id, dialect, guess, fence)
    return bool(misread)
