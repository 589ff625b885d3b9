"""A delivery's page: custody, the list of problems, and its withdrawal as people see it."""

from __future__ import annotations

import csv
import io
import json
import re
import uuid
from typing import Any

import pytest
from django.test import Client

from inspector.accounts.services import ensure_channel
from inspector.exports.forms import make_safe
from inspector.intake.framing import take_stream
from inspector.intake.models import Delivery, Door, Job
from inspector.intake.services import open_delivery
from inspector.intake.withdrawals import withdraw_delivery
from inspector.pages.conversations import views
from inspector.search.language import QueryError
from inspector.search.selectors import find_messages
from inspector.threads.models import Conversation, Message
from tests.each import for_each
from tests.inspector.conftest import Cast, deliver, resolve_all, take_in
from tests.inspector.pages.conftest import STORY

from .conftest import page_of, shows, text


def test_custody_says_who_from_where_how_and_what_was_said_of_it(auditor: Client, cast: Cast) -> None:
    delivery = open_delivery(
        workspace=cast.workspace,
        channel=ensure_channel(workspace=cast.workspace, name="lab"),
        door=Door.UPLOAD,
        user=cast.owner.user,
        remote_address="192.0.2.7",
        file_name="night.log",
        content_type="text/plain",
        options={"dialect": "nslip", "prefixes": False, "speakers": ["oscar", "radar"]},
    )
    take_stream(delivery=delivery, chunks=[b"all is well\n"])
    resolve_all()
    page = text(auditor.get(page_of("delivery", delivery.pk)))
    for words in (
        "olivia from 192.0.2.7",
        "Upload, text/plain",
        "night.log",
        "<dd>lab</dd>",
        "every record read as nSLIP",
        "prefixes left in the text",
        "oscar and radar in turns",
        "12 bytes",
        bytes(delivery.sha256 or b"").hex(),
        "1 received = 1 stored + 0 duplicate + 0 quarantined",
    ):
        assert words in page


