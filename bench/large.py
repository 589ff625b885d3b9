"""R28: one accepted record of 16 MiB, and what every page, list and answer about it takes: bytes, and memory.

The record comes in twice, as one text and as an object of a million members, each in a conversation of its own.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import psutil

from inspector.bounds import MAX_ANSWER_BYTES

from .installation import WEB, WORKER, Installation
from .measure import Goal, Row
from .visitor import Visitor

MIB: Final = 2**20
RECORD_BYTES: Final = 16 * MIB
# What stands in a line around its body, and the rest of a body of members.
MARGIN_BYTES: Final = 1024
BYTES = Goal("R28", "one record of 16 MiB ({kind}): the largest answer, MiB", MAX_ANSWER_BYTES / MIB, 1, is_share=True)
MEMORY = Goal(
    "R28", "one record of 16 MiB ({kind}): more memory of a process for an answer, MiB", 64, 16, is_share=True
)
WORKER_MEMORY = Goal("R28", "one record of 16 MiB ({kind}): memory of the worker that reads it, MiB", 1024, 512, True)
PATIENCE_S: Final = 1800.0
SAMPLE_S: Final = 0.1
PAGES: Final = (
    *("/overview/", "/conversations/", "/search/?q=from:{sender}", "/findings/", "/agents/", "/deliveries/{delivery}/"),
    *(
        f"/conversations/{{conversation}}/{part}"
        for part in ("", "?order=time", "raw/", "tasks/", "sequence/", "tree/")
    ),
    *("/conversations/{conversation}/findings/", "/messages/{message}/"),
)
ANSWERS: Final = (
    *("messages/{message}", "messages/{message}/fields", "messages?q=from:{sender}", "conversations", "findings"),
    *(f"conversations/{{conversation}}{part}" for part in ("", "/tree", "/tasks", "/sequence")),
    *("deliveries/{delivery}", "agents"),
)
# It is streamed whole: what it takes is memory alone.
WHOLE: Final = "/records/{record}/raw/"


def measure_large(installation: Installation) -> Iterator[Row]:
    """Three rows for each kind of record."""
    for kind, make in KINDS.items():
        installation.start()
        installation.renew()
        yield from _measure_kind(installation, kind, make(kind))
        installation.stop()


def _make_text(sender: str) -> bytes:
    return _make_line(sender, {"t": "x" * (RECORD_BYTES - MARGIN_BYTES)})


def _make_members(sender: str) -> bytes:
    members, size = {"t": "count"}, 0
    while size < RECORD_BYTES - MARGIN_BYTES:
        name = f"k{len(members)}"
        members[name] = name
        size += 2 * len(name) + len('"":"",')
    return _make_line(sender, members)


def _make_line(sender: str, body: dict[str, str]) -> bytes:
    said = {"clowl": "0.2", "mid": "m1", "p": "REQ", "from": sender, "to": "bob", "cid": f"c-{sender}", "body": body}
    return json.dumps(said, separators=(",", ":")).encode()


KINDS: Final[dict[str, Callable[[str], bytes]]] = {"text": _make_text, "members": _make_members}


def _measure_kind(installation: Installation, kind: str, line: bytes) -> Iterator[Row]:
    started = time.perf_counter()
    installation.door.post_log(line, content_type="application/x-ndjson", idempotency_key=f"large-{kind}")
    worker = _watch_worker(installation)
    spent = time.perf_counter() - started
    names = _find_ids(installation, kind) | {"sender": kind}
    visitor = Visitor(host=installation.door.host, port=installation.door.port, link=installation.link)
    asked: dict[str, Callable[[str], bytes]] = dict.fromkeys((*PAGES, WHOLE), visitor.open)
    asked |= dict.fromkeys(ANSWERS, lambda path: _get(installation, path))
    sizes: dict[str, float] = {}
    more: dict[str, float] = {}
    for pattern, ask in asked.items():
        # Twice without measuring, for there are two processes: templates and parsers are loaded then.
        for _ in range(2):
            answer = ask(pattern.format(**names))
        before = _forget_peaks(installation)
        answer = ask(pattern.format(**names))
        sizes[pattern] = len(answer) / MIB
        more[pattern] = max(_read(pid, "VmHWM") - held for pid, held in before.items())
    whole = sizes.pop(WHOLE)
    for goal, found, remark in (
        (BYTES, sizes, f"{len(sizes)} addresses; the exact bytes were {whole:.1f} MiB"),
        (MEMORY, more, f"{len(more)} addresses"),
    ):
        address = max(found, key=lambda each: found[each])
        yield Row(_name(goal, kind), found[address], remark=f"{address}; {remark}")
    yield Row(_name(WORKER_MEMORY, kind), worker, remark=f"{len(line):,} bytes; accepted and told in {spent:.0f} s")


def _name(goal: Goal, kind: str) -> Goal:
    return Goal(goal.id, goal.about.format(kind=kind), goal.required, goal.stretch, goal.is_share)


def _get(installation: Installation, path: str) -> bytes:
    status, answer = installation.door._send("GET", f"/api/v1/{path}", None, {})
    if status != 200:
        raise RuntimeError(f"{path} was answered with {status}: {answer[:300]!r}")
    return answer


def _find_ids(installation: Installation, sender: str) -> dict[str, str]:
    with installation.connect() as connection:
        row = connection.execute(
            "SELECT message.id, message.conversation_id, message.record_id, sighting.delivery_id"
            " FROM threads_message message JOIN intake_sighting sighting ON sighting.record_id = message.record_id"
            " WHERE message.sender = %s",
            [sender],
        ).fetchone()
    if row is None:
        raise RuntimeError("the record was not read")
    return dict(zip(("message", "conversation", "record", "delivery"), map(str, row), strict=True))


def _list_processes(installation: Installation, program: str) -> list[psutil.Process]:
    leader = installation.find_process(program)
    return [leader, *leader.children(recursive=True)]


def _watch_worker(installation: Installation) -> float:
    """Wait until all is read; the most memory that one process of the worker has had until then, in MiB."""
    peaks, is_over = [0.0], threading.Event()

    def watch() -> None:
        # A process that took much is replaced when it is done: its peak is seen before that or never.
        while not is_over.wait(SAMPLE_S):
            # One that ends between being listed and looked at must not end the watching.
            with contextlib.suppress(psutil.NoSuchProcess):
                peaks.extend(_read(process.pid, "VmHWM") for process in _list_processes(installation, WORKER))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        installation.wait_until_idle(seconds=PATIENCE_S)
    finally:
        is_over.set()
        watcher.join()
    return max(peaks)


def _forget_peaks(installation: Installation) -> dict[int, float]:
    """The memory that each process of the pages has now, in MiB; from here on its peak is counted anew."""
    held = {}
    for process in _list_processes(installation, WEB):
        with contextlib.suppress(OSError):
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")
            held[process.pid] = _read(process.pid, "VmRSS")
    return held


def _read(pid: int, name: str) -> float:
    """A size of a process in MiB; 0 of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:")), 0.0)
