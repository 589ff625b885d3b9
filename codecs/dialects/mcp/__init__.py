"""MCP, the Model Context Protocol: who called which tool with what, and what came back (JSON-RPC 2.0).

Specification: the revisions 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28. Client and server each
count their ids from one, so that an id names a request only together with who called: the record's correlation id is
`client:1` or `server:1`, by the method, or in an answer by its shape. No message names its sender but the first of a
session; who speaks is otherwise for the log to say. What the record cannot hold: images, sound and blobs, which stay
in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .._carrier import Carrier, make_dialect
from .._draft import Draft
from .._jsonrpc import Call, find_replies, list_calls
from .._record import NoteKind
from .answers import ANSWERED, NOT_OFFERED, draft_answer, find_answer
from .calls import TOOL_WITHOUT_NAME, draft_call
from .tables import GLOSSARY, LABELS, METHODS, REVISIONS, SPECIFICATION

_HINT = re.compile(r'"jsonrpc"\s*+:\s*+"2\.0"')
_META = "io.modelcontextprotocol/"

ID_MISSING = NoteKind(
    code="mcp.id-missing",
    severity="warning",
    group="protocol",
    about="An answer bears no id, so that nobody can say what it answers.",
    cites="JSON-RPC 2.0, section 5",
)


def _recognise(data: Any) -> tuple[float, str] | None:
    """A method of MCP is sure; an answer is by its shape, and weaker than prose where any protocol could."""
    calls = list_calls(data)
    if not calls:
        return None
    if any(call.method in METHODS for call in calls):
        return 0.97, "JSON-RPC with a method of MCP"
    if any(call.method for call in calls):
        return None
    if any(call.kind == "result" and find_answer(call.data["result"]) for call in calls):
        return 0.9, "JSON-RPC with a result as MCP gives it"
    # Any program may answer so: it is MCP where the conversation speaks it, and alone it is prose.
    return 0.25, "an answer of JSON-RPC, in which MCP is written"


def _make(data: Any) -> Sequence[Draft]:
    return [_draft(call) for call in list_calls(data)]


def _draft(call: Call) -> Draft:
    if call.kind in ("request", "notification"):
        return draft_call(call)
    draft = draft_answer(call)
    if call.id is None:
        draft.note(ID_MISSING, "the answer bears no id: what it answers is not known", call.path)
    return draft


def _find_version(data: Any) -> str | None:
    for call in list_calls(data):
        result = call.data.get("result")
        for held in (
            call.params,
            call.params.get("_meta"),
            result,
            result.get("_meta") if isinstance(result, dict) else 0,
        ):
            if isinstance(held, dict):
                version = held.get("protocolVersion") or held.get(f"{_META}protocolVersion")
                if isinstance(version, str):
                    return version
    return None


DIALECT = make_dialect(
    Carrier(
        slug="mcp",
        title="MCP",
        summary="Calls of tools, resources and prompts between a client and a server.",
        specification=SPECIFICATION,
        hint=_HINT,
        recognise=_recognise,
        make=_make,
        replies=find_replies,
        labels=LABELS,
        notes=(ID_MISSING, TOOL_WITHOUT_NAME, ANSWERED),
        not_offered=NOT_OFFERED,
        glossary=GLOSSARY,
        versions=REVISIONS,
        version_of=_find_version,
        rank=20,
    )
)
