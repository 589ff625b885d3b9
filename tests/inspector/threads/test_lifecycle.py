"""How tasks stand: stories in each dialect whose truth is known, each change with the message that caused it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from django.db import connection

from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads import tasks as threads_tasks
from inspector.threads.models import Conversation, Message, Task
from inspector.threads.states import (
    EVENT_RULES,
    EVENTS,
    LINKS,
    STATUS_WORDS,
    TRANSITIONS,
    State,
    derive_state,
    follow,
    read_status,
)
from inspector.threads.tasks import read_steps

from ..conftest import Cast, deliver, resolve_all, take_in


def say(name: str, raw: str | dict[str, Any], sender: str = "", receiver: str = "", **more: object) -> dict[str, Any]:
    """A line of a story; `name` is the message's id, and the second at which it is said."""
    text = raw if isinstance(raw, str) else json.dumps(raw)
    said = {"raw": text, "conversation": "story", **more}
    if sender:
        said["from"] = sender
    if receiver:
        said["to"] = [receiver]
    return {"id": name, **said}


def clowl(name: str, act: str, sender: str, receiver: str, parent: str = "", **details: object) -> dict[str, Any]:
    """A CLowl v0.2 message of a story."""
    raw = {"clowl": "0.2", "mid": name, "cid": "story", "p": act, "from": sender, "to": receiver}
    return say(name, raw | ({"pid": parent} if parent else {}) | {"body": {"t": "ship", "d": details}})


def coordinated(name: str, act: str, state: str, task: str) -> dict[str, Any]:
    """A message of CLowl's v0.3 coordination envelope; bob does what ada asks."""
    pair = {"from": "ada", "to": "bob"} if act == "REQ" else {"from": "bob", "to": "ada"}
    inner = {"p": act, **pair, "task": "ship", "data": {}, "ctx": None}
    envelope = {"clowl": "0.3.0", "mid": name, "task_id": task, "state": state, "routing": {**pair, "broadcast": False}}
    return say(name, envelope | {"trace": {"trace_id": "t"}, "semantic": inner})


def tell(cast: Cast, *lines: dict[str, Any]) -> list[Task]:
    """Deliver a story, a second a line, and settle it; its tasks in their order."""
    take_in(cast, *write(lines))
    return list(Task.objects.order_by("conversation__native_id", "place"))


def write(lines: Iterable[dict[str, Any]]) -> list[bytes]:
    return [
        json.dumps({**line, "at": f"2026-11-21T09:{at // 60:02d}:{at % 60:02d}Z"}).encode() + b"\n"
        for at, line in enumerate(lines)
    ]


def list_steps(task: Task) -> str:
    names = {pk: name or f"T{turn}" for pk, name, turn in Message.objects.values_list("id", "native_id", "turn")}
    return ", ".join(f"{names[step.message_id]} {step.event} {step.state}" for step in read_steps(task.steps))


Story = tuple[Sequence[dict[str, Any]], list[tuple[str, str, str, str]]]

