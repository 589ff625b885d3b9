"""What must never happen, counted: P18, R5 to R7, R12, R14, R16, R18, R19, R23, R27, R28. R1 to R3: `bench.crash`."""

from __future__ import annotations

import gzip
import http.client
import json
import random
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final
from uuid import UUID

from inspector.embedded.state import PROJECT

from .crowd import measure_overlapping
from .hostile import measure_large, measure_poison, measure_slow
from .installation import Installation
from .logs import Log
from .measure import Goal, Row
from .product import Product, enter_product
from .proofs import PROVED, measure_proofs
from .visitor import Visitor

HURT = {"R5", "R7", "R12", "R27", "R28"}
GOALS = HURT | PROVED | {"R23"}


def measure_reliability(options: Namespace) -> Iterator[Row]:
    """Every row of the suite, or of the goals that were asked for."""
    wanted = set(options.only.split(",")) if options.only else GOALS
    if wanted & HURT:
        yield from _measure_hurt(wanted, shuffles=options.shuffles)
    if "R23" in wanted:
        yield from measure_migrating(options.messages)
    yield from measure_proofs(wanted, permutations=options.permutations)


def _measure_hurt(wanted: set[str], *, shuffles: int) -> Iterator[Row]:
    """What a running installation is put through."""
    with Installation(variables={"LIMIT_REQUESTS_PER_MINUTE": "0"}) as installation:
        with enter_product(installation) as product:
            if "R5" in wanted:
                yield from measure_overlapping(product, installation, shuffles=shuffles)
            if "R12" in wanted:
                yield from measure_roundtrip(product, installation)
        if "R7" in wanted:
            yield from measure_poison(installation)
        if "R27" in wanted:
            yield from measure_slow(installation)
        if "R28" in wanted:
            yield from measure_large(installation)


SLICES = Goal("R12", "{door}: records whose bytes are handed out otherwise than they came", 0, 0, True)
STREAM = Goal("R12", "deliveries that scaffold and slices do not give back byte for byte", 0, 0, True)
RECORDS = 1500
PATIENCE_S = 300.0
JOINTS = {"POST": b"\r\n", "upload, gzip": b"\n"}
# A line over the limit of a record, which is quarantined and kept in pieces.
LONG_BYTES = 17 * 1024 * 1024


def measure_roundtrip(product: Product, installation: Installation) -> Iterator[Row]:
    """R12: each record of a POST and of a packed upload is fetched by the API, and hashed here."""
    token = product.make_key()
    installation.start()
    installation.renew()
    streams = {}
    for number, (name, send) in enumerate({"POST": _post, "upload, gzip": _upload}.items()):
        lines = _make_lines(RECORDS, seed=120 + number)
        delivery = send(installation, token, lines)
        streams[delivery] = sha256(JOINTS[name].join(lines)).digest()
        yield _compare(installation, token, name, delivery, lines)
    installation.stop()
    wrong = sum(product.hash_stream(delivery) != digest for delivery, digest in streams.items())
    yield Row(STREAM, wrong, remark=f"{len(streams)} deliveries")


