"""Agents: who said how much to whom, what they declared, and what auditors call them."""

from __future__ import annotations

import base64
import json
import uuid
from collections import defaultdict
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection
from django.db.models import Max, Min, Sum
from django.db.models.expressions import RawSQL
from django.test.utils import CaptureQueriesContext

from inspector.accounts.models import Channel
from inspector.audit.agents import count_asked_between, join_agents, name_agent, undo_word
from inspector.browsing.directory import (
    Choice,
    Extent,
    compare_names,
    list_agents,
    list_conversations_of,
    list_declarations,
    list_pairs,
    measure_pairs,
    sum_agents,
    survey_pairs,
)
from inspector.intake.models import Delivery, Door
from inspector.intake.withdrawals import withdraw_delivery
from inspector.search.selectors import find_messages
from inspector.threads.models import (
    Agent,
    AgentTotal,
    AgentWord,
    Declaration,
    Exchange,
    Message,
    PairTotal,
    make_agent_id,
)
from inspector.threads.selectors import filter_conversations, find_openings
from inspector.threads.trees import select_traces

from ..conftest import Cast, deliver, resolve_all, take_in

pytestmark = pytest.mark.django_db


def line(at: int, raw: str, **names: object) -> bytes:
    return json.dumps({"raw": raw, "at": f"2026-11-21T09:00:{at:02d}Z", **names}).encode() + b"\n"


def clowl(at: int, act: str, sender: str, to: str, **body: object) -> bytes:
    said = {"clowl": "0.2", "mid": f"k{at}", "cid": "ops", "p": act, "from": sender, "to": to, "body": body}
    return line(at, json.dumps(said))


STORY = [
    clowl(1, "REQ", "ada", "bob", t="ship"),
    clowl(2, "ERR", "bob", "ada", t="error", d={"code": "E003", "msg": "no", "retry": True}),
    clowl(3, "CAPS", "bob", "*", t="capabilities", d={"supports": ["search", "merge"]}),
    line(4, "Look here.", **{"from": "ada", "to": ["bob", "cid", "bob"], "conversation": "talk"}),
    line(5, "Who said that?", to=["cid"], conversation="talk"),
    line(6, "To myself.", **{"from": "ada", "to": ["ada"], "conversation": "talk"}),
    line(7, '@a3|f0|c1|S0|d1|T1|g1|k1|t"rollback"#'),
]


def pairs_of(cast: Cast, **names: Any) -> dict[tuple[str | None, str | None, bool], tuple[int, int]]:
    return {
        (
            pair.sender.name if pair.sender else None,
            pair.receiver.name if pair.receiver else None,
            pair.is_broadcast,
        ): (pair.messages, pair.failures)
        for pair in list_pairs(workspace=cast.workspace, **names)
    }


def agent_of(cast: Cast, name: str, channel: Channel | None = None) -> Agent:
    return Agent.objects.get(pk=make_agent_id(cast.workspace.pk, (channel or cast.channel).pk, name))


def check_totals() -> None:
    """The totals are what the rows come to, counted anew."""
    counted: dict[tuple[Any, ...], list[Any]] = {}
    of_agent: dict[tuple[Any, ...], set[uuid.UUID]] = defaultdict(set)
    for row in Exchange.objects.all():
        for agent, counts in ((row.sender_id, (row.sent, 0, row.failed)), (row.receiver_id, (0, row.messages, 0))):
            for dialect in ("", row.dialect) if agent else ():
                held = counted.setdefault((agent, dialect), [0, 0, 0, row.first_at, row.last_at])
                held[:3] = [one + another for one, another in zip(held, counts, strict=False)]
                held[3:] = [min(held[3], row.first_at), max(held[4], row.last_at)]
                of_agent[agent, dialect].add(row.conversation_id)
    columns = ("agent", "dialect", "conversations", "sent", "received", "failures", "first_at", "last_at")
    kept = {row[:2]: list(row[2:]) for row in AgentTotal.objects.values_list(*columns)}
    assert {key: row for key, row in kept.items() if row != [0, 0, 0, 0, None, None]} == {
        key: [len(of_agent[key]), *held] for key, held in counted.items()
    }
    pair = ("sender", "receiver", "is_broadcast", "dialect")
    sums = {"said": Sum("messages"), "failed": Sum("failures"), "since": Min("first_at"), "until": Max("last_at")}
    summed = set(Exchange.objects.values_list(*pair).annotate(**sums))
    kept_pairs = PairTotal.objects.values_list(*pair, "messages", "failures", "first_at", "last_at")
    assert {row for row in kept_pairs if row[4:] != (0, 0, None, None)} == summed


