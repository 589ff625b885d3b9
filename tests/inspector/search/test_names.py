"""One meaning of a name: what a facet counts, what its click finds, what is suggested and what a hit says agree."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.utils.html import escape

from inspector.accounts.models import Channel
from inspector.accounts.services import ensure_channel
from inspector.audit.agents import join_agents, name_agent
from inspector.search.aids import mend_terms, suggest
from inspector.search.language import QueryError, list_terms
from inspector.search.refining import (
    Facet,
    can_be_asked,
    choose,
    count_facets,
    cut_parts,
    find_choice,
    take_away,
    unchoose,
)
from inspector.search.selectors import find_messages, read_query
from inspector.threads.models import Agent
from tests.inspector.conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db


def say(number: int, sender: str, receiver: object) -> str:
    return json.dumps(
        {"clowl": "0.2", "mid": f"m{number}", "ts": 1795248000 + number, "p": "REQ", "from": sender, "to": receiver}
        | {"cid": f"c{number % 3}", "body": {"t": "work", "d": {"n": number}}}
    )


@pytest.fixture
def log(cast: Cast) -> Cast:
    """A planner by name in two spellings and by convention, one by an auditor's word, one joined; a name with signs."""
    second = Channel.objects.create(workspace=cast.workspace, name="second")
    lines = [say(1, "planner", "ada"), say(2, "Planner", ["ada", "planner"]), say(3, "ada", "*"), say(4, "p7", "1")]
    lines += ["@a3|f1|c4|S1|d2|T1|g1|k1|q2#", "@a3|f1|c5|S1|d1|T2|g1|k1|q2#", "@a3|f0|c6|S0|d1|T1|g1|k1|q2#"]
    lines += [say(8, "ada lovelace, x", ["1", "p7"]), say(9, 'quo"te', "p-2"), say(10, "p-2", "ada")]
    deliver(cast, "\n".join(lines).encode())
    deliver(cast, "\n".join((say(20, "bob-2", "p7"), lines[4])).encode(), channel=second, name="second.log")
    resolve_all(is_examined=False)
    agents = {(agent.channel.name, agent.name): agent for agent in Agent.objects.select_related("channel")}
    name_agent(membership=cast.auditor, agent=agents["main", "p7"], friendly_name="night shift")
    join_agents(
        membership=cast.auditor, agent=agents["second", "bob-2"], same_as=agents["main", "p7"], reason="one key"
    )
    join_agents(membership=cast.auditor, agent=agents["main", "p-2"], same_as=agents["main", "planner"], reason="key")
    name_agent(membership=cast.auditor, agent=agents["second", "1"], friendly_name="day shift")
    return cast


def found(cast: Cast, query: str) -> set[object]:
    return {message.pk for message in find_messages(workspace=cast.workspace, query=query, limit=500)}


def facet(cast: Cast, query: str, name: str) -> Facet:
    counted = count_facets(workspace=cast.workspace, query=query)
    assert counted is not None
    return next(each for each in counted.facets if each.name == name)


@pytest.mark.parametrize("query", ["", "dialect:clowl", "from:planner", 'to:1,"ada lovelace, x"', "work from:ada,p7"])
def test_a_click_finds_what_its_facet_counts(log: Cast, query: str) -> None:
    counted = count_facets(workspace=log.workspace, query=query)
    assert counted is not None
    assert counted.facets
    before = found(log, query)
    for each in counted.facets:
        for count in each.values:
            if not can_be_asked(count.value):
                continue
            if not count.is_chosen:
                after = found(log, choose(query, each.name, count.value))
                assert len(after - before if each.adds else after) == count.count, (each.name, count)
                assert before < after if each.adds else after <= before
            else:
                choice = find_choice(query, each.name)
                assert choice is not None
                alone = found(log, choose(take_away(query, choice.part), each.name, count.value))
                assert (len(alone), alone <= before) == (count.count, True)


def test_a_facet_says_who_is_only_called_so(log: Cast) -> None:
    planner = next(count for count in facet(log, "", "from").values if count.value.casefold() == "planner")
    assert planner.count == len(found(log, "from:planner"))
    assert {(name, dialect): count for name, dialect, count in planner.called} == {
        ("1", "nslip"): 2,
        ("p-2", "clowl"): 1,
    }
    assert len(found(log, "from:=planner")) == planner.count - 3
    # An auditor's word wins over the convention, in its channel.
    assert len(found(log, 'from:"day shift"')) == 1


