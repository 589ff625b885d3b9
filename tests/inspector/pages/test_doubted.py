"""Outcomes in doubt are nowhere green, and what one page says of a request is what the others say."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from django.test import Client

from inspector.audit.agents import count_asked_of
from inspector.audit.models import Finding
from inspector.browsing.directory import sum_agents
from inspector.threads.models import Agent, Conversation, Message
from inspector.threads.tasks import measure_agent
from tests.inspector.conftest import Cast, take_in

from .conftest import page_of, shows

pytestmark = pytest.mark.django_db

START = int(datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp())


def say(name: str, after: int, act: str, who: str, answers: str = "", **details: object) -> bytes:
    sender, receiver = who.split(">")
    wire = {"clowl": "0.2", "mid": name, "ts": START + after, "p": act, "from": sender, "to": receiver, "cid": "claim"}
    wire |= {"body": {"t": "assess", "d": details}} | ({"pid": answers} if answers else {})
    return json.dumps(wire).encode() + b"\n"


ASKED = say("m1", 0, "REQ", "intake>assessor")
DENIED = "done, but its data deny it"


def read(client: Client, name: str, *args: object, **query: str) -> str:
    answer = client.get(page_of(name, *args), query)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def read_outcome(client: Client) -> str:
    page = read(client, "conversation", Conversation.objects.get().pk)
    return page.partition("<dt>Outcome</dt>")[2].partition("</div>")[0]


def read_row(client: Client, name: str, words: str) -> str:
    return next(row for row in re.findall(r"<tr.*?</tr>", read(client, name)) if words in row)


def test_an_outcome_that_its_data_deny_is_nowhere_green(auditor: Client, cast: Cast) -> None:
    take_in(cast, ASKED, say("m2", 60, "DONE", "assessor>intake", "m1", failed=True))
    assert Finding.objects.get(rule="done-but-failed").text == (
        "it says DONE, but the key “failed” in its data says that it failed"
    )
    green = 'data-state="done"'
    shows(read_outcome(auditor), DENIED, 'data-state="waiting"', never=[green])
    shows(read_row(auditor, "conversations", "assess"), DENIED, never=[green])
    tasks = read(auditor, "conversation-tasks", Conversation.objects.get().pk)
    shows(tasks.partition('aria-label="States"')[2], "done, some denied by their data", DENIED)
    shows(
        read_row(auditor, "agents", ">assessor<"), "1 done after another outcome, or denied by its data", never=[green]
    )


def test_an_error_whose_data_say_success_is_in_doubt_and_denied_progress_is_no_outcome(
    auditor: Client, cast: Cast
) -> None:
    take_in(
        cast,
        ASKED,
        say("m2", 30, "PROG", "assessor>intake", "m1", failed=True),
        say("m3", 60, "ERR", "assessor>intake", "m1", code="E005", msg="x", retry=False),
    )
    assert Finding.objects.filter(rule="done-but-failed").count() == 1
    shows(read_outcome(auditor), "failed", never=["deny"])
    take_in(cast, say("m4", 90, "ERR", "assessor>intake", "m1", code="E005", msg="x", retry=False, success=True))
    shows(read_outcome(auditor), "failed, but its data deny it")


def test_a_part_that_its_data_deny_leaves_the_end_of_the_whole(auditor: Client, cast: Cast) -> None:
    take_in(
        cast,
        ASKED,
        say("m2", 10, "DLGT", "assessor>fraud", "m1", delegation_mode="assist"),
        say("m3", 30, "DONE", "fraud>assessor", "m2", failed=True),
        say("m4", 60, "DONE", "assessor>intake", "m1"),
    )
    shows(read_outcome(auditor), 'data-state="done"', never=["deny"])
    shows(read(auditor, "conversation-tasks", Conversation.objects.get().pk), DENIED)


def test_the_outcome_is_that_of_the_request_that_is_shown(auditor: Client, cast: Cast) -> None:
    take_in(
        cast,
        ASKED,
        say("m2", 10, "CNCL", "intake>assessor", "m1"),
        say("m3", 20, "REQ", "intake>fraud"),
        say("m4", 30, "DONE", "fraud>intake", "m3"),
    )
    shows(read_outcome(auditor), "cancelled; another request is done", "conversation lasted", never=['"done"'])


def test_the_request_that_is_shown_may_be_in_doubt_beside_another_one(auditor: Client, cast: Cast) -> None:
    take_in(
        cast,
        ASKED,
        say("m2", 10, "DONE", "assessor>intake", "m1", failed=True),
        say("m3", 20, "REQ", "intake>fraud"),
    )
    shows(read_outcome(auditor), f"{DENIED}; another request is open")
    take_in(
        cast,
        *(each.replace(b'"claim"', b'"other"') for each in (ASKED, say("m2", 10, "DONE", "assessor>intake", "m1"))),
        say("m3", 20, "REQ", "intake>fraud").replace(b'"claim"', b'"other"'),
        say("m4", 30, "DONE", "fraud>intake", "m3", failed=True).replace(b'"claim"', b'"other"'),
        say("m5", 40, "REQ", "intake>clerk").replace(b'"claim"', b'"other"'),
    )
    page = read(auditor, "conversation", Conversation.objects.get(native_id="other").pk)
    shows(page.partition("<dt>Outcome</dt>")[2].partition("</div>")[0], "done; another request is open", never=["deny"])


def test_all_pages_tell_the_same_of_a_transfer_that_was_taken_up_again(auditor: Client, cast: Cast) -> None:
    take_in(
        cast,
        ASKED,
        say("m2", 5, "DLGT", "assessor>fraud", "m1", delegation_mode="transfer"),
        say("m3", 76, "DONE", "fraud>assessor", "m2"),
        say("m4", 90, "PROG", "assessor>intake", "m1", pct=90),
        say("m5", 159, "CNCL", "intake>assessor", "m1"),
        say("m6", 172, "DONE", "assessor>intake", "m1", status="ok"),
    )
    assert "Work reported after cancellation" in read(auditor, "findings")
    shows(read_outcome(auditor), 'data-state="cancelled"')
    conversation = Conversation.objects.get()
    assert "2 min 39 s, cancelled" in read(auditor, "conversation-tree", conversation.pk)
    shows(read(auditor, "conversation-tasks", conversation.pk), "2 min 39 s", "cancelled it", never=["1 min 16 s"])
    agent = Agent.objects.get(name="assessor")
    shows(read(auditor, "agent", agent.pk), 'data-state="cancelled"')


def test_requests_that_nobody_sent_are_not_counted(auditor: Client, cast: Cast) -> None:
    take_in(
        cast,
        say("m1", 0, "REQ", "intake>treasury"),
        say("m2", 10, "DONE", "treasury>intake", "m1"),
        say("m3", 20, "REQ", "intake>treasury"),
        *(say(f"a{number}", 30 + number, "ACK", "treasury>intake", f"lost{number}") for number in range(6)),
        say("m9", 9000, "INF", "intake>clerk"),
    )
    agent = Agent.objects.get(name="treasury")
    asked = measure_agent(workspace=cast.workspace, names=[(agent.channel_id, agent.name)]).asked_of
    assert (asked.asked, asked.states) == (2, {"done": 1, "stalled": 1})
    sums = sum_agents(workspace=cast.workspace, agent_ids=[agent.pk])
    assert count_asked_of(workspace=cast.workspace, sums=list(sums.values()))[agent.pk][:3] == (2, 1, 0)
    page = read(auditor, "agent", agent.pk)
    shows(page, "<dt>Received by name</dt><dd><strong>2</strong>", "<dt>Requests received</dt><dd><strong>2</strong>")
    found = read(auditor, "search", q="to:treasury performative:request")
    assert "2 messages" in re.sub("<[^>]*>", "", found)


def test_the_state_that_a_sentence_leans_on_is_told(auditor: Client, cast: Cast) -> None:
    take_in(cast, ASKED, say("m2", 10, "DLGT", "assessor>fraud", "m1", delegation_mode="transfer"))
    take_in(cast, say("m3", 20, "DONE", "fraud>assessor", "m2"))
    page = read(auditor, "message", Message.objects.get(native_id="m3").pk)
    leanings = page.partition("Context from the conversation")[2].partition("</ul>")[0]
    shows(leanings, "</bdi>: none, as a published state machine of CLowl does not allow this step,")