def test_who_said_how_much_to_whom(cast: Cast) -> None:
    take_in(cast, *STORY, is_examined=False)
    check_totals()
    assert pairs_of(cast) == {
        ("ada", "bob", False): (2, 0),
        ("bob", "ada", False): (1, 1),
        ("bob", None, True): (1, 0),
        ("ada", "cid", False): (1, 0),
        (None, "cid", False): (1, 0),
        ("ada", "ada", False): (1, 0),
        ("0", "1", False): (1, 0),
    }
    agents = {row.agent.name: row for row in list_agents(workspace=cast.workspace)}
    assert (agents["ada"].sent, agents["ada"].received, agents["ada"].conversations) == (3, 2, 2)
    assert (agents["bob"].sent, agents["bob"].received, agents["bob"].failures) == (2, 2, 1)
    assert agents["ada"].dialects == ["clowl", "prose"]
    assert agents["0"].label is not None
    assert (agents["0"].label.text, agents["0"].label.basis) == ("coordinator", "convention")
    assert agents["ada"].label is None


def test_what_an_agent_declares_names_the_message_that_said_it(cast: Cast) -> None:
    key = {"capabilities": ["1", "7"], "pubkey": "MCowBQYDK2VuAyEA" + "x" * 32, "security": ["P"]}
    offer = f"👽09|@bob|$j:{base64.b64encode(json.dumps(key).encode()).decode()}"
    take_in(cast, *STORY, line(9, offer, **{"from": "ada", "conversation": "hello"}), is_examined=False)
    said = [
        (row.agent.name, row.kind, row.value[:16], row.name)
        for name in ("ada", "bob")
        for row in list_declarations(workspace=cast.workspace, agent_ids=[agent_of(cast, name).pk])
    ]
    assert said == [
        ("ada", "ability", "1", ""),
        ("ada", "ability", "7", ""),
        ("ada", "key", "MCowBQYDK2VuAyEA", "pubkey"),
        ("bob", "ability", "merge", ""),
        ("bob", "ability", "search", ""),
    ]
    message = Message.objects.get(native_id="k3")
    assert {row.message for row in Declaration.objects.filter(agent__name="bob")} == {message.pk}


def test_only_rows_that_came_out_otherwise_are_written(cast: Cast) -> None:
    take_in(cast, *STORY, is_examined=False)
    # Where a row stands in its table changes when it is written.
    rows = Exchange.objects.annotate(at=RawSQL("threads_exchange.ctid::text", ())).values_list("pk", "at")
    before = set(rows.all())
    take_in(cast, clowl(11, "REQ", "ada", "bob", t="again"), is_examined=False)
    after = set(rows.all())
    assert len(after - before) == len(before - after) == 1


def test_what_is_withdrawn_is_nobodys_word(cast: Cast) -> None:
    deliver(cast, *STORY[3:])
    delivery = take_in(cast, *STORY[:3], name="other.log", is_examined=False)
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="test")
    resolve_all(is_examined=False)
    assert ("bob", "ada", False) not in pairs_of(cast)
    assert not Declaration.objects.exists()
    check_totals()
    withdraw_delivery(membership=cast.auditor, delivery=Delivery.objects.exclude(pk=delivery.pk).get(), reason="test")
    resolve_all(is_examined=False)
    check_totals()
    assert not pairs_of(cast)
    assert not list_agents(workspace=cast.workspace)


def test_the_directory_and_the_graph_are_paged_by_key_in_a_constant_number_of_statements(cast: Cast) -> None:
    take_in(cast, *STORY, is_examined=False)
    whole = [row.agent.pk for row in list_agents(workspace=cast.workspace)]
    paged, after = [], None
    while page := list_agents(workspace=cast.workspace, after=after, limit=2):
        paged += [row.agent.pk for row in page]
        after = (page[-1].total, page[-1].agent.pk)
    assert paged == whole
    keys = [pair.key for pair in list_pairs(workspace=cast.workspace)]
    paged_keys, key = [], None
    while pairs := list_pairs(workspace=cast.workspace, after=key, limit=2):
        paged_keys += [pair.key for pair in pairs]
        key = paged_keys[-1]
    assert paged_keys == keys
    assert len(keys) == len(set(keys)) == 7
    extent = measure_pairs(workspace=cast.workspace)
    assert (extent.pairs, extent.messages) == (7, 8)
    for read in (list_agents, list_pairs):
        with CaptureQueriesContext(
            connection,
        ) as few:
            read(workspace=cast.workspace, limit=1)  # type: ignore[operator]
        with CaptureQueriesContext(connection) as many:
            read(workspace=cast.workspace, limit=50)  # type: ignore[operator]
        assert len(few) == len(many)