def test_beginnings_and_literals_mean_the_same_names(log: Cast) -> None:
    assert found(log, "from:plan*") == found(log, "from:planner") > found(log, "from:=plan*")
    assert found(log, "from:night*") == found(log, 'from:"night shift"') == found(log, "from:bob-2")
    assert found(log, "sender:=PLANNER") == found(log, "from:=planner")
    assert found(log, "from:=1") == found(log, "from:1 dialect:nslip")
    # Behind any other name the sign is the beginning of a value, as it always was.
    (term,) = list_terms(read_query("raw:=x"))
    assert (term.values, term.operator) == (("=x",), "")


def test_channels_are_suggested_by_their_names(log: Cast) -> None:
    ensure_channel(workspace=log.workspace, name="mailroom")
    said = [item.text for item in suggest(workspace=log.workspace, text="oscar channel:ma").items]
    assert said == ["mailroom", "main"]
    assert not suggest(workspace=log.workspace, text="channel:x").items


def test_suggestions_know_what_agents_are_called(log: Cast) -> None:
    said = {item.text: item.about for item in suggest(workspace=log.workspace, text="from:pla").items}
    assert said == {"planner": "also what 1 in nslip is called"}
    assert {item.text for item in suggest(workspace=log.workspace, text="to:ni").items} == {'"night shift"'}
    assert not suggest(workspace=log.workspace, text="from:=ni").items
    for text in ("coor", "exec"):
        items = suggest(workspace=log.workspace, text=f"from:{text}").items
        assert bool(items) is (text == "coor")
        assert all(found(log, f"from:{item.text}") for item in items)


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("a -from:x  (b OR c) d:1", None),
        ('a -from:x  (b OR c) "d e"', ["a", "-from:x", "(b OR c)", '"d e"']),
        ("-(a (b OR c)) from:x,y", ["-(a (b OR c))", "from:x,y"]),
        ("a OR b", ["a OR b"]),
        ('from:"a b",c,"d,e" x', ['from:"a b",c,"d,e"', "x"]),
    ],
)
def test_a_query_is_cut_into_parts_that_can_be_taken_away(db: None, query: str, parts: list[str] | None) -> None:
    if parts is None:
        with pytest.raises(QueryError):
            cut_parts(query)
        return
    cut = cut_parts(query)
    assert [query[part.start : part.end] for part in cut] == parts
    for part in cut:
        left = take_away(query, part)
        kept = [one for one in parts if one != query[part.start : part.end]]
        assert [left[one.start : one.end] for one in cut_parts(left)] == kept


def test_values_of_a_name_are_combined_and_undone() -> None:
    query = choose(choose("x", "from", "ada"), "from", "b c, d")
    assert query == 'x from:ada,"b c, d"'
    choice = find_choice(query, "from")
    assert choice is not None
    assert choice.values == ("ada", "b c, d")
    assert choose(query, "from", "ADA") == query
    assert unchoose(query, "from", "Ada") == 'x from:"b c, d"'
    assert unchoose('x from:"b c, d"', "from", "b c, d") == "x"
    assert choose("-from:ada", "from", "bob") == "-from:ada from:bob"
    assert choose("a OR sender:ada", "from", "bob") == "(a OR sender:ada) from:bob"


def test_the_page_shows_parts_choices_and_for_what_a_hit_is_found(log: Cast, client: Client, sign_in: object) -> None:
    client.force_login(log.viewer.user, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get("/w/acme/search/", {"q": "from:planner -to:radar"}).content.decode()
    assert 'href="/w/acme/search/?q=-to%3Aradar" aria-label="Without from:planner"' in page
    assert 'href="/w/acme/search/?q=from%3Aplanner" aria-label="Without -to:radar"' in page
    assert page.count("Here <b>planner</b> is ") == 3
    assert escape("?q=from%3A%3Dplanner+-to%3Aradar") in page
    facets = client.get("/w/acme/search/facets/", {"q": "from:planner"}, headers={"HX-Request": "true"})
    part = facets.content.decode()
    assert "<html" not in part
    assert 'href="/w/acme/search/" class="is-chosen"' in part
    assert "?q=from%3Aplanner%2Cada" in part
    # Without scripts the same counts are a page of their own.
    assert "<html" in client.get("/w/acme/search/facets/", {"q": "from:planner"}).content.decode()


@pytest.mark.parametrize(("query", "meant"), [("from:planners zzzz", ""), ("from:planer", "from:planner")])
def test_who_is_called_so_is_no_typing_error(log: Cast, query: str, meant: str) -> None:
    agent = Agent.objects.get(name="p7", channel__name="main")
    name_agent(membership=log.auditor, agent=agent, friendly_name="planners")
    terms = list_terms(read_query(query))
    assert mend_terms(workspace=log.workspace, query=query, terms_of_query=terms) == meant
