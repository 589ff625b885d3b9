"""Reports: what stands in one, what is kept from whoever may not see it, how its hashes are checked, and its memory."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tracemalloc
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from inspector import pipeline
from inspector.audit.comments import reply, turn, withdraw, write_comment
from inspector.audit.findings.services import assign, judge
from inspector.audit.models import Binding, Finding, Review
from inspector.audit.reviews.verdicts import give_verdict
from inspector.exports import making
from inspector.exports.making import read_file
from inspector.exports.models import Export
from inspector.exports.reports import POLICY, STYLE
from inspector.intake import jobs
from inspector.intake.models import Job
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Conversation, Message
from tests.inspector.conftest import Cast, deliver, resolve_all

from .conftest import ask, make, read

pytestmark = pytest.mark.django_db

TOKEN = "hunter2-hunter2"
HOSTILE = "</pre><script>alert(1)</script>\u202e"


def say(number: int, **more: Any) -> bytes:
    given = {"clowl": "0.2", "mid": f"m{number}", "ts": 1795251600 + number, "tid": "t", "p": "INF", "from": "oscar"}
    given |= {"to": "radar", "cid": "c", "body": {"t": "note", "d": {"q": f"words {number}"}}} | more
    return json.dumps(given, separators=(",", ":")).encode() + b"\n"


@pytest.fixture
def conversation(cast: Cast) -> Conversation:
    deliver(
        cast,
        say(1, p="REQ", auth={"issuer": "gate", "token": TOKEN}),
        say(2, body={"t": HOSTILE}, pid="nowhere"),
        name="log.jsonl",
    )
    resolve_all()
    return Conversation.objects.get(native_id="c")


def report(cast: Cast, conversation: Conversation, **names: Any) -> str:
    return read(make(ask(cast, form="html", conversation_id=conversation.pk, title="c", **names))).decode()


def message(native_id: str) -> Message:
    return Message.objects.select_related("record", "conversation").get(native_id=native_id)


class _Tags(HTMLParser):
    """Which elements and attributes a file has."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_it_tells_everything_that_is_known(cast: Cast, conversation: Conversation) -> None:
    first = message("m1")
    start = first.record.wire_text.index("oscar")
    comment = write_comment(membership=cast.auditor, message=first, start=start, end=start + 5, words="Who is <b>it?")
    said = reply(membership=cast.owner, comment=comment, message=first, words="Our own.")
    other = reply(membership=cast.owner, comment=comment, message=first, words="Taken back words.")
    withdraw(membership=cast.owner, comment=comment, reply_id=other.pk)
    turn(membership=cast.owner, comment=comment, kind="resolved")
    finding = Finding.objects.get(rule="missing-message")
    assign(membership=cast.auditor, findings=[finding.pk], assignee=cast.owner.user)
    judge(membership=cast.auditor, findings=[finding.pk], state="accepted", reason="it is an excerpt")
    give_verdict(
        membership=cast.auditor,
        conversation=conversation,
        verdict=Review.Verdict.CONCERN,
        comment="See m2.",
        seen=bytes(conversation.settled_digest or b""),
    )
    text = unescape(report(cast, conversation))
    for each in Message.objects.filter(conversation=conversation).select_related("record"):
        assert hashlib.sha256(bytes(each.record.source)).hexdigest() in text
    assert first.english in text
    assert TOKEN in text
    assert "Message 1: oscar → radar" in text
    assert re.search(r"<p>In reply to message \S+, which is not in this record\.", text)
    assert finding.text in text
    assert "Assigned to olivia by amir" in text
    assert "Accepted by amir: “it is an excerpt”" in text
    assert "amir wrote" in text
    assert "“Who is <b>it?”" in text
    assert f"“{said.words}”" in text
    assert "olivia resolved it" in text
    assert "Taken back words." not in text
    assert "olivia took it back" in text
    assert "Concern" in text
    assert "See m2." in text
    assert bytes(Review.objects.get().binding.digest).hex() in text  # type: ignore[union-attr]
    assert "holds" in text
    assert "Requested by</dt><dd>amir" in text
    # What an auditor asks first stands first: what it came to, and what was found where.
    head = text[: text.index("<article>")]
    assert 'Signed off: <span class="grave">concern</span>, by amir' in head
    assert "The sign-off holds." in head
    assert re.search(
        r"notice: Reply to a missing message</span>.*Message 2, accepted by amir, [^<]+: “it is an excerpt”\.", head
    )
    assert not re.search(r"fixed_at|\d:\d\d\.\d", head)
    # Whether it holds is compared here and now, as for each verdict, and not told as the worker last found it.
    Binding.objects.update(changes=json.dumps({"decoder": [1, []]}))
    assert "The sign-off holds." in report(cast, conversation)


def test_nothing_in_it_runs_or_loads(cast: Cast, conversation: Conversation) -> None:
    text = report(cast, conversation)
    tags = _Tags()
    tags.feed(text)
    assert not tags.tags & {"script", "link", "img", "iframe", "form", "a", "object", "svg", "base"}
    assert not {name for name in tags.attributes if name.startswith("on")} | (
        tags.attributes & {"src", "href", "style"}
    )
    assert "&lt;script&gt;" in text
    assert "\u202e" not in text
    assert "U+202E" in text
    style = re.search("<style>(.*?)</style>", text, re.S)
    assert style is not None
    assert style[1] == STYLE
    assert base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode() in POLICY


