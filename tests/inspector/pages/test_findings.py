"""The pages of findings: by rule, a rule's, one; judging, setting and suppressing there; and who may do what."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from inspector.audit.findings.services import judge, suppress
from inspector.audit.models import Finding, ReviewItem, RuleChange, Suppression
from inspector.audit.reviews.queues import create_queue
from inspector.audit.reviews.verdicts import claim, judge_item
from inspector.intake.withdrawals import withdraw_delivery
from inspector.pages.shown.findings import begin_sentence
from inspector.pages.shown.markup import write_visible
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import CAUTION_MARK
from tests.inspector.audit.rule_logs.writing import clowl, say
from tests.inspector.conftest import Cast, deliver, resolve_all, take_in

from .conftest import page_of, read, shows

pytestmark = pytest.mark.django_db

TWICE = clowl("m1", "REQ", "oscar", "radar").replace('"p": "REQ"', '"p": "REQ", "p": "DONE"')
HOSTILE = say(("<b>evil\u202e</b>", '{def:ok="<script>alert(1)</script>"}'))
FINDINGS = page_of("findings")


def rows_of(page: str) -> int:
    return page.count('class="sentence"')


@pytest.fixture
def found(cast: Cast) -> Finding:
    take_in(cast, TWICE.encode())
    return Finding.objects.get(rule="said-twice")


def test_from_the_overview_to_the_characters(viewer: Client, found: Finding) -> None:
    overview = read(viewer, page_of("overview"))
    assert f"{FINDINGS}?severity=warning" in overview
    page = read(viewer, f"{FINDINGS}?severity=warning")
    assert "?rule=said-twice&amp;state=open" in page
    assert "?rule=impossible-time" in page.split("without findings")[1]
    listed = read(viewer, f"{FINDINGS}?rule=said-twice&state=open")
    message = Message.objects.get()
    # From whom to whom, as everywhere.
    assert listed.count('<span class="pair">') == 1
    assert 'aria-label="to"' in listed.split('<span class="pair">')[1].split("</p>")[0]
    span = re.search(r'href="([^"]+[?]span=0:\d+-\d+)"', listed)
    assert span is not None
    assert span[1].startswith(page_of("message", message.pk))
    assert page_of("finding", found.pk) in listed
    # What the message said stands below what is the matter with it.
    for page in (listed, read(viewer, FINDINGS)):
        assert f'<p class="said quiet">{write_visible(message.english + CAUTION_MARK)}</p>' in page
    one = read(viewer, page_of("finding", found.pk))
    shows(one, span[1], "Found by its rule", found.cites.split(";")[0])
    of_message = read(viewer, page_of("message", message.pk))
    assert of_message.index('id="findings"') < of_message.index('id="notes"')
    conversation = page_of("conversation-findings", found.conversation_id)
    assert rows_of(read(viewer, conversation)) == 1
    transcript = read(viewer, page_of("conversation", found.conversation_id))
    row = transcript.partition(f'id="m-{message.pk.hex}"')[2].partition("</article>")[0]
    assert page_of("finding", found.pk) in row.partition("data-finding")[2]
    assert conversation in read(viewer, page_of("conversations"))


def test_a_finding_leads_to_the_reviews_of_its_conversation(
    cast: Cast, auditor: Client, viewer: Client, found: Finding
) -> None:
    address = page_of("finding", found.pk)
    message = page_of("message", Message.objects.get().pk)
    assert re.search(rf'<a href="{message}[^"]*">message 1</a>', read(viewer, address))
    assert "in no queue" in read(viewer, address)
    assert "Add to queue" not in read(auditor, address)
    queue = create_queue(membership=cast.owner, name="Look <b>", reviewers=1, criteria=[])
    assert "Add to queue" not in read(viewer, address)
    form = re.search(r'action="([^"]+)" aria-label="Add the conversation to a queue"', read(auditor, address))
    assert form is not None
    assert auditor.post(form[1], {"queue": queue.pk, "next": address})["Location"] == address
    assert auditor.post(form[1], {"queue": queue.pk, "next": "https://elsewhere.example/"})["Location"] == FINDINGS
    item = ReviewItem.objects.get()
    page = read(viewer, address)
    assert f'<a href="{page_of("review-item", item.pk)}">Look &lt;b&gt;</a>' in page
    # What is signed off there is led to as well, with what it came to.
    claim(membership=cast.auditor, item=item)
    seen = bytes(Conversation.objects.get().settled_digest or b"")
    judge_item(membership=cast.auditor, item=item, verdict="concern", comment="", seen=seen, answers=[])
    page = read(viewer, address)
    shows(page, page_of("review-item", item.pk), "concern")
    # What was said of the acts above is shown once, and goes from the session then.
    read(auditor, address)
    with CaptureQueriesContext(connection) as caught:
        read(auditor, address)
    assert len(caught) <= 12


def test_judging_is_kept_and_shown_with_its_reason(auditor: Client, viewer: Client, found: Finding) -> None:
    address, back = page_of("judge-findings"), f"{FINDINGS}?rule=said-twice"
    form = {"finding": [str(found.pk)], "state": "false-alarm", "reason": " ", "next": back}
    assert viewer.post(address, form).status_code == 403
    refused = auditor.post(address, form)
    assert refused.status_code == 422
    assert str(found.pk) in refused.content.decode()
    assert "Give a reason in a few words" in refused.content.decode()
    assert auditor.post(address, form | {"reason": "a <i>test</i>"})["Location"] == back
    assert auditor.post(address, form | {"reason": "x", "next": "https://evil.example/"})["Location"] == FINDINGS
    one = read(viewer, page_of("finding", found.pk))
    assert "<strong>amir</strong> marked it as a false alarm: “a &lt;i&gt;test&lt;/i&gt;”" in one
    assert rows_of(read(viewer, back)) == 0
    assert rows_of(read(viewer, f"{back}&state=false-alarm")) == 1
    assert "Decision" not in one


def test_a_decision_from_an_old_page_is_refused_and_can_be_taken_anew(
    auditor: Client, owner: Client, found: Finding
) -> None:
    """Of two who have the page open, the later one learns what the other did, and overwrites nothing unseen."""
    address, one = page_of("judge-findings"), page_of("finding", found.pk)

    def fill(page: str) -> dict[str, str]:
        return dict(re.findall(r'<input type="hidden" name="(finding|seen|next)" value="([^"]*)"', page))

    first = fill(read(owner, one))
    assert first == {"finding": str(found.pk), "seen": "", "next": one}
    assert owner.post(address, first | {"state": "accepted", "reason": "known"})["Location"] == one
    old = fill(read(auditor, one))
    assert owner.post(address, fill(read(owner, one)) | {"state": "open", "reason": "not <b>so</b>"}).status_code == 302
    said = old | {"state": "false-alarm", "reason": "a test"}
    for act in (said, said | {"state": "snooze-1"}, old | {"act": "assign", "assignee": "nobody"}, first | said):
        refused = auditor.post(address, act)
        assert refused.status_code == 422, act
        shows(
            refused.content.decode(),
            "Nothing was saved",
            "<strong>olivia</strong> opened it again: “not &lt;b&gt;so&lt;/b&gt;”",
            'value="a test"' if "reason" in act else "",
        )
    # What lacks a reason is given back with what was seen.
    assert fill(auditor.post(address, said | {"reason": ""}).content.decode()) == old
    assert Finding.objects.get(pk=found.pk).state == "open"
    again = fill(auditor.post(address, said).content.decode())
    assert auditor.post(address, again | {"state": "false-alarm", "reason": "a test"}).status_code == 302
    assert Finding.objects.get(pk=found.pk).state == "false-alarm"
    # What is chosen in a list says nothing of what was seen.
    assert owner.post(address, {"finding": str(found.pk), "state": "open", "next": FINDINGS}).status_code == 302


@pytest.mark.long(seconds=2)
def test_findings_are_snoozed_and_assigned_on_pages(
    cast: Cast, auditor: Client, viewer: Client, found: Finding
) -> None:
    address, back = page_of("judge-findings"), f"{FINDINGS}?rule=said-twice"
    form = {"finding": [str(found.pk)], "next": back}
    later = form | {"state": "snooze-7", "reason": "mended on Monday"}
    assert viewer.post(address, later).status_code == 403
    assert auditor.post(address, later | {"reason": ""}).status_code == 422
    assert "Reopen" in auditor.post(address, later, follow=True).content.decode()
    assert rows_of(read(viewer, back)) == 0
    assert rows_of(read(viewer, f"{back}&state=snoozed")) == 1
    assert "1 snoozed</a>" in read(viewer, FINDINGS)
    one = read(auditor, page_of("finding", found.pk))
    shows(one, "Snoozed until", "<strong>amir</strong> snoozed it until")
    auditor.post(address, form | {"state": "open"})
    assert rows_of(read(viewer, back)) == 1
    assert "snoozed</a>" not in read(viewer, FINDINGS)
    mine = form | {"act": "assign", "assignee": str(cast.auditor.user.pk)}
    assert viewer.post(address, mine).status_code == 403
    for wrong in ("", "nonsense", str(cast.viewer.user.pk)):
        assert auditor.post(address, mine | {"assignee": wrong}).status_code == 422
    assert auditor.post(address, mine).status_code == 302
    one = read(viewer, page_of("finding", found.pk))
    shows(one, "assigned to <bdi>amir</bdi>", "assigned it to amir")
    assert rows_of(read(auditor, f"{back}&assignee=me")) == rows_of(
        read(viewer, f"{back}&assignee={cast.auditor.user.pk}")
    )
    assert rows_of(read(auditor, f"{back}&assignee=me")) == 1
    assert rows_of(read(viewer, f"{back}&assignee=me")) == rows_of(read(viewer, f"{back}&assignee=nobody")) == 0
    assert auditor.post(address, mine | {"assignee": "nobody"}).status_code == 302
    assert rows_of(read(viewer, f"{back}&assignee=nobody")) == 1


def test_owners_set_rules_and_auditors_suppress(owner: Client, auditor: Client, viewer: Client, found: Finding) -> None:
    set_rule, page = page_of("set-rule"), f"{FINDINGS}?rule=said-twice"
    form = {"rule": "said-twice", "is_on": "yes", "severity": "error", "reason": "we parse strictly"}
    assert auditor.post(set_rule, form).status_code == 403
    assert owner.post(set_rule, form | {"severity": "dire"}).status_code == 422
    assert owner.post(set_rule, form).status_code == 302
    assert RuleChange.objects.get().severity == Message.Severity.ERROR
    assert "“we parse strictly”" in read(viewer, page)
    hide = page_of("suppress-findings")
    said = {"rule": "said-twice", "finding": str(found.pk), "in_conversation": "yes", "reason": "known"}
    assert viewer.post(hide, said).status_code == 403
    assert auditor.post(hide, said | {"reason": ""}).status_code == 422
    assert auditor.post(hide, {"rule": "said-twice", "reason": "all"}).status_code == 422
    assert auditor.post(hide, said | {"finding": "nonsense"}).status_code == 422
    assert auditor.post(hide, said).status_code == 302
    assert rows_of(read(viewer, page)) == 0
    assert rows_of(read(viewer, f"{page}&state=suppressed")) == 1
    lift = page_of("lift-suppression", Suppression.objects.get().pk)
    assert viewer.post(lift).status_code == 403
    assert auditor.post(lift).status_code == 302
    assert rows_of(read(viewer, page)) == 1


def test_what_was_said_of_a_withdrawn_message_is_not_told(cast: Cast, viewer: Client, found: Finding) -> None:
    delivery = found.record.sightings.get().delivery  # type: ignore[attr-defined]
    judge(membership=cast.auditor, findings=[found.pk], state="accepted", reason="so it is")
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="wrong file")
    resolve_all()
    page = read(viewer, f"{FINDINGS}?rule=said-twice&state=closed")
    assert rows_of(page) == 1
    shows(page, "hidden with its message", never=['class="said'])
    one = read(viewer, page_of("finding", found.pk))
    shows(one, "accepted it: “so it is”", "no longer applies", never=[found.text])


@pytest.mark.long(seconds=4)
def test_a_page_costs_the_same_statements_whatever_it_holds(cast: Cast, owner: Client, unhurried: None) -> None:

    def count(address: str) -> int:
        with CaptureQueriesContext(connection) as caught:
            read(owner, address)
        return len(caught)

    def count_all() -> list[int]:
        finding = Finding.objects.filter(rule="word-redefined").order_by("at", "pk")[0]
        conversation = finding.conversation_id
        return [
            count(FINDINGS),
            count(f"{FINDINGS}?rule=word-redefined&q=e"),
            count(page_of("finding", finding.pk)),
            count(page_of("conversation-findings", conversation)),
            count(page_of("conversation", conversation)),
            count(page_of("conversations")),
        ]

    take_in(cast, HOSTILE.encode())
    suppress(membership=cast.auditor, rule="circle", conversation=Conversation.objects.get(), sender="", reason="r")
    few = count_all()
    for number in range(12):
        log = say(*[("ada", f'{{def:ok="not {each}"}}!st/ok') for each in range(6)])
        deliver(cast, log.replace('"c"', f'"c{number}"').encode(), name=f"{number}.log")
    resolve_all()
    assert count_all() == few


def test_hostile_words_are_shown_and_never_run(cast: Cast, owner: Client) -> None:
    take_in(cast, HOSTILE.encode())
    finding = Finding.objects.get(rule="word-redefined")
    judge(membership=cast.owner, findings=[finding.pk], state="accepted", reason="<img src=x>")
    for address in (
        f"{FINDINGS}?rule=word-redefined&state=all&q=%00",
        f"{FINDINGS}?rule=word-redefined&state=all",
        f"{FINDINGS}?state=all&q=%3Cscript%3E",
        page_of("finding", finding.pk),
        page_of("conversation-findings", finding.conversation_id) + "?state=all",
    ):
        page = read(owner, address)
        for words in ("<b>evil", "<script>alert", "<img", "\u202e"):
            assert words not in page, address


def test_a_list_goes_on_by_keyset(cast: Cast, viewer: Client) -> None:
    log = say(*[("ada", f'{{def:ok="not {each}"}}!st/ok') for each in range(60)])
    take_in(cast, log.encode())
    first = read(viewer, f"{FINDINGS}?rule=word-redefined")
    older = re.search(r'href="(\?[^"]+)">Older', first)
    assert older is not None
    second = read(viewer, FINDINGS + older[1].replace("&amp;", "&"))
    ids = [set(re.findall(r"/findings/([0-9a-f-]{36})/", page)) for page in (first, second)]
    assert len(ids[0]) == 50
    assert ids[1]
    assert not ids[0] & ids[1]
    assert viewer.get(f"{FINDINGS}?rule=word-redefined&before=forged").status_code == 404
    assert viewer.get(f"{FINDINGS}?rule=nonsense").status_code == 404


def test_a_finding_begins_as_a_sentence_and_changes_no_word_of_a_message(auditor: Client, cast: Cast) -> None:
    take_in(cast, say(("ada", "@a3|f0|c1"), ("ada", '{def:the="flash point"}!st/the')).encode())
    finding = Finding.objects.get(rule="malformed")
    assert finding.text == "the tag has no closing # outside quotes"
    for address in (FINDINGS, f"{FINDINGS}?rule=malformed", f"{FINDINGS}{finding.pk}/"):
        assert "The tag has no closing # outside quotes" in read(auditor, address)
    for text, shown in (
        ("the", "The"),
        ("ada asked bob", "ada asked bob"),
        ('"the" means x', '"the" means x'),
        ("", ""),
    ):
        assert begin_sentence(text) == shown
