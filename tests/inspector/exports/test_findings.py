"""Findings are exported as the list shows them: one a row, masked, safe in a spreadsheet, narrowed by its filters."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inspector.audit.findings.selectors import select_findings
from inspector.audit.findings.services import assign, judge, snooze
from inspector.audit.models import Finding
from inspector.exports.forms import FINDING_COLUMNS, MAX_FINDING_BYTES
from inspector.exports.models import Export
from inspector.exports.selectors import make_manifest
from inspector.intake.models import Delivery
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Message
from tests.inspector.conftest import Cast, deliver, resolve_all

from .conftest import ask, make, read

pytestmark = pytest.mark.django_db

TOKEN = "sk_live_" + "4Rk7pWq2Zt9Lm3Xv8Nc1Yb6D"


def say(mid: str, sender: str, words: str, **more: object) -> bytes:
    said = {"clowl": "0.2", "mid": mid, "ts": 1795118400, "p": "REQ", "from": sender, "to": "radar", "cid": "c1"}
    return json.dumps(said | {"body": {"t": "look", "d": {"q": words}}} | more).encode() + b"\n"


LEAK = say("m1", "=HYPERLINK(1)", f"use {TOKEN} for it")
ORPHAN = say("m2", "oscar", "tea", pid="gone")


def rows_of(export: Export) -> list[dict[str, Any]]:
    if export.form == Export.Form.CSV:
        return list(csv.DictReader(io.StringIO(read(export).decode(), newline="")))
    return [json.loads(line) for line in read(export).splitlines()]


def export_findings(cast: Cast, *, form: str = "jsonl", **named: str) -> Export:
    return make(
        ask(cast, form=form, is_masked=named.pop("is_masked", "yes") == "yes", filters=named, has_findings=True)
    )


@pytest.fixture
def delivery(cast: Cast) -> Delivery:
    brought = deliver(cast, LEAK, ORPHAN, name="night.log")
    resolve_all()
    return brought


def test_each_finding_is_a_row_in_both_forms(cast: Cast, delivery: Delivery) -> None:
    found = select_findings(workspace=cast.workspace, state="open")
    assert {"token-in-clear", "missing-message"} <= set(found.values_list("rule", flat=True))
    leak = found.get(rule="token-in-clear")
    assign(membership=cast.auditor, findings=[leak.pk], assignee=cast.owner.user)
    for form in ("csv", "jsonl"):
        export = export_findings(cast, form=form, state="open")
        rows = rows_of(export)
        assert export.rows == len(rows) == found.count()
        assert export.file_name.startswith("findings-")
        assert {row["id"] for row in rows} == {str(pk) for pk in found.values_list("pk", flat=True)}
        assert all(list(row) == list(FINDING_COLUMNS) for row in rows)
        row = next(row for row in rows if row["rule"] == "token-in-clear")
        assert (row["title"], row["severity"], row["state"]) == ("Exposed secret", "error", "open")
        assert (row["text"], row["assignee"], row["conversation"]) == (leak.text, "olivia", str(leak.conversation_id))
        orphan = next(row for row in rows if row["rule"] == "missing-message")
        assert orphan["english"].startswith(Message.objects.get(pk=orphan["message"]).english)
        assert "Caution: " in row["english"]
        assert make_manifest(export)["filters"] == {"state": "open"}
        assert "One row for each finding" in make_manifest(export)["about"]["set"]


def test_secrets_are_masked_unless_asked_for(cast: Cast, delivery: Delivery) -> None:
    for form in ("csv", "jsonl"):
        masked, exact = (export_findings(cast, form=form, is_masked=wanted) for wanted in ("yes", "no"))
        assert TOKEN.encode() not in read(masked)
        assert TOKEN.encode() in read(exact)
        assert rows_of(masked)[0]["sha256"] == rows_of(exact)[0]["sha256"]
        assert masked.masked == 1
    assert export_findings(cast, is_masked="no").is_masked is False
    export = make(ask(cast, membership=cast.viewer, filters={}, has_findings=True))
    assert export.is_masked
    assert TOKEN.encode() not in read(export)


def test_no_cell_begins_a_formula(cast: Cast, delivery: Delivery) -> None:
    leak = Finding.objects.get(rule="token-in-clear")
    judge(membership=cast.auditor, findings=[leak.pk], state="fixed", reason='=1+1, "revoked"')
    rows = rows_of(export_findings(cast, form="csv"))
    row = next(row for row in rows if row["rule"] == "token-in-clear")
    assert (row["sender"], row["reason"]) == ("'=HYPERLINK(1)", '\'=1+1, "revoked"')
    assert (row["decided_by"], row["state"]) == ("amir", "fixed")
    assert not [cell for row in rows for cell in row.values() if cell[:1] in ("=", "+", "-", "@", "\t")]


def test_the_filters_of_the_list_narrow_it(cast: Cast, delivery: Delivery) -> None:
    leak, orphan = (Finding.objects.get(rule=rule) for rule in ("token-in-clear", "missing-message"))
    assign(membership=cast.auditor, findings=[orphan.pk], assignee=cast.auditor.user)
    snooze(membership=cast.auditor, findings=[leak.pk], until=timezone.now() + timedelta(days=1), reason="later")
    deliver(cast, say("m9", "eve", "tea", pid="lost", cid="c9"), name="other.log")
    resolve_all()

    def find(**named: str) -> set[str]:
        return {row["id"] for row in rows_of(export_findings(cast, **named))}

    ids = {str(leak.pk), str(orphan.pk)}
    assert str(leak.pk) not in find(state="open")
    assert find(state="snoozed") == {str(leak.pk)}
    assert find(rule="token-in-clear") == {str(leak.pk)}
    assert find(assignee=str(cast.auditor.user_id)) == {str(orphan.pk)}
    assert str(orphan.pk) not in find(assignee="nobody")
    assert find(q="exposed", severity="error") == {str(leak.pk)}
    assert ids <= find(delivery=str(delivery.pk)) == find(conversation=str(leak.conversation_id))
    assert find(channel="main") == find() > find(delivery=str(delivery.pk))


def test_the_text_of_a_long_message_is_not_in_each_row_about_it(cast: Cast) -> None:
    deliver(cast, say("m1", "oscar", "x" * MAX_FINDING_BYTES, pid="gone"))
    resolve_all()
    row = next(row for row in rows_of(export_findings(cast, is_masked="no")) if row["rule"] == "missing-message")
    assert (row["raw"], row["english"]) == (None, None)
    assert row["text"]


def test_a_withdrawn_message_takes_its_findings_with_it(cast: Cast, delivery: Delivery) -> None:
    withdraw_delivery(membership=cast.owner, delivery=delivery, reason="by mistake")
    resolve_all()
    export = export_findings(cast)
    assert (export.rows, export.messages) == (0, 0)