# Each task: who asked, who was asked, how it stands, and its changes: message, event, state.
STORIES: dict[str, Story] = {
    "nslip: asked of one, and then of another who does it": (
        [
            say("a", '@a3|f0|c1|S0|d1|T1|k1|t"ship"#'),
            say("b", '@a3|f0|c1|S0|d2|T2|k1|t"ship"#'),
            say("c", '@a1|f0|c1|S2|d0|T3|k1|t"shipped"#'),
        ],
        [("0", "2", "acknowledged", "a asked open, b asked-again open, c spoke acknowledged")],
    ),
    "clowl: asked, acknowledged, under way, done": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "ACK", "bob", "ada", "a"),
            clowl("c", "PROG", "bob", "ada", "a", pct=40),
            clowl("d", "PROG", "bob", "ada", "a", pct=80),
            clowl("e", "DONE", "bob", "ada", "a"),
            clowl("f", "ACK", "ada", "bob", "e"),
        ],
        [("ada", "bob", "done", "a asked open, b acknowledged acknowledged, c progressed in-progress, e done done")],
    ),
    "clowl: a failure that may be tried again leaves it open, and what is asked again is the same task": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "ERR", "bob", "ada", "a", code="E006", msg="slow", retry=True),
            clowl("c", "REQ", "ada", "bob", "b"),
            clowl("d", "ERR", "bob", "ada", "c", code="E002", msg="no", retry=False),
        ],
        [("ada", "bob", "failed", "a asked open, b failed-for-now open, c asked-again open, d failed failed")],
    ),
    "clowl: an ACK after a CNCL changes nothing": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "CNCL", "ada", "bob", "a"),
            clowl("c", "ACK", "bob", "ada", "b", status="cancelled"),
            clowl("d", "DONE", "bob", "ada", "a"),
        ],
        [("ada", "bob", "cancelled", "a asked open, b cancelled cancelled")],
    ),
    "clowl: done with a status that says failed has failed": (
        [clowl("a", "REQ", "ada", "bob"), clowl("b", "DONE", "bob", "ada", "a", status="failed")],
        [("ada", "bob", "failed", "a asked open, b failed failed")],
    ),
    "clowl: what was transferred ends what was asked": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "DLGT", "bob", "cid", "a", delegation_mode="transfer"),
            clowl("c", "DONE", "cid", "ada", "b"),
        ],
        [
            ("ada", "bob", "done", "a asked open, b delegated delegated, c delegate-done done"),
            ("bob", "cid", "done", "b asked open, c done done"),
        ],
    ),
    "clowl: the failure of what was transferred is the failure of what was asked": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "DLGT", "bob", "cid", "a", delegation_mode="transfer"),
            clowl("c", "ERR", "cid", "bob", "b", code="E005", msg="no", retry=False),
            clowl("d", "REQ", "ada", "bob", "c"),
            clowl("e", "DONE", "bob", "ada", "d"),
        ],
        [
            ("ada", "bob", "failed", "a asked open, b delegated delegated, c delegate-failed failed"),
            ("bob", "cid", "failed", "b asked open, c failed failed"),
            ("ada", "bob", "done", "d asked open, e done done"),
        ],
    ),
    "clowl: who goes on with what it transferred was not done with it": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "DLGT", "bob", "cid", "a", delegation_mode="transfer"),
            clowl("c", "DONE", "cid", "bob", "b"),
            clowl("d", "ACK", "bob", "ada", "a"),
            clowl("e", "PROG", "bob", "ada", "a", pct=60),
            clowl("f", "CNCL", "ada", "bob", "a"),
            clowl("g", "DONE", "bob", "ada", "a"),
        ],
        [
            (
                *("ada", "bob", "cancelled"),
                "a asked open, b delegated delegated, c delegate-done done, "
                "e progressed in-progress, f cancelled cancelled",
            ),
            ("bob", "cid", "done", "b asked open, c done done"),
        ],
    ),
    "clowl: who transferred it reports the end of all": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "DLGT", "bob", "cid", "a", delegation_mode="transfer"),
            clowl("c", "DONE", "cid", "bob", "b"),
            clowl("d", "DONE", "bob", "ada", "a"),
            clowl("e", "PROG", "bob", "ada", "a", pct=60),
        ],
        [
            ("ada", "bob", "done", "a asked open, b delegated delegated, c delegate-done done, d done done"),
            ("bob", "cid", "done", "b asked open, c done done"),
        ],
    ),
    "clowl: a cancellation counts after the end of what was transferred": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "DLGT", "bob", "cid", "a", delegation_mode="transfer"),
            clowl("c", "DONE", "cid", "bob", "b"),
            clowl("d", "CNCL", "ada", "bob", "a"),
            clowl("e", "DONE", "bob", "ada", "a"),
        ],
        [
            (
                "ada",
                "bob",
                "cancelled",
                "a asked open, b delegated delegated, c delegate-done done, d cancelled cancelled",
            ),
            ("bob", "cid", "done", "b asked open, c done done"),
        ],
    ),
    "clowl: of two transfers the latest end counts": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "DLGT", "bob", "cid", "a", delegation_mode="transfer"),
            clowl("c", "DONE", "cid", "bob", "b"),
            clowl("d", "DLGT", "bob", "dan", "a", delegation_mode="transfer"),
            clowl("e", "DONE", "dan", "bob", "d"),
        ],
        [
            (
                *("ada", "bob", "done"),
                "a asked open, b delegated delegated, c delegate-done done, "
                "d delegated delegated, e delegate-done done",
            ),
            ("bob", "cid", "done", "b asked open, c done done"),
            ("bob", "dan", "done", "d asked open, e done done"),
        ],
    ),
    "clowl: asked again after it was done": (
        [
            coordinated("a", "REQ", "DISPATCHED", "t1"),
            coordinated("b", "DONE", "COMPLETED", "t1"),
            coordinated("c", "REQ", "DISPATCHED", "t1"),
        ],
        [("ada", "bob", "open", "a asked open, b done done, c asked-again open")],
    ),
    "clowl: who has help owes the end": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "DLGT", "bob", "cid", "a", delegation_mode="assist"),
            clowl("c", "ERR", "cid", "bob", "b", code="E005", msg="no", retry=False),
        ],
        [
            ("ada", "bob", "in-progress", "a asked open, b delegated delegated, c help-ended in-progress"),
            ("bob", "cid", "failed", "b asked open, c failed failed"),
        ],
    ),
    "clowl: asked back, it waits for the answer": (
        [clowl("a", "REQ", "ada", "bob"), clowl("b", "QRY", "bob", "ada", "a"), clowl("c", "INF", "ada", "bob", "b")],
        [
            ("ada", "bob", "in-progress", "a asked open, b asked-back waiting, c answered-back in-progress"),
            ("bob", "ada", "done", "b asked open, c answered done"),
        ],
    ),
    "clowl: without ids it is the latest thing asked of the speaker, not what the speaker asked": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "REQ", "bob", "cid"),
            clowl("c", "DONE", "cid", "bob"),
            clowl("d", "DONE", "bob", "ada"),
        ],
        [("ada", "bob", "done", "a asked open, d done done"), ("bob", "cid", "done", "b asked open, c done done")],
    ),
    "clowl: an answer to what was not received is a task that somebody asked for": (
        [clowl("c", "PROG", "bob", "ada", "lost", pct=5)],
        [("", "bob", "in-progress", "c progressed in-progress")],
    ),
    "clowl 0.3: the envelope says how the task stands": (
        [
            coordinated("a", "REQ", "CREATED", "t1"),
            coordinated("b", "INF", "WAITING", "t1"),
            coordinated("c", "PROG", "RUNNING", "t1"),
            coordinated("d", "INF", "TIMED_OUT", "t1"),
        ],
        [("ada", "bob", "timed-out", "a asked open, b waits waiting, c progressed in-progress, d timed-out timed-out")],
    ),
    "nslip: one task id, passed on, blocked, and done": (
        [
            say("", '@a4|f1|c1|S1|d0|T1|g1|k1|t"plan"#'),
            say("", '@a3|f0|c1|S0|d1|T2|g1|k1|t"go"#'),
            say("", '@a3|f0|c1|S1|d2|T3|g1|k1|t"do"#'),
            say("", '@a1|f2|c1|S2|d0|T4|g1|k1|u"blocked"|t"keys"#'),
            say("", '@a1|f0|c1|S0|d2|T5|g1|k1|t"here"#'),
            say("", "@a1|f0|c1|S2|d0|T6|g1|k1|r4#"),
            say("", "@a7|f3|c1|S0|d2|T7|g1|k1#"),
            say("", "@a1|f0|c1|S2|d0|T8|g1|k1|r5#"),
            say("", "@a6|f3|c1|S0|d2|T9|g1|k1#"),
        ],
        [
            (
                "0",
                "1",
                "done",
                "T1 proposed open, T3 delegated delegated, T4 waits waiting, "
                "T5 answered-back in-progress, T6 gave-result done, T7 sent-back in-progress, T8 gave-result done",
            )
        ],
    ),
    "nslip: a commitment acknowledges, and what is accepted is done": (
        [say("", "@a3|f0|c1|S0|d1|T1|k2#"), say("", "@a5|f0|c1|S1|d0|T2|k2#"), say("", "@a6|f0|c1|S0|d1|T3|k2#")],
        [("0", "1", "done", "T1 asked open, T2 acknowledged acknowledged, T3 accepted done")],
    ),
    "nslip: a refusal": (
        [say("", "@a3|f0|c1|S0|d1|T1|k2#"), say("", "@a7|f0|c1|S1|d0|T2|k2#")],
        [("0", "1", "failed", "T1 asked open, T2 refused failed")],
    ),
    "lambda: a question is answered by the next word of the one asked": (
        [say("a", "?Uk/co", "ada", "bob"), say("b", "!Ik/co", "bob", "ada"), say("c", "!Ik/co", "bob", "ada")],
        [("ada", "bob", "done", "a asked open, b answered done")],
    ),
    "lambda: an offer is agreed to, another turned down": (
        [
            say("a", ">Ih/Uk", "ada", "bob"),
            say("b", "<+", "bob", "ada"),
            say("c", ">Ih/Uk", "ada", "bob"),
            say("d", "<-", "bob", "ada"),
        ],
        [
            ("ada", "bob", "done", "a asked open, b agreed done"),
            ("ada", "bob", "done", "c asked open, d turned-down done"),
        ],
    ),
    "lambda: not understood": (
        [say("a", ".Uk/co", "ada", "bob"), say("b", "!er:pa", "bob", "ada")],
        [("ada", "bob", "failed", "a asked open, b not-understood failed")],
    ),
    "lambda: the status of a task by its id": (
        [
            say("a", ".ta id=alpha", "ada", "bob"),
            say("b", "!ta id=alpha", "bob", "ada"),
            say("c", "!ta id=alpha st=wa", "bob", "ada"),
            say("d", "!ta id=alpha st=rn", "bob", "ada"),
        ],
        [
            (
                "ada",
                "bob",
                "in-progress",
                "a asked open, b spoke acknowledged, c waits waiting, d progressed in-progress",
            )
        ],
    ),
    "lambda: a status block and a status word belong to what was asked, though they name no request": (
        [
            say("a", ".Uf/X{pr:^,ti:$60s}", "ada", "bob"),
            say("b", "<", "bob", "ada"),
            say("c", "!st{ta:prj/la,pr:75%}", "bob", "ada"),
            say("d", "!Ik/co", "bob", "ada"),
            say("e", "!Ik/co st=ok", "bob", "ada"),
        ],
        [("ada", "bob", "done", "a asked open, b acknowledged acknowledged, c progressed in-progress, e done done")],
    ),
    "lambda: where nobody is named it is what another asked": (
        [say("a", ".Uf/X", "ada"), say("b", "!st{pr:75%}", "ada"), say("c", "!st{pr:80%}", "bob")],
        [("ada", "bob", "in-progress", "a asked open, c progressed in-progress")],
    ),
    "lingua: a post waits for nobody, and its failure is one": (
        [
            say("a", "👽73|@general|$aGk=", "ada"),
            say("b", "👽79|#p1|$aGk=", "ada"),
            say("c", "^9|#p1\n--👽lingua/0.4@agent-lingua", "site"),
            say("d", "👽71|@general|#p2", "ada", "bob"),
        ],
        [
            ("ada", "", "done", "a posted done"),
            ("ada", "site", "failed", "b posted done, c failed failed"),
            ("ada", "bob", "open", "d asked open"),
        ],
    ),
    "lingua: queued, partly done, done": (
        [
            say("a", "👽33|@builders|#p1|$aGk=", "ada", "bob"),
            say("b", "^3|#p1\n--👽lingua/0.4@agent-lingua", "bob", "ada"),
            say("c", "^1|#p1\n--👽lingua/0.4@agent-lingua", "bob", "ada"),
            say("d", "^0|#p1\n--👽lingua/0.4@agent-lingua", "bob", "ada"),
        ],
        [("ada", "bob", "done", "a asked open, b waits waiting, c progressed in-progress, d done done")],
    ),
    "lingua: a retry that is needed leaves it open, an error ends it": (
        [
            say("a", "👽21|#f1", "ada", "bob"),
            say("b", "^8|#f1|~+5m\n--👽lingua/0.4@agent-lingua", "bob", "ada"),
            say("c", "!E4|slow\n--👽lingua/0.4@agent-lingua", "bob", "ada"),
        ],
        [("ada", "bob", "failed", "a asked open, b failed-for-now open, c failed failed")],
    ),
    "lingua: a subscription is under way until it is given up": (
        [say("a", "👽77|@builders", "ada", "bob"), say("b", "👽78|@builders", "ada", "bob", parent="a")],
        [("ada", "bob", "cancelled", "a asked open, b cancelled cancelled")],
    ),
    "lingua: the end of a subscription names none on the wire: it is the latest that its sender asked for": (
        [
            say("a", "👽77|@builders", "ada", "bob"),
            say("b", "👽21|#f1", "ada", "bob"),
            say("c", "👽78|@builders", "ada", "bob"),
        ],
        [("ada", "bob", "cancelled", "a asked open, c cancelled cancelled"), ("ada", "bob", "open", "b asked open")],
    ),
    "lingua: a retry asks again for what bears its id, answered or not": (
        [
            say("a", "👽21|@x|#f1", "ada", "bob"),
            say("b", "👽21|@x|#f2", "ada", "bob"),
            say("c", "^9|#f1\n--👽lingua/0.4@agent-lingua", "bob", "ada"),
            say("d", "👽215|@x|#f1", "ada", "bob"),
            say("e", "👽215|@x|#f2", "ada", "bob"),
            say("f", "^0|#f1\n--👽lingua/0.4@agent-lingua", "bob", "ada"),
        ],
        [
            ("ada", "bob", "done", "a asked open, c failed failed, d asked-again open, f done done"),
            ("ada", "bob", "open", "b asked open, e asked-again open"),
        ],
    ),
    "lingua: a retry without an id asks again for the latest of its kind, one of what was not received for itself": (
        [
            say("a", "👽21|@x", "ada", "bob"),
            say("b", "👽22|@x", "ada", "bob"),
            say("c", "👽215|@x", "ada", "bob"),
            say("d", "👽215|@x|#lost", "ada", "bob"),
        ],
        [
            ("ada", "bob", "open", "a asked open, c asked-again open"),
            ("ada", "bob", "open", "b asked open"),
            ("ada", "bob", "open", "d asked open"),
        ],
    ),
    "lingua: an answer that names another id is none to what was asked": (
        [say("a", "👽21|@x|#r2", "ada", "bob"), say("b", "^0|#r1|$aGk=\n--👽lingua/0.4@agent-lingua", "bob", "ada")],
        [("ada", "bob", "open", "a asked open"), ("", "bob", "done", "b done done")],
    ),
    "clowl: a cancellation that names none withdraws the latest thing that its sender asked and that has not ended": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "REQ", "bob", "ada"),
            clowl("c", "REQ", "ada", "bob"),
            clowl("d", "DONE", "bob", "ada", "c"),
            clowl("e", "CNCL", "ada", "bob"),
            clowl("f", "CNCL", "bob", "*"),
        ],
        [
            ("ada", "bob", "cancelled", "a asked open, e cancelled cancelled"),
            ("bob", "ada", "cancelled", "b asked open, f cancelled cancelled"),
            ("ada", "bob", "done", "c asked open, d done done"),
        ],
    ),
    "clowl: who names again what had failed asks again": (
        [
            clowl("a", "REQ", "ada", "bob"),
            clowl("b", "ERR", "bob", "ada", "a", code="E006", msg="slow", retry=True),
            clowl("c", "REQ", "ada", "bob", "a"),
            clowl("d", "DONE", "bob", "ada", "c"),
            clowl("e", "REQ", "ada", "bob", "a"),
        ],
        [
            ("ada", "bob", "done", "a asked open, b failed-for-now open, c asked-again open, d done done"),
            ("ada", "bob", "open", "e asked open"),
        ],
    ),
    "clowl: the latest thing asked is the latest in time, whether it has a task id or not": (
        [
            clowl("a", "REQ", "ada", "*"),
            say(
                "b",
                {"clowl": "0.3.0", "mid": "b", "task_id": "t1", "routing": {"from": "eve", "broadcast": True}}
                | {"semantic": {"p": "REQ", "from": "eve", "to": "*", "task": "ship", "data": {}, "ctx": None}},
            ),
            clowl("c", "DONE", "bob", "*"),
        ],
        [("ada", "", "open", "a asked open"), ("eve", "bob", "done", "b asked open, c done done")],
    ),
    "prose: what links to a request belongs to it": (
        [clowl("a", "REQ", "ada", "bob"), say("b", "I am on it.", "bob", "ada", parent="a")],
        [("ada", "bob", "acknowledged", "a asked open, b spoke acknowledged")],
    ),
}


