"""A large log through each of the three doors: exact counts, flat memory, progress, and pages that answer meanwhile.

Real processes: the upload goes over HTTP as a browser sends it, the POST as one body, the import by its command. Each
door has a channel of its own, so that all that comes in is new there.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any

import psutil

from inspector.embedded import EmbeddedError
from inspector.embedded.state import PROJECT

from .installation import FRONT, POSTING, WEB, WORKER, Installation, LateError, choose_environment
from .logs import Log, Made
from .measure import Goal, Row
from .visitor import Visitor

MEMORY = Goal("doors", "{door}: peak memory of one process, {size} v 10 MB", 1.2, 1.05, is_share=True)
PAGE = Goal("doors", "{door}: a conversation's page meanwhile, p95 seconds", 1.0, 0.25, is_share=True)
DOORS = ("upload", "post", "import")
# What comes first and gives the peak to compare with: as small as the small log of P13, of the same messages.
SMALL_BYTES = 10_000_000
SAMPLE_S = 0.25
SHOWN_EVERY_S = 60.0
PATIENCE_S = 6 * 3600.0


@dataclass
class Watch:
    """What is seen of the processes and the pages while a door is open."""

    peaks: dict[str, float] = field(default_factory=dict)
    page_seconds: list[float] = field(default_factory=list)
    progress: list[tuple[int, int]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def measure_doors(options: Namespace) -> Iterator[Row]:
    """The rows of each door, or of those that were asked for. A count that is not exact makes its row worth nothing."""
    choose_environment()
    size = f"{options.size / 1e6:,.0f} MB"
    with Installation() as installation:
        installation.start()
        visitor = Visitor(host=installation.door.host, port=installation.door.port, link=installation.link)
        before = _measure_small(installation, visitor, options)
        wanted = options.door or DOORS
        for number, door in enumerate(DOORS):
            if door in wanted:
                yield from _measure_door(installation, visitor, door, number, before, options, size)


def _measure_small(installation: Installation, visitor: Visitor, options: Namespace) -> dict[str, float]:
    """The peaks over a small log through every door, until it is told: growth is what a large one takes more."""
    watch, is_over = Watch(), threading.Event()
    watcher = threading.Thread(target=_watch_memory, args=(installation, visitor, "", watch, is_over), daemon=True)
    watcher.start()
    try:
        for number, door in enumerate(DOORS):
            small = Log(seed=number, size_bytes=min(SMALL_BYTES, options.size), words=options.words)
            _send(installation, visitor, door, f"small-{door}", small)
        installation.wait_until_idle(seconds=PATIENCE_S)
    finally:
        is_over.set()
        watcher.join()
    return watch.peaks


def _measure_door(
    installation: Installation,
    visitor: Visitor,
    door: str,
    number: int,
    before: dict[str, float],
    options: Namespace,
    size: str,
) -> Iterator[Row]:
    log = Log(seed=100 + number, size_bytes=options.size, words=options.words)
    watch, is_over = Watch(), threading.Event()
    watchers = [
        threading.Thread(target=watcher, args=(installation, visitor, f"big-{door}", watch, is_over), daemon=True)
        for watcher in (_watch_memory, _watch_pages, _watch_progress)
    ]
    for watcher in watchers:
        watcher.start()
    installation.renew()
    start = time.perf_counter()
    try:
        _send(installation, visitor, door, f"big-{door}", log)
        sent = time.perf_counter() - start
        framed = _wait_until_framed(installation, f"big-{door}") + sent
        is_told = _wait_until_told(installation, seconds=options.minutes * 60 - framed)
        told = time.perf_counter() - start
    finally:
        is_over.set()
        for watcher in watchers:
            watcher.join()
    assert log.made
    read = log.made.stored if is_told else _count_read(installation, f"big-{door}")
    fault = _compare_counts(installation, f"big-{door}", log.made, read) or "; ".join(watch.faults[:2])
    steps = len(set(watch.progress))
    words = f"{log.made.received:,} records, counts exact; taken in {sent:.0f} s, framed in {framed:.0f} s, "
    words += f"told in {told:.0f} s" if is_told else f"{read:,} read when the {options.minutes:g} minutes were over"
    goal = Goal(MEMORY.id, MEMORY.about.format(door=door, size=size), MEMORY.required, MEMORY.stretch, True)
    if fault:
        yield Row(goal, None, remark=fault)
        return
    name, value = max(
        ((name, peak / before[name]) for name, peak in watch.peaks.items() if name in before), key=lambda one: one[1]
    )
    peaks = ", ".join(f"{name} {before.get(name, 0):.0f} to {peak:.0f} MiB" for name, peak in watch.peaks.items())
    yield Row(goal, value, remark=f"{name}; {peaks}; {words}; {steps} steps of progress shown")
    goal = Goal(PAGE.id, PAGE.about.format(door=door), PAGE.required, PAGE.stretch, True)
    pages = watch.page_seconds
    p95 = quantiles(pages, n=20)[-1] if len(pages) > 1 else None
    yield Row(goal, p95, remark=f"{len(pages)} pages, longest {max(pages, default=0):.2f} s")


def _send(installation: Installation, visitor: Visitor, door: str, channel: str, log: Log) -> None:
    SENDERS[door](installation, visitor, channel, log)


def _upload(installation: Installation, visitor: Visitor, channel: str, log: Log) -> None:
    size = sum(len(piece) for piece in log.pieces())
    visitor.upload("bench.jsonl", log.pieces(), size_bytes=size, channel=channel)


def _post(installation: Installation, visitor: Visitor, channel: str, log: Log) -> None:
    door = installation.door
    connection = http.client.HTTPConnection(door.host, door.port, timeout=PATIENCE_S)
    headers = {
        "Authorization": f"Bearer {door.token}",
        "Content-Type": "application/x-ndjson",
        "X-Channel": channel,
        "Transfer-Encoding": "chunked",
    }
    connection.request("POST", "/api/v1/messages", log.pieces(), headers, encode_chunked=True)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    if response.status != 202:
        raise RuntimeError(f"the POST was answered with {response.status}: {answer}")


def _import(installation: Installation, visitor: Visitor, channel: str, log: Log) -> None:
    file = installation.state.temporary / f"{channel}.jsonl"
    with file.open("wb") as written:
        written.writelines(log.pieces())
    command = [sys.executable, "manage.py", "import_log", str(file), "--channel", channel]
    process = subprocess.Popen(
        command,
        cwd=PROJECT,
        env={**installation.environment(), "PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    told, _ = process.communicate(timeout=PATIENCE_S)
    file.unlink()
    if process.returncode:
        raise RuntimeError(f"the import ended with {process.returncode}: {told[-500:]}")


SENDERS: dict[str, Callable[[Installation, Visitor, str, Log], None]] = {
    "upload": _upload,
    "post": _post,
    "import": _import,
}


def _wait_until_framed(installation: Installation, channel: str) -> float:
    """Seconds until every byte of a channel's delivery was framed and stored; how far it is is printed meanwhile."""
    start = shown = time.perf_counter()
    with installation.connect() as connection:
        while True:
            installation.supervisor.check()
            state, framed, received, read = connection.execute(
                "SELECT state, framed_bytes, received, read FROM intake_delivery "
                "WHERE channel_id = (SELECT id FROM accounts_channel WHERE name = %s)",
                [channel],
            ).fetchone() or ("", 0, 0, 0)
            if state not in ("receiving", "framing"):
                return time.perf_counter() - start
            if time.perf_counter() - shown > SHOWN_EVERY_S:
                shown = time.perf_counter()
                said = f"{shown - start:.0f} s: {framed / 1e6:,.0f} MB framed, {received:,} records, {read:,} read"
                print(f"doors: {channel}: {said}", file=sys.stderr, flush=True)
            time.sleep(SAMPLE_S)


