"""What one host took in or made, had of another: an export, the news of an open page, and nothing of its folders."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import time
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlencode

from bench.hosts import Host, Shared
from bench.visitor import Visitor, read_forms

PATIENCE_S = 300.0
POLL_S = 0.5
REGION = re.compile(rb'<div class="live-region"[^>]*>')


def check_across(shared: Shared) -> list[str]:
    """What is wrong, in sentences; each host is the first in its turn.

    Raises:
        VisitorError, DoorError: where a host does not answer as a browser or a client would need.
    """
    faults = []
    for host, other in (shared.hosts, shared.hosts[::-1]):
        visitor = host.visit()
        faults += [*_check_folders(host), *_check_export(shared, other, visitor), *_check_news(host, other, visitor)]
    return faults


def _check_folders(host: Host) -> Iterator[str]:
    names = {line for line in host.list_hidden().splitlines() if line and not line.endswith(":")}
    if names:
        yield f"{host.address} sees the files of others: {sorted(names)}"


def _check_export(shared: Shared, other: Host, visitor: Visitor) -> Iterator[str]:
    """Asked for where the visitor is, downloaded at the other: as many lines as messages, which may still come in."""
    before = _count_messages(shared)
    form = next(each for each in read_forms(visitor.open("/exports/new/")) if each.action.endswith("/exports/new/"))
    status, place = visitor.send(form, form="jsonl")
    if status != http.client.FOUND:
        yield f"an export is answered with {status}: {place[:300]!r}"
        return
    visitor.go_to(other.door.host, other.door.port)
    file = _wait_for(visitor, f"{place.decode()}file")
    # A large one is packed.
    lines = (gzip.decompress(file) if file.startswith(b"\x1f\x8b") else file).count(b"\n")
    after = _count_messages(shared)
    if not 0 < before <= lines <= after:
        yield f"an export has {lines} lines at {other.address}, of {before} to {after}"


def _count_messages(shared: Shared) -> int:
    with shared.connect() as connection:
        row = connection.execute("SELECT count(*) FROM threads_message").fetchone()
    return int(str(row[0])) if row else 0


def _check_news(host: Host, other: Host, visitor: Visitor) -> Iterator[str]:
    """A page that is open at the other tells that a conversation began here."""
    region = REGION.search(visitor.open("/conversations/"))
    given = dict(re.findall(r'([\w-]+)="([^"]*)"', region[0].decode() if region else ""))
    address = f"{unescape(given['hx-get'])}&{urlencode({'after': given['data-after']})}"
    line = json.dumps({"raw": "the news", "conversation": f"news of {host.address}"}).encode()
    host.door.post_log(line + b"\n", content_type="application/x-ndjson", idempotency_key=f"news of {host.address}")
    if b"1 new" not in _wait_for(visitor, address):
        yield f"a page of {other.address} is not told what {host.address} took in"


def _wait_for(visitor: Visitor, address: str) -> bytes:
    """What is answered there once it is 200; nothing where it never is."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        status, _, body = visitor._ask("GET", address)
        if status == http.client.OK:
            return body
        time.sleep(POLL_S)
    return b""
