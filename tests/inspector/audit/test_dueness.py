"""What is a matter of time: it counts when its channel went on long enough, and then everywhere at once."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from inspector import pipeline, worker
from inspector.accounts.sessions import BACKEND
from inspector.audit import alerts
from inspector.audit.alerts import set_webhook
from inspector.audit.findings.examining import note_all_due
from inspector.audit.findings.selectors import count_by_rule, count_open_by_severity, list_findings, list_here
from inspector.audit.models import Alert, Finding, ReviewItem, ReviewQueue
from inspector.audit.overview import count_standing
from inspector.audit.reviews import queues, verdicts
from inspector.intake.models import Door, Job, Record
from inspector.intake.withdrawals import withdraw_delivery
from inspector.search.selectors import find_messages
from inspector.threads.models import Conversation, Message
from tests.inspector.audit.rule_logs.writing import clowl, say

from ..conftest import Cast, deliver, resolve_all
from ..keyring.conftest import write_line, write_payload

pytestmark = pytest.mark.django_db

ASKED = clowl("m1", "REQ", "oscar", "radar").encode()
HANDED = clowl("h1", "DLGT", "oscar", "radar", delegation_mode="transfer").replace('"cid": "c"', '"cid": "h"').encode()
DEADLINE = say(("ada", ".Uf/X{ti:$60s}")).replace('"conversation": "c"', '"conversation": "n"').encode()


def word(minute: float, name: str = "d") -> bytes:
    """A word in another conversation of the channel, so many minutes after the start."""
    return (
        clowl(f"{name}-{minute}", "INF", "eve", "mia", minute=minute).replace('"cid": "c"', f'"cid": "{name}"').encode()
    )


def said_ago(line: bytes, minutes: float) -> bytes:
    """The line, said so many minutes before now."""
    return json.dumps(json.loads(line) | {"ts": int(timezone.now().timestamp() - 60 * minutes)}).encode() + b"\n"


def work_off() -> None:
    """What the workers do, without the sweep: every job but the alerts themselves."""
    for _ in range(50):
        Job.objects.exclude(kind=Job.Kind.ALERT).filter(state=Job.State.QUEUED).update(due_at=timezone.now())
        if not pipeline.run_due(seconds=30, only=tuple(set(Job.Kind.values) - {Job.Kind.ALERT})):
            return


def told(cast: Cast, token: str) -> list[list[str]]:
    """The rules that count, as each reader has it: lists, counts, the conversations' own, search, queue, alert, API."""
    rules = ["unanswered", "delegation-unanswered", "deadline-missed"]
    ids = list(Conversation.objects.values_list("pk", flat=True))
    given = Client().get("/api/v1/findings", headers={"Authorization": f"Bearer {token}"}).json()["results"]
    waiting = ReviewItem.objects.filter(queue__name="Due")
    found = {
        rule: find_messages(workspace=cast.workspace, query=f"rule:{rule}", may_see_secrets=True) for rule in rules
    }
    return [
        sorted(finding.rule for finding in list_findings(workspace=cast.workspace)),
        sorted(count.rule.code for count in count_by_rule(workspace=cast.workspace)),
        sorted(finding.rule for finding in list_here(conversations=ids)),
        sorted(rule for rule in rules if found[rule]),
        sorted(Finding.objects.filter(conversation__in=waiting.values("conversation")).values_list("rule", flat=True)),
        sorted(Alert.objects.filter(state="waiting").values_list("finding__rule", flat=True)),
        sorted(each["rule"] for each in given),
    ]


@pytest.fixture
def readers(cast: Cast) -> ReviewQueue:
    """A queue that such findings fill, and a webhook that is to hear of them."""
    set_webhook(
        membership=cast.owner, address="https://alerts.example/", severity=1, rules=(), site="https://pages.example/"
    )
    return queues.create_queue(
        membership=cast.owner,
        name="Due",
        source="findings",
        severity=3,
        rules=["unanswered", "deadline-missed", "delegation-unanswered"],
    )


