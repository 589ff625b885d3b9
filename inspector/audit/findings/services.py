"""What people decide about findings, how a workspace sets its rules, and what it does not want to see.

Each act names who, when and why, and is added to those before it. Nothing is deleted.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from inspector.accounts.models import Membership, Role, User, Workspace
from inspector.accounts.selectors import find_membership
from inspector.database import make_storable
from inspector.intake import jobs
from inspector.intake.models import Job
from inspector.threads.inserting import hold_conversations
from inspector.threads.models import Conversation, Message
from inspector.trail.services import Thing, record_deed

from ..models.findings import Finding, FindingAct, RuleChange, Suppression
from ..rules import RULES, name_rule
from .storing import AWAKE, grade_conversations

MAX_REASON_LENGTH = 2000
# So many findings are judged at once.
MAX_AT_ONCE = 500
_EXAMINE_AT_ONCE = 5000
MAX_SNOOZE_DAYS = 366
# So many people are offered where a finding is assigned.
MAX_ASSIGNABLE = 200


class OvertakenError(ValidationError):
    """That somebody acted on a finding after it was shown to whoever acts on it now: `act` is the latest."""

    def __init__(self, act: FindingAct) -> None:
        stands = f"it is {Finding.State(act.state).label.lower()} now"
        super().__init__(f"it was read before {act.by} acted on it, and {stands}: read it again, then decide")
        self.act = act


@transaction.atomic
def judge(
    *, membership: Membership, findings: Collection[uuid.UUID], state: str, reason: str, seen: str | None = None
) -> int:
    """What an auditor makes of findings: accepted, fixed, a false alarm, or open again. Of how many it was said.

    Args:
        seen: the id of the latest act on the finding as its page showed it, empty for none; None where none was shown.

    Raises:
        PermissionDenied: for a viewer.
        OvertakenError: where another act is the latest by now.
        ValidationError: for an unknown state, too many findings, or one that is closed without a reason.
    """
    membership.require_auditor(membership.workspace_id, "judges findings")
    reason = _check_reason(reason, is_needed=state != Finding.State.OPEN)
    if state not in Finding.State.values:
        raise ValidationError({"state": f"a finding is one of {', '.join(Finding.State.values)}"})
    rows = _select(membership, findings)
    # To open a finding again ends its snooze as well.
    rows = rows.exclude(AWAKE, state=state) if state == Finding.State.OPEN else rows.exclude(state=state)
    conversations = _hold_conversations(rows)
    _check_seen(membership, findings, seen)
    values = {"state": state, "snoozed_until": None}
    held = _act(membership, rows, "finding.judged", values, {"state": state}, reason)
    grade_conversations(conversations)
    return len(held)


@transaction.atomic
def assign(
    *, membership: Membership, findings: Collection[uuid.UUID], assignee: User | None, seen: str | None = None
) -> int:
    """Say who is to look at findings, or that nobody is. Of how many it was said.

    Args:
        seen: as `judge` takes it.

    Raises:
        PermissionDenied: for a viewer.
        OvertakenError: as `judge` does.
        ValidationError: for somebody who may not judge findings here, or too many findings.
    """
    membership.require_auditor(membership.workspace_id, "judges findings")
    if assignee is not None:
        theirs = find_membership(user=assignee, slug=membership.workspace.slug)
        if theirs is None or not theirs.is_auditor:
            raise ValidationError({"assignee": "a finding is assigned to an auditor or an owner of this workspace"})
    _check_seen(membership, findings, seen)
    rows = _select(membership, findings)
    rows = rows.exclude(assignee=None) if assignee is None else rows.exclude(assignee=assignee)
    name = assignee.get_username() if assignee else ""
    return len(_act(membership, rows, "finding.assigned", {"assignee": assignee}, {"assignee": name}, ""))


@transaction.atomic
def snooze(
    *, membership: Membership, findings: Collection[uuid.UUID], until: datetime, reason: str, seen: str | None = None
) -> int:
    """Have open findings left out of lists until a time. Of how many it was said.

    They stay open, and opening them again ends it: the severity of their conversations, sign-offs
    and reports say the same as before.

    Args:
        seen: as `judge` takes it.

    Raises:
        PermissionDenied: for a viewer.
        OvertakenError: as `judge` does.
        ValidationError: for a time that is past or too far, too many findings, or a snooze without a reason.
    """
    membership.require_auditor(membership.workspace_id, "judges findings")
    now = timezone.now()
    if not now < until <= now + timedelta(days=MAX_SNOOZE_DAYS):
        raise ValidationError({"until": f"a finding is snoozed until a time in the next {MAX_SNOOZE_DAYS} days"})
    reason = _check_reason(reason, is_needed=True)
    _check_seen(membership, findings, seen)
    rows = _select(membership, findings).filter(state=Finding.State.OPEN)
    said = {"until": until.isoformat()}
    return len(_act(membership, rows, "finding.snoozed", {"snoozed_until": until}, said, reason))


def list_assignable(*, workspace: Workspace) -> list[User]:
    """The people whom findings of a workspace can be assigned to, by name."""
    roles = [Role.OWNER, Role.AUDITOR]
    members = Membership.objects.filter(workspace=workspace, role__in=roles, user__is_active=True)
    return [each.user for each in members.select_related("user").order_by("user__username")[:MAX_ASSIGNABLE]]


def _select(membership: Membership, findings: Collection[uuid.UUID]) -> QuerySet[Finding]:
    if len(findings) > MAX_AT_ONCE:
        raise ValidationError(f"at most {MAX_AT_ONCE} findings are changed at once")
    return Finding.objects.filter(workspace=membership.workspace_id, pk__in=list(findings))


def _check_seen(membership: Membership, findings: Collection[uuid.UUID], seen: str | None) -> None:
    if seen is None:
        return
    for finding in _select(membership, findings).order_by("pk").select_for_update(of=("self",)):
        latest = FindingAct.objects.select_related("by", "assignee").filter(finding=finding).last()
        if latest is not None and str(latest.pk) != seen:
            raise OvertakenError(latest)


def _act(
    membership: Membership,
    rows: QuerySet[Finding],
    deed: str,
    values: Mapping[str, Any],
    said: Mapping[str, object],
    reason: str,
) -> list[Finding]:
    """Change these findings, and add the act to the history of each and to the audit log.

    Args:
        deed: what it is called in the audit log; the kind of the act is part of it.
        values: what changes of their rows.
        said: the same for the audit log.
    """
    held = list(rows.order_by("pk").select_for_update(of=("self",)))
    if not held:
        return []
    acts = [
        FindingAct(
            finding=finding,
            workspace_id=finding.workspace_id,
            kind=FindingAct.Kind(deed.removeprefix("finding.")),
            state=values.get("state", finding.state),
            assignee=values.get("assignee"),
            until=values.get("snoozed_until"),
            by=membership.user,
            reason=reason,
        )
        for finding in held
    ]
    FindingAct.objects.bulk_create(acts)
    Finding.objects.filter(pk__in=[finding.pk for finding in held]).update(**values)
    first = held[0]
    record_deed(
        deed,
        workspace_id=membership.workspace_id,
        by=membership,
        on=Thing("finding", first.pk, name_rule(first.rule))
        if len(held) == 1
        else Thing("findings", "", str(len(held))),
        about=[*(finding.pk for finding in held), *sorted({finding.conversation_id for finding in held})],
        details={**said, "reason": reason, "rules": sorted({finding.rule for finding in held})},
    )
    return held


@transaction.atomic
def set_rule(*, membership: Membership, rule: str, is_on: bool, severity: int | None, reason: str) -> RuleChange:
    """Switch a rule on or off, or grade it anew, for the whole workspace.

    A grade holds at once; what a rule that was off would have found is looked for in the background, and lists of
    conversations that begin with the worst follow with it.

    Raises:
        PermissionDenied: for all but owners.
        ValidationError: without a reason, for an unknown rule or severity.
    """
    if not membership.is_owner:
        raise PermissionDenied("only an owner sets rules")
    _check_rule(rule)
    if severity is not None and severity not in Message.Severity.values[1:]:
        raise ValidationError({"severity": "a severity is info, notice, warning or error"})
    change = RuleChange.objects.create(
        workspace_id=membership.workspace_id,
        rule=rule,
        is_on=is_on,
        severity=severity,
        by=membership.user,
        reason=_check_reason(reason, is_needed=True),
    )
    found = Finding.objects.filter(workspace=membership.workspace_id, rule=rule)
    if is_on:
        found.update(severity=RULES[rule].rank if severity is None else severity)
    else:
        found.filter(holds=True).update(holds=False, ended_at=timezone.now())
    ask_to_examine_all(workspace_id=membership.workspace_id)
    grade = None if severity is None else Message.Severity(severity).label
    _record_rule("rule.set", membership, rule, {"is_on": is_on, "severity": grade, "reason": change.reason})
    return change


def ask_to_examine_all(*, workspace_id: uuid.UUID) -> None:
    """Have every conversation of a workspace examined again; call inside the transaction that makes it necessary."""
    ids = Conversation.objects.filter(workspace=workspace_id).order_by("pk").values_list("pk", flat=True)
    batch: list[uuid.UUID] = []
    for pk in ids.iterator(chunk_size=_EXAMINE_AT_ONCE):
        batch.append(pk)
        if len(batch) == _EXAMINE_AT_ONCE:
            jobs.ask(kind=Job.Kind.EXAMINE, subjects=batch, workspace_id=workspace_id)
            batch = []
    jobs.ask(kind=Job.Kind.EXAMINE, subjects=batch, workspace_id=workspace_id)
    jobs.wake_workers()


@transaction.atomic
def suppress(
    *, membership: Membership, rule: str, conversation: Conversation | None, sender: str, reason: str
) -> Suppression:
    """Have what a rule finds of a sender, or in a conversation, not shown.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: without a reason, for an unknown rule, or for everything of everybody: that is switching off.
    """
    membership.require_auditor(membership.workspace_id, "judges findings")
    _check_rule(rule)
    if conversation is None and not sender:
        raise ValidationError("name a sender or a conversation: to have a rule found nowhere, an owner switches it off")
    if conversation is not None and conversation.workspace_id != membership.workspace_id:
        raise PermissionDenied("it is another workspace's")
    made = Suppression.objects.create(
        workspace_id=membership.workspace_id,
        rule=rule,
        conversation=conversation,
        sender=sender,
        reason=_check_reason(reason, is_needed=True),
        by=membership.user,
    )
    covered = _find_covered(made)
    conversations = _hold_conversations(covered)
    covered.update(is_suppressed=True)
    grade_conversations(conversations)
    _record_suppression("finding.suppressed", membership, made)
    return made


@transaction.atomic
def lift(*, membership: Membership, suppression: Suppression) -> None:
    """Have what was suppressed shown again, but for what another suppression covers too.

    Raises:
        PermissionDenied: for a viewer or a stranger.
    """
    membership.require_auditor(suppression.workspace_id, "judges findings")
    is_lifted = Suppression.objects.filter(pk=suppression.pk, lifted_at=None).update(
        lifted_by=membership.user, lifted_at=timezone.now()
    )
    covered = _find_covered(suppression)
    conversations = _hold_conversations(covered)
    covered.update(is_suppressed=False)
    for other in Suppression.objects.filter(
        workspace=suppression.workspace_id, rule=suppression.rule, lifted_at=None
    ).exclude(pk=suppression.pk):
        _find_covered(other).update(is_suppressed=True)
    grade_conversations(conversations)
    if is_lifted:
        _record_suppression("finding.suppression-lifted", membership, suppression)


def _record_suppression(code: str, membership: Membership, suppression: Suppression) -> None:
    about = [suppression.pk, *([suppression.conversation_id] if suppression.conversation_id else [])]
    details = {"sender": suppression.sender, "reason": suppression.reason}
    _record_rule(code, membership, suppression.rule, details, about)


def _record_rule(
    code: str, membership: Membership, rule: str, details: Mapping[str, object], about: Collection[uuid.UUID] = ()
) -> None:
    on = Thing("rule", rule, name_rule(rule))
    record_deed(code, workspace_id=membership.workspace_id, by=membership, on=on, about=about, details=details)


def _hold_conversations(findings: QuerySet[Finding]) -> set[uuid.UUID]:
    """Hold the conversations of these findings, as examining does before it writes any; their ids."""
    ids = set(findings.values_list("conversation_id", flat=True))
    hold_conversations(ids)
    return ids


def _find_covered(suppression: Suppression) -> QuerySet[Finding]:
    found = Finding.objects.filter(workspace=suppression.workspace_id, rule=suppression.rule)
    if suppression.conversation_id is not None:
        found = found.filter(conversation=suppression.conversation_id)
    return found.filter(sender=suppression.sender) if suppression.sender else found


def list_open(*, workspace: Workspace, findings: Collection[uuid.UUID]) -> list[uuid.UUID]:
    """Which of these findings stand open."""
    found = Finding.objects.filter(workspace=workspace, pk__in=list(findings), state=Finding.State.OPEN)
    return list(found.order_by("pk").values_list("pk", flat=True)[:MAX_AT_ONCE])


def list_acts(*, finding: Finding) -> Sequence[FindingAct]:
    """What people made of a finding, the first first."""
    return list(FindingAct.objects.select_related("by", "assignee").filter(finding=finding))


def list_decisions(*, findings: Collection[Finding]) -> dict[uuid.UUID, FindingAct]:
    """The latest decision on each of these findings that has one, by the finding's id."""
    acts = FindingAct.objects.select_related("by").filter(finding__in=findings, kind=FindingAct.Kind.JUDGED)
    return {act.finding_id: act for act in acts}


def _check_rule(rule: str) -> None:
    if rule not in RULES:
        raise ValidationError({"rule": f"there is no rule {rule[:60]!r}"})


def _check_reason(reason: str, *, is_needed: bool) -> str:
    reason = make_storable(reason.strip())
    if is_needed and not reason:
        raise ValidationError({"reason": "give a reason in a few words: later readers will see it"})
    if len(reason) > MAX_REASON_LENGTH:
        raise ValidationError({"reason": f"a reason has at most {MAX_REASON_LENGTH:,} characters"})
    return reason
