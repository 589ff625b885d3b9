"""Writes of alerts: the webhook of a workspace as its owner sets it, and the outbox that findings are written into."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.utils import timezone

from inspector.accounts.models import Membership, make_id
from inspector.intake import jobs
from inspector.intake.models import Job
from inspector.threads.models import Message

from ..models.alerts import Alert, Webhook
from ..rules import RULES
from ..trail import Thing, record_deed
from .calls import CallError, read_address, read_host
from .sending import derive_secret, digest_secret, make_salt

MAX_WAITING_TESTS: Final = 5


def announce(fresh: Sequence[Mapping[str, Any]]) -> None:
    """Write those of these findings into the outbox that a webhook is to hear of; call it in their transaction.

    A finding is told once. One that was dropped before anybody heard of it, and came back, is told after all.

    Args:
        fresh: what was just found or has just become due, by column, all of one workspace. Needed are id,
            workspace_id, rule, severity and is_suppressed.
    """
    if not fresh:
        return
    workspace_id = fresh[0]["workspace_id"]
    webhook = Webhook.objects.filter(workspace=workspace_id, is_on=True).first()
    if webhook is None:
        return
    wanted = {
        row["id"]
        for row in fresh
        if (not webhook.rules or row["rule"] in webhook.rules)
        and row["severity"] >= webhook.severity
        and not row["is_suppressed"]
    }
    known = {alert.finding_id: alert for alert in Alert.objects.filter(webhook=webhook, finding__in=wanted)}
    made = [
        Alert(id=make_id(), workspace_id=workspace_id, webhook=webhook, finding_id=finding_id)
        for finding_id in sorted(wanted - known.keys())
    ]
    Alert.objects.bulk_create(made)
    dropped = [alert.pk for alert in known.values() if alert.state == Alert.State.DROPPED]
    Alert.objects.filter(pk__in=dropped).update(state=Alert.State.WAITING, next_at=None)
    if made or dropped:
        subjects = [*(alert.pk for alert in made), *dropped]
        jobs.ask(kind=Job.Kind.ALERT, subjects=subjects, workspace_id=workspace_id)
        jobs.wake_workers()


@transaction.atomic
def set_webhook(
    *, membership: Membership, address: str, severity: int, rules: Collection[str], site: str
) -> tuple[Webhook, str | None]:
    """Set where new findings are told; a webhook that is new comes with its secret, to be seen this once.

    Another address has a new secret too: whoever has the old one is not whom it was made for.

    Raises:
        PermissionDenied: for all but owners.
        ValidationError: for an address that cannot be one, an unknown severity or rule.
    """
    _require_owner(membership)
    try:
        read_address(address)
    except CallError as error:
        raise ValidationError({"address": f"{str(error)[:1].upper()}{str(error)[1:]}."}) from error
    if severity not in Message.Severity.values[1:]:
        raise ValidationError({"severity": "a severity is info, notice, warning or error"})
    if set(rules) - RULES.keys():
        raise ValidationError({"rules": "there is no such rule"})
    webhook = Webhook.objects.select_for_update(no_key=True).filter(workspace=membership.workspace_id).first()
    is_new = webhook is None or webhook.address != address
    webhook = webhook or Webhook(workspace_id=membership.workspace_id)
    webhook.address, webhook.severity, webhook.rules, webhook.site = address, severity, sorted(set(rules)), site
    webhook.set_by, webhook.set_at = membership.user, timezone.now()
    secret = _renew(webhook) if is_new else None
    _start_anew(webhook)
    webhook.save()
    grade = Message.Severity(severity).label
    _record("alerts.set", membership, webhook, {"severity": grade, "rules": webhook.rules})
    return webhook, secret


@transaction.atomic
def renew_secret(*, membership: Membership) -> str:
    """A new secret, to be seen this once; the old one signs nothing any more.

    Raises:
        PermissionDenied: for all but owners.
        ValidationError: where there is no webhook.
    """
    webhook = _hold(membership)
    secret = _renew(webhook)
    webhook.save(update_fields=["salt", "secret_digest"])
    _record("alerts.secret-made", membership, webhook, {})
    return secret


@transaction.atomic
def switch_webhook(*, membership: Membership, is_on: bool) -> Webhook:
    """Switch alerts on or off. What is found while they are off is not told later.

    Raises:
        PermissionDenied: for all but owners.
        ValidationError: where there is no webhook.
    """
    webhook = _hold(membership)
    _start_anew(webhook)
    webhook.is_on = is_on
    webhook.save(update_fields=["is_on", "off_because", "failures", "failing_since", "paused_until"])
    _record("alerts.switched", membership, webhook, {"is_on": is_on})
    return webhook


@transaction.atomic
def ask_for_test(*, membership: Membership) -> Alert:
    """Have the worker send a test, once.

    Raises:
        PermissionDenied: for all but owners.
        ValidationError: where there is no webhook, it is off, or several tests wait already.
    """
    webhook = _hold(membership)
    if not webhook.is_on:
        raise ValidationError("Alerts are switched off: switch them on first.")
    waiting = Alert.objects.filter(webhook=webhook, finding=None, state=Alert.State.WAITING)
    if waiting.count() >= MAX_WAITING_TESTS:
        raise ValidationError("Several tests wait to be sent: see first what becomes of them.")
    # A test is to be sent now, also to what has failed before.
    Webhook.objects.filter(pk=webhook.pk).update(paused_until=None)
    alert = Alert.objects.create(workspace_id=webhook.workspace_id, webhook=webhook)
    jobs.ask(kind=Job.Kind.ALERT, subjects=[alert.pk], workspace_id=webhook.workspace_id)
    jobs.wake_workers()
    _record("alerts.tested", membership, webhook, {})
    return alert


def find_webhook(*, workspace_id: uuid.UUID) -> Webhook | None:
    """The webhook of a workspace, or None."""
    return Webhook.objects.select_related("set_by").filter(workspace=workspace_id).first()


def _hold(membership: Membership) -> Webhook:
    _require_owner(membership)
    webhook = Webhook.objects.select_for_update(no_key=True).filter(workspace=membership.workspace_id).first()
    if webhook is None:
        raise ValidationError("Say first where alerts are to go.")
    return webhook


def _renew(webhook: Webhook) -> str:
    webhook.salt = make_salt()
    secret = derive_secret(bytes(webhook.salt))
    webhook.secret_digest = digest_secret(secret)
    return secret


def _start_anew(webhook: Webhook) -> None:
    webhook.is_on, webhook.off_because = True, ""
    webhook.failures, webhook.failing_since, webhook.paused_until = 0, None, None


def _require_owner(membership: Membership) -> None:
    if not membership.is_owner:
        raise PermissionDenied("only an owner sets alerts")


def _record(code: str, membership: Membership, webhook: Webhook, details: Mapping[str, Any]) -> None:
    host = read_host(webhook.address)
    record_deed(
        code, workspace_id=webhook.workspace_id, by=membership, on=Thing("alerts", webhook.pk, host), details=details
    )
