"""Spans of the product's own steps: which there are, and that none says a word of a log, an address or an error."""

from __future__ import annotations

import pytest
from django.test import Client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inspector import logs, steps
from inspector.intake.models import Delivery, Job

from .conftest import Cast, resolve_all

WORD = "marmalade"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


@pytest.mark.django_db
def test_requests_and_jobs_are_spans_with_ids_and_no_word_of_a_log(
    cast: Cast, auditor: Client, token: str, spans: InMemorySpanExporter
) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    posted = Client().post("/api/v1/messages", f"{WORD}\n", content_type="text/plain", headers=headers)
    resolve_all()
    auditor.get(f"/w/acme/conversations/?q={WORD}")
    auditor.get(f"/{WORD}/")
    done = spans.get_finished_spans()
    named = {each.name: each for each in done}
    assert {"POST api/v1/messages", "ingest", "GET w/<slug:slug>/conversations/", "GET"} <= named.keys()
    assert named["POST api/v1/messages"].attributes == {
        "inspector.request": posted["X-Request-Id"],
        "http.request.method": "POST",
        "http.response.status_code": posted.status_code,
        "http.route": "api/v1/messages",
    }
    facts = named["ingest"].attributes or {}
    assert (facts["inspector.delivery"], facts["inspector.jobs"]) == (str(Delivery.objects.get().pk), "1")
    assert WORD not in "".join(each.to_json() for each in done)


@pytest.mark.django_db
def test_a_failed_step_says_the_type_of_its_error_alone(
    cast: Cast, token: str, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(job: Job) -> None:
        raise LookupError(WORD)

    monkeypatch.setitem(steps.STEPS, Job.Kind.INGEST, fail)
    headers = {"Authorization": f"Bearer {token}"}
    Client().post("/api/v1/messages", "hello\n", content_type="text/plain", headers=headers)
    with pytest.raises(AssertionError):
        resolve_all()
    failed = [each for each in spans.get_finished_spans() if each.name == "ingest"]
    assert {(each.status.status_code, each.status.description) for each in failed} == {
        (trace.StatusCode.ERROR, "LookupError")
    }
    assert not any(each.events for each in failed)


def test_nothing_is_made_where_nobody_takes_it() -> None:
    with logs.step("step", {"job": 1}) as span:
        assert not span.is_recording()