@pytest.mark.django_db
def test_each_change_has_its_cause(cast: Cast) -> None:
    """Each story in a channel of its own, all of them settled together."""
    channels = {name: cast.workspace.channels.create(name=f"story {at}") for at, name in enumerate(STORIES)}
    for name, (lines, _) in STORIES.items():
        said = ({key: value for key, value in line.items() if value != ""} for line in lines)
        deliver(cast, *write(said), channel=channels[name])
    resolve_all()
    found = {
        name: [
            (task.requester, task.performer, task.state, list_steps(task))
            for task in Task.objects.filter(conversation__channel=channel).order_by("conversation__native_id", "place")
        ]
        for name, channel in channels.items()
    }
    assert found == {name: expected for name, (_, expected) in STORIES.items()}


def test_the_stories_go_through_every_event_and_every_state_that_a_wire_can_bring() -> None:
    told = ", ".join(steps for _, tasks in STORIES.values() for *_, steps in tasks)
    _, events, states = zip(*map(str.split, told.split(", ")), strict=True)
    assert set(events) == set(EVENTS)
    assert set(states) == {row.to for row in TRANSITIONS}


def test_the_tables_name_nothing_that_is_not_there() -> None:
    assert {sign.event for sign in EVENT_RULES} | {
        "asked",
        "posted",
        "delegate-done",
        "delegate-failed",
        "help-ended",
    } == set(EVENTS)
    assert {row.event for row in TRANSITIONS} == set(EVENTS)
    assert {sign.status for sign in EVENT_RULES} - {None} == set(STATUS_WORDS)
    assert [state.value for state in State] == Task.State.values
    rows = [(row.event, source) for row in TRANSITIONS for source in row.sources]
    assert len(rows) == len(set(rows)), "two rows say where the same event leads from the same state"