def _make_lines(records: int, *, seed: int) -> list[bytes]:
    odd = [
        b'{"raw": "lone \\ud800 and nul \\u0000", "id": "odd-%d"}' % seed,
        b'\t {"raw":  "spaces stay" , "id":"odd2-%d"} ' % seed,
        b'{"raw": "' + b"\xe2\x80\xa8 \xc2\xa0" + b'", "id": "odd3-%d"}' % seed,
        b"no json \x00 with NUL",
        b"latin \xe4\xf6\xfc",
        b"\xed\xa0\x80 a surrogate in UTF-8",
        # By chance, for what unfolds to too much is a bomb, and another matter.
        b'{"raw": "' + random.Random(seed).randbytes(LONG_BYTES // 2).hex().encode() + b'"}',
    ]
    return list(dict.fromkeys([*Log(seed=seed, records=records).lines(), *odd]))


def _post(installation: Installation, token: str, lines: list[bytes]) -> str:
    door = installation.door
    connection = http.client.HTTPConnection(door.host, door.port, timeout=300)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson", "X-Channel": "posted"}
    connection.request("POST", "/api/v1/messages", JOINTS["POST"].join(lines), headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return str(answer["delivery"])


def _upload(installation: Installation, token: str, lines: list[bytes]) -> str:
    visitor = Visitor(host=installation.door.host, port=installation.door.port, link=installation.link)
    body = gzip.compress(JOINTS["upload, gzip"].join(lines))
    visitor.upload("roundtrip.jsonl.gz", [body], size_bytes=len(body), channel="uploaded")
    installation.wait_until_idle(seconds=PATIENCE_S)
    with installation.connect() as connection:
        row = connection.execute("SELECT id FROM intake_delivery WHERE file_name = 'roundtrip.jsonl.gz'").fetchone()
    assert row
    return str(row[0])


def _compare(installation: Installation, token: str, door: str, delivery: str, lines: list[bytes]) -> Row:
    with installation.connect() as connection:
        rows = connection.execute(
            "SELECT record.id, record.is_quarantined FROM intake_sighting sighting "
            "JOIN intake_record record ON record.id = sighting.record_id WHERE sighting.delivery_id = %s "
            'ORDER BY sighting."index"',
            [delivery],
        ).fetchall()
    expected = Counter(sha256(line.strip(b" \t")).hexdigest() for line in lines)
    found: Counter[str] = Counter()
    wrong = 0
    server = http.client.HTTPConnection(installation.door.host, installation.door.port, timeout=60)
    for record, _ in rows:
        server.request("GET", f"/api/v1/records/{record}/raw", headers={"Authorization": f"Bearer {token}"})
        response = server.getresponse()
        digest = sha256(response.read()).hexdigest()
        wrong += response.status != 200 or response.headers["X-Source-SHA256"] != digest
        found[digest] += 1
    server.close()
    wrong += sum((expected - found).values()) + sum((found - expected).values())
    kept = sum(bool(is_quarantined) for _, is_quarantined in rows)
    told = f"{len(rows):,} records fetched and hashed, {kept} of them quarantined"
    return Row(Goal(SLICES.id, SLICES.about.format(door=door), 0, 0, True), wrong, remark=told)


# By name, what a migration may do to a table that is there (tests/inspector/trail/test_migrating.py).
CHANGES: Final = {
    "a column with a default": "ALTER TABLE threads_message ADD COLUMN bench integer NOT NULL DEFAULT 1",
    "a constraint": "ALTER TABLE threads_message ADD CONSTRAINT bench CHECK (bench > 0) NOT VALID",
    "looking whether a constraint holds": "ALTER TABLE threads_message VALIDATE CONSTRAINT bench",
    "an index": "CREATE INDEX CONCURRENTLY bench ON threads_message (bench, id)",
    "dropping a column": "ALTER TABLE threads_message DROP COLUMN bench",
}


def measure_migrating(rows: int) -> Iterator[Row]:
    """A row for the migrations, and one for each kind of statement."""
    with Installation() as installation:
        with enter_product(installation) as product:
            product.take([json.dumps({"raw": "Count aisle 6.", "id": "m0"}).encode() + b"\n"])
            product.work()
            [(message,)] = product.execute("SELECT id FROM threads_message")
            # Back to how it began: this code writes no message into an earlier schema.
            for folder in sorted(PROJECT.glob("inspector/*/migrations")):
                first, *later = sorted(path.stem for path in folder.glob("0*.py"))
                if later:
                    _migrate(installation, folder.parent.name, first)
            columns = product.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = 'threads_message'::regclass AND attnum > 0 "
                "AND NOT attisdropped ORDER BY attnum"
            )
            own = {"id": "gen_random_uuid()", "part": "n + 1", "order_index": "n"}
            copied = ", ".join(own.get(name, f'"{name}"') for (name,) in columns)
            product.execute(
                f"INSERT INTO threads_message SELECT {copied} FROM threads_message, generate_series(1, {rows - 1}) AS n"
            )
        with write_meanwhile(installation, message) as waits:
            _migrate(installation)
        yield _tell("the migrations after the first", rows, waits)
        with installation.connect() as connection:
            for what, statement in CHANGES.items():
                with write_meanwhile(installation, message) as waits:
                    connection.execute(statement)
                yield _tell(what, rows, waits)


def _migrate(installation: Installation, *which: str) -> None:
    command = [sys.executable, "manage.py", "migrate", "--verbosity=0", *which]
    subprocess.run(command, cwd=PROJECT, env=installation.environment(), check=True)


@contextmanager
def write_meanwhile(installation: Installation, message: UUID) -> Iterator[list[float]]:
    """Somebody who changes a message again and again meanwhile; how long each change took, in seconds."""
    waits: list[float] = []
    is_over = threading.Event()

    def write() -> None:
        with installation.connect() as connection:
            while not is_over.is_set():
                begun = time.perf_counter()
                connection.execute("UPDATE threads_message SET turn = 1 WHERE id = %s", [message])
                waits.append(time.perf_counter() - begun)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while not waits and thread.is_alive():
            time.sleep(0.01)
        yield waits
    finally:
        is_over.set()
        thread.join()


def _tell(what: str, rows: int, waits: list[float]) -> Row:
    goal = Goal("R23", f"{rows:,} messages: the longest that a writer waited for {what}, s", 2, 0.5, is_share=True)
    return Row(goal, max(waits), remark=f"{len(waits):,} changes meanwhile")
