"""A search whose time is up says how far it came, and its cursor goes on from there, in every list with a query."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from django.db.models import BooleanField, Case, Func, Q, Value, When
from django.test import Client

from inspector.search import selectors
from inspector.threads.models import Message

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db

LISTS = ("messages", "conversations", "traces", "findings")
SECRET = "hR7kq2Zw9"
BORDER = "2026-11-20T09:03:00+00:00"


def make_line(number: int) -> bytes:
    said = {"raw": f"Take db_password={SECRET} with you.", "from": "a", "to": "b", "conversation": f"c{number}"}
    return json.dumps(said | {"trace": f"t{number}", "at": f"2026-11-20T09:0{number}:00Z"}).encode() + b"\n"


@pytest.fixture
def log(cast: Cast) -> Cast:
    deliver(cast, *(make_line(number) for number in range(1, 7)))
    resolve_all()
    return cast


class IsSlow(Func):
    """True or false, and nine seconds late where a condition holds."""

    output_field = BooleanField()

    def __init__(self, slow: Q, *, is_found: bool = True) -> None:
        wait = Func(Case(When(slow, then=Value(9.0)), default=Value(0.0)), function="pg_sleep")
        elsewhere = "pg_sleep(0) IS NOT NULL" if is_found else "FALSE"
        template = f"CASE WHEN %(expressions)s IS NOT NULL THEN {elsewhere} END"
        super().__init__(wait, template=template)


def make_slow(monkeypatch: pytest.MonkeyPatch, slow: Q, *, is_found: bool = True) -> None:
    meant = Q(IsSlow(slow, is_found=is_found))
    monkeypatch.setattr(selectors, "as_filter", lambda *given, **more: meant)
    for module, name, patience_ms in (
        (selectors, "AT_ONCE_MS", 50),
        (selectors, "BY_TERMS_MS", 50),
        (selectors, "THREADS_MS", 50),
        (selectors, "PATIENCE_MS", 1500),
    ):
        monkeypatch.setattr(module, name, patience_ms)


def find_slow(name: str, rows: list[dict[str, Any]]) -> Q:
    """What is true of the messages far down in a list: traces stand in the order they were made."""
    if name == "traces":
        return ~Q(trace_id__in=[row["native_id"] for row in rows[:3]])
    return Q(order_time__lt=datetime.fromisoformat(BORDER))


def ask(token: str, name: str, **query: Any) -> Any:
    answer = Client().get(f"/api/v1/{name}", query, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.parametrize("name", LISTS)
def test_it_says_how_far_it_came_and_goes_on_from_there(name: str, log: Cast, token: str) -> None:
    whole = ask(token, name, q="from:nobody OR dialect:prose")
    assert whole["searched_back_to"] is whole["next"] is None
    ids = [row["id"] for row in whole["results"]]
    assert len(ids) >= 6
    with pytest.MonkeyPatch.context() as patch:
        make_slow(patch, find_slow(name, whole["results"]))
        found = ask(token, name, q="dialect:prose")
    # The newest stand above the border.
    first = [row["id"] for row in found["results"]]
    assert first == ids[: len(first)]
    assert 0 < len(first) < len(ids)
    assert found["searched_back_to"] >= BORDER[:16]
    rest = ask(token, name, q="dialect:prose", cursor=found["next"])
    assert [*first, *(row["id"] for row in rest["results"])] == ids
    assert rest["searched_back_to"] is rest["next"] is None


@pytest.mark.parametrize("name", LISTS)
def test_an_answer_without_rows_goes_on_too(name: str, log: Cast, token: str) -> None:
    rows = ask(token, name, q="dialect:prose")["results"]
    whole = [row["id"] for row in rows]
    with pytest.MonkeyPatch.context() as patch:
        make_slow(patch, find_slow(name, rows), is_found=False)
        found = ask(token, name, q="dialect:prose")
    assert found["results"] == []
    assert found["searched_back_to"] is not None
    rest = [row["id"] for row in ask(token, name, q="dialect:prose", cursor=found["next"])["results"]]
    assert rest
    assert rest == whole[-len(rest) :]


@pytest.mark.parametrize("name", LISTS)
def test_where_nothing_at_all_could_be_looked_through_it_is_refused(
    name: str, log: Cast, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_slow(monkeypatch, Q(pk__isnull=False))
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().get(f"/api/v1/{name}", {"q": "dialect:prose"}, headers=headers)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "make it narrower" in answer.json()["detail"]


def test_no_cursor_ends_a_list_before_its_end(log: Cast, token: str) -> None:
    """Page by page, whatever is masked in the rows that a query of the wire passes over."""
    for query, count in (("raw:password", 6), (f"raw:{SECRET}", 0), (f"-raw:{SECRET}", 6)):
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = ask(token, "messages", q=query, limit=1, **cursor)
            found += [row["id"] for row in page["results"]]
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
        assert len(found) == len(set(found)) == count, query
    assert Message.objects.count() == 6