def test_an_auditor_names_an_agent_of_one_channel_and_search_finds_it_by_both(cast: Cast) -> None:
    other = Channel.objects.create(workspace=cast.workspace, name="second")
    for channel in (cast.channel, other):
        deliver(cast, line(1, "Hello.", **{"from": "x7", "to": ["ada"]}), door=Door.API, channel=channel)
    resolve_all(is_examined=False)
    agent = agent_of(cast, "x7")
    word = name_agent(membership=cast.auditor, agent=agent, friendly_name="  Billing  bot ", reason="their manual")
    assert word.friendly_name == "Billing bot"

    def found(query: str) -> list[str]:
        return [message.channel.name for message in find_messages(workspace=cast.workspace, query=query)]

    assert sorted(found("from:x7")) == ["main", "second"]
    assert found('from:"billing bot"') == ["main"]
    assert found('-from:"billing bot"') == ["second"]
    assert [row.agent.pk for row in list_agents(workspace=cast.workspace, choice=Choice(name="illing"))] == [agent.pk]
    undo_word(membership=cast.owner, word=word)
    assert found('from:"billing bot"') == []
    word.refresh_from_db()
    assert word.undone_by == cast.owner.user


def test_the_convention_of_a_dialect_is_found_until_an_auditor_says_otherwise(cast: Cast) -> None:
    take_in(
        cast, *STORY, line(8, "I am zero.", **{"from": "0", "to": ["ada"], "conversation": "talk"}), is_examined=False
    )

    def found(query: str) -> list[str]:
        return [message.dialect for message in find_messages(workspace=cast.workspace, query=query)]

    assert found("from:coordinator") == ["nslip"]
    assert found("from:coordinator to:planner") == ["nslip"]
    assert sorted(found("from:0")) == ["nslip", "prose"]
    name_agent(membership=cast.auditor, agent=agent_of(cast, "0"), friendly_name="night shift")
    assert found("from:coordinator") == []
    assert sorted(found('from:"night shift"')) == ["nslip", "prose"]


def test_two_names_are_one_agent_when_an_auditor_says_so_and_two_again_when_it_is_undone(cast: Cast) -> None:
    other = Channel.objects.create(workspace=cast.workspace, name="second")
    deliver(cast, *STORY[:3])
    deliver(
        cast, line(9, "It is me.", **{"from": "bob-2", "to": ["eve"], "conversation": "z"}), channel=other, name="b"
    )
    resolve_all(is_examined=False)
    alias, principal = agent_of(cast, "bob-2", other), agent_of(cast, "bob")
    word = join_agents(membership=cast.auditor, agent=alias, same_as=principal, reason="one key")
    rows = {row.agent.name: row for row in list_agents(workspace=cast.workspace)}
    assert "bob-2" not in rows
    assert [each.name for each in rows["bob"].aliases] == ["bob-2"]
    assert rows["bob"].sent == 3
    assert pairs_of(cast, agent=principal)["bob", "eve", False] == (1, 0)
    assert len(find_messages(workspace=cast.workspace, query="from:bob")) == 3
    assert len(find_messages(workspace=cast.workspace, query="from:bob-2")) == 3
    for wrong in ((principal, alias), (alias, principal), (principal, principal)):
        with pytest.raises(ValidationError):
            join_agents(membership=cast.auditor, agent=wrong[0], same_as=wrong[1], reason="no")
    undo_word(membership=cast.auditor, word=word)
    assert {row.agent.name for row in list_agents(workspace=cast.workspace)} == {"ada", "bob", "bob-2", "eve"}
    assert len(find_messages(workspace=cast.workspace, query="from:bob")) == 2
    with pytest.raises(ValidationError):
        undo_word(membership=cast.auditor, word=word)


