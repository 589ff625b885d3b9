"""How a workspace has set the rules: which are on, how grave they are, and what is suppressed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F

from ..models.findings import RuleChange, Suppression
from ..rules import Rule


@dataclass(frozen=True, slots=True)
class Settings:
    """The latest change of each rule that was ever set, and the suppressions in force."""

    changes: Mapping[str, RuleChange]
    suppressions: Mapping[str, Sequence[Suppression]]

    def is_on(self, rule: str) -> bool:
        """Whether a rule is examined."""
        return rule not in self.changes or self.changes[rule].is_on

    def find_severity(self, rule: Rule) -> int:
        """How grave what the rule finds is here."""
        change = self.changes.get(rule.code)
        return rule.rank if change is None or change.severity is None else change.severity

    def is_suppressed(self, rule: str, conversation_id: uuid.UUID, sender: str) -> bool:
        """Whether what the rule finds of this sender, in this conversation, is not to be shown."""
        return any(
            (each.conversation_id is None or each.conversation_id == conversation_id) and each.sender in ("", sender)
            for each in self.suppressions.get(rule, ())
        )


def load_settings(*, workspace_id: uuid.UUID) -> Settings:
    """What is in force in a workspace, in two statements."""
    rows = RuleChange.objects.filter(workspace=workspace_id).order_by("rule", "-at", "-id").distinct("rule")
    suppressions: dict[str, list[Suppression]] = {}
    for each in Suppression.objects.filter(workspace=workspace_id, lifted_at=None):
        suppressions.setdefault(each.rule, []).append(each)
    return Settings({row.rule: row for row in rows}, suppressions)


def list_changes(*, workspace_id: uuid.UUID, rule: str, limit: int = 50) -> list[RuleChange]:
    """How a rule was set, the latest first, each with who did."""
    rows = RuleChange.objects.select_related("by").filter(workspace=workspace_id, rule=rule)
    return list(rows.order_by("-at", "-id")[:limit])


def list_suppressions(*, workspace_id: uuid.UUID, rule: str, limit: int = 50) -> list[Suppression]:
    """What is suppressed of a rule, and what was: those in force first, then the latest."""
    rows = Suppression.objects.select_related("by", "lifted_by", "conversation")
    rows = rows.filter(workspace=workspace_id, rule=rule)
    return list(rows.order_by(F("lifted_at").desc(nulls_first=True), "-at", "-id")[:limit])


def find_suppression(*, workspace_id: uuid.UUID, suppression_id: uuid.UUID) -> Suppression | None:
    """The suppression of that id in this workspace, or None."""
    return Suppression.objects.filter(workspace=workspace_id, pk=suppression_id).first()
