"""The search language: what it parses, what it refuses and how it suggests, and what it finds."""

from __future__ import annotations

import json
import re

import pytest

from inspector.search.language import QueryError, parse
from inspector.search.registry import names
from inspector.search.selectors import find_messages
from tests.each import for_each

from ..conftest import Cast, deliver, resolve_all

LOG = [
    {"raw": "Please refactorAuth in billing_service now.", "from": "ada", "to": ["bob"]},
    {"raw": "The café is closed; naïve retry failed.", "from": "bob", "to": ["ada"]},
    {"raw": "Launch 🚀 at noon ≥ 5", "from": "cid"},
    {"raw": "Билд готов 準備完了", "from": "Ада"},
    {"raw": "nul \x00 and more", "from": "ada"},
]


@pytest.fixture
def log(cast: Cast) -> Cast:
    deliver(cast, b"".join(json.dumps(line).encode() + b"\n" for line in LOG))
    resolve_all(is_examined=False)
    return cast


@pytest.mark.django_db
@for_each(
    [
        ("billing", [0]),
        ("refactorauth", [0]),
        ("auth", [0]),
        ("refactor", [0]),
        ("billing_service", [0]),
        ("REFACTOR*", [0]),
        ('"is closed"', [1]),
        ('"closed is"', []),
        ("café", [1]),
        ("naïve", [1]),
        ("🚀", [2]),
        ("≥", [2]),
        ("билд", [3]),
        ("準備完了", [3]),
        ("完了", [3]),
        ('"in billing_service now"', [0]),
        ("from:ada", [0, 4]),
        ("from:ADA", [0, 4]),
        ("from:ada,bob", [0, 1, 4]),
        ("to:bob", [0]),
        ("-from:ada", [1, 2, 3]),
        ("closed -café", []),
        ("dialect:prose performative:inform billing", [0]),
        ("reviewed:no billing", [0]),
        ("reviewed:yes billing", []),
        ("more", [4]),
        ("zeppelin", []),
        ("%s", []),
    ],
    of=("query", "expected"),
)
def test_finds(log: Cast, query: str, expected: list[int]) -> None:
    found = find_messages(workspace=log.workspace, query=query)
    assert sorted(message.order_index for message in found) == expected


@pytest.mark.django_db
def test_a_stranger_finds_nothing(log: Cast) -> None:
    assert find_messages(workspace=log.stranger.workspace, query="billing") == []
    assert find_messages(workspace=log.stranger.workspace, query="-billing") == []


@pytest.mark.parametrize(
    ("query", "says", "start", "end"),
    [
        ("performativ:request", "did you mean performative:?", 0, 19),
        ("ok xyzzy:1", "names are", 3, 10),
        ('"open', "not closed", 0, 5),
        ("dialect:", "needs a value", 0, 8),
        ("a -", "needs a term", 2, 3),
        ("dialect:,", "needs a value", 0, 9),
    ],
)
def test_refuses_with_place_and_hint(query: str, says: str, start: int, end: int) -> None:
    with pytest.raises(QueryError, match=re.escape(says)) as refused:
        parse(query, names=names())
    assert (refused.value.start, refused.value.end) == (start, end)


@pytest.mark.django_db
@for_each(["dialect:nslipp", "performative:reqest", "reviewed:maybe", "channel:nowhere"], of=["query"])
def test_refuses_a_value_that_can_never_be_found(log: Cast, query: str) -> None:
    with pytest.raises(QueryError, match=r"did you mean|values are"):
        find_messages(workspace=log.workspace, query=query)


@pytest.mark.django_db
@for_each(
    ["a & | !", "' OR 1=1 --", "x" * 3000, "%_\\", "a\x00b", "(" * 500, ":" * 100, "' \\' \\\\", "!!!"], of=["query"]
)
def test_hostile_queries_get_a_result_or_an_error(log: Cast, query: str) -> None:
    answer: object
    try:
        answer = [message.order_index for message in find_messages(workspace=log.workspace, query=query)]
    except QueryError as refused:
        answer = str(refused)
    assert answer in ([], [4]) or isinstance(answer, str)