def test_conversations_and_traces_are_narrowed_by_whatever_an_agent_is_called(cast: Cast) -> None:
    other = Channel.objects.create(workspace=cast.workspace, name="second")
    said = {"to": ["ada"], "conversation": "z", "trace": "work"}
    deliver(cast, line(1, "It is me.", **{"from": "bob", **said}))
    deliver(cast, line(2, "Me too.", **{"from": "bob-2", **said, "trace": "more"}), channel=other, name="b")
    take_in(cast, line(3, '@a3|f0|c1|S0|d1|T1|g1|k1|t"go"#'), name="c", is_examined=False)

    def found(name: str) -> tuple[set[str], set[str]]:
        conversations = filter_conversations(workspace=cast.workspace, agent=name)
        traces = select_traces(workspace=cast.workspace, agent=name)
        return {each.channel.name for each in conversations}, {each.native_id for each in traces}

    assert found("bob") == ({"main"}, {"work"})
    assert found("coordinator") == ({"main"}, {"1"})
    join_agents(
        membership=cast.auditor, agent=agent_of(cast, "bob-2", other), same_as=agent_of(cast, "bob"), reason="one key"
    )
    name_agent(membership=cast.auditor, agent=agent_of(cast, "bob"), friendly_name="Billing bot")
    assert found("bob") == found("billing bot") == ({"main", "second"}, {"work", "more"})


def test_who_may_not_and_what_may_not_be_said(cast: Cast) -> None:
    take_in(cast, *STORY, is_examined=False)
    agent = agent_of(cast, "ada")
    for membership in (cast.viewer, cast.stranger):
        with pytest.raises(PermissionDenied):
            name_agent(membership=membership, agent=agent, friendly_name="x")
    for name in ("", " ", "bob", "BOB", "x" * 81, "rad\u200bar", "r\u0430dar"):
        with pytest.raises(ValidationError):
            name_agent(membership=cast.auditor, agent=agent, friendly_name=name)
    with pytest.raises(ValidationError):
        join_agents(membership=cast.auditor, agent=agent, same_as=agent_of(cast, "bob"), reason=" ")
    assert not AgentWord.objects.exists()


def test_a_name_longer_than_any_index_takes_is_an_agent_like_others(cast: Cast) -> None:
    name = "".join(chr(0x4E00 + number % 20000) for number in range(5000))
    take_in(cast, line(1, "Hello.", **{"from": name, "to": ["ada"], "conversation": "long"}), is_examined=False)
    assert {row.agent.name for row in list_agents(workspace=cast.workspace)} == {name, "ada"}
    assert compare_names(workspace=cast.workspace).are_all_compared


def test_the_page_of_an_agent_sums_as_the_lists_do(cast: Cast) -> None:
    take_in(cast, *STORY, is_examined=False)
    agents = {agent.name: agent for agent in Agent.objects.all()}
    join_agents(membership=cast.auditor, agent=agents["cid"], same_as=agents["bob"], reason="one key")
    outcomes = count_asked_between(workspace=cast.workspace, pairs=list_pairs(workspace=cast.workspace))
    listed = list_agents(workspace=cast.workspace)
    assert {row.agent.name for row in listed if row.aliases} == {"bob"}
    for row in listed:
        one = sum_agents(workspace=cast.workspace, agent_ids=[row.agent.pk]).get(row.agent.pk)
        assert one is not None
        conversations = list_conversations_of(
            workspace=cast.workspace, agent_ids=[each.pk for each in one.every], limit=1
        )
        assert conversations
        if one.aliases:
            one = one._replace(conversations=vars(conversations[0])["of_all"])
        assert one == row
        openings = find_openings(conversation_ids=[conversations[0].pk])
        assert vars(conversations[0])["opening"] == openings[conversations[0].pk]
        with CaptureQueriesContext(connection) as asked:
            survey = survey_pairs(workspace=cast.workspace, agents=one.every, limit=50)
            among = count_asked_between(workspace=cast.workspace, pairs=survey.pairs, known=survey.agents)
        assert len(asked) == 3
        assert survey.pairs == list_pairs(workspace=cast.workspace, agent=row.agent, limit=50)
        assert survey.extent == Extent(len(survey.pairs), sum(pair.messages for pair in survey.pairs))
        assert survey_pairs(workspace=cast.workspace, agents=one.every, limit=1).extent == survey.extent
        assert among == {pair: outcome for pair, outcome in outcomes.items() if pair in among}
        assert survey.customs.keys() >= {each.pk for each in one.every}
    assert sum_agents(workspace=cast.stranger.workspace, agent_ids=[agents["bob"].pk]).get(agents["bob"].pk) is None
    joined = sum_agents(workspace=cast.workspace, agent_ids=[agents["cid"].pk]).get(agents["cid"].pk)
    assert joined is not None
    assert joined.agent.same_as == agents["bob"]