def test_a_masked_one_keeps_what_it_must(cast: Cast, conversation: Conversation) -> None:
    first = message("m1")
    start = first.record.wire_text.index(TOKEN)
    comment = write_comment(
        membership=cast.auditor, message=first, start=start, end=start + len(TOKEN), words="It begins with hun."
    )
    reply(membership=cast.auditor, comment=comment, message=first, words="And ends with er2.")
    text = report(cast, conversation, is_masked=True)
    assert "hunter2" not in text
    assert "It begins with" not in text
    assert "And ends with" not in text
    assert text.count("for owners and auditors") == 2
    assert "•••" in text
    assert hashlib.sha256(bytes(first.record.source)).hexdigest() in text
    assert "It begins with hun." in report(cast, conversation)


def test_its_hashes_are_checked_as_it_says(cast: Cast, conversation: Conversation) -> None:
    export = make(ask(cast, form="html", conversation_id=conversation.pk, title="c"))
    data = b"".join(read_file(export))
    told = re.search(rb"first ([\d,]+) bytes, .*?([0-9a-f]{64})", data, re.S)
    assert told is not None
    size = int(told[1].replace(b",", b""))
    assert hashlib.sha256(data[:size]).hexdigest() == told[2].decode()
    assert data[:size].endswith(b"</article>\n")
    assert f"head -c {size} {export.file_name} | sha256sum".encode() in data
    assert bytes(export.sha256 or b"") == hashlib.sha256(data).digest()
    assert export.file_name.startswith("report-")
    assert export.file_name.endswith(".html")


def test_it_is_made_in_windows_and_goes_on_where_a_worker_died(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(cast, *(say(number) for number in range(40)))
    resolve_all()
    conversation = Conversation.objects.get(native_id="c")
    whole = report(cast, conversation)
    monkeypatch.setattr(making, "REPORT_STEP_RECORDS", 7)
    export = ask(cast, form="html", conversation_id=conversation.pk, title="c")
    for _ in range(3):
        job = jobs.claim(kinds=(Job.Kind.EXPORT,))
        assert job is not None
        with jobs.working_on(job):
            assert making.make_step(job)
            jobs.release(job)
        Job.objects.update(due_at=job.created_at)
    again = read(make(export)).decode()

    def articles(text: str) -> str:
        return text[text.index("<article>") : text.index("<h2>How to check")]

    assert articles(again) == articles(whole)
    assert articles(whole).count("<article>") == 40


@pytest.mark.long(seconds=8)
def test_memory_does_not_grow_with_the_conversation(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "REPORT_STEP_RECORDS", 10)

    def peak(conversation: Conversation) -> int:
        export = ask(cast, form="html", conversation_id=conversation.pk, title="c")
        tracemalloc.start()
        make(export)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    # Long texts: beside them it does not count what is kept of words and ids, which has bounds of its own.
    body = {"t": "note", "d": {"q": "lorem ipsum " * 1500}}
    deliver(
        cast,
        *(say(number, body=body) for number in range(20)),
        *(say(number, cid="d", body=body) for number in range(1000, 1120)),
    )
    resolve_all()
    few, many = (peak(Conversation.objects.get(native_id=native_id)) for native_id in ("c", "d"))
    assert many < 1.5 * few


def test_what_was_withdrawn_is_counted_and_a_report_is_of_one_conversation(
    cast: Cast, conversation: Conversation
) -> None:
    with pytest.raises(ValidationError, match="one conversation"):
        ask(cast, form="html", query="")
    export = ask(cast, form="html", conversation_id=conversation.pk)
    job = jobs.claim(kinds=(Job.Kind.EXPORT,))
    assert job is not None
    with jobs.working_on(job):
        making.make_step(job)
        jobs.release(job)
    delivery = message("m1").record.sightings.get().delivery  # type: ignore[attr-defined]
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="wrong file")
    pipeline.run_due(seconds=20)
    text = read(make(export)).decode()
    assert "<article>" not in text
    assert "Withdrawn meanwhile</dt><dd>2" in text


def test_the_page_gives_it_to_whoever_may_have_it(
    auditor: Client, viewer: Client, cast: Cast, conversation: Conversation
) -> None:
    new = reverse("pages:new-export", args=["acme"])
    form = viewer.get(f"{new}?conversation={conversation.pk}").content.decode()
    assert "Report: to read and to print" in form
    assert "Report: to read" not in viewer.get(f"{new}?q=oscar").content.decode()
    assert viewer.post(new, {"q": "oscar", "form": "html"}).status_code == 422
    asked = viewer.post(new, {"conversation": str(conversation.pk), "form": "html"})
    assert asked.status_code == 302
    masked = make(Export.objects.get())
    assert masked.is_masked
    exact = make(ask(cast, form="html", conversation_id=conversation.pk))
    file = reverse("pages:export-file", args=["acme", exact.pk])
    assert viewer.get(file).status_code == 403
    opened = auditor.get(f"{file}?open")
    assert opened["Content-Disposition"].startswith("inline")
    assert opened["Content-Security-Policy"] == POLICY
    assert "sandbox" in POLICY
    assert opened["Content-Type"] == "text/html; charset=utf-8"
    assert auditor.get(file)["Content-Disposition"].startswith("attachment")
    page = auditor.get(reverse("pages:export", args=["acme", exact.pk])).content.decode()
    assert "Open, to read or print" in page
