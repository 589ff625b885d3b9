"""The durable answer to a POST beside COPY of the same batch: P24 of the goals, and the same of spans by OTLP."""

from __future__ import annotations

import http.client
import json
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from statistics import median, quantiles
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from .installation import WORKER, Installation
from .logs import Log
from .measure import Goal, Row

P24 = Goal("P24", "POST of 1,000 messages, durable, p95, v COPY of the batch, p95", 3, 1.5, is_share=True)
SPANS = Goal("P24", "POST of 1,000 spans by OTLP in Protobuf, the same, v COPY of the spans", 3, 1.5, is_share=True)
MESSAGES = 1000
WARM_UPS = 3
START_NS = 1_795_118_400_000_000_000


class Batch(NamedTuple):
    """What is posted, where and as what; and the rows that COPY writes of it."""

    path: str
    kind: str
    body: bytes
    rows: Sequence[bytes]


def measure_posting(installation: Installation, options: Namespace) -> Iterator[Row]:
    """P24: through the real web server; COPY writes the bare rows into a table with a primary key, and commits."""
    with installation.connect() as connection:
        connection.execute("TRUNCATE intake_delivery, threads_conversation, intake_record, intake_job CASCADE")
    installation.start()
    installation.supervisor.stop(WORKER)
    for goal, make in ((P24, make_messages), (SPANS, make_spans)):
        yield _measure(installation, goal, [make(number) for number in range(WARM_UPS + 8 * options.rounds)])
    installation.stop()


def make_messages(number: int) -> Batch:
    """1,000 messages, as no other number has them."""
    lines = list(Log(seed=90_000 + number, records=MESSAGES).lines())
    return Batch("/api/v1/messages", "application/x-ndjson", b"\n".join(lines), lines)


def make_spans(number: int) -> Batch:
    """One trace of 1,000 spans of a model and its tools, as an exporter sends them."""
    exported = ExportTraceServiceRequest()
    resource = exported.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "bench"
    spans = resource.scope_spans.add().spans
    for at in range(MESSAGES):
        span = spans.add(
            name=f"execute_tool search {at}",
            trace_id=(number + 1).to_bytes(16),
            span_id=(at + 1).to_bytes(8),
            parent_span_id=(at // 8 + 1).to_bytes(8) if at else b"",
            start_time_unix_nano=START_NS + at * 1_000_000,
            end_time_unix_nano=START_NS + (at + 5) * 1_000_000,
        )
        said = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": f"call-{number}-{at}",
            "gen_ai.tool.call.arguments": json.dumps({"q": f"question {at} of {number}"}),
        }
        for key, value in said.items():
            span.attributes.add(key=key).value.string_value = value
    rows = [span.SerializeToString() for span in spans]
    return Batch("/v1/traces", "application/x-protobuf", exported.SerializeToString(), rows)


def _measure(installation: Installation, goal: Goal, batches: Sequence[Batch]) -> Row:
    door = installation.door
    server = http.client.HTTPConnection(door.host, door.port, timeout=60)
    ours, theirs = [], []
    counted = "SELECT coalesce(sum(received), 0)::bigint FROM intake_delivery"
    with installation.connect() as connection:
        (before,) = connection.execute(counted).fetchone() or (0,)
        connection.execute("CREATE TABLE raw_batch (id bigserial PRIMARY KEY, line bytea NOT NULL)")
        for number, batch in enumerate(batches):
            headers = {"Authorization": f"Bearer {door.token}", "Content-Type": batch.kind}
            start = time.perf_counter()
            server.request("POST", batch.path, batch.body, headers)
            response = server.getresponse()
            answer = response.read()
            spent = time.perf_counter() - start
            if response.status not in (200, 202):
                return Row(goal, None, remark=f"the answer was {response.status}: {answer!r}")
            start = time.perf_counter()
            with connection.cursor() as cursor, cursor.copy("COPY raw_batch (line) FROM STDIN") as copy:
                for row in batch.rows:
                    copy.write_row((row,))
            copied = time.perf_counter() - start
            if number >= WARM_UPS:
                ours.append(spent)
                theirs.append(copied)
        (after,) = connection.execute(counted).fetchone() or (0,)
        connection.execute("DROP TABLE raw_batch")
        connection.execute("TRUNCATE intake_delivery, threads_conversation, intake_record, intake_job CASCADE")
    server.close()
    sent = sum(len(batch.rows) for batch in batches)
    if after - before != sent:
        return Row(goal, None, remark=f"{after - before} records were received of {sent}")
    p95 = [quantiles(times, n=20)[-1] for times in (ours, theirs)]
    told = (
        f"p95 {p95[0] * 1000:.0f} v {p95[1] * 1000:.0f} ms, p50 {median(ours) * 1000:.0f} v {median(theirs) * 1000:.0f}"
    )
    return Row(goal, p95[0] / p95[1], remark=f"{told}, {len(ours)} posts")