def _wait_until_told(installation: Installation, *, seconds: float) -> bool:
    """Whether all was told in time. What was received is exact before that, and memory is watched all the while."""
    try:
        installation.wait_until_idle(seconds=seconds)
    except LateError:
        return False
    return True


def _count_read(installation: Installation, channel: str) -> int:
    with installation.connect() as connection:
        row = connection.execute(
            "SELECT sum(read) FROM intake_delivery "
            "WHERE channel_id = (SELECT id FROM accounts_channel WHERE name = %s)",
            [channel],
        ).fetchone()
    return int(str(row[0])) if row and row[0] is not None else 0


def _compare_counts(installation: Installation, channel: str, made: Made, read: int) -> str:
    """What differs from the log as it was made, in words; nothing when all is exact."""
    with installation.connect() as connection:
        rows = connection.execute(
            "SELECT sum(received), sum(stored), sum(duplicate), sum(quarantined), sum(read) FROM intake_delivery "
            "WHERE channel_id = (SELECT id FROM accounts_channel WHERE name = %s)",
            [channel],
        ).fetchone()
    expected = (made.received, made.stored, made.doubled, made.quarantined, read)
    found = tuple(int(str(value or 0)) for value in rows or ())
    return (
        "" if found == expected else f"counts {found}, made {expected} (received, stored, duplicate, quarantined, read)"
    )


