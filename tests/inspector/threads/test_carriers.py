"""Messages inside messages: each keeps its own dialect, stands in the tree, and is found, masked and read by it."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from django.test import Client

from inspector.audit.models import Finding
from inspector.browsing.transcripts import write_text
from inspector.search.refining import count_facets
from inspector.search.selectors import find_messages
from inspector.threads.models import Message, Task
from tests.inspector.audit.rule_logs.writing import ask_model, stream_turn, trace, write_span
from tests.inspector.conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db
SECRET = "tok-secret-9876"
CLOWL = (
    '{"clowl":"0.2","mid":"m1","ts":1795248000,"p":"REQ","from":"planner","to":"executor","cid":"c1",'
    '"body":{"t":"count","d":{"n":1}},"auth":"' + SECRET + '"}'
)


def rpc(**said: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", **said})


def call(number: int, text: str) -> str:
    return rpc(id=number, method="tools/call", params={"name": "send", "arguments": {"text": text}})


@pytest.fixture
def log(cast: Cast) -> Cast:
    lines = [
        call(1, '@a3|f0|c1|S0|d1|T1|k1|t"count"#'),
        rpc(id=1, result={"content": [{"type": "text", "text": "sent"}]}),
        call(2, '@a4|f1|c1|S1|d0|T2|k1|t"plan"#'),
        rpc(id=2, result={"content": [{"type": "text", "text": "no such agent"}], "isError": True}),
        call(3, CLOWL),
    ]
    deliver(cast, "\n".join(lines).encode())
    resolve_all(is_examined=False)
    return cast


def test_each_stands_in_the_tree_by_the_rules_of_its_own_dialect(log: Cast) -> None:
    messages = list(Message.objects.order_by("order_index", "part"))
    assert len(messages) == 8
    asked, planned = (each for each in messages if each.dialect == "nslip")
    assert (asked.carrier, asked.read_in, asked.part) == ("mcp", "mcp", 2)
    assert (planned.parent, planned.parent_basis) == (asked.pk, "turn")
    calls = [each for each in messages if each.native_act == "tools/call"]
    answers = [each for each in messages if each.native_act == "result"]
    assert [(each.parent, each.parent_basis) for each in answers] == [(each.pk, "correlation") for each in calls[:2]]
    assert [each.performative for each in answers] == ["done", "failure"]


def test_one_that_names_a_conversation_of_its_own_says_within_which_message_it_stands(
    log: Cast, client: Client
) -> None:
    client.force_login(log.viewer.user, backend="django.contrib.auth.backends.ModelBackend")
    inner = Message.objects.get(dialect="clowl")
    outer = Message.objects.get(record=inner.record_id, part=1)
    assert inner.conversation_id != outer.conversation_id
    link, conversation = f'href="/w/acme/messages/{outer.pk}/"', f"/w/acme/conversations/{inner.conversation_id}/"
    for address in (f"/w/acme/messages/{inner.pk}/", conversation):
        assert f"within <a {link}>message 5 (the request “send”)</a>" in client.get(address).content.decode()
    assert f"{link}>carried by MCP</a>" in client.get(f"{conversation}tree/").content.decode()
    assert "Within message 5 (the request “send”) of another conversation." in write_text(
        conversation=inner.conversation
    )


@pytest.mark.parametrize("is_spoken", [False, True])
def test_an_answer_that_any_program_may_give_is_of_the_protocol_that_is_spoken(cast: Cast, *, is_spoken: bool) -> None:
    method = "ping" if is_spoken else "textDocument/hover"
    refused = {"code": -32601, "message": "no such method"}
    lines = [rpc(id=1, method=method, params={}), rpc(id=1, result={}), rpc(id=1, error=refused)]
    deliver(cast, "\n".join(lines).encode())
    resolve_all(is_examined=False)
    assert {each.dialect for each in Message.objects.all()} == {"mcp" if is_spoken else "prose"}


def test_it_is_found_by_its_dialect_and_counted_so(log: Cast) -> None:
    found = find_messages(workspace=log.workspace, query="dialect:nslip")
    assert {each.carrier for each in found} == {"mcp"}
    assert len(find_messages(workspace=log.workspace, query="carrier:mcp")) == 3
    assert len(find_messages(workspace=log.workspace, query="tool:send performative:request dialect:mcp")) == 3
    counted = count_facets(workspace=log.workspace, query="")
    assert counted is not None
    values = {each.value: each.count for each in next(one for one in counted.facets if one.name == "dialect").values}
    assert values == {"mcp": 5, "nslip": 2, "clowl": 1}


def test_a_call_within_a_span_or_put_together_of_pieces_is_found_by_its_tool(cast: Cast) -> None:
    span = ask_model("Where is it?", {"name": "find", "id": "c1", "arguments": {"q": "gate"}}, {"name": "book"})
    deliver(cast, (trace(span) + stream_turn(call=("send", {"to": "eve"}))).encode())
    resolve_all(is_examined=False)
    found = {
        tool: [each.dialect for each in find_messages(workspace=cast.workspace, query=f"tool:{tool}")]
        for tool in ("find", "book", "send", "gate")
    }
    assert found == {"find": ["chat"], "book": ["chat"], "send": ["chat", "chat"], "gate": []}


@pytest.mark.parametrize("is_late", [False, True])
def test_what_is_new_in_spans_is_told_once_and_answers_by_its_call(cast: Cast, *, is_late: bool) -> None:
    asked: dict[str, Any] = {"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}
    calls = ({"type": "tool_call", "id": f"c{at}", "name": "find", "arguments": {"q": "it"}} for at in (1, 2))
    call = {"role": "assistant", "parts": [*calls]}
    back = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "gate 4"}]}
    said = {"role": "assistant", "parts": [{"type": "text", "content": "At gate 4."}]}
    work = {"conversation.id": "trip", "system_instructions": [{"type": "text", "content": "Be brief."}]}
    ran = {"tool.name": "find", "tool.call.id": "c1", "tool.call.arguments": {"q": "it"}, "tool.call.result": "gate 4"}
    spans = (
        write_span("invoke_agent", {"conversation.id": "trip"}),
        write_span("chat", {**work, "input.messages": [asked], "output.messages": [call]}) | _INSIDE,
        write_span("execute_tool", {**ran, "conversation.id": "trip"}) | _INSIDE,
        write_span("chat", {**work, "input.messages": [asked, call, back], "output.messages": [said]}) | _INSIDE,
    )
    times = ((f"179511840{at}000000000", f"179511840{at}250000000") for at in range(len(spans)))
    timed = (
        span | {"startTimeUnixNano": start, "endTimeUnixNano": end}
        for span, (start, end) in zip(spans, times, strict=True)
    )
    lines = trace(*timed).splitlines()
    for at, line in enumerate(reversed(lines) if is_late else lines):
        deliver(cast, line.encode(), name=f"{at}.log")
        resolve_all()
    rows = {row.pk: row for row in Message.objects.order_by("place")}
    above = [(row.english, row.parent and rows[row.parent].native_act) for row in rows.values() if row.carrier]
    assert above == [
        ("The system prompt instructs the assistant: “Be brief.”", "chat"),
        ("The user says: “Where is it?”.", "chat"),
        ("ada calls the tool find (call c1) with q = “it”.", "chat"),
        ("ada calls the tool find (call c2) with q = “it”.", "chat"),
        ("The tool answers (call c1, its call of find): “gate 4”.", "tool_call"),
        ("ada says: “At gate 4.”", "chat"),
    ]
    (tool,) = (row for row in rows.values() if row.native_act == "execute_tool")
    assert tool.english.startswith("ada runs the tool find (call c1, its call of find)")
    assert tool.parent is not None
    assert rows[tool.parent].native_act == "invoke_agent"
    assert [(task.state, task.message_count) for task in Task.objects.order_by("place")] == [("done", 2), ("open", 1)]
    # Nobody owes the second call an answer that the log must hold.
    assert list(Finding.objects.filter(holds=True).values_list("rule", "text")) == []


_INSIDE: Final = {"parentSpanId": "eee19b7ec3c10000"}


def test_a_span_within_one_of_another_conversation_answers_nothing_by_that(cast: Cast) -> None:
    """An agent whose tool fails and who goes on within a request of HTTP: nothing of it was asked, done or reversed."""
    spans = (
        {"name": "POST /book"},
        write_span("invoke_agent", {"conversation.id": "trip"}) | _INSIDE,
        write_span("execute_tool", {"conversation.id": "trip", "tool.name": "pay"}, fails=True)
        | {"parentSpanId": "eee19b7ec3c10001"},
    )
    deliver(cast, trace(*spans).encode())
    resolve_all()
    assert Message.objects.filter(parent_basis="explicit").count() == 2
    assert not Task.objects.exists()
    assert "end-taken-back" not in Finding.objects.filter(holds=True).values_list("rule", flat=True)


def test_a_message_that_spans_repeat_conflicts_with_no_other(cast: Cast) -> None:
    """What a tool is given an agent around it was given, and both spans say so: it is the same message."""
    given = [write_span("invoke_agent", {"input.messages": CLOWL}), write_span("chat", {"input.messages": CLOWL})]
    deliver(cast, trace(*given).encode())
    resolve_all()
    assert Message.objects.filter(dialect="clowl", native_id="m1").count() == 2
    assert not Finding.objects.filter(rule="conflicting-duplicate").exists()
    changed = write_span("chat", {"input.messages": CLOWL.replace('"n":1', '"n":2')})
    deliver(cast, trace(*given, changed).encode(), name="changed.log")
    resolve_all()
    assert Finding.objects.filter(rule="conflicting-duplicate").exists()


def test_its_page_shows_its_characters_and_hides_its_secret(log: Cast, client: Client) -> None:
    client.force_login(log.viewer.user, backend="django.contrib.auth.backends.ModelBackend")
    for each in Message.objects.all():
        page = client.get(f"/w/acme/messages/{each.pk}/").content.decode()
        assert SECRET not in page
        assert ("nSLIP in MCP" in page) == (each.dialect == "nslip")
    assert not find_messages(workspace=log.workspace, query=f"raw:{SECRET}")
    assert find_messages(workspace=log.workspace, query="raw:arguments dialect:clowl")
