"""Traces of the product's own steps, by OpenTelemetry: a span for each request, and for each slice of a job.

None is made unless TRACES_ENDPOINT says who takes them. A span has ids, counts, the pattern of an address and the type
of an error: no address, no query and no word of any log, which only its workspace may read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import Span, StatusCode

# Other names of methods are a stranger's words.
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def send_traces(endpoint: str) -> None:
    """From now on send the spans of this process there, in the background, also after it forks.

    Args:
        endpoint: of OTLP over HTTP with protobuf, such as `http://collector:4318/v1/traces`. The other variables of
            OpenTelemetry's exporter (`OTEL_EXPORTER_OTLP_HEADERS`, …) hold as it documents them.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: "inspector"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)


@contextmanager
def step(name: str, ids: Mapping[str, object]) -> Iterator[Span]:
    """A span for the block; where it raises, with the error's type alone: what an error says may quote a log."""
    facts = {f"inspector.{key}": str(value) for key, value in ids.items()}
    tracer = trace.get_tracer("inspector")
    with tracer.start_as_current_span(
        name, attributes=facts, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except Exception as error:
            span.set_status(StatusCode.ERROR, type(error).__name__)
            raise


def describe_answer(span: Span, *, method: str | None, route: str | None, status: int) -> None:
    """What a request was, by the conventions of OpenTelemetry: `GET w/<slug:slug>/`."""
    method = method if method in METHODS else "_OTHER"
    span.update_name(f"{method} {route}" if route is not None else method)
    span.set_attribute("http.request.method", method)
    span.set_attribute("http.response.status_code", status)
    if route is not None:
        span.set_attribute("http.route", route)
    if status >= 500:
        span.set_status(StatusCode.ERROR)
