"""Grading: the severity of the gravest open finding of a conversation, kept on its row, so that lists begin with it."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from django.db.models import Max, OuterRef, Subquery
from django.db.models.functions import Coalesce

from inspector.threads.models import Conversation

from .dueness import COUNTS
from .tables import Finding


def grade_conversations(conversations: Collection[uuid.UUID]) -> None:
    """Note how grave the gravest finding that stands open is in each of these conversations.

    Call it after whatever changes how their findings stand, in the transaction that holds them.

    Args:
        conversations: their ids.
    """
    rows = Finding.objects.filter(COUNTS, conversation=OuterRef("pk"), state=Finding.State.OPEN)
    gravest = rows.order_by().values("conversation").annotate(severity=Max("severity")).values("severity")
    severity = Coalesce(Subquery(gravest), 0)
    changed = Conversation.objects.filter(pk__in=list(conversations)).exclude(open_severity=severity)
    changed.update(open_severity=severity)
