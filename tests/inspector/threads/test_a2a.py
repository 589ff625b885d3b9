"""A log of A2A: who answers whom, the message inside a message, and how the task ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from inspector.audit.models import Finding
from inspector.intake.models import Door
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Message, Task
from tests.inspector.audit.rule_logs.writing import clowl
from tests.inspector.conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db
WORK = '@a3|f0|c1|S0|d1|T1|k1|t"count"#'


def say(text: str, role: str, name: str, **more: str) -> dict[str, Any]:
    parts = [{"kind": "text", "text": text}]
    return {"kind": "message", "role": role, "messageId": name, "contextId": "c1", "parts": parts, **more}


def answer(kind: str, **said: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": {"kind": kind, "contextId": "c1", **said}}


def line(at: int, sender: str, said: dict[str, Any]) -> str:
    return json.dumps({"from": sender, "at": f"2026-11-21T09:00:{at:02d}Z", "raw": json.dumps(said)})


def test_a_task_is_asked_for_worked_on_and_completed(cast: Cast) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": say(WORK, "user", "m1")}}
    working = {"state": "working", "message": say("I count", "agent", "m2", taskId="t1")}
    piece = {"artifactId": "a1", "parts": [{"kind": "text", "text": "41 crates"}]}
    lines = [
        line(1, "planner", asked),
        line(2, "counter", answer("task", id="t1", status={"state": "submitted"}, history=[say(WORK, "user", "m1")])),
        line(3, "counter", answer("status-update", taskId="t1", status=working, final=False)),
        line(4, "counter", answer("artifact-update", taskId="t1", artifact=piece, lastChunk=True)),
        line(5, "counter", answer("status-update", taskId="t1", status={"state": "completed"}, final=True)),
    ]
    deliver(cast, "\n".join(lines).encode())
    resolve_all(is_examined=False)
    messages = list(Message.objects.filter(dialect="a2a").order_by("order_index", "part"))
    assert [each.performative for each in messages] == ["request", "acknowledge", "progress", "progress", "done"]
    assert {(each.parent, each.parent_basis) for each in messages[1:]} == {(messages[0].pk, "correlation")}
    inner = Message.objects.get(dialect="nslip")
    assert (inner.carrier, inner.part, inner.performative) == ("a2a", 2, "request")
    # The request bore no task id: the agent made the task of it, and both have ended.
    tasks = Task.objects.exclude(conversation__native_id="1").order_by("place")
    assert [(each.native_id, each.requester, each.state) for each in tasks] == [
        ("", "planner", "done"),
        ("t1", "planner", "done"),
    ]


def test_a_log_without_times_keeps_its_order_whatever_times_its_tasks_have(cast: Cast) -> None:
    """The time of a state is the task's: one that is asked for later may have reached it long before."""
    tasks = [
        answer("task", id=f"t{at}", status={"state": "completed", "timestamp": f"2023-10-{27 - at}T10:00:00Z"})
        for at in (1, 2)
    ]
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t1"}}
    lines = [asked, tasks[0], asked | {"params": {"id": "t2"}}, tasks[1]]
    deliver(cast, "\n".join(map(json.dumps, lines)).encode())
    resolve_all(is_examined=False)
    assert Message.objects.filter(order_basis="receipt").count() == 4
    said = (
        Message.objects.filter(native_act="task")
        .order_by("order_time", "order_index")
        .values_list("english", flat=True)
    )
    assert [each.partition(", that ")[2] for each in said] == [
        f"the task t{at} is completed (as of {27 - at} October 2023, 10:00:00 UTC)." for at in (1, 2)
    ]