def test_no_answer_undoes_an_end_but_a_failure_and_what_is_asked_again() -> None:
    for event in EVENTS:
        assert follow("cancelled", event) == ("open" if event == "asked-again" else "cancelled")
    assert {event for event in EVENTS if follow("done", event) != "done"} == {
        *("asked-again", "sent-back", "failed", "failed-for-now")
    }


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("DONE", "done"), (" Blocked ", "waiting"), ("rn", "running"), ("ready_for_review", None), ("x" * 9999, None)],
)
def test_a_status_word_means_what_the_table_says(word: str, meaning: str | None) -> None:
    assert read_status(word) == meaning


@pytest.mark.parametrize(
    ("roots", "others", "state"),
    [
        ([], [], "open"),
        (["done", "waiting"], ["failed"], "open"),
        (["done", "failed"], [], "failed"),
        (["timed-out"], [], "failed"),
        (["done", "cancelled"], ["failed"], "done"),
        (["cancelled"], [], "cancelled"),
        ([], ["done"], "done"),
    ],
)
def test_a_conversation_stands_as_its_tasks_do(roots: list[str], others: list[str], state: str) -> None:
    assert derive_state(roots, others) == state


@pytest.mark.django_db
def test_what_is_inferred_says_so(cast: Cast) -> None:
    (task,) = tell(cast, clowl("a", "REQ", "ada", "bob"), clowl("b", "DONE", "bob", "ada"))
    assert [step.link for step in read_steps(task.steps)] == ["", "turn"]
    assert task.is_inferred
    assert all(link in LINKS for link in ("turn", "latest", "next-word"))