def _measure_peaks(installation: Installation) -> dict[str, float]:
    """The largest resident memory in MiB of a process of each program."""
    peaks: dict[str, float] = {}
    for program in (FRONT, WEB, POSTING, WORKER):
        leader = installation.find_process(program)
        for process in [leader, *leader.children(recursive=True)]:
            try:
                peaks[program] = max(peaks.get(program, 0.0), process.memory_info().rss / 2**20)
            except psutil.NoSuchProcess:
                continue
    return peaks


def _watch_memory(
    installation: Installation, visitor: Visitor, channel: str, watch: Watch, is_over: threading.Event
) -> None:
    importers: dict[str, Any] = {}
    while not is_over.wait(SAMPLE_S):
        seen = _measure_peaks(installation)
        for child in psutil.Process(os.getpid()).children():
            try:
                if "import_log" in child.cmdline():
                    importers["import"] = seen["import"] = child.memory_info().rss / 2**20
            except psutil.NoSuchProcess:
                continue
        for name, peak in seen.items():
            watch.peaks[name] = max(watch.peaks.get(name, 0.0), peak)


def _watch_pages(
    installation: Installation, visitor: Visitor, channel: str, watch: Watch, is_over: threading.Event
) -> None:
    """Open a conversation that is there already, again and again."""
    with installation.connect() as connection:
        rows = connection.execute(
            "SELECT id FROM threads_conversation WHERE settled_generation > 0 ORDER BY message_count DESC LIMIT 20"
        ).fetchall()
    number = 0
    while not is_over.wait(SAMPLE_S):
        start = time.perf_counter()
        try:
            visitor.open(f"/conversations/{rows[number % len(rows)][0]}/")
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a page that did not open
            watch.faults.append(f"a page failed: {error}")
            return
        watch.page_seconds.append(time.perf_counter() - start)
        number += 1


def _watch_progress(
    installation: Installation, visitor: Visitor, channel: str, watch: Watch, is_over: threading.Event
) -> None:
    """What the delivery says of itself to whoever asks."""
    with installation.connect() as connection:
        while not is_over.wait(SAMPLE_S):
            row = connection.execute(
                "SELECT id FROM intake_delivery WHERE channel_id = (SELECT id FROM accounts_channel WHERE name = %s)",
                [channel],
            ).fetchone()
            if row:
                try:
                    told = installation.door.get(f"/api/v1/deliveries/{row[0]}")
                except EmbeddedError:
                    installation.renew()
                else:
                    watch.progress.append((told["framed_bytes"], told["read"]))
