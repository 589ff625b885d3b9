"""What tasks measure, and what depends on the moment at which one reads: stalled, and timed out by the deadline."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from inspector.search.selectors import find_messages
from inspector.threads.models import Conversation, Task
from inspector.threads.selectors import select_conversations
from inspector.threads.tasks import STALLED_AFTER, Times, find_moment, list_tasks, measure_agent, measure_conversation

from ..conftest import Cast, deliver, resolve_all, take_in

pytestmark = pytest.mark.django_db

NINE = datetime(2024, 11, 21, 9, tzinfo=UTC)


def clowl(seconds: float | None, name: str, act: str, sender: str, receiver: str, parent: str = "") -> bytes:
    """A line of a log; without seconds neither wire nor envelope carry a time."""
    raw = {"clowl": "0.2", "mid": name, "cid": "story", "p": act, "from": sender, "to": receiver}
    return say(seconds, json.dumps(raw | ({"pid": parent} if parent else {}) | {"body": {"t": "ship", "d": {}}}))


def say(seconds: float | None, raw: str, **more: object) -> bytes:
    at = {} if seconds is None else {"at": (NINE + timedelta(seconds=seconds)).isoformat()}
    return json.dumps({"raw": raw, **at, **more}).encode() + b"\n"


def lamb(seconds: float | None, raw: str, sender: str, receiver: str) -> bytes:
    return say(seconds, raw, conversation="late", **{"from": sender}, to=[receiver])


STORY = (
    clowl(0, "a", "REQ", "ada", "bob"),
    clowl(2, "b", "ACK", "bob", "ada", "a"),
    clowl(10, "c", "DONE", "bob", "ada", "a"),
    clowl(20, "d", "REQ", "ada", "bob"),
    clowl(26, "e", "ERR", "bob", "ada", "d"),
    clowl(30, "f", "REQ", "ada", "bob", "e"),
    clowl(50, "g", "DONE", "bob", "ada", "f"),
    clowl(60, "h", "QRY", "bob", "ada"),
    clowl(70, "i", "REQ", "ada", "cid"),
)


def test_a_conversation_an_agent_and_a_pair_are_sums_over_their_tasks(cast: Cast) -> None:
    take_in(cast, *STORY, is_examined=False)
    conversation = Conversation.objects.get()
    whole = measure_conversation(conversation=conversation)
    assert (whole.asked, whole.answered, whole.unanswered) == (4, 2, 2)
    assert whole.states == {"open": 2, "done": 2}
    assert (whole.retries, whole.failures, whole.late) == (1, 1, 0)
    assert whole.acknowledge == Times(2, 4.0, pytest.approx(5.8))
    assert whole.finish == Times(2, 20.0, pytest.approx(29.0))
    bob = (cast.channel.pk, "bob")
    agent = measure_agent(workspace=cast.workspace, names=[bob])
    assert (agent.asked_of.asked, agent.asked_of.retries, agent.asked_by.unanswered) == (2, 1, 1)
    assert measure_agent(workspace=cast.workspace, names=[]).asked_of.asked == 0
    assert measure_agent(workspace=cast.stranger.workspace, names=[bob]).asked_of.asked == 0
    # One agent under two names is one.
    both = measure_agent(workspace=cast.workspace, names=[bob, (cast.channel.pk, "cid")])
    assert both.asked_of.asked == 3


def test_where_no_time_is_carried_nothing_is_measured(cast: Cast) -> None:
    take_in(cast, clowl(None, "a", "REQ", "ada", "bob"), clowl(None, "b", "DONE", "bob", "ada", "a"), is_examined=False)
    task = Task.objects.get()
    assert (task.state, task.is_answered) == ("done", True)
    assert (task.asked_at, task.acknowledge_seconds, task.finish_seconds) == (None, None, None)


def test_an_answer_whose_clock_is_before_its_request_is_not_measured(cast: Cast) -> None:
    take_in(cast, clowl(9, "a", "REQ", "ada", "bob"), clowl(5, "b", "DONE", "bob", "ada", "a"), is_examined=False)
    task = Task.objects.get()
    assert (task.state, task.requester, task.finish_seconds) == ("done", "ada", None)


@pytest.mark.long(seconds=2)
def test_what_stands_too_long_while_its_channel_goes_on_is_stalled(cast: Cast) -> None:
    take_in(cast, STORY[0], is_examined=False)
    conversation = Conversation.objects.get(native_id="story")
    (task,) = list_tasks(conversation=conversation, moment=find_moment(conversation=conversation))
    assert task.stands == "open"  # type: ignore[attr-defined]
    hour = STALLED_AFTER.total_seconds()
    for seconds, stands in ((hour, "open"), (hour + 1, "stalled")):
        take_in(cast, say(seconds, "Elsewhere it goes on.", conversation="other"), is_examined=False)
        moment = find_moment(conversation=conversation)
        assert moment == NINE + timedelta(seconds=seconds)
        assert [row.stands for row in list_tasks(conversation=conversation, moment=moment)] == [stands]  # type: ignore[attr-defined]
        assert measure_conversation(conversation=conversation).states == {stands: 1}
        assert measure_agent(workspace=cast.workspace, names=[(cast.channel.pk, "bob")]).asked_of.states == {stands: 1}
    assert [row.pk for row in list_tasks(conversation=conversation, moment=moment, states=["stalled"])] == [task.pk]
    assert list_tasks(conversation=conversation, moment=moment, states=["open"]) == []
    # Search means the same, and finds what asked for it.
    found = {
        state: [message.native_id for message in find_messages(workspace=cast.workspace, query=f"state:{state}")]
        for state in ("stalled", "open", "stalled,open", "done")
    }
    assert found == {"stalled": ["a"], "open": [], "stalled,open": ["a"], "done": []}
    # So does the list of conversations; one in which nobody asked for anything does not stand still.
    take_in(cast, say(-9000, "Nobody asked.", conversation="quiet"), is_examined=False)
    listed = {row.native_id: row.stands for row in select_conversations(workspace=cast.workspace)}  # type: ignore[attr-defined]
    assert listed == {"story": "stalled", "other": "open", "quiet": "open"}
    stalled = select_conversations(workspace=cast.workspace, state="stalled")
    assert [row.native_id for row in stalled] == ["story"]
    # What is stored does not know of the moment.
    assert (Task.objects.get().state, Conversation.objects.get(native_id="story").state) == ("open", "open")


def test_what_stands_beyond_its_deadline_is_timed_out_and_what_ended_after_it_late(cast: Cast) -> None:
    deliver(
        cast,
        lamb(0, ".ta id=alpha {ti:30s}", "ada", "bob"),
        lamb(0, ".ta id=beta {ti:30s}", "ada", "bob"),
        lamb(20, "!ta id=alpha st=rn", "bob", "ada"),
        lamb(30, "!ta id=beta st=rn", "bob", "ada"),
    )
    resolve_all(is_examined=False)
    conversation = Conversation.objects.get()
    alpha = Task.objects.get(native_id="alpha")
    assert alpha.deadline_at == NINE + timedelta(seconds=30)
    assert measure_conversation(conversation=conversation).states == {"in-progress": 2}
    take_in(cast, lamb(40, "!ta id=beta st=done", "bob", "ada"), is_examined=False)
    measures = measure_conversation(conversation=conversation)
    assert measures.states == {"timed-out": 1, "done": 1}
    assert measures.late == 1
    assert [row.task_id for row in find_messages(workspace=cast.workspace, query="state:timed-out")] == ["alpha"]


def test_a_deadline_that_counts_from_an_unknown_time_has_no_instant(cast: Cast) -> None:
    take_in(cast, lamb(None, ".ta id=alpha {ti:30s}", "ada", "bob"), is_examined=False)
    task = Task.objects.get()
    assert (task.deadline, task.deadline_at) == ("30s", None)


def test_the_moment_is_never_later_than_now(cast: Cast) -> None:
    ahead = (datetime.now(UTC) + timedelta(hours=20)).isoformat()
    take_in(cast, json.dumps({"raw": "From ahead.", "conversation": "ahead", "at": ahead}).encode(), is_examined=False)
    moment = find_moment(conversation=Conversation.objects.get())
    assert moment is not None
    assert moment <= datetime.now(UTC)
