"""Log lines: one event, one line, whatever hostile text an event carries, with the ids of what it is about; and traces
of the product's own steps, by OpenTelemetry: a span for each request, and for each slice of a job.

A request, a delivery and a job have ids. Whoever begins to work on one says so (`about`), and every line until the end
of that bears its id, in the web server as in the worker: the lines of a delivery are found by its id everywhere.

No span is made unless TRACES_ENDPOINT says who takes it. A span has ids, counts, the pattern of an address and the type
of an error: no address, no query and no word of any log, which only its workspace may read.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from django.http import HttpRequest, HttpResponseBase
from opentelemetry import trace
from opentelemetry.trace import Span, StatusCode

from inspector.tokens import hide_tokens

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


# Outside of any block there is nothing.
_NOTHING: Final[Mapping[str, str]] = {}
_about: ContextVar[Mapping[str, str]] = ContextVar("about", default=_NOTHING)
# What a proxy may call a request.
_REQUEST_ID: Final = re.compile(r"[\w-]{8,64}", re.ASCII)
ABOUT: Final = "inspector.about"


@contextmanager
def about(**ids: object) -> Iterator[None]:
    """Until the end of the block, every line of this thread bears these ids too."""
    before = _about.get()
    _about.set({**before, **_write(ids)})
    try:
        yield
    finally:
        _about.set(before)


def note_about(**ids: object) -> None:
    """From here on, until the end of the block of `about` around it, every line bears these ids too; without such a
    block none does, for nothing would end it."""
    known = _about.get()
    if known is not _NOTHING:
        _about.set({**known, **_write(ids)})


def _write(ids: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in ids.items()}


class RequestIdMiddleware:
    """Gives each request its id: that of the proxy before it (`X-Request-Id`), else a new one. The answer bears it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        given = request.headers.get("X-Request-Id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        with about(request=request_id), step("request", {"request": request_id}) as span:
            answer = self._get_response(request)
            route = request.resolver_match.route if request.resolver_match else None
            describe_answer(span, method=request.method, route=route, status=answer.status_code)
            # For the line of the access log, which is written when all is over.
            request.META[ABOUT] = _about.get()
        answer["X-Request-Id"] = request_id
        return answer


_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

# What signs somebody in stands behind the "#" of a link, and stood in the paths of an earlier release.
_LINKS: Final = re.compile(r"(/(?:sign-in-link|sign-in|invitation)/#?)[\w-]+")


def hide_links(text: str) -> str:
    """The text with the links that sign somebody in, but without the part that does."""
    return _LINKS.sub(r"\1…", text)


def escape_controls(text: str) -> str:
    """The text with control and direction characters written as escapes, so that no value can forge a line."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class LineFormatter(logging.Formatter):
    """`2026-11-21T09:00:00Z INFO inspector.intake message`, tracebacks folded into the same line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S%z")

    def format(self, record: logging.LogRecord) -> str:
        """The record as exactly one line, without the tokens that it may quote."""
        ids = "".join(f" {name}={value}" for name, value in _about.get().items())
        return escape_controls(hide_links(hide_tokens(super().format(record)) + ids))


class JsonFormatter(logging.Formatter):
    """The same as an object of JSON: time, level, logger, message, the ids, and traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as exactly one line, without the tokens that it may quote."""
        said = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{record.msecs:03.0f}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_about.get(),
        }
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps({name: hide_links(hide_tokens(text)) for name, text in said.items()})


class RefusalFilter(logging.Filter):
    """Of a request that the framework refuses: one line, no longer than it says something, and no traceback.

    Whoever knows the address of the server can send such requests, and none is an error of the product.
    """

    MAX_CHARACTERS: Final = 500

    def filter(self, record: logging.LogRecord) -> bool:
        """True: the record is written, shortened where it is a refusal."""
        is_suspect = record.name.startswith("django.security.")
        if is_suspect or (record.name == "django.request" and record.levelno < logging.ERROR):
            record.msg, record.args, record.exc_info = record.getMessage()[: self.MAX_CHARACTERS], (), None
        if is_suspect:
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


class AwayFilter(logging.Filter):
    """Of a beat whose broker is away: one line a minute that says so, and not a traceback every two seconds."""

    SECONDS: Final = 60.0
    _said_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be written, shortened where it is a failure to send."""
        if not record.exc_info:
            return True
        if record.created - self._said_at < self.SECONDS:
            return False
        self._said_at = record.created
        record.msg, record.args = "The broker takes nothing, and workers look by themselves: %s", (record.exc_info[1],)
        record.exc_info = None
        return True
