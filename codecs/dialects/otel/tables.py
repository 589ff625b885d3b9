"""The operations of GenAI: what act a span of each reports and how a sentence says it. Labels and glossary follow."""

from __future__ import annotations

from typing import Final, NamedTuple

from .._dialect import Term

SPECIFICATION: Final = "OTLP 1.x in JSON; OpenTelemetry semantic conventions for GenAI up to 1.38; OpenInference"


class Operation(NamedTuple):
    """An operation: what a sentence says of it, what its object is, and the attributes that may name that."""

    says: str
    thing: str = ""
    named_by: tuple[str, ...] = ()


_MODEL: Final = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "embedding.model_name")
_TOOL: Final = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")

OPERATIONS: Final[dict[str, Operation]] = {
    "chat": Operation("asks", "model", _MODEL),
    "generate_content": Operation("asks", "model", _MODEL),
    "text_completion": Operation("lets a text be completed by", "model", _MODEL),
    "embeddings": Operation("asks for embeddings by", "model", _MODEL),
    "invoke_agent": Operation("works as an agent"),
    "create_agent": Operation("is created as an agent"),
    "invoke_workflow": Operation("runs", "workflow", ("gen_ai.workflow.name", "traceloop.entity.name")),
    "execute_tool": Operation("runs", "tool", _TOOL),
    "retrieval": Operation("searches", "source", ("gen_ai.data_source.id",)),
    "plan": Operation("makes a plan"),
    "rerank": Operation("orders what was found"),
    "guard": Operation("checks what is said"),
    "evaluate": Operation("judges what was said"),
}

# Whose texts are messages to and from a model.
TALKS: Final = frozenset({"chat", "generate_content", "text_completion"})

# Events that are one message each: of which role, and whether the model says it.
MESSAGE_EVENTS: Final = {
    "gen_ai.system.message": ("system", False),
    "gen_ai.user.message": ("user", False),
    "gen_ai.assistant.message": ("assistant", False),
    "gen_ai.tool.message": ("tool", False),
    "gen_ai.choice": ("assistant", True),
}

# What others call the same, in `openinference.span.kind` and `traceloop.span.kind`.
KINDS: Final = {
    "AGENT": "invoke_agent",
    "LLM": "chat",
    "TOOL": "execute_tool",
    "CHAIN": "invoke_workflow",
    "WORKFLOW": "invoke_workflow",
    "TASK": "invoke_workflow",
    "EMBEDDING": "embeddings",
    "RETRIEVER": "retrieval",
    "RERANKER": "rerank",
    "GUARDRAIL": "guard",
    "EVALUATOR": "evaluate",
}

# What a span of GenAI has among its attributes.
OF_GENAI: Final = ("gen_ai.", "openinference.", "llm.", "traceloop.")

CONVERSATION: Final = ("gen_ai.conversation.id", "session.id", "thread_id", "gen_ai.thread.id")
AGENT: Final = ("gen_ai.agent.name", "agent.name", "graph.node.id")
TOOL_CALL: Final = ("gen_ai.tool.call.id", "tool_call.id")
# The names under which the record keeps some attributes.
KEPT: Final = {
    "provider": ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"),
    "model": _MODEL,
    "tool": _TOOL,
    "agent_id": ("gen_ai.agent.id",),
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
}

LABELS: Final[dict[str, tuple[str, str | None]]] = {
    "traceId": ("id of the trace", None),
    "trace_id": ("id of the trace", None),
    "spanId": ("id of the span", None),
    "span_id": ("id of the span", None),
    "parentSpanId": ("id of the span around it", None),
    "parent_span_id": ("id of the span around it", None),
    "parent_id": ("id of the span around it", None),
    "kind": ("kind of span", None),
    "startTimeUnixNano": ("start", "nanoseconds since 1970"),
    "endTimeUnixNano": ("end", "nanoseconds since 1970"),
    "timeUnixNano": ("time", "nanoseconds since 1970"),
    "observedTimeUnixNano": ("time at which it was collected", "nanoseconds since 1970"),
    "severityNumber": ("severity", "1 to 24, an error from 17 on"),
    "severityText": ("severity", None),
    "body": ("body", "what is logged"),
    "eventName": ("name of the event", None),
    "start_time": ("start", None),
    "end_time": ("end", None),
    "attributes": ("attributes", None),
    "events": ("events", "what happened in the course of the span"),
    "links": ("links", "spans that it has to do with"),
    "status": ("status", None),
    "status.code": ("status", "2 is an error"),
    "resource": ("resource", "the program that reports"),
    "scope": ("scope", "the library that reports"),
}

GLOSSARY: Final = (
    *(
        Term(
            kind="operation",
            code=code,
            name=code,
            meaning=f"someone {row.says}{f' a {row.thing}' if row.thing else ''}",
        )
        for code, row in OPERATIONS.items()
    ),
    *(Term(kind="span kind", code=code, name=code, meaning=f"as {name}") for code, name in KINDS.items()),
)
