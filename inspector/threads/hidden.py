"""How many messages are not shown because the deliveries they came in were withdrawn, and by whom."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.accounts.models import Workspace
from inspector.intake.models import Withdrawal
from inspector.intake.withdrawals import has_hidden

from .models import Conversation, Message

MOST_COUNTED = 10_001


def count_hidden(*, workspace: Workspace) -> int:
    """How many messages of the workspace are hidden, counted up to `MOST_COUNTED`."""
    if not has_hidden(workspace=workspace):
        return 0
    return Message.objects.hidden().filter(workspace=workspace).values("pk")[:MOST_COUNTED].count()


def count_hidden_in(*, conversation: Conversation) -> int:
    """How many messages of the conversation are hidden, counted up to `MOST_COUNTED`."""
    if not Message.objects.filter(conversation=conversation, record__hidden__isnull=False).exists():
        return 0
    return Message.objects.hidden().filter(conversation=conversation).values("pk")[:MOST_COUNTED].count()


def list_withdrawals_behind(*, message: Message, limit: int = 10) -> Sequence[Withdrawal]:
    """The withdrawals in force of the deliveries that the message's record was seen in, newest first."""
    rows = Withdrawal.objects.select_related("by", "delivery").filter(
        delivery__sightings__record_id=message.record_id, taken_back_at__isnull=True
    )
    return list(rows.order_by("-at").distinct()[:limit])
