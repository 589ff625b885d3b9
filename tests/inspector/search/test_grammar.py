"""The whole grammar on real messages of every dialect: names, paths, comparisons, groups, times, the wire itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.intake.models import Sighting
from inspector.search import registry, selectors
from inspector.search.language import QueryError, list_terms, quote
from inspector.search.refining import count_facets, cut_parts, take_away, write_term
from inspector.search.selectors import fetch, find_messages, narrow, read_query, search
from inspector.search.sql import as_filter
from inspector.threads.models import Message

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db
NOW = timezone.now().replace(microsecond=0)
RECENT, OLD = int((NOW - timedelta(hours=2)).timestamp()), int((NOW - timedelta(days=9)).timestamp())
LOG = [
    line.replace("RECENT", str(RECENT)).replace("LATER", str(RECENT + 1)).replace("OLD", str(OLD))
    for line in (
        '{"clowl":"0.2","mid":"m1","ts":RECENT,"p":"REQ","from":"oscar","to":"radar","cid":"c1","det":true,'
        '"body":{"t":"search","d":{"q":"grain","limit":12}}}',
        '{"clowl":"0.2","mid":"m2","ts":LATER,"pid":"m1","p":"PROG","from":"radar","to":"oscar","cid":"c1",'
        '"body":{"t":"search","d":{"pct":60,"note":"Halfway"}}}',
        '{"clowl":"0.2","mid":"m3","ts":LATER,"pid":"lost","p":"ERR","from":"radar","to":"oscar","cid":"c1",'
        '"body":{"t":"error","d":{"code":"E003","msg":"not found","retry":true}}}',
        '{"clowl":"0.2","mid":"m4","ts":OLD,"p":"REQ","from":"oscar","to":"*","cid":"c2","body":{"t":"survey","d":{}}}',
        "@a3|f0|c1|S0|d1|T7|g1|k1|q2#",
        "@a3|f0|c1",
    )
]
QUERIES: dict[str, set[int]] = {
    "from:oscar": {0, 3},
    "sender:oscar": {0, 3},
    "from:oscar OR from:radar": {0, 1, 2, 3},
    "(topic:search OR topic:survey) -to:*": {0, 1},
    "-(from:oscar OR from:radar)": {4, 5},
    "from:radar -(performative:failure OR performative:progress)": set(),
    "attributes.det:true": {0},
    "content.limit:12": {0},
    "content.limit:>9": {0},
    "content.limit:>12": set(),
    "content.pct:<=60": {1},
    "content.q:>9": set(),
    "part:1 broadcast:true": {3},
    "error.code:E003": {2},
    "error.retryable:true": {2},
    "has:error": {2},
    "has:ghost": {2},
    "has:reply": {0},
    "has:parent": {1},
    "is:broadcast": {3},
    "is:unanswered dialect:clowl": {3},
    "is:malformed": {5},
    "after:1d dialect:clowl": {0, 1, 2},
    "before:7d dialect:clowl": {3},
    "progress:>=50": {1},
    "progress:<50": set(),
    "progress:60": {1},
    "priority:<=2": {4},
    "turn:7": {4},
    "turn:>7": set(),
    "severity:error": {5},
    "version:0.1 dialect:nslip": {4},
    "from:osc*": {0, 3},
    "parent:m1": {1},
    "channel:main dialect:nslip": {4, 5},
    "en:CARRY dialect:clowl": {0, 3},
    'raw:"|q2#"': {4},
    'raw:"|q9#"': set(),
    '-raw:"clowl"': {4, 5},
    r'raw:"\"p\":\"ERR\""': {2},
    r'-raw:"\"clowl\""': {4, 5},
    r'from:"\"",oscar,"a\\"': {0, 3},
    "from:oscar AND to:radar": {0},
    "from:oscar && to:radar": {0},
    "from:oscar || from:radar": {0, 1, 2, 3},
    "topic:search AND has:reply || topic:survey": {0, 3},
    "NOT dialect:clowl": {4, 5},
    "from:radar AND NOT performative:failure": {1},
    "NOT (from:oscar OR from:radar)": {4, 5},
    "(NOT dialect:nslip)": {0, 1, 2, 3},
    '"or"': set(),
    '"not found"': {2},
    "": {0, 1, 2, 3, 4, 5},
}


@pytest.fixture
def log(cast: Cast) -> Cast:
    deliver(cast, b"".join(line.encode() + b"\n" for line in LOG))
    resolve_all()
    return cast


def test_every_form_finds_what_it_says(log: Cast) -> None:
    wrong = {}
    for query, expected in QUERIES.items():
        messages = find_messages(workspace=log.workspace, query=query, may_see_secrets=True)
        found = {message.order_index for message in messages}
        if found != expected:
            wrong[query] = found
    assert not wrong


def test_a_day_is_a_day_where_the_reader_lives(log: Cast) -> None:
    zone = ZoneInfo("Pacific/Auckland")
    local = (NOW - timedelta(hours=2)).astimezone(zone)
    found = search(workspace=log.workspace, query=f"after:{local:%Y-%m-%dT%H:%M} dialect:clowl", zone=zone)
    assert {message.order_index for message in found.rows} == {0, 1, 2}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("a OR", "OR needs a term after it"),
        ("OR a", "OR needs a term before it"),
        ("(a", "not closed"),
        ("a)", "closes none"),
        ("()", "nothing between"),
        ("(" * 20 + "a" + ")" * 20, "12 deep"),
        ("after:yesterday", "is no time"),
        ("turn:many", "is no number"),
        ("severity:>=bad", "did you mean|values are"),
        ("from:>3", "cannot be compared"),
        ("has:rely", "did you mean reply"),
        ("attributes.:1", "unknown field “attributes.:”"),
        ('error.message:"mail server refused"', "unknown field “error.message:”"),
        ("-security.key:x", "unknown field “security.key:”"),
        ("attributes:1", "holds names of its own; say which, as in attributes.x:1"),
        ("content.limit:>many", "has no order"),
        ("w " * 41, "at most 40 terms"),
        ("a or b", 'did you mean OR.*quotation marks: "or"'),
        ("a Or b", "did you mean OR"),
        ("(a and b)", "did you mean AND"),
        ("not a", "did you mean NOT"),
        ("-or", "did you mean OR"),
        ("a (or)", "did you mean OR"),
        ("a NOT", "NOT needs a term after it"),
        ("NOT NOT a", "NOT needs a term after it"),
        ("NOT -a", "NOT needs a term after it"),
        ("AND a", "AND needs a term before it"),
        ("a AND", "AND needs a term after it"),
        ("a && OR b", "&& needs a term after it"),
        ("a AND && b", "AND needs a term after it"),
        ("a || ", r"\|\| needs a term after it"),
        ("(a OR)", "OR needs a term after it"),
        ("from:oscar||from:radar", "joins two terms with spaces around it"),
        ("a&&b", "joins two terms with spaces around it"),
        ("!from:oscar", "did you mean a minus"),
        ('!"a b"', "did you mean a minus"),
        ("!(a b)", "did you mean a minus"),
        ('raw:"a\\"', "not closed.* for a backslash"),
        ("channel:mian", "did you mean main"),
        ("channel:MAIN,\x00", "values are main"),
        ("delivery:019dd7a2-5d3a-7c11-9f7e-2f4f6a1b8e55", "there is no delivery '019dd7a2"),
        ("-stored:019dd7a2-5d3a-7c11-9f7e-2f4f6a1b8e55", "there is no delivery '019dd7a2"),
        ("delivery:yesterday", "is no delivery; it is found by the id"),
        ("channel:elsewhere,main", "values are main"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(log: Cast, query: str, says: str) -> None:
    with pytest.raises(QueryError, match=says) as refused:
        find_messages(workspace=log.workspace, query=query)
    assert 0 <= refused.value.start <= refused.value.end <= len(query)


@pytest.mark.parametrize(
    "query",
    [
        "from:oscar performativ:request",
        "from:oscar and performative:request",
        "dialect:clowl channel:mian from:oscar",
        "topic:search has:reply or topic:survey",
        "!to:radar from:oscar OR topic:search from:oscar",
    ],
)
def test_a_suggestion_is_a_query_that_works(log: Cast, query: str) -> None:
    with pytest.raises(QueryError) as refused:
        find_messages(workspace=log.workspace, query=query)
    better = query[: refused.value.start] + refused.value.instead + query[refused.value.end :]
    assert {message.order_index for message in find_messages(workspace=log.workspace, query=better)} == {0, 3}


def test_no_value_becomes_part_of_the_sql(log: Cast) -> None:
    """Of every name that takes any value, and of words: what is asked for stands among the parameters alone."""
    mark, number = "zq'\"%s;--zq", "7717"
    for name in (*registry.names(), "attributes.offer", ""):
        if name in ("delivery", "stored", "duplicate"):
            texts = [write_term(name, (str(Sighting.objects.all()[0].delivery_id),))]
        elif registry.list_values(name) is not None or name in ("channel", "assignee"):
            texts = []
        elif name in ("after", "before"):
            texts = [f"{name}:2026-11-21"]
        else:
            texts = [f"{name}:{sign}{number}" for sign in ("", ">", "<=")] + [write_term(name, (mark,))]
            texts += [f"{name}:zqzq*"] if name else [f'"{mark}"', "zqzq*"]
        written = 0
        for text in texts:
            for may_see_secrets in (False, True):
                with suppress(QueryError):
                    tree = read_query(f"{text} OR -({text})")
                    meant = as_filter(tree, log.workspace, may_see_secrets=may_see_secrets)
                    sql, _ = Message.objects.filter(meant).query.sql_with_params()
                    assert not re.search(r"zq|7717|2026|[0-9a-f]{8}-", sql), text
                    written += 1
        assert bool(written) is bool(texts), name


def test_masked_characters_are_not_found_by_those_who_may_not_see_them(cast: Cast) -> None:
    secret = "opensesame-7731"
    line = '{"clowl":"0.3","mid":"s1","p":"REQ","from":"a","to":"b","cid":"c","auth":"%s","body":{"t":"x","d":{}}}\n'
    deliver(cast, (line % secret).encode())
    resolve_all()
    query = f'raw:"{secret}"'
    assert len(find_messages(workspace=cast.workspace, query=query, may_see_secrets=True)) == 1
    for found_by, times in ((query, 0), (f"-{query}", 1), (f"{query} OR from:a", 1), ('raw:"s1"', 1), ("raw:•••", 1)):
        assert len(find_messages(workspace=cast.workspace, query=found_by)) == times, found_by
    for may_see_secrets, counted in ((False, 0), (True, 1)):
        found = count_facets(workspace=cast.workspace, query=query, may_see_secrets=may_see_secrets)
        assert found is not None
        assert found.counted == counted
    # Nor is it a word or an exact term for anybody.
    assert find_messages(workspace=cast.workspace, query=secret) == []


def test_a_search_that_takes_too_long_says_how_far_it_came(log: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "AT_ONCE_MS", 1)
    monkeypatch.setattr(selectors, "BY_TERMS_MS", 1)
    monkeypatch.setattr(selectors, "PATIENCE_MS", 4000)
    # The first window holds the slow message and takes half of the time; a smaller one then goes up to it.
    monkeypatch.setattr(selectors, "FIRST_WINDOW", 16)
    # A condition that takes its time for everything older than a day.
    slow = "pg_sleep(CASE WHEN order_time < now() - interval '1 day' THEN 9 ELSE 0.01 END) IS NOT NULL"
    monkeypatch.setattr(
        selectors, "as_filter", lambda tree, workspace, **_: RawSQL(slow, [], output_field=BooleanField())
    )
    found = search(workspace=log.workspace, query="dialect:clowl")
    assert {message.order_index for message in found.rows} >= {0, 1, 2}
    assert 3 not in {message.order_index for message in found.rows}
    assert found.searched_back_to is not None
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone()[0] == "0"


@pytest.mark.parametrize("query", ["from:oscar", "dialect:clowl -from:oscar", "zzyzx", "raw:oscar", ""])
def test_where_walking_takes_too_long_the_indexes_of_terms_find_the_same(
    log: Cast, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    expected = [message.pk for message in search(workspace=log.workspace, query=query).rows]
    asked: list[bool] = []

    def never_walk(rows: Any, patience_ms: int, *, walks: bool = True) -> list[Any] | None:
        asked.append(walks)
        return None if walks else fetch(rows, patience_ms, walks=False)

    monkeypatch.setattr(selectors, "fetch", never_walk)
    found = search(workspace=log.workspace, query=query)
    assert [message.pk for message in found.rows] == expected
    assert found.searched_back_to is None
    assert asked == [True, False]
    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_indexscan")
        assert cursor.fetchone()[0] == "on"


def test_the_second_try_does_not_go_through_the_table_also_where_that_is_cheaper(log: Cast) -> None:
    rows = narrow(workspace=log.workspace, query="oscar", zone=None, may_see_secrets=False)

    class Plan(list[str]):
        def __iter__(self) -> Iterator[str]:
            return iter(rows.explain().splitlines())

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL seq_page_cost = 0; SET LOCAL cpu_tuple_cost = 0; SET LOCAL cpu_operator_cost = 0")
    assert "Seq Scan on threads_message" in rows.explain()
    plan = "\n".join(fetch(Plan(), 5000, walks=False) or ())  # type: ignore[arg-type]
    assert "Bitmap Heap Scan on threads_message" in plan
    assert "Seq Scan" not in plan


def test_a_way_back_that_is_cancelled_leaves_the_transaction_around_it_whole(
    log: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit holds for the ROLLBACK TO SAVEPOINT as well: a machine that stands still meanwhile cancels it."""
    go_back, cancelled = connection._savepoint_rollback, []

    def cancel_the_first(point: str) -> None:
        if not cancelled:
            cancelled.append(point)
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(5)")
        go_back(point)

    monkeypatch.setattr(connection, "_savepoint_rollback", cancel_the_first)
    fetch(Message.objects.all(), 50)
    assert cancelled
    assert Message.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone()[0] == "0"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.sampled_from('"\\,:()|&!*=- aé🚀'), min_size=1).filter(str.strip), min_size=1, max_size=3))
