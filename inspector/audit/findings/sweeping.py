"""What the sweep does for findings: note what became due since, put it into its queues, and announce it."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Final

from django.db import transaction

from inspector.threads.inserting.marking import hold_conversations

from ..reviews.queues import fill_by_findings
from .due import find_changed, note_due
from .storing import grade_conversations

# So many findings are looked at in one round, and so many rounds at one sweep: what is left waits for the next.
MAX_AT_ONCE: Final = 500
MAX_ROUNDS: Final = 8


def note_all_due() -> int:
    """Note what is due in all workspaces, some at each sweep; in how many conversations something was noted."""
    count = 0
    for _ in range(MAX_ROUNDS):
        by_workspace: dict[uuid.UUID, set[uuid.UUID]] = {}
        changed = find_changed(most=MAX_AT_ONCE)
        for workspace_id, conversation_id in changed:
            by_workspace.setdefault(workspace_id, set()).add(conversation_id)
        for workspace_id, conversations in sorted(by_workspace.items()):
            _note(workspace_id, conversations)
            count += len(conversations)
        if not changed:
            break
    return count


@transaction.atomic
def _note(workspace_id: uuid.UUID, conversations: Collection[uuid.UUID]) -> None:
    hold_conversations(conversations)
    note_due(conversations=conversations)
    grade_conversations(conversations)
    fill_by_findings(workspace_id=workspace_id, conversations=conversations)
