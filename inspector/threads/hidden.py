"""How many messages are not shown because the deliveries they came in were withdrawn, and by whom."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db.models import Count

from inspector.accounts.models import Workspace
from inspector.intake.models import HiddenRecord, Withdrawal
from inspector.intake.withdrawals import has_hidden

from .models import Conversation, Message
from .resolving.tallies import read_tally

MOST_COUNTED = 10_001


def count_hidden(*, workspace: Workspace) -> int:
    """How many messages of the workspace are hidden, counted up to `MOST_COUNTED`."""
    if not has_hidden(workspace=workspace):
        return 0
    return Message.objects.hidden().filter(workspace=workspace).values("pk")[:MOST_COUNTED].count()


def count_hidden_in(*, conversation: Conversation) -> int:
    """How many messages of the conversation are hidden: as it was settled last, where it was since tallies are kept."""
    if conversation.tally:
        return read_tally(conversation.tally).hidden
    return count_hidden_by_conversation([conversation]).get(conversation.pk, 0)


def count_hidden_by_conversation(conversations: Sequence[Conversation]) -> dict[uuid.UUID, int]:
    """How many messages of these conversations of one workspace are hidden, without those of which none is."""
    of_workspace = HiddenRecord.objects.filter(workspace_id=conversations[0].workspace_id)
    if not of_workspace.exists():
        return {}
    rows = Message.objects.hidden().filter(conversation_id__in=[each.pk for each in conversations])
    return dict(rows.values_list("conversation_id").annotate(hidden_count=Count("pk")).order_by())


def list_withdrawals_behind(*, message: Message, limit: int = 10) -> Sequence[Withdrawal]:
    """The withdrawals in force of the deliveries that the message's record was seen in, newest first."""
    rows = Withdrawal.objects.select_related("by", "delivery").filter(
        delivery__sightings__record_id=message.record_id, taken_back_at__isnull=True
    )
    return list(rows.order_by("-at").distinct()[:limit])