def test_the_problems_come_as_two_lists(viewer: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.pages.deliveries._PAGE", 2)
    delivery = take_in(cast, b"fine\n" + b"\xff broken\n" * 5)
    response = viewer.get(page_of("problems-csv", delivery.pk))
    assert response["Content-Disposition"].startswith("attachment")
    rows = list(csv.DictReader(io.StringIO(b"".join(response).decode())))
    said = b"".join(viewer.get(page_of("problems-jsonl", delivery.pk))).decode().splitlines()
    plain = [json.loads(line) for line in said]
    assert [row["record"] for row in plain] == [2, 3, 4, 5, 6]
    assert [int(row["line"]) for row in rows] == [row["line"] for row in plain] == [2, 3, 4, 5, 6]
    assert {row["outcome"] for row in rows} == {"quarantined"}
    assert all("UTF-8" in row["reason"] for row in plain)


@for_each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"])
def test_no_cell_begins_a_formula(cell: str) -> None:
    assert make_safe(cell) == f"'{cell}"
    assert make_safe(f"a{cell}") == f"a{cell}"


def withdraw(client: Client, delivery: Delivery, reason: str = "the wrong file") -> Any:
    return client.post(page_of("withdraw", delivery.pk), {"reason": reason})


def test_a_withdrawal_is_seen_everywhere_and_can_be_taken_back(
    auditor: Client, viewer: Client, cast: Cast, story: Delivery
) -> None:
    take_in(cast, b'{"clowl":"0.2","mid":"m9","ts":1795251999,"p":"INF","from":"muse","to":"radar","cid":"story"}\n')
    conversation = Conversation.objects.get(native_id="story")
    message = Message.objects.get(native_id="m1")
    assert withdraw(auditor, story)["Location"] == page_of("delivery", story.pk)
    resolve_all()
    receipt = text(viewer.get(page_of("delivery", story.pk)))
    shows(
        receipt,
        "Withdrawn by amir",
        "“the wrong file” 5 of its records are hidden",
        "5 received = 5 stored + 0 duplicate + 0 quarantined",
        never=["Show its records again"],
    )
    assert ">withdrawn</span>" in text(viewer.get(page_of("deliveries")))
    talk = text(viewer.get(page_of("conversation", conversation.pk)))
    shows(talk, "3 messages hidden: withdrawn", "m9", never=[">m1<"])
    assert "5 messages are hidden" in text(viewer.get(page_of("conversations")))
    assert "2 matches are hidden" in text(viewer.get(page_of("search") + "?q=search"))
    assert "No message matches" in text(viewer.get(page_of("search") + "?q=search"))
    shown = text(viewer.get(page_of("message", message.pk)))
    shows(shown, "conversations and search do not show this message", "amir withdrew")
    answer = auditor.post(page_of("take-back", story.pk), {"reason": "right after all"})
    assert answer.status_code == 302
    resolve_all()
    receipt = text(auditor.get(page_of("delivery", story.pk)))
    shows(receipt, "Withdrawal undone by amir", "Withdrawn by amir")
    assert "hidden: withdrawn" not in text(viewer.get(page_of("conversation", conversation.pk)))
    assert ">m1<" in text(viewer.get(page_of("conversation", conversation.pk)))
    assert "do not show this message" not in text(viewer.get(page_of("message", message.pk)))


def test_a_conversation_of_which_nothing_is_left_says_why(auditor: Client, cast: Cast, story: Delivery) -> None:
    conversation = Conversation.objects.get(native_id="story")
    withdraw(auditor, story)
    resolve_all()
    page = text(auditor.get(page_of("conversation", conversation.pk)))
    shows(page, "Nothing of this conversation is shown", never=["are being read"])


def test_a_message_seen_twice_says_which_sighting_is_withdrawn(auditor: Client, cast: Cast, story: Delivery) -> None:
    from .conftest import STORY

    take_in(cast, STORY, name="again.log")
    withdraw(auditor, story)
    resolve_all()
    page = text(auditor.get(page_of("message", Message.objects.get(native_id="m1").pk)))
    assert "do not show this message" not in page
    assert page.count(">withdrawn</span>") == 1
    assert "5 stay, for another delivery holds them" in text(auditor.get(page_of("delivery", story.pk)))


def test_a_refused_act_says_why(auditor: Client, cast: Cast, story: Delivery) -> None:
    response = withdraw(auditor, story, "  ")
    assert response.status_code == 422
    assert "Give a reason" in text(response)
    withdraw_delivery(membership=cast.owner, delivery=story, reason="x")
    assert "It is withdrawn already" in text(withdraw(auditor, story))


def test_until_its_records_are_hidden_the_receipt_says_so(auditor: Client, story: Delivery) -> None:
    withdraw(auditor, story)
    assert "its records are being hidden or shown" in text(auditor.get(page_of("progress", story.pk)))
    receipt = text(auditor.get(page_of("delivery", story.pk)))
    shows(receipt, "being hidden from conversations and search: 0 of 5 so far.", never=["for another delivery holds"])
    resolve_all()
    assert "being hidden" not in text(auditor.get(page_of("progress", story.pk)))
    shows(text(auditor.get(page_of("delivery", story.pk))), "5 of its records are hidden", never=["so far"])
    auditor.post(page_of("take-back", story.pk), {"reason": "right after all"})
    receipt = text(auditor.get(page_of("delivery", story.pk)))
    shows(receipt, "being shown again: 5 of 5 are still hidden.", never=["for another delivery holds"])
    resolve_all()
    assert "still hidden" not in text(auditor.get(page_of("delivery", story.pk)))


def test_what_another_job_is_about_to_hide_is_held_by_no_other_delivery(
    auditor: Client, cast: Cast, story: Delivery
) -> None:
    again = take_in(cast, STORY, name="again.log")
    withdraw(auditor, story)
    resolve_all()
    withdraw(auditor, again)
    receipt = text(auditor.get(page_of("delivery", story.pk)))
    shows(receipt, "0 of its records are hidden", never=["for another delivery holds", "so far"])
    resolve_all()
    assert "5 of its records are hidden" in text(auditor.get(page_of("delivery", story.pk)))


def test_records_whose_hiding_was_given_up_are_held_by_no_other_delivery(auditor: Client, story: Delivery) -> None:
    withdraw(auditor, story)
    Job.objects.filter(kind=Job.Kind.WEIGH).update(state=Job.State.DEAD, failure="out of space")
    receipt = text(auditor.get(page_of("delivery", story.pk)))
    shows(receipt, "0 of 5 so far. That was given up.", never=["for another delivery holds"])


def test_what_a_delivery_reached_is_a_list_of_its_own(viewer: Client, cast: Cast, story: Delivery) -> None:
    other = take_in(
        cast, b'{"clowl":"0.2","mid":"n1","p":"REQ","from":"muse","to":"ink","cid":"other"}\n', name="o.log"
    )
    progress = viewer.get(page_of("progress", other.pk)).content.decode()
    (address,) = re.findall(r'href="([^"]+)">See the conversations', progress)
    assert address == f"{page_of('conversations')}?delivery={other.pk}"
    page = text(viewer.get(address))
    assert (page.count("<tr id="), "o.log</a> brought" in page) == (1, True)
    assert f'name="delivery" value="{other.pk}"' in page
    assert text(viewer.get(page_of("conversations"))).count("<tr id=") == 4
    assert text(viewer.get(f"{page_of('conversations')}?delivery={story.pk}")).count("<tr id=") == 3


def test_a_delivery_that_is_not_there_lists_nothing(viewer: Client, cast: Cast, story: Delivery) -> None:
    for given in (uuid.uuid4(), "story.log", "%00"):
        assert viewer.get(f"{page_of('conversations')}?delivery={given}").status_code == 404
    withdraw_delivery(delivery=story, membership=cast.auditor, reason="the wrong night")
    resolve_all()
    page = text(viewer.get(f"{page_of('conversations')}?delivery={story.pk}"))
    shows(page, "No conversation matches", page_of("delivery", story.pk))


def test_the_receipt_leads_to_the_messages_it_brought(viewer: Client, cast: Cast, story: Delivery) -> None:
    take_in(cast, b"all is well\n", name="other.log")
    receipt = viewer.get(page_of("delivery", story.pk)).content.decode()
    (address,) = re.findall(r'href="([^"]+)">Its messages', receipt)
    assert text(viewer.get(address)).count('<li class="hit"') == 5
    # A duplicate was brought as well.
    again = take_in(cast, STORY.splitlines(keepends=True)[0], name="again.log")
    assert [found.native_id for found in find_messages(workspace=cast.workspace, query=f"delivery:{again.pk}")] == [
        "m1"
    ]
    with pytest.raises(QueryError, match="the id that its receipt says"):
        find_messages(workspace=cast.workspace, query="delivery:story.log")


def test_conversations_that_take_too_long_to_find_are_said_so(
    viewer: Client, story: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(views, "fetch", lambda rows, patience_ms: asked.append(patience_ms))
    page = text(viewer.get(f"{page_of('conversations')}?delivery={story.pk}"))
    shows(page, "take too long to find", f'href="{page_of("search")}?q=delivery%3A{story.pk}"')
    assert "take too long" not in text(viewer.get(page_of("conversations")))
    # Of what could not be found in time nothing is counted either; the list without a delivery is counted.
    assert asked == [2500, 300]


def test_the_warnings_stand_on_the_receipt_with_what_to_change(viewer: Client, cast: Cast) -> None:
    delivery = deliver(cast, b'{"raw": "a", "at": "soon"}\n' + b'{"text": "<b>hi</b>"}\n' * 120)
    page = text(viewer.get(page_of("delivery", delivery.pk)))
    shows(page, "121 warnings", "<code>no-raw</code> 120", "<code>time-not-read</code> 1")
    assert page.count("Write <code>raw</code> instead of <code>text</code>") == 99
    assert "`" not in page.partition('id="warnings"')[2]
    assert "Write it as 2026-11-21T09:00:00Z" in page
    clean = deliver(cast, b'{"raw": "b"}\n', name="clean.log")
    assert 'id="warnings"' not in text(viewer.get(page_of("delivery", clean.pk)))