def test_what_falls_due_by_time_reaches_every_reader_at_one_sweep(cast: Cast, readers: ReviewQueue, token: str) -> None:
    """Nothing more is said in the conversations themselves: their channel goes on elsewhere, which is all it takes."""
    deliver(cast, ASKED, HANDED, name="a.log")
    deliver(cast, DEADLINE, name="b.log")
    work_off()
    note_all_due()
    assert Finding.objects.filter(holds=True, due_since=None).count() == 3
    assert told(cast, token) == [[]] * 7
    # All these moments are long past by the clock on the wall, which decides nothing.
    deliver(cast, word(59), name="c.log")
    work_off()
    assert note_all_due() == 1
    assert told(cast, token) == [["deadline-missed"]] * 7
    deliver(cast, word(61), name="d.log")
    work_off()
    worker.sweep()
    assert told(cast, token) == [["deadline-missed", "delegation-unanswered", "unanswered"]] * 7
    assert count_open_by_severity(workspace=cast.workspace) == {3: 3}
    assert note_all_due() == 0


def test_any_order_of_arrival_and_noting_gives_the_same(cast: Cast) -> None:
    """Noted after each delivery or at the end alone: what counts depends on what there is, and on nothing else."""
    answer = clowl("m2", "ACK", "radar", "oscar", minute=20, pid="m1").encode()
    for lines, expected in (([ASKED, word(30), word(61)], ["unanswered"]), ([ASKED, word(61), answer], [])):
        for turn, order in enumerate((lines, lines[::-1], lines[1:] + lines[:1])):
            channel = cast.workspace.channels.create(name=f"{len(expected)}-{turn}")
            for number, line in enumerate(order):
                deliver(cast, line, name=f"{turn}-{number}.log", channel=channel)
                if turn < 2:
                    work_off()
                    note_all_due()
            work_off()
            note_all_due()
            rows = list_findings(workspace=cast.workspace)
            assert [each.rule for each in rows if each.channel_id == channel.pk] == expected, order


def test_a_moment_that_is_taken_back_takes_what_was_due_with_it(cast: Cast, readers: ReviewQueue, token: str) -> None:
    deliver(cast, ASKED)
    later = deliver(cast, word(90), name="later.log")
    work_off()
    note_all_due()
    alert = Alert.objects.get()
    assert told(cast, token) == [["unanswered"]] * 7
    withdraw_delivery(membership=cast.auditor, delivery=later, reason="not ours")
    work_off()
    note_all_due()
    assert not list_findings(workspace=cast.workspace)
    assert alerts.try_alert(alert_id=alert.pk) is None
    alert.refresh_from_db()
    assert (alert.state, alert.answers[0]["said"]) == ("dropped", "it is not due any more")
    # Should it fall due again, nobody has heard of it yet.
    deliver(cast, word(91), name="again.log")
    work_off()
    note_all_due()
    assert told(cast, token) == [["unanswered"]] * 7
    assert Alert.objects.count() == 1


def test_what_falls_due_after_a_review_comes_into_the_queue_again(cast: Cast, readers: ReviewQueue) -> None:
    """It was found before the review, and could not be seen by whoever gave it."""
    deliver(cast, ASKED, DEADLINE.replace(b'"conversation": "n"', b'"conversation": "c"'))
    deliver(cast, word(10), name="b.log")
    work_off()
    note_all_due()
    item = ReviewItem.objects.get()
    verdicts.claim(membership=cast.auditor, item=item)
    seen = bytes(item.conversation.settled_digest or b"")
    verdicts.judge_item(membership=cast.auditor, item=item, verdict="fine", comment="", seen=seen, answers=[])
    deliver(cast, word(100), name="c.log")
    work_off()
    note_all_due()
    again = ReviewItem.objects.get(state="waiting")
    assert again.conversation == item.conversation
    assert "never answered" in again.why


def test_a_deadline_that_is_missed_before_its_channel_got_there_is_announced(cast: Cast, readers: ReviewQueue) -> None:
    """Found while it waited for its moment, and decided by an answer that came late: then it is no matter of time."""
    lines = say(("ada", ".ta id=beta {ti:30s}"), ("bob", "!ta id=beta st=done")).encode().splitlines(keepends=True)
    deliver(cast, lines[0])
    work_off()
    note_all_due()
    finding = Finding.objects.get(rule="deadline-missed", holds=True)
    assert (finding.is_due, finding.text) == (
        False,
        "Its deadline, 2026-11-16 09:00:30 UTC, passed; it is not known to be finished.",
    )
    assert not Alert.objects.exists()
    deliver(cast, lines[1], name="b.log")
    work_off()
    finding.refresh_from_db()
    assert (finding.due_at, finding.is_due) == (None, True)
    assert finding.text == "It was finished 30 seconds after its deadline, 2026-11-16 09:00:30 UTC."
    assert [json.loads(alerts.write_body(alert))["finding"]["rule"] for alert in Alert.objects.all()] == [
        "deadline-missed"
    ]


