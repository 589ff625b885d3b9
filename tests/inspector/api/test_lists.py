"""What rows say of where they come from; lists, agents, facets and totals; and which scope a refusal names."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from inspector.accounts.models import ApiKey
from inspector.accounts.services import create_api_key, ensure_channel, remove_member
from inspector.api import workspaces
from inspector.audit.agents import join_agents, name_agent
from inspector.audit.findings.selectors import list_holding
from inspector.audit.overview import count_sections
from inspector.audit.rules import RULES
from inspector.intake.models import Delivery
from inspector.intake.withdrawals import withdraw_delivery
from inspector.search import refining
from inspector.search.aids import save_search
from inspector.threads.models import Agent, Conversation, Message, Trace
from tests.inspector.pages.conftest import STORY

from ..conftest import Cast, deliver, resolve_all
from .clients import get, list_operations

pytestmark = pytest.mark.django_db
ID = "019dd7a2-5d3a-7c11-9f7e-2f4f6a1b8e55"
ASK = (
    b'{"clowl":"0.2","mid":"m1","ts":1795118400,"tid":"goal","p":"REQ","from":"oscar","to":"radar","cid":"c1",'
    b'"body":{"t":"search","d":{"q":"tea"}}}\n'
)
ERROR = (
    b'{"clowl":"0.2","mid":"m2","pid":"lost","ts":1795118460,"tid":"goal","p":"ERR","from":"radar","to":"oscar",'
    b'"cid":"c1","body":{"t":"search","d":{"code":"E003","msg":"not found"}}}\n'
)
PROSE = b'{"raw":"Nobody waits.","conversation":"c2"}\n'


def test_a_row_says_where_its_message_comes_from(cast: Cast, token: str) -> None:
    north = ensure_channel(workspace=cast.workspace, name="north")
    first = deliver(cast, ASK, channel=north)
    again = deliver(cast, ASK, ERROR, PROSE, channel=north, name="again.log")
    resolve_all()
    trace = Trace.objects.get(native_id="goal")
    rows = {row["native_id"]: row for row in get("messages", token)["results"]}
    origins = {name: (row["channel"], row["topic"], row["trace"], row["native_trace"]) for name, row in rows.items()}
    told = ("north", "search", str(trace.pk), "goal")
    assert origins == {"m1": told, "m2": told, None: ("north", None, None, None)}
    assert [rows[name]["delivery"] for name in ("m1", "m2", None)] == [str(first.pk), str(again.pk), str(again.pk)]
    # The same row wherever a message is shown.
    row, conversation = rows["m1"], rows["m1"]["conversation"]
    whole = get(f"messages/{row['id']}", token)
    assert {name: whole[name] for name in row} == row
    of_conversation = get(f"conversations/{conversation}", token)["messages"][0]
    assert {name: of_conversation[name] for name in row} == row
    for tree in (f"conversations/{conversation}/tree", f"traces/{trace.pk}/tree"):
        (linked,) = (
            each["message"] for each in get(tree, token)["rows"] if (each["message"] or {}).get("native_id") == "m1"
        )
        assert {name: linked[name] for name in row} == row
    # What is withdrawn brought nothing any more, as long as another delivery holds it.
    withdraw_delivery(membership=cast.owner, delivery=first, reason="sent twice")
    resolve_all()
    assert {each["delivery"] for each in get("messages", token)["results"]} == {str(again.pk)}


@pytest.mark.parametrize("path", ["messages", "deliveries", "channels", "rules", "searches"])
def test_a_longer_page_takes_no_more_statements(cast: Cast, token: str, path: str, unhurried: None) -> None:
    counts = []
    for wanted in (1, 9):
        for number in range(wanted):
            name = f"{wanted}-{number}"
            deliver(
                cast, PROSE.replace(b"c2", name.encode()), channel=ensure_channel(workspace=cast.workspace, name=name)
            )
            save_search(membership=cast.owner, name=name, query="tea", is_shared=True)
        resolve_all()
        get(path, token)
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert len(get(path, token)["results"]) >= wanted
        counts.append(len(asked))
    assert counts[0] == counts[1]


def test_deliveries_are_listed_newest_first_and_narrowed(cast: Cast, token: str) -> None:
    north = ensure_channel(workspace=cast.workspace, name="north")
    first, second = deliver(cast, ASK), deliver(cast, ASK, ERROR, b"\xff\n", channel=north, name="night.log")
    third = deliver(cast, ASK)
    resolve_all()
    withdraw_delivery(membership=cast.owner, delivery=first, reason="wrong")
    rows = get("deliveries", token)["results"]
    assert [row["id"] for row in rows] == [str(each.pk) for each in (third, second, first)]
    assert [row["is_withdrawn"] for row in rows] == [False, False, True]
    counts = ("received", "stored", "duplicate", "quarantined", "read", "channel", "file_name")
    assert [rows[1][name] for name in counts] == [3, 2, 0, 1, 2, "north", "night.log"]
    assert [rows[0][name] for name in counts[:4]] == [1, 0, 1, 0]
    assert [row["id"] for row in get("deliveries", token, channel="north")["results"]] == [str(second.pk)]
    assert get("deliveries", token, state="broken")["results"] == []
    assert len(get("deliveries", token, state="framed")["results"]) == 3
    assert get("deliveries", token, 400, state="staged")["parameter"] == "state"
    assert (
        get("deliveries", token, 400, channel="nroth")["detail"] == "there is no channel 'nroth': did you mean north?"
    )
    assert get("deliveries", token, fields="stored", limit=1)["results"] == [{"id": str(third.pk), "stored": 0}]
    page = get("deliveries", token, limit=2)
    assert [row["id"] for row in get("deliveries", token, cursor=page["next"])["results"]] == [str(first.pk)]


def test_rules_are_listed_as_they_are_set_and_with_what_they_found(cast: Cast, token: str) -> None:
    deliver(cast, ASK, ERROR)
    resolve_all()
    rows = {row["id"]: row for row in get("rules", token, limit=200)["results"]}
    assert sorted(rows) == sorted(RULES)
    found = list_holding(workspace=cast.workspace)[0]
    assert (rows[found.rule]["open"], rows[found.rule]["total"]) == (1, 1)
    assert rows[found.rule]["latest_at"] is not None
    assert sum(row["open"] for row in rows.values()) == list_holding(workspace=cast.workspace).count() > 1
    first = get("rules", token, limit=3)
    rest = get("rules", token, limit=200, cursor=first["next"])
    assert [row["id"] for row in (*first["results"], *rest["results"])] == sorted(RULES)


def test_saved_searches_are_those_that_the_maker_of_the_key_sees(cast: Cast, token: str) -> None:
    for person, name, is_shared in (
        (cast.owner, "ours", True),
        (cast.owner, "mine", False),
        (cast.auditor, "private-one", False),
    ):
        save_search(membership=person, name=name, query="from:oscar", is_shared=is_shared)
    save_search(membership=cast.stranger, name="elsewhere", query="x", is_shared=True)

    def names(key: str) -> list[str]:
        return [row["name"] for row in get("searches", key)["results"]]

    make = {"workspace": cast.workspace, "scopes": ["read"]}
    his = create_api_key(name="his", created_by=cast.auditor.user, **make)[1]
    assert names(his) == ["ours", "private-one"]
    assert names(token) == ["ours"]
    assert get("searches", his)["results"][0] | {"id": "", "created_at": ""} == {
        "id": "",
        "name": "ours",
        "query": "from:oscar",
        "is_shared": True,
        "saved_by": "olivia",
        "created_at": "",
    }
    remove_member(membership=cast.auditor)
    answer = Client().get("/api/v1/searches", headers={"Authorization": f"Bearer {his}"})
    assert b"private-one" not in answer.content


def test_facets_are_those_of_the_query_and_say_where_they_are_cut(
    cast: Cast, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(cast, ASK, ERROR, PROSE)
    resolve_all()
    told = get("facets", token, q="dialect:clowl")
    assert (told["counted"], told["is_all"]) == (2, True)
    by_name = {facet["name"]: facet for facet in told["facets"]}
    assert {each["value"]: each["count"] for each in by_name["from"]["values"]} == {"oscar": 1, "radar": 1}
    (chosen,) = (each for each in by_name["dialect"]["values"] if each["is_chosen"])
    assert (chosen["value"], by_name["dialect"]["adds"]) == ("clowl", True)
    monkeypatch.setattr(refining, "COUNTED", 1)
    cut = get("facets", token)
    assert (cut["counted"], cut["is_all"]) == (1, False)
    assert get("facets", token, 400, q="form:oscar")["start"] == 0
    monkeypatch.setattr(workspaces, "count_facets", lambda **given: None)
    assert "takes too long" in get("facets", token, 503)["detail"]
    assert "scope secrets" in get("facets", token, 400, q="a raw:b")["detail"]


def test_totals_are_what_there_is(cast: Cast, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"count": 0, "is_exact": True}
    empty = dict.fromkeys(("deliveries", "received", "stored", "duplicate", "quarantined"), 0)
    lists = ("conversations", "traces", "agents", "findings")
    assert get("totals", token) == {"records": empty, "messages": 0, **dict.fromkeys(lists, nothing)}
    deliver(cast, ASK, ERROR, PROSE, b"\xff\n")
    deliver(cast, ASK)
    resolve_all()
    told = get("totals", token)
    assert told["records"] == {"deliveries": 2, "received": 5, "stored": 3, "duplicate": 1, "quarantined": 1}
    assert told["messages"] == Message.objects.count() == 3
    assert {name: told[name]["count"] for name in lists} == {
        name: count for name, count in count_sections(workspace=cast.workspace).items() if name in lists
    }
    assert told["conversations"] == {"count": Conversation.objects.count(), "is_exact": True}
    monkeypatch.setattr(workspaces, "MAX_COUNTED", 1)
    assert get("totals", token)["conversations"] == {"count": 1, "is_exact": False}
    monkeypatch.setattr(workspaces, "fetch", lambda rows, patience_ms: None)
    assert (get("totals", token)["records"], get("totals", token)["messages"]) == (None, None)


def test_lists_show_a_stranger_nothing(cast: Cast, stranger_token: str) -> None:
    ensure_channel(workspace=cast.workspace, name="acme-only")
    save_search(membership=cast.owner, name="acme-only", query="x", is_shared=True)
    deliver(cast, ASK, ERROR, name="acme-only.log")
    resolve_all()
    for path in ("deliveries", "channels", "searches", "facets", "totals", "rules"):
        answer = Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {stranger_token}"})
        assert answer.status_code == 200
        assert b"acme" not in answer.content
    assert sum(row["total"] for row in get("rules", stranger_token)["results"]) == 0
    assert get("totals", stranger_token)["records"]["received"] == 0
    # Not even by way of what a mistake is told.
    assert "acme-only" not in str(get("messages", stranger_token, 400, q="channel:acme-onli"))
    assert "acme-only" not in str(get("agents", stranger_token, 400, channel="acme-onli"))


def list_guarded() -> list[tuple[str, str, tuple[str, ...]]]:
    """The address, method and scopes of every operation that not every key may ask for."""
    return [
        (str(url.pattern), method, operation.scopes)
        for url, method, operation in list_operations()
        if set(operation.scopes) != set(ApiKey.Scope.values)
    ]


def test_a_refusal_names_the_scope_that_is_needed(cast: Cast) -> None:
    keys = {}
    for scope in ApiKey.Scope.values:
        others = [each for each in ApiKey.Scope.values if each != scope]
        keys[scope] = create_api_key(workspace=cast.workspace, name=scope, scopes=others)[1]
    neither = create_api_key(workspace=cast.workspace, name="neither", scopes=["secrets"])[1]
    guarded = list_guarded()
    assert len(guarded) > 60
    for pattern, method, scopes in guarded:
        address = "/api/" + "".join(ID if "<" in part else part for part in _split(pattern))
        token = keys[scopes[0]] if len(scopes) == 1 else neither
        answer = Client().generic(method, address, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 403, (method, address, answer.content)
        if method != "HEAD":
            said, told = answer.json(), f"this needs a key with the scope {' or '.join(scopes)}"
            if pattern.startswith("v1/otlp/"):
                assert said == {"message": told}  # as its protocol has refusals
                continue
            assert said["scope"] == list(scopes), address
            assert said["detail"] == told


def _split(pattern: str) -> list[str]:
    return pattern.replace("<", "\0<").replace(">", ">\0").split("\0")


CAPS = (
    b'{"clowl":"0.2","mid":"m9","ts":1795251700,"p":"CAPS","from":"radar","to":"*","cid":"story",'
    b'"body":{"t":"capabilities","d":{"supports":["search"]}}}\n'
)


@pytest.fixture
def story(cast: Cast) -> Delivery:
    delivery = deliver(cast, STORY, CAPS)
    resolve_all(is_examined=False)
    return delivery


def test_the_directory_is_paged_and_narrowed(story: Delivery, token: str) -> None:
    whole = get("agents", token)
    assert [row["name"] for row in get("agents?order=busiest&limit=1", token)["results"]] == ["radar"]
    assert {row["name"]: row["friendly_name"] for row in whole["results"]} == {
        "radar": None,
        "oscar": None,
        "0": "coordinator",
        "1": "planner",
    }
    first = get("agents?limit=3", token)
    rest = get(f"agents?limit=3&cursor={first['next']}", token)
    assert first["results"] + rest["results"] == whole["results"]
    assert rest["next"] is None
    assert [row["name"] for row in get("agents?name=coord", token)["results"]] == ["0"]
    assert {row["name"] for row in get("agents?dialect=nslip", token)["results"]} == {"0", "1"}
    assert get("agents?channel=mian", token, 400)["detail"] == "there is no channel 'mian': did you mean main?"
    assert "GET /api/v1/channels" in get("agents?channel=%00", token, 400)["detail"]
    assert get("agents?cursor=forged", token, 400)["parameter"] == "cursor"
    (busiest, *_) = get("agents?fields=name,sent", token)["results"]
    assert busiest == {name: whole["results"][0][name] for name in ("id", "name", "sent")}
    assert get("agents?fields=nonsense", token, 400)["parameter"] == "fields"


def test_an_agent_tells_whom_it_talks_with_and_what_it_declares(story: Delivery, token: str, cast: Cast) -> None:
    radar, oscar = Agent.objects.get(name="radar"), Agent.objects.get(name="oscar")
    name_agent(membership=cast.auditor, agent=oscar, friendly_name="Boss")
    found = get(f"agents/{radar.pk}", token)
    assert (found["sent"], found["received"], found["failures"]) == (3, 1, 1)
    # Its request; another one that is cited was never received.
    assert found["asked_of_it"]["asked"] == 1
    pairs = {(pair["sender"]["name"], pair["receiver"] and pair["receiver"]["name"]) for pair in found["pairs"]}
    assert pairs == {("oscar", "radar"), ("radar", "oscar"), ("radar", None)}
    assert {pair["sender"]["friendly_name"] for pair in found["pairs"]} == {"Boss", None}
    assert [(each["kind"], each["value"]) for each in found["declared"]] == [("ability", "search")]
    join_agents(membership=cast.auditor, agent=radar, same_as=oscar, reason="one key")
    joined = get(f"agents/{radar.pk}", token)
    assert joined["id"] == str(oscar.pk)
    assert [alias["name"] for alias in joined["aliases"]] == ["radar"]
    assert joined["sent"] == 4


def test_another_workspaces_agents_are_not_there(story: Delivery, stranger_token: str) -> None:
    assert get("agents", stranger_token) == {"results": [], "next": None}
    get(f"agents/{Agent.objects.get(name='radar').pk}", stranger_token, 404)


def test_a_cursor_is_of_one_list_and_one_query(cast: Cast, token: str) -> None:
    for text in (ASK, ERROR, PROSE):
        deliver(cast, text)
    resolve_all()
    of_deliveries = get("deliveries", token, limit=1)["next"]
    assert get("deliveries", token, limit=1, cursor=of_deliveries)["results"]
    assert get("messages", token, 400, cursor=of_deliveries)["parameter"] == "cursor"
    of_query = get("messages", token, limit=1, q="dialect:clowl")["next"]
    assert get("messages", token, limit=1, q="dialect:clowl", cursor=of_query)["results"]
    assert get("messages", token, 400, q="dialect:prose", cursor=of_query)["parameter"] == "cursor"
    assert get("messages", token, 400, cursor=of_query)["parameter"] == "cursor"
    # In the order of ids, too.
    of_all = get("conversations", token, limit=1)["next"]
    assert get("conversations", token, limit=1, cursor=of_all)["results"]
    assert get("conversations", token, 400, q="dialect:prose", cursor=of_all)["parameter"] == "cursor"
