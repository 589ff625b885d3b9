"""OpenTelemetry: spans and logs of agents, models and tools, as OTLP writes them in JSON or with plain attributes.

Specification: OTLP 1.x (opentelemetry-proto), the semantic conventions for GenAI as they are and as they were up to
1.36, and OpenInference. A span is one message, of who did what, for how long and how it ended; its id, its trace and
its parent are those of the record. A span that has nothing of GenAI is context and told in a few words. A record of a
log is a message below the span that it was logged in; an event of GenAI tells of an operation, or is a message to or
from a model. What the record cannot hold: links, trace state, flags, and the attributes that no sentence tells, which
stay in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .._carrier import Carrier, make_dialect
from .._dialect import Reply
from .._draft import Draft
from .._record import Message
from .messages import NOT_OFFERED
from .spans import list_spans
from .tables import GLOSSARY, LABELS, SPECIFICATION
from .telling import BACKWARDS, MORE, ODD_ID, TOOL_FAILED, draft_span

_HINT = re.compile(
    r'"(?:traceId|trace_id|resourceSpans|resource_spans|resourceLogs|resource_logs|(?:gen_ai|openinference)\.'
    r"|(?:observed_?)?[tT]ime_?[uU]nix_?[nN]ano|observed_timestamp|severity_?[nN]umber)"
)


def _recognise(data: Any) -> tuple[float, str] | None:
    spans = list_spans(data)
    if not spans:
        return None
    if any(span.is_of_genai for span in spans):
        return 0.97, "a span or a record of a log with what is of GenAI"
    if spans[0].is_record:
        return 0.9, "a record of a log: it has a time or a severity, and a body or a name"
    return 0.9, "a span: it has a trace, an id, a name and a start"


def _make(data: Any) -> Sequence[Draft]:
    return [span.lead(draft) for span in list_spans(data) for draft in draft_span(span)]


def _reply(message: Message) -> Sequence[Reply]:
    """The span around it; the span of a tool without one answers the call."""
    inside, called = "its span lies inside that one", "it bears the id of that call"
    if message.message_id is None:
        inside = "it was logged within that span"
    ways = (
        Reply(whom="message-id", basis="explicit", why=inside, value=message.parent_id),
        Reply(whom="correlation-id", basis="correlation", why=called, value=message.correlation_id),
    )
    return tuple(way for way in ways if way.value is not None)


DIALECT = make_dialect(
    Carrier(
        slug="otel",
        title="OpenTelemetry",
        summary="Spans and logs of agents, models and tools: who did what, for how long, and what was said within.",
        specification=SPECIFICATION,
        hint=_HINT,
        recognise=_recognise,
        make=_make,
        replies=_reply,
        labels=LABELS,
        notes=(BACKWARDS, MORE, ODD_ID, TOOL_FAILED, NOT_OFFERED),
        glossary=GLOSSARY,
    )
)
