"""What one bad sender costs everybody else: slow clients (R27), records that break whoever reads them (R7), and one of
16 MiB, which comes in twice, as a text and as an object of a million members (R28).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import psutil

from inspector.bounds import MAX_ANSWER_BYTES

from .crash.variants import CHOICE, POISON, POISONS, PRODUCT
from .installation import HOST, WEB, WORKER, Installation
from .measure import Goal, Row
from .visitor import Visitor, read_forms

SLOW = (16, 256)
SIGN_INS = 150
SECONDS = 20.0
LIMIT_S = 1.0
GOAL = Goal("R27", "percent of health and pages later than 1 s beside slow clients", 0, 0, is_share=True)


def measure_slow(installation: Installation) -> Iterator[Row]:
    """A row for each crowd: how many of the answers failed or came late, in percent."""
    installation.start()
    head = f"POST /api/v1/messages HTTP/1.1\r\nHost: {HOST}\r\n"
    key = f"Authorization: Bearer {installation.door.token}\r\n"
    body = "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    for count in SLOW:
        for name, start, piece in (
            ("heads", head, b"X-A: b\r\n"),
            ("bodies of strangers", head + body, b"1\r\nx\r\n"),
            ("bodies with a key", head + key + body, b"7\r\nrecord\n\r\n"),
        ):
            crowd = [_make_slow(installation, start.encode(), piece)] * count
            yield _watch(installation, f"{count} slow {name}", crowd)
    yield _watch(installation, f"{SIGN_INS} sign-ins at once", [_make_sign_in(installation)] * SIGN_INS)


def _make_slow(installation: Installation, head: bytes, piece: bytes) -> Callable[[threading.Event], None]:
    def stay(stop: threading.Event) -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(_find(installation), timeout=10) as line:
                line.sendall(head)
                while not stop.wait(1):
                    line.sendall(piece)

    return stay


def _make_sign_in(installation: Installation) -> Callable[[threading.Event], None]:
    token = "a" * 32
    form = f"username=nobody&password=wrong-but-long&csrfmiddlewaretoken={token}"
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"csrftoken={token}"}

    def enter(stop: threading.Event) -> None:
        line = http.client.HTTPConnection(*_find(installation), timeout=60)
        with contextlib.closing(line), contextlib.suppress(OSError, http.client.HTTPException):
            line.request("POST", "/sign-in/", form, headers)
            line.getresponse().read()

    return enter


def _find(installation: Installation) -> tuple[str, int]:
    return HOST, installation.door.port


def _watch(installation: Installation, name: str, crowd: list[Callable[[threading.Event], None]]) -> Row:
    stop = threading.Event()
    threads = [threading.Thread(target=one, args=(stop,)) for one in crowd]
    for thread in threads:
        thread.start()
    taken: list[float] = []
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        taken += [_ask(installation, path) for path in ("/healthz", "/sign-in/")]
        time.sleep(0.1)
    stop.set()
    for thread in threads:
        thread.join()
    late = 100 * sum(seconds > LIMIT_S for seconds in taken) / len(taken)
    return Row(GOAL, late, remark=f"{name}: {len(taken)} answers, the longest {max(taken):.2f} s")


def _ask(installation: Installation, path: str) -> float:
    """The seconds that an answer took; without end where it was none."""
    started = time.monotonic()
    line = http.client.HTTPConnection(*_find(installation), timeout=10)
    with contextlib.closing(line):
        try:
            line.request("GET", path)
            response = line.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            return 1e9
    return time.monotonic() - started if response.status == http.client.OK else 1e9


ATTEMPTS = Goal("R7", "poison ({name}): attempts before it is set aside", 3, 3, True)
OTHERS = Goal("R7", "poison: records of the same delivery that did not land", 0, 0, True)
AGAIN = Goal("R7", "poison: records not read when they are tried again with a mended decoder", 0, 0, True)
POISON_RECORDS = 400
POISON_PATIENCE_S = 180.0
GONE = "the worker of job"


def measure_poison(installation: Installation) -> Iterator[Row]:
    """R7: one delivery with a record of each kind in it."""
    installation.variables |= {"DJANGO_SETTINGS_MODULE": "bench.crash.settings", CHOICE: "poison"}
    installation.start()
    installation.renew()
    door = installation.door
    places = {7 + number * (POISON_RECORDS // len(POISONS)): name for number, name in enumerate(POISONS)}
    lines = [
        json.dumps({"raw": f"{POISON}{places[number]}" if number in places else f"step {number}", "conversation": "c"})
        for number in range(POISON_RECORDS)
    ]
    start = time.perf_counter()
    receipt = door.post_log(
        "\n".join(lines).encode(), content_type="application/x-ndjson", idempotency_key=f"poison-{time.time_ns()}"
    )
    installation.wait_until_idle(seconds=POISON_PATIENCE_S, may_fail=True)
    spent = time.perf_counter() - start
    with installation.connect() as connection:
        letters = {
            places[int(str(index))]: (attempts, state, failure)
            for index, attempts, state, failure in connection.execute(
                "SELECT sighting.index, letter.attempts, letter.state, letter.failure FROM intake_deadletter letter "
                "JOIN intake_sighting sighting ON sighting.id = letter.sighting_id WHERE letter.delivery_id = %s",
                [receipt["delivery"]],
            )
        }
        told = _count_told(installation, receipt["delivery"])
    deaths = installation.read_log(WORKER, 100_000).count(GONE)
    for name in POISONS:
        attempts, state, failure = letters.get(name, (None, "not set aside", ""))
        goal = Goal(ATTEMPTS.id, ATTEMPTS.about.format(name=name), ATTEMPTS.required, ATTEMPTS.stretch, True)
        yield Row(goal, float(str(attempts)) if state == "dead" else None, remark=str(failure)[:80])
    missing = POISON_RECORDS - len(places) - told
    yield Row(
        OTHERS, missing, remark=f"{told} landed in {spent:.0f} s; jobs were taken back {deaths} times from the dead"
    )
    yield _measure_retry(installation, str(receipt["delivery"]), len(places))
    installation.stop()


def _measure_retry(installation: Installation, delivery: str, poisoned: int) -> Row:
    """The decoder is mended, and an auditor has all of them tried again on the page."""
    installation.stop()
    installation.variables[CHOICE] = PRODUCT
    installation.start()
    installation.renew()
    visitor = Visitor(host=installation.door.host, port=installation.door.port, link=installation.link)
    form = next(form for form in read_forms(visitor.open("/dead-letters/")) if form.action.endswith("/retry/"))
    status, _ = visitor.send(form)
    installation.wait_until_idle(seconds=POISON_PATIENCE_S, may_fail=True)
    return Row(
        AGAIN, POISON_RECORDS - _count_told(installation, delivery), remark=f"{poisoned} tried again, answered {status}"
    )


def _count_told(installation: Installation, delivery: str) -> int:
    with installation.connect() as connection:
        row = connection.execute(
            "SELECT count(*) FROM threads_message message JOIN intake_sighting sighting "
            "ON sighting.record_id = message.record_id WHERE sighting.delivery_id = %s AND told_digest IS NOT NULL",
            [delivery],
        ).fetchone()
    return int(str(row[0])) if row else 0


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
