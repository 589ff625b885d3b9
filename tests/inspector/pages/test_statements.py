"""Every address that is read asks the database equally often however much there is, and no page outgrows its budget."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import ApiKey
from inspector.accounts.services import create_api_key
from inspector.api.urls import urlpatterns as api_urls
from inspector.ledger.sequencing import enter_new
from inspector.pages.urls import public_urls, workspace_urls
from inspector.retention.models import Erasure
from inspector.threads.models import Message, Trace
from tests.inspector.conftest import Cast, take_in
from tests.inspector.pages.test_access import POSTED, address_of
from tests.inspector.pages.test_access import ids as ids

SLUG = "acme"
MAX_STATEMENTS = 12
MAX_BYTES = 300_000
# Where a page begins a transaction of its own, a test, which is in one already, saves its place.
CONTROL = ("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT")
# What a process takes out of a key's requests at most once a second, for all that follow in it.
RESERVED = "UPDATE accounts_apikey AS held"
# What is no page of a workspace, or answers one program that is known by its token.
APART = {"home", "invitation", "old-link", "sign-in", "sign-in-link", "sign-out"}
# Which state of a page is looked at: the fullest it has.
QUERIES = {
    "search": "q=question+-zebra",
    "facets": "q=question",
    "suggestions": "q=from:a",
    "conversation": "order=time&offset=0",
    "traces": "",
    "message": "q=question",
    "message-json": "",
    "findings": "rule=unanswered&state=all&q=a",
    "conversation-findings": "state=all",
    "palette": "q=question",
    "api consistency": "from=1",
    "api messages": "q=question&limit=200",
    "api conversations": "limit=200",
}
# Files of any size, which are written in batches: tests/inspector/ledger/test_bundles.py counts what one asks.
BATCHED = {"bundle", "conversation-bundle"}
# A proof reads a tile of hashes for each 256 times that the ledger has grown.
PROOFS = {"api inclusion", "api consistency"}
PAGES = [each for each in workspace_urls if each.name not in POSTED | BATCHED]
CALLS = [
    each for each in api_urls if each.name not in ("nothing", "decode", "encode", "schema", "delivery-withdrawal", None)
]


def say(number: int, *, conversation: str = "long", trace: str = "t", parent: str | None = None) -> bytes:
    names = ("oscar", "radar", "muse", "ink")
    sender, receiver = names[number % 4], names[(number + 1) % 4]
    given = {"clowl": "0.2", "mid": f"{conversation}-{number}", "ts": 1795251600 + number, "tid": trace, "pid": parent}
    given |= {"p": "QRY" if number % 2 else "INF", "from": sender, "to": receiver, "cid": conversation}
    given |= {"body": {"t": "search", "d": {"q": f"question {number}", "password": "hunter2"}}}
    return json.dumps(given, separators=(",", ":")).encode() + b"\n"


def make_long(start: int, end: int) -> bytes:
    """A conversation in which everything answers something, as a stretch of its messages."""
    return b"".join(say(number, parent=f"long-{number // 2}" if number else None) for number in range(start, end))


@pytest.fixture
def counts(
    cast: Cast, ids: dict[str, Any], owner: Client, unhurried: None, monkeypatch: pytest.MonkeyPatch
) -> dict[str, list[tuple[int, int]]]:
    """For each address how many statements it took, and bytes it had, with little and with much to show."""
    take_in(cast, make_long(0, 10), name="few.log")
    ids = choose_ids(ids)
    monkeypatch.setitem(QUERIES, "api inclusion", f"kind=record&id={ids['record_id']}")
    token = create_api_key(workspace=cast.workspace, name="reader", scopes=ApiKey.Scope.values)[1]
    client, program = owner, Client(headers={"Authorization": f"Bearer {token}"})
    addresses = [(client, each.name, address_of(each, SLUG, ids)) for each in PAGES]
    addresses += [(program, f"api {each.name}", find_call(each, ids)) for each in CALLS]
    program.get(reverse("api:limits"))
    # A key notes once a minute that it was used: a machine that is busy must not decide how often that comes.
    ApiKey.objects.update(last_used_at=timezone.now() + timedelta(hours=1))
    found: dict[str, list[tuple[int, int]]] = {}
    for more in (b"", make_long(10, 1000) + b"".join(say(0, conversation=f"c{n}", trace=f"t{n}") for n in range(100))):
        if more:
            take_in(cast, more, name="many.log")
        enter_new(at_once=True)
        for who, name, address in addresses:
            found.setdefault(name, []).append(measure(who, name, address))
    return found


def choose_ids(ids: dict[str, Any]) -> dict[str, Any]:
    """What an address names, and of conversations, messages and traces those that grow."""
    message = Message.objects.get(native_id="long-3")
    return {
        **ids,
        "conversation_id": message.conversation_id,
        "message_id": message.pk,
        "record_id": message.record_id,
        "trace_id": Trace.objects.get(native_id="t", last_at__isnull=False).pk,
        "erasure_id": Erasure.objects.create(workspace=message.workspace, kind="age", reason="Too old.").pk,
    }


def find_call(pattern: Any, ids: dict[str, Any]) -> str:
    return reverse(f"api:{pattern.name}", kwargs={name: ids[name] for name in pattern.pattern.converters})


def measure(client: Client, name: str, address: str) -> tuple[int, int]:
    """The statements and the bytes of one answer; what every answer needs once for a process was asked for before."""
    query = QUERIES.get(name, "")
    with CaptureQueriesContext(connection) as asked:
        response = client.get(f"{address}?{query}" if query else address)
        body = b"".join(response.streaming_content) if response.streaming else response.content  # type: ignore[arg-type]
    assert response.status_code in (200, 204, 302, 405), (name, response.status_code, body[:300])
    statements = [each for each in asked.captured_queries if not each["sql"].strip().startswith((*CONTROL, RESERVED))]
    return len(statements), len(body) if "html" in response.get("Content-Type", "") else 0


@pytest.mark.long(seconds=45)
def test_how_often_the_database_is_asked(
    counts: dict[str, list[tuple[int, int]]], record_property: Callable[[str, object], None]
) -> None:
    assert {each.name for each in public_urls if hasattr(each, "name")} == APART
    grown = {name: found for name, found in counts.items() if found[0][0] != found[1][0] and name not in PROOFS}
    too_many = {name: many for name, (_, (many, _)) in counts.items() if many > MAX_STATEMENTS}
    # `bench.proofs` prints these.
    record_property("addresses", len(counts))
    record_property("statements at most", max(many for _, (many, _) in counts.values()))
    record_property("failures", len(grown.keys() | too_many.keys()))
    assert not grown
    assert not too_many
    assert not {name: size for name, (_, (_, size)) in counts.items() if size > MAX_BYTES}
