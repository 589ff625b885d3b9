"""A client with a key, the operations there are, the rows of all pages of a list, and what a page costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern

from inspector.accounts.services import create_api_key
from inspector.api.endpoints import Operation
from inspector.api.urls import urlpatterns
from tests.inspector.conftest import Cast


def enter(cast: Cast, who: Any, *scopes: str) -> Client:
    """A client whose key a person made, or nobody, with these scopes."""
    token = create_api_key(workspace=cast.workspace, name="k", scopes=list(scopes), created_by=who)[1]
    return Client(headers={"Authorization": f"Bearer {token}"})


def list_operations() -> Iterator[tuple[URLPattern, str, Operation]]:
    """Every operation with its address and method; HEAD beside GET."""
    for url in urlpatterns:
        for method, name in getattr(url.callback, "actions", {}).items():
            operation = getattr(getattr(url.callback.cls, name), "operation", None)  # type: ignore[attr-defined]
            if operation and method != "head":
                yield from (
                    (url, each, operation) for each in (("GET", "HEAD") if method == "get" else (method.upper(),))
                )


def get(path: str, token: str, status: int = 200, **query: Any) -> Any:
    """What an address of the API answers with."""
    answer = Client().get(f"/api/v1/{path}", query, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == status, answer.content
    return answer.json()


def walk(client: Client, address: str, **given: Any) -> list[dict[str, Any]]:
    """The rows of all pages, one a page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while cursor is not None:
        answer = client.get(address, {"limit": 1, **given, **({"cursor": cursor} if cursor else {})})
        assert answer.status_code == 200, answer.content
        found, cursor = found + answer.json()["results"], answer.json()["next"]
    return found


def costs_the_same(client: Client, address: str, *limits: int, **given: Any) -> bool:
    """Whether a page of any of these lengths takes the same number of statements."""
    counts = set()
    for limit in limits:
        with CaptureQueriesContext(connection) as queries:
            client.get(address, {"limit": limit, **given})
        counts.add(len(queries))
    return len(counts) == 1