def test_a_finding_says_when_it_became_due(cast: Cast, sign_in: object) -> None:
    deliver(cast, ASKED)
    work_off()
    finding = Finding.objects.get(rule="unanswered")
    client = Client()
    client.force_login(cast.viewer.user, backend="django.contrib.auth.backends.ModelBackend")
    assert "Not due yet" in client.get(f"/w/acme/findings/{finding.pk}/").content.decode()
    deliver(cast, word(90), name="b.log")
    resolve_all()
    finding.refresh_from_db()
    assert finding.due_since is not None
    assert timezone.now() - finding.due_since < timedelta(minutes=5)
    page = client.get(f"/w/acme/findings/{finding.pk}/").content.decode()
    assert "Not due yet" not in page
    assert "Became due" in page


def test_where_machines_post_as_they_speak_silence_counts(cast: Cast) -> None:
    """The request is the last word of each channel, and its hour is over by the clock."""
    for name, door, minutes_ago, counts in (
        ("posted as it was said", Door.API, 50, True),
        ("posted much later", Door.API, 90, False),
        ("a file", Door.UPLOAD, 50, False),
    ):
        channel = cast.workspace.channels.create(name=name)
        deliver(cast, said_ago(ASKED, minutes_ago), door=door, channel=channel)
        work_off()
        finding = Finding.objects.get(channel=channel, rule="unanswered", holds=True)
        note_all_due()
        assert finding.due_at is not None
        is_over = finding.due_at < timezone.now()
        assert bool(list_here(conversations=[finding.conversation_id])) is (counts and is_over), name
        # More than an hour has gone by; the database's clock stands still while a test runs.
        Finding.objects.filter(pk=finding.pk).update(due_at=timezone.now() - timedelta(minutes=15))
        note_all_due()
        assert bool(list_here(conversations=[finding.conversation_id])) is counts, name
    # It has waited by the clock: an hour until it was due, and these minutes.
    client = Client()
    client.force_login(cast.viewer.user, backend=BACKEND)
    overview = client.get("/w/acme/overview/").content.decode()
    assert re.search(r"no known answer for <span[^>]*>1 h 15 min", overview)
    # A file that tells of later hours ends the listening: what it leaves open may go on in the next file.
    channel = cast.workspace.channels.get(name="posted as it was said")
    deliver(cast, said_ago(word(0), 20), channel=channel)
    work_off()
    note_all_due()
    assert [each.rule for each in list_findings(workspace=cast.workspace) if each.channel_id == channel.pk] == []


def test_a_request_whose_reply_may_be_sealed_waits_by_the_same_clock(cast: Cast) -> None:
    """As `unanswered` does: by the clock on the wall where its channel is listened to, and fell silent."""
    for name, door, minutes_to_post, counts in (
        # The sealed message is a request as well.
        ("posted as it was said", Door.API, 5, 2),
        ("posted much later", Door.API, 70, 0),
        ("a file", Door.UPLOAD, 5, 0),
    ):
        channel = cast.workspace.channels.create(name=name)
        asked_at = timezone.now() - timedelta(minutes=90)
        sealed = write_line(write_payload(b"n" * 12, b"s" * 32), "s", "c", at=f"{asked_at - timedelta(minutes=1)}")
        asked = {"raw": "?Uk/co", "from": "a", "to": ["b"], "conversation": "c", "dialect": "lambda_lang"}
        deliver(cast, sealed + b"\n", json.dumps(asked | {"at": f"{asked_at}"}).encode(), door=door, channel=channel)
        work_off()
        Record.objects.filter(channel=channel).update(created_at=F("order_time") + timedelta(minutes=minutes_to_post))
        assert Message.objects.filter(channel=channel, is_sealed=True).count() == 1
        maybe = count_standing(workspace=cast.workspace, channel=channel).maybe_answered
        assert maybe == counts, name
        found = find_messages(
            workspace=cast.workspace, query=f'is:maybe-answered channel:"{name}"', may_see_secrets=True
        )
        assert len(found) == counts, name
