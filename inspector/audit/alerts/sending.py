"""Sending alerts: one signed request for each, tried again after growing pauses, and in the end given up.

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
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from inspector.intake.liveness import own_session
from inspector.intake.models import Job
from inspector.intake.text import make_storable

from ..models.alerts import Alert, Webhook
from ..models.findings import Finding
from ..rules import RULES
from ..trail import Thing, record_deed
from . import calls

ID_HEADER = "Inspector-Id"
TIME_HEADER = "Inspector-Timestamp"
SIGNATURE_HEADER = "Inspector-Signature"


def make_salt() -> bytes:
    """What a new secret is made with."""
    return secrets.token_bytes(16)


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
# The first half of the advisory lock's key; the second is of the webhook.
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
    pause = _find_pause(alert.webhook)
    if pause:
        return pause
    with _alone(alert.webhook) as is_alone:
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


def _find_pause(webhook: Webhook) -> float:
    until = webhook.paused_until
    return max(0.0, (until - timezone.now()).total_seconds()) if until else 0.0


@contextmanager
def _alone(webhook: Webhook) -> Iterator[bool]:
    key = [_LOCK_SPACE, int.from_bytes(webhook.pk.bytes[12:], signed=True)]
    with own_session().cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
        is_alone = bool(cursor.fetchone()[0])
        try:
            yield is_alone
        finally:
            if is_alone:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)


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
    rule = RULES.get(finding.rule)
    return {
        "id": str(finding.pk),
        "rule": finding.rule,
        "severity": finding.get_severity_display().lower(),
        "title": rule.title if rule else finding.rule,
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
    _keep_back(webhook, webhook.paused_until)
    if not webhook.is_on:
        record_deed(
            "alerts.switched-off",
            workspace_id=webhook.workspace_id,
            on=Thing("alerts", webhook.pk, calls.read_host(webhook.address)),
            details={"because": webhook.off_because},
        )
    return None if is_over else float(pause)


def _keep_back(webhook: Webhook, until: datetime) -> None:
    """Let the other alerts of this webhook wait as well, in one statement."""
    waiting = Job.objects.filter(kind=Job.Kind.ALERT, workspace=webhook.workspace_id, state=Job.State.QUEUED)
    free = waiting.filter(due_at__lt=until).select_for_update(skip_locked=True).values("pk")
    Job.objects.filter(pk__in=free).update(due_at=until)


def _end(alert: Alert, state: str, reason: str) -> None:
    answers = [*alert.answers, {"at": timezone.now().isoformat(), "status": 0, "said": reason}]
    rows = Alert.objects.filter(pk=alert.pk, state=Alert.State.WAITING)
    rows.update(state=state, answers=answers, next_at=None)


def _cut(said: str) -> str:
    text = make_storable(" ".join(said.split()))
    return text if len(text) <= MAX_SAID_LENGTH else f"{text[: MAX_SAID_LENGTH - 1]}…"
