"""An export of spans is cut span by span, with what its resource says around each."""

from __future__ import annotations

import json
from typing import Any

from dialects._log import LogRecord, read_log


def make_span(number: int, agent: str | None = None) -> dict[str, Any]:
    attributes = [{"key": "gen_ai.agent.name", "value": {"stringValue": agent}}] if agent else []
    return {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": f"{number:016x}", "attributes": attributes}


def make_export(service: str, *spans: dict[str, Any]) -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "]}"}, "spans": list(spans)}]}]}


def frame(*exports: dict[str, Any], indent: int | None = None) -> list[LogRecord]:
    log = "\n".join(json.dumps(export, indent=indent) for export in exports)
    return [item for item in read_log(log.encode()) if isinstance(item, LogRecord)]


def test_each_span_is_a_record_with_its_own_text() -> None:
    spans = [make_span(1), make_span(2)]
    assert [json.loads(record.wire or "") for record in frame(make_export("desk", *spans), indent=2)] == spans


def test_the_service_speaks_for_a_span_that_names_no_agent() -> None:
    records = frame(make_export("desk", make_span(1), make_span(2, "planner")), make_export("shop", make_span(3)))
    said = [(record.envelope.sender, record.envelope.extra) for record in records if record.envelope]
    assert said == [("desk", {"service": "desk"}), (None, {"service": "desk"}), ("shop", {"service": "shop"})]


def test_records_of_logs_are_cut_as_spans_are() -> None:
    logged = [{"timeUnixNano": "1", "body": {"stringValue": text}} for text in ("ready", "done")]
    export = make_export("desk")
    (resource,) = export.pop("resourceSpans")
    export["resourceLogs"] = [{"resource": resource["resource"], "scopeLogs": [{"logRecords": logged}]}]
    said = [(json.loads(record.wire or ""), record.envelope and record.envelope.sender) for record in frame(export)]
    assert said == [(each, "desk") for each in logged]


def test_a_program_that_nobody_named_does_not_speak() -> None:
    assert [record.envelope for record in frame(make_export("unknown_service:python", make_span(1)))] == [None]


def test_a_resource_without_a_name_says_nothing_of_the_one_before() -> None:
    export = make_export("desk", make_span(1))
    export["resourceSpans"].append({"scopeSpans": [{"spans": [make_span(2)]}]})
    assert [record.envelope is None for record in frame(export)] == [False, True]
