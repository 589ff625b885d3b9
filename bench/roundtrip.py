"""R12 of the goals: the exact bytes of every record, as they are handed out, beside what was sent."""

from __future__ import annotations

import gzip
import http.client
import json
import random
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256

from .installation import Installation
from .logs import Log
from .measure import Goal, Row
from .product import Product
from .visitor import Visitor

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
