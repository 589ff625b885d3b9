"""What is shown as evidence is compared with what was entered: nothing that was changed since passes as genuine."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from inspector.audit.comments import write_comment
from inspector.audit.models import Comment, Review
from inspector.audit.reviews.verdicts import give_verdict
from inspector.exports.selectors import make_manifest
from inspector.intake.models import Record
from inspector.ledger.models import LedgerEntry
from inspector.ledger.proofs import find_changed
from inspector.ledger.sequencing import enter_new
from inspector.threads.models import Conversation, Message

from ..conftest import Cast, deliver, resolve_all
from ..exports.conftest import ask, make, read

PLAIN = b'{"clowl":"0.2","mid":"m1","p":"INF","from":"oscar","to":["radar"],"cid":"c1","body":{"t":"paid 100"}}'
FORGED = PLAIN.replace(b"100", b"900")


@pytest.fixture
def record(cast: Cast) -> Record:
    deliver(cast, PLAIN)
    resolve_all()
    enter_new(at_once=True)
    return Record.objects.get()


def forge(record: Record) -> int:
    """Change a record's bytes past the product; the index of its entry."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE intake_record SET source = %s WHERE id = %s", [FORGED, record.pk])
        assert cursor.rowcount == 1
    return LedgerEntry.objects.get(kind="record", subject=record.pk).index


def test_only_what_was_changed_is_found(cast: Cast, record: Record) -> None:
    deliver(cast, PLAIN.replace(b"m1", b"m2"))
    late = Record.objects.exclude(pk=record.pk).get()
    assert find_changed("record", [record.pk, late.pk]) == {}
    index = forge(record)
    assert find_changed("record", [record.pk, late.pk]) == {record.pk: index}


def test_changed_bytes_are_not_given_as_the_records(cast: Cast, record: Record, token: str, sign_in: Any) -> None:
    index = forge(record)
    answer = Client().get(f"/api/v1/records/{record.pk}/raw", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 409
    assert "X-Source-SHA256" not in answer
    assert answer.json()["index"] == index
    assert f"changed after it was entered in the ledger as entry {index}" in answer.json()["detail"]
    page = sign_in(cast.auditor).get(reverse("pages:raw", args=["acme", record.pk]))
    assert page.status_code == 409
    assert b"changed after it was entered" in page.content
    assert b"900" not in page.content


def test_a_messages_page_says_that_its_bytes_were_changed(cast: Cast, record: Record, sign_in: Any) -> None:
    client, message = sign_in(cast.auditor), Message.objects.get()
    address, words = reverse("pages:message", args=["acme", message.pk]), "not the bytes that were received"
    assert words not in client.get(address).content.decode()
    forge(record)
    page = client.get(address).content.decode()
    assert words in page
    assert "not as entered" in page


def judge(cast: Cast, conversation: Conversation) -> Review:
    seen = bytes(conversation.settled_digest or b"")
    return give_verdict(
        membership=cast.auditor,
        conversation=conversation,
        verdict=Review.Verdict.VIOLATION,
        comment="it was paid twice",
        seen=seen,
    )


def test_a_swapped_verdict_is_not_shown_as_given(cast: Cast, record: Record, sign_in: Any) -> None:
    conversation = Conversation.objects.get()
    review = judge(cast, conversation)
    enter_new(at_once=True)
    client, address = sign_in(cast.auditor), reverse("pages:conversation", args=["acme", conversation.pk])
    assert "Not the verdict that was given" not in client.get(address).content.decode()
    Review.objects.filter(pk=review.pk).update(verdict=Review.Verdict.FINE)
    assert "Not the verdict that was given" in client.get(address).content.decode()


def test_exports_and_reports_say_what_was_changed(cast: Cast, record: Record) -> None:
    """In each form the changed record is marked and has no digest, and the one beside it is as it was."""
    deliver(cast, PLAIN.replace(b"m1", b"m2"))
    resolve_all()
    conversation = Conversation.objects.get()
    review = judge(cast, conversation)
    start, end = PLAIN.index(b"paid"), PLAIN.index(b"100") + 3
    comment = write_comment(membership=cast.auditor, message=_first(record), start=start, end=end, words="how much?")
    enter_new(at_once=True)

    def write() -> tuple[list[bool], list[str], str]:
        lines, cells = make(ask(cast)), make(ask(cast, form="csv"))
        said = [json.loads(line)["inspected"] for line in read(lines).splitlines()]
        rows = list(csv.DictReader(io.StringIO(read(cells).decode("utf-8-sig"))))
        changed = [each["is_changed"] for each in said]
        assert [each["sha256"] is None for each in said] == changed
        assert [row["inspector.sha256"] == "" for row in rows] == changed
        assert make_manifest(lines)["changed_messages"] == make_manifest(cells)["changed_messages"] == sum(changed)
        report = make(ask(cast, form="html", conversation_id=conversation.pk, title="c", is_masked=True))
        assert report.changed == sum(changed)
        return sorted(changed), sorted(row["inspector.is_changed"] for row in rows), read(report).decode()

    changed, cells, report = write()
    assert (changed, cells) == ([False, False], ["no", "no"])
    assert "was changed after it was entered" not in report
    index = forge(record)
    Review.objects.filter(pk=review.pk).update(verdict=Review.Verdict.FINE)
    Comment.objects.filter(pk=comment.pk).update(words="all is well")
    changed, cells, report = write()
    assert (changed, cells) == ([False, True], ["no", "yes"])
    assert f"this record was changed after it was entered in the ledger as entry {index}" in report
    for kind in ("record", "verdict", "comment"):
        assert report.count(f"this {kind} was changed after it was entered") == 1, kind


def _first(record: Record) -> Message:
    return Message.objects.select_related("record", "conversation").get(record=record)