@pytest.mark.django_db
def test_a_task_that_changes_without_end_keeps_its_first_and_last_changes(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads_tasks, "MAX_STEPS", 3)
    rounds = 5
    lines = [coordinated("a", "REQ", "CREATED", "t1")]
    for number in range(rounds):
        lines.append(coordinated(f"w{number}", "INF", "WAITING", "t1"))
        lines.append(coordinated(f"r{number}", "PROG", "RUNNING", "t1"))
    (task,) = tell(cast, *lines)
    steps = list_steps(task)
    assert task.step_count == 2 * rounds + 1
    assert [step.split()[0] for step in steps.split(", ")] == ["a", "w0", "r0", "r3", "w4", "r4"]


@pytest.mark.django_db
def test_only_what_came_out_otherwise_is_written(cast: Cast) -> None:
    """An answer at the end writes its task's row alone; a message near the front moves the places of those after it."""
    tell(cast, *(clowl(f"a{number}", "REQ", "ada", f"bob{number}") for number in range(5)))
    before = {task.pk: task for task in Task.objects.all()}
    rows = list_versions()
    answer = clowl("z", "DONE", "bob4", "ada", "a4")
    take_in(cast, json.dumps(answer | {"at": "2026-11-21T09:30:00Z"}).encode() + b"\n")
    after = list_versions()
    written = [before[pk].performer for pk in rows if rows[pk] != after[pk]]
    assert written == ["bob4"]
    assert Task.objects.get(performer="bob4").state == "done"
    late = clowl("first", "REQ", "ada", "eve")
    take_in(cast, json.dumps(late | {"at": "2026-11-21T08:00:00Z"}).encode() + b"\n")
    assert list(Task.objects.order_by("place").values_list("performer", flat=True)) == [
        *("eve", "bob0", "bob1", "bob2", "bob3", "bob4")
    ]
    assert {task.pk for task in Task.objects.all()} >= set(before)


def list_versions() -> dict[Any, str]:
    """Where the row of each task lies: a row that is written anew lies elsewhere."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, ctid::text FROM threads_task")
        return dict(cursor.fetchall())


@pytest.mark.django_db
def test_what_is_withdrawn_leaves_no_task(cast: Cast) -> None:
    delivery = take_in(cast, *(json.dumps(clowl("a", "REQ", "ada", "bob")).encode(),))
    assert Task.objects.count() == 1
    withdraw_delivery(delivery=delivery, membership=cast.owner, reason="not ours")
    resolve_all()
    assert not Task.objects.exists()
    assert Conversation.objects.get().state == "open"
