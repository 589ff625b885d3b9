"""A rule on its page: how it is set here, by whom and why, what is suppressed of it, and the forms for both."""

from __future__ import annotations

import uuid
from typing import Any

from inspector.accounts.models import Membership
from inspector.audit.findings.settings import list_changes, list_suppressions
from inspector.audit.rules import Rule
from inspector.audit.rules.rule import SEVERITIES
from inspector.threads.selectors import find_openings

from ..shown.budgets import shorten_name
from ..shown.told import is_named
from .rows import title_conversation


def describe_rule(membership: Membership, rule: Rule) -> dict[str, Any]:
    """How a rule is set in the reader's workspace, with the history of that, and its suppressions."""
    workspace = membership.workspace
    changes = list_changes(workspace_id=workspace.pk, rule=rule.code)
    latest = changes[0] if changes else None
    own = latest.severity if latest and latest.severity is not None else None
    return {
        "setting": {
            "is_on": latest.is_on if latest else True,
            "severity": rule.rank if own is None else own,
            "own_severity": "" if own is None else SEVERITIES[own],
        },
        "changes": [
            {
                "by": change.by.get_username(),
                "at": change.at,
                "reason": change.reason,
                "is_on": change.is_on,
                "severity": "" if change.severity is None else SEVERITIES[change.severity],
            }
            for change in changes
        ],
        "grades": SEVERITIES[:0:-1],
        "suppressions": _list_suppressions(workspace.pk, rule),
    }


def _list_suppressions(workspace_id: uuid.UUID, rule: Rule) -> list[dict[str, Any]]:
    found = list_suppressions(workspace_id=workspace_id, rule=rule.code)
    unnamed = {
        each.conversation_id
        for each in found
        if each.conversation is not None and each.conversation_id is not None and not is_named(each.conversation)
    }
    openings = find_openings(conversation_ids=list(unnamed)) if unnamed else {}
    return [
        {
            "id": each.pk,
            "sender": shorten_name(each.sender, 200),
            "conversation_id": each.conversation_id,
            "conversation": title_conversation(each.conversation, openings) if each.conversation else "",
            "reason": each.reason,
            "by": each.by.get_username(),
            "at": each.at,
            "lifted_by": each.lifted_by.get_username() if each.lifted_by else "",
            "lifted_at": each.lifted_at,
        }
        for each in found
    ]
