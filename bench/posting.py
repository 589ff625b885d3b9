"""The durable answer to a POST beside COPY of the same batch: P24 of the goals."""

from __future__ import annotations

import http.client
import json
import time
from argparse import Namespace
from statistics import median, quantiles

from .installation import WORKER, Installation
from .logs import Log
from .measure import Goal, Row

P24 = Goal("P24", "POST of 1,000 messages, durable, p95, v COPY of the batch, p95", 3, 1.5, is_share=True)
MESSAGES = 1000
WARM_UPS = 3


def measure_posting(installation: Installation, options: Namespace) -> Row:
    """P24: through the real web server; COPY writes the bare lines into a table with a primary key, and commits."""
    with installation.connect() as connection:
        connection.execute("TRUNCATE intake_delivery, threads_conversation, intake_record, intake_job CASCADE")
    installation.start()
    installation.supervisor.stop(WORKER)
    door = installation.door
    server = http.client.HTTPConnection(door.host, door.port, timeout=60)
    headers = {"Authorization": f"Bearer {door.token}", "Content-Type": "application/x-ndjson"}
    ours, theirs = [], []
    with installation.connect() as connection:
        connection.execute("CREATE TABLE raw_batch (id bigserial PRIMARY KEY, line bytea NOT NULL)")
        for number in range(WARM_UPS + 8 * options.rounds):
            lines = list(Log(seed=90_000 + number, records=MESSAGES).lines())
            body = b"\n".join(lines)
            start = time.perf_counter()
            server.request("POST", "/api/v1/messages", body, headers)
            response = server.getresponse()
            answer = json.loads(response.read())
            spent = time.perf_counter() - start
            if response.status != 202 or answer["received"] != len(lines):
                return Row(P24, None, remark=f"the answer was {response.status}: {answer}")
            start = time.perf_counter()
            with connection.cursor() as cursor, cursor.copy("COPY raw_batch (line) FROM STDIN") as copy:
                for line in lines:
                    copy.write_row((line,))
            copied = time.perf_counter() - start
            if number >= WARM_UPS:
                ours.append(spent)
                theirs.append(copied)
        connection.execute("DROP TABLE raw_batch")
    server.close()
    installation.stop()
    p95 = [quantiles(times, n=20)[-1] for times in (ours, theirs)]
    told = (
        f"p95 {p95[0] * 1000:.0f} v {p95[1] * 1000:.0f} ms, p50 {median(ours) * 1000:.0f} v {median(theirs) * 1000:.0f}"
    )
    return Row(P24, p95[0] / p95[1], remark=f"{told}, {len(ours)} posts")
