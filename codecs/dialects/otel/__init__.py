"""OpenTelemetry: spans of agents, models and tools, as OTLP writes them in JSON or as objects with plain attributes.

Specification: OTLP 1.x (opentelemetry-proto), the semantic conventions for GenAI as they are and as they were up to
1.36, and OpenInference. A span is one message, of who did what, for how long and how it ended; its id, its trace and
its parent are those of the record. A span that has nothing of GenAI is context and told in a few words. What the
record cannot hold: links, trace state, flags, and the attributes that no sentence tells, which stay in the text.
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

_HINT = re.compile(r'"(?:traceId|trace_id|resourceSpans|resource_spans|(?:gen_ai|openinference)\.)')


def _recognise(data: Any) -> tuple[float, str] | None:
    spans = list_spans(data)
    if not spans:
        return None
    if any(span.is_of_genai for span in spans):
        return 0.97, "a span with attributes of GenAI"
    return 0.9, "a span: it has a trace, an id, a name and a start"


def _make(data: Any) -> Sequence[Draft]:
    return [span.lead(draft) for span in list_spans(data) for draft in draft_span(span)]


def _reply(message: Message) -> Sequence[Reply]:
    """The span around it; the span of a tool without one answers the call."""
    inside, called = "its span lies inside that one", "it bears the id of that call"
    ways = (
        Reply(whom="message-id", basis="explicit", why=inside, value=message.parent_id),
        Reply(whom="correlation-id", basis="correlation", why=called, value=message.correlation_id),
    )
    return tuple(way for way in ways if way.value is not None)


DIALECT = make_dialect(
    Carrier(
        slug="otel",
        title="OpenTelemetry",
        summary="Spans of agents, models and tools: who did what, for how long, and what was said within.",
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
