"""/healthz, /readyz and /metrics: what a supervisor is told, and who may see the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from inspector.api import probes
from inspector.intake.models import Job
from inspector.intake.selectors import list_measures

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _count_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "FRESH_SECONDS", -1.0)
    monkeypatch.setattr(probes, "_collector", probes.FreshCollector())


def read(client: Client, **headers: str) -> dict[str, float]:
    response = client.get("/metrics", headers=headers)
    assert response.status_code == 200, response.content
    families = text_string_to_metric_families(response.content.decode())
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_process_is_healthy_without_asking_the_database(client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert "no-store" in response["Cache-Control"]


def test_it_is_ready_while_the_database_answers(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/readyz").status_code == 200

    def fail() -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(connection, "cursor", fail)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response["Retry-After"]
    assert "gone" not in response.content.decode()
    assert client.get("/metrics").status_code == 503


@pytest.mark.parametrize("address", ["/healthz", "/readyz", "/metrics"])
def test_probes_take_no_other_method(client: Client, address: str) -> None:
    assert client.head(address).status_code == 200
    assert client.post(address).status_code == 405


def test_the_numbers_add_up(cast: Cast, client: Client) -> None:
    deliver(cast, b'{"raw":"a","id":"1"}\n{"raw":"a","id":"1"}\n{"raw":"b"}\n\xff\n')
    before = read(client)
    records = {
        outcome: before[f"inspector_records_total {outcome}"] for outcome in ("stored", "duplicate", "quarantined")
    }
    assert records == {"stored": 2, "duplicate": 1, "quarantined": 1}
    assert before["inspector_deliveries import framed"] == 1
    assert before["inspector_backlog_records"] == 2
    assert before["inspector_jobs ingest queued"] == 1
    assert before["inspector_oldest_due_seconds ingest"] > 0
    resolve_all()
    after = read(client)
    assert after["inspector_backlog_records"] == 0
    assert after["inspector_jobs ingest queued"] == 0
    assert after["inspector_oldest_due_seconds settle"] == 0
    Job.objects.update(state=Job.State.DEAD)
    assert read(client)["inspector_jobs ingest dead"] == 1


@pytest.mark.parametrize(
    ("accept", "content_type", "parse"),
    [
        ("", "text/plain; version=0.0.4;", text_string_to_metric_families),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "text/plain; version=0.0.4;", text_string_to_metric_families),
        ("application/openmetrics-text;version=words", "text/plain; version=0.0.4;", text_string_to_metric_families),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
            "application/openmetrics-text;",
            parse_openmetrics,
        ),
    ],
)
def test_the_numbers_are_in_the_format_that_is_asked_for_and_name_no_workspace(
    cast: Cast, client: Client, accept: str, content_type: str, parse: Callable[[str], Iterable[Metric]]
) -> None:
    deliver(cast, b"hello\n", name="secret-name.log")
    response = client.get("/metrics", headers={"Accept": accept})
    assert response["Content-Type"].startswith(content_type)
    text = response.content.decode()
    assert {(family.name, family.type) for family in parse(text)} == {
        (measure.name, measure.type) for measure in list_measures()
    }
    assert not any(word in text for word in ("acme", "secret-name", "olivia"))


def test_the_numbers_are_counted_once_in_a_while(
    cast: Cast, client: Client, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(probes, "FRESH_SECONDS", 60.0)
    client.get("/metrics")
    with django_assert_num_queries(0):
        client.get("/metrics")


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("203.0.113.7", {}),
        ("", {}),
        ("127.0.0.1", {"X-Forwarded-For": "203.0.113.7"}),
        ("127.0.0.1", {"Forwarded": "for=127.0.0.1"}),
        ("127.0.0.1", {"X-Forwarded-Proto": "https"}),
    ],
)
def test_the_numbers_are_for_the_machine_itself(client: Client, address: str, headers: dict[str, str]) -> None:
    assert client.get("/metrics", headers=headers, REMOTE_ADDR=address).status_code == 404
    assert client.get("/metrics", REMOTE_ADDR="::1").status_code == 200


def test_behind_a_proxy_the_numbers_need_the_token(client: Client, settings: Any) -> None:
    settings.IS_BEHIND_HTTPS = True
    assert client.get("/metrics").status_code == 404
    settings.METRICS_TOKEN = "let-me-see"
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer é"}).status_code == 404
    seen = client.get("/metrics", headers={"Authorization": "Bearer let-me-see"}, REMOTE_ADDR="203.0.113.7")
    assert seen.status_code == 200


def test_a_supervisor_asks_by_any_address_and_nobody_else_does(
    client: Client, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALLOWED_HOSTS = ["inspector.example.org"]
    for address in ("/healthz", "/readyz", "/metrics"):
        assert client.get(address, headers={"Host": "10.0.0.7:8000"}).status_code == 200
    assert not caplog.records
    assert client.get("/sign-in/", headers={"Host": "10.0.0.7:8000"}).status_code == 400
    assert client.get("/healthz/", headers={"Host": "10.0.0.7:8000"}).status_code == 400


def test_a_supervisor_is_not_sent_to_https(client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert Client().get("/healthz").status_code == 200
    assert Client().get("/sign-in/").status_code == 301