def test_any_value_can_be_written_down(values: list[str]) -> None:
    """Whatever a value holds, a query asks for it and for nothing else; so do its suggestions and links."""
    for text in (write_term("topic", tuple(values)), "topic:" + ",".join(map(quote, values))):
        (term,) = list_terms(read_query(text))
        assert (term.name, term.values, term.operator, term.is_prefix) == ("topic", tuple(values), "", False)


@pytest.mark.parametrize("query", ["a AND b", "a && NOT b AND c", "AND_x b", "(a AND b) AND -c", 'a AND "b AND" AND d'])
def test_what_is_left_of_joined_parts_is_a_query(query: str) -> None:
    parts = cut_parts(query)
    written = [query[part.start : part.end] for part in parts]
    for part in parts:
        left = take_away(query, part)
        kept = [one for one in written if one != query[part.start : part.end]]
        assert [left[one.start : one.end] for one in cut_parts(left)] == kept
    assert [part.value for part in parts if part.is_negated] == [
        one.removeprefix("NOT ").removeprefix("-") for one in written if one.startswith(("NOT ", "-"))
    ]


def test_every_term_has_its_place(log: Cast) -> None:
    query = 'from:oscar (topic:search OR -"two words") x*'
    assert [query[term.start : term.end] for term in list_terms(read_query(query))] == [
        "from:oscar",
        "topic:search",
        '-"two words"',
        "x*",
    ]


@pytest.mark.parametrize(
    ("typed", "texts"),
    [
        ("“is closed” from:„two words”", ["is closed", "two words"]),
        ('"he said “is closed” twice"', ["he said “is closed” twice"]),
        ("“”", None),
        ("“open", None),
    ],
)
def test_a_phrase_stands_in_quotation_marks_as_they_are_printed_too(typed: str, texts: list[str] | None) -> None:
    if texts is None:
        with pytest.raises(QueryError):
            read_query(typed)
        return
    found = list(list_terms(read_query(typed)))
    assert [term.text for term in found] == texts
    assert all(term.is_phrase for term in found)
