"""Grading: the severity of the gravest open finding of a conversation, kept on its row, so that lists begin with it."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from django.db.models import Max

from inspector.intake.bulk import update_rows
from inspector.lookups import IsAny
from inspector.threads.models import Conversation

from .dueness import COUNTS
from .tables import Finding


def grade_conversations(conversations: Collection[uuid.UUID]) -> None:
    """Note how grave the gravest finding that stands open is in each of these conversations.

    Call it after whatever changes how their findings stand, in the transaction that holds them.

    Args:
        conversations: their ids.
    """
    ids = list(conversations)
    stand = Finding.objects.filter(COUNTS, IsAny("conversation_id", ids), state=Finding.State.OPEN)
    gravest = dict(stand.order_by().values_list("conversation").annotate(severity=Max("severity")))
    noted = Conversation.objects.filter(IsAny("id", ids)).values_list("id", "open_severity")
    changed = [(pk, gravest.get(pk, 0)) for pk, severity in noted if severity != gravest.get(pk, 0)]
    if changed:
        update_rows(model=Conversation, columns=("id", "open_severity"), rows=changed)
