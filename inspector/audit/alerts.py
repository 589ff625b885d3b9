"""Alerts: the webhook of a workspace as its owner sets it, the outbox that findings are written into, and sending: one
signed request for each, tried again after growing pauses, and in the end given up.

The secret of a webhook is derived from SECRET_KEY and a salt, so that nobody who reads the database can sign. With
another SECRET_KEY it cannot be made any more; its digest shows that, and a new one is asked for.

Whoever sends holds a lock of its database session for the webhook, so that at most one worker waits for it. One that
fails keeps all its alerts back for a while: what is dead costs one try now and then, and no worker's time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import Membership, make_id
from inspector.database import make_storable
from inspector.intake import jobs
from inspector.intake.liveness import alone
from inspector.intake.models import Job
from inspector.threads.models import Message
from inspector.trail.services import Thing, record_deed

from . import calls
from .calls import CallError, read_address, read_host
from .models.findings import Alert, Finding, Webhook
from .rules import RULES, name_rule

ID_HEADER = "Inspector-Id"
TIME_HEADER = "Inspector-Timestamp"
SIGNATURE_HEADER = "Inspector-Signature"


def derive_secret(salt: bytes) -> str:
    """The secret of this salt, as it is shown once."""
    made = hmac.digest(settings.SECRET_KEY.encode(), b"inspector webhook secret " + salt, "sha256")
    return f"whsec_{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


def digest_secret(secret: str) -> bytes:
    """What shows that a secret is the one that was shown."""
    return hashlib.sha256(secret.encode()).digest()


def sign(*, secret: str, timestamp: int, body: bytes) -> str:
    """The value of the header: `v1=` and the code over the time in seconds, a full stop, and the exact body."""
    return f"v1={hmac.new(secret.encode(), b'%d.%b' % (timestamp, body), 'sha256').hexdigest()}"


# The pause after each failure of a webhook in a row; the last one goes on.
PAUSES_SECONDS: Final = (5, 30, 120, 600, 1800, 3600)
# An alert is tried so often; a webhook that failed so often, for so long, is switched off.
MAX_TRIES: Final = 8
MAX_FAILURES: Final = 12
MAX_FAILURE_LENGTH: Final = timedelta(hours=6)
MAX_SAID_LENGTH: Final = 300
BUSY_SECONDS: Final = 1.0
# The first half of the lock's key; the second is of the webhook.
_LOCK_SPACE: Final = 0x41_4C_52_54


def try_alert(*, alert_id: uuid.UUID) -> float | None:
    """Send an alert, if it is still to be sent; after how many seconds to try again, or None where nothing is left.

    No transaction is open while the other side is waited for.
    """
    alert = Alert.objects.select_related("webhook", "workspace", "finding").filter(pk=alert_id).first()
    if alert is None or alert.state != Alert.State.WAITING:
        return None
    reason = _find_obstacle(alert)
    if reason:
        _end(alert, Alert.State.DROPPED, reason)
        return None
    until, now = alert.webhook.paused_until, timezone.now()
    if until is not None and until > now:
        return (until - now).total_seconds()
    with alone(_LOCK_SPACE << 32 | int.from_bytes(alert.webhook_id.bytes[12:])) as is_alone:
        if not is_alone:
            return BUSY_SECONDS
        status, said = _call(alert)
    return _note(alert, status, said)


def _find_obstacle(alert: Alert) -> str:
    """Why it is not to be told any more; empty where it is."""
    if not alert.webhook.is_on:
        return "alerts were switched off"
    finding = alert.finding
    if finding is not None and not finding.holds:
        return "it no longer holds"
    if finding is not None and finding.is_suppressed:
        return "it was suppressed"
    if finding is not None and not finding.is_due:
        return "it is not due any more"
    return ""


def _call(alert: Alert) -> tuple[int, str]:
    """The status of the answer and what it said; 0 where there was none."""
    secret = derive_secret(bytes(alert.webhook.salt))
    if digest_secret(secret) != bytes(alert.webhook.secret_digest):
        return 0, "the secret cannot be made any more, for SECRET_KEY is another one: make a new secret"
    body, now = write_body(alert), int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "agent-conversation-inspector",
        ID_HEADER: str(alert.pk),
        TIME_HEADER: str(now),
        SIGNATURE_HEADER: sign(secret=secret, timestamp=now, body=body),
    }
    try:
        answer = calls.post(address=alert.webhook.address, body=body, headers=headers)
    except calls.CallError as error:
        return 0, str(error)
    return answer.status, "a redirect, which is not followed" if 300 <= answer.status < 400 else answer.said


def write_body(alert: Alert) -> bytes:
    """The body: ids, rule, severity, title and links. Not a word of a message is in it."""
    finding = alert.finding
    said: dict[str, Any] = {
        "id": str(alert.pk),
        "kind": "test" if finding is None else "finding",
        "workspace": alert.workspace.slug,
        "sent_for": alert.created_at.isoformat(),
    }
    if finding is not None:
        said["finding"] = _describe(finding, alert)
    return json.dumps(said, ensure_ascii=True).encode()


def _describe(finding: Finding, alert: Alert) -> dict[str, Any]:
    site, slug = alert.webhook.site.rstrip("/"), alert.workspace.slug
    return {
        "id": str(finding.pk),
        "rule": finding.rule,
        "severity": finding.get_severity_display().lower(),
        "title": name_rule(finding.rule),
        "conversation": str(finding.conversation_id),
        "record": str(finding.record_id),
        "part": finding.part,
        "message_at": finding.at.isoformat(),
        "found_at": finding.found_at.isoformat(),
        "url": f"{site}{reverse('pages:finding', args=[slug, finding.pk])}",
        "conversation_url": f"{site}{reverse('pages:conversation', args=[slug, finding.conversation_id])}",
    }


@transaction.atomic
def _note(alert: Alert, status: int, said: str) -> float | None:
    """Keep the answer, and what it means for the alert and its webhook; as `try_alert`."""
    now = timezone.now()
    webhook = Webhook.objects.select_for_update(no_key=True).get(pk=alert.webhook_id)
    held = Alert.objects.select_for_update(no_key=True).get(pk=alert.pk)
    held.answers = [*held.answers, {"at": now.isoformat(), "status": status, "said": _cut(said)}]
    if 200 <= status < 300:
        webhook.failures, webhook.failing_since, webhook.paused_until = 0, None, None
        webhook.save(update_fields=["failures", "failing_since", "paused_until"])
        held.state, held.next_at = Alert.State.DELIVERED, None
        held.save(update_fields=["answers", "state", "next_at"])
        return None
    pause = PAUSES_SECONDS[min(webhook.failures, len(PAUSES_SECONDS) - 1)]
    webhook.failures += 1
    webhook.failing_since = webhook.failing_since or now
    webhook.paused_until = now + timedelta(seconds=pause)
    if webhook.failures >= MAX_FAILURES and now - webhook.failing_since >= MAX_FAILURE_LENGTH:
        webhook.is_on = False
        webhook.off_because = f"it failed {webhook.failures} times since {webhook.failing_since:%Y-%m-%d %H:%M} UTC"
    webhook.save(update_fields=["failures", "failing_since", "paused_until", "is_on", "off_because"])
    # A test is a question of now: it is tried once.
    is_over = not webhook.is_on or held.finding_id is None or len(held.answers) >= MAX_TRIES
    held.state = Alert.State.FAILED if is_over else Alert.State.WAITING
    held.next_at = None if is_over else webhook.paused_until
    held.save(update_fields=["answers", "state", "next_at"])
    # The other alerts of this webhook wait as well.
    waiting = Job.objects.filter(kind=Job.Kind.ALERT, workspace=webhook.workspace_id, state=Job.State.QUEUED)
    free = waiting.filter(due_at__lt=webhook.paused_until).select_for_update(skip_locked=True).values("pk")
    Job.objects.filter(pk__in=free).update(due_at=webhook.paused_until)
    if not webhook.is_on:
        record_deed(
            "alerts.switched-off",
            workspace_id=webhook.workspace_id,
            on=Thing("alerts", webhook.pk, calls.read_host(webhook.address)),
            details={"because": webhook.off_because},
        )
    return None if is_over else float(pause)


def _end(alert: Alert, state: str, reason: str) -> None:
    answers = [*alert.answers, {"at": timezone.now().isoformat(), "status": 0, "said": reason}]
    rows = Alert.objects.filter(pk=alert.pk, state=Alert.State.WAITING)
    rows.update(state=state, answers=answers, next_at=None)


def _cut(said: str) -> str:
    text = make_storable(" ".join(said.split()))
    return text if len(text) <= MAX_SAID_LENGTH else f"{text[: MAX_SAID_LENGTH - 1]}…"


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
    webhook.salt = secrets.token_bytes(16)
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