@pytest.mark.parametrize("is_late", [False, True])
def test_a_task_answers_the_request_that_it_repeats_where_that_names_no_conversation(
    cast: Cast, *, is_late: bool
) -> None:
    """A client knows no conversation before the agent gives one, and asks for a task by its id alone."""
    first = {name: value for name, value in say("Count", "user", "m1").items() if name != "contextId"}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": first}}
    given = answer("task", id="t1", status={"state": "completed"}, history=[say("Count", "user", "m1", taskId="t1")])
    lines = [line(1, "planner", asked), line(2, "counter", given)]
    for at in (1, 0) if is_late else (0, 1):
        deliver(cast, lines[at].encode(), name=f"{at}.jsonl")
        resolve_all(is_examined=False)
    request, result = Message.objects.order_by("order_time")
    assert request.conversation_id != result.conversation_id
    assert (result.parent, result.parent_basis) == (request.pk, "explicit")
    assert result.parent_why == "its task repeats that message; it is in another conversation"


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 0, 2]], ids=str)
def test_an_answer_that_names_the_conversation_first_meets_its_request_by_the_call(
    cast: Cast, order: Sequence[int]
) -> None:
    """Within the log that both are in: in another the same id is another call's."""
    first = {name: value for name, value in say("Count", "user", "m1").items() if name != "contextId"}
    asked = _rpc(1, "planner", "counter", id=7, method="message/send", params={"message": first})
    lines = [asked, _rpc(2, "counter", "planner", id=7, result=say("41", "agent", "m2"))]
    lines.append(_rpc(3, "clerk", "planner", id=7, result=say("Who asks?", "agent", "m3")))
    deliveries = {}
    for at in order:
        deliveries[at] = deliver(cast, lines[at].encode(), door=Door.API)
        resolve_all(is_examined=False)

    def see() -> list[Any]:
        request, result, other = Message.objects.order_by("order_time")
        assert (other.parent, other.parent_key, other.parent_basis) == (None, None, "")
        return [request.pk, result.parent, result.parent_basis, result.parent_why]

    pk, *linked = see()
    assert linked == [pk, "correlation", "it names that request; it is in another conversation"]
    withdraw_delivery(delivery=deliveries[0], membership=cast.owner, reason="a mistake")
    resolve_all(is_examined=False)
    assert see()[1:] == [None, "", ""]
    # Another request under the same id: nobody can tell which of the two is meant.
    for text in ("Count", "Weigh"):
        wire = asked.replace("m1", text).replace("Count", text)
        deliver(cast, wire.encode(), door=Door.API)
    resolve_all(is_examined=False)
    result = Message.objects.get(native_id="m2")
    assert (result.parent, result.parent_basis) == (None, "correlation")
    assert result.parent_why == "it names that request; 2 messages bear that id"


def _rpc(at: int, sender: str, receiver: str, envelope: str = "", **said: Any) -> str:
    around = {"from": sender, "to": receiver, **({"conversation": envelope} if envelope else {})}
    return json.dumps({**around, "at": f"2026-11-21T09:00:{at:02d}Z", "raw": json.dumps({"jsonrpc": "2.0", **said})})


@pytest.mark.parametrize("envelope", ["", "log-7"], ids=["unnamed", "named by the log"])
@pytest.mark.parametrize("repeats", [False, True], ids=["", "with history"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["in order", "answers first"])
def test_nothing_is_missed_that_may_stand_in_the_conversation_that_an_answer_names(
    cast: Cast, envelope: str, order: Sequence[int], *, repeats: bool
) -> None:
    first = {name: value for name, value in say("Count", "user", "m1").items() if name != "contextId"}
    more: dict[str, Any] = {"history": [say("Count", "user", "m1", taskId="t1")]} if repeats else {}
    task = {"kind": "task", "id": "t1", "contextId": "c1", **more}
    asked = [
        _rpc(1, "planner", "counter", envelope, id=1, method="message/send", params={"message": first}),
        _rpc(3, "planner", "counter", envelope, id=2, method="tasks/get", params={"id": "t1"}),
        _rpc(
            5,
            "planner",
            "counter",
            envelope,
            id=3,
            method="message/send",
            params={"message": {**first, "messageId": "m2"}},
        ),
        _rpc(7, "planner", "clerk", id=4, method="message/send", params={"message": say("And?", "user", "m3")}),
        json.dumps({"from": "eve", "at": "2026-11-23T09:00:00Z", "raw": "That is all."}),
    ]
    answered = [
        _rpc(2, "counter", "planner", id=1, result={**task, "status": {"state": "working"}}),
        _rpc(4, "counter", "planner", id=2, result={**task, "status": {"state": "completed"}}),
        _rpc(6, "counter", "planner", id=3, result={**say("None", "agent", "m4"), "contextId": "c2"}),
    ]
    for at in order:
        deliver(cast, "\n".join((asked, answered)[at]).encode(), name=f"{at}.jsonl")
        resolve_all()
    # What names its conversation and has no answer there has none.
    assert list(Finding.objects.filter(holds=True).values_list("rule", "text")) == [
        ("unanswered", "planner asked clerk; no reply to it is known.")
    ]


def test_a_request_is_unanswered_as_long_as_nothing_in_another_conversation_answers_it(cast: Cast) -> None:
    """Also where the answer comes later, and is withdrawn again."""
    asked = clowl("m1", "REQ", "oscar", "radar") + clowl("m9", "INF", "eve", "oscar", minute=180)
    deliver(cast, asked.encode(), name="asked.jsonl")
    resolve_all()
    assert list(Finding.objects.filter(holds=True).values_list("rule", flat=True)) == ["unanswered"]
    done = clowl("m2", "DONE", "radar", "oscar", minute=1, pid="m1").replace('"c"', '"elsewhere"')
    answer = deliver(cast, done.encode(), name="answer.jsonl")
    resolve_all()
    assert list(Finding.objects.filter(holds=True)) == []
    withdraw_delivery(delivery=answer, membership=cast.owner, reason="a mistake")
    resolve_all()
    assert list(Finding.objects.filter(holds=True).values_list("rule", flat=True)) == ["unanswered"]
