"""The conversations of an agent, as its page lists them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Exists, OuterRef, Window

from inspector.accounts.models import Workspace

from ..models import Conversation
from ..summaries import opening_of
from ..tasks.measures import annotate_stands
from .tables import Appearance


def list_conversations_of(*, workspace: Workspace, agent_ids: Iterable[uuid.UUID], limit: int) -> list[Conversation]:
    """The conversations that name one of these agents, latest activity first; one statement.

    Each has the English that it opens with, as `opening`, and how it stands. Those of several agents say in `of_all`
    how many there are: one that holds two of them counts once.
    """
    ids = list(agent_ids)
    named = Appearance.objects.filter(conversation=OuterRef("pk"), agent__in=ids)
    rows: Any = Conversation.objects.select_related("channel").filter(Exists(named), workspace=workspace)
    rows = annotate_stands(rows.annotate(opening=opening_of()))
    if len(ids) > 1:
        rows = rows.annotate(of_all=Window(Count("pk")))
    return list(rows.order_by("-last_at", "-pk")[:limit])
