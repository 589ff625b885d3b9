"""Agents that post and people that upload, over real connections, while everything is killed around them.

They behave as clients should: what was not answered is sent again, with the same bytes and the same key. Beside them
others send a line now and then and read a few bytes at a time (`slow.py`).
"""

from __future__ import annotations

import functools
import http.client
import json
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.visitor import Visitor, VisitorError, read_forms
from inspector.embedded.samples import Door

from .ledger import Ledger, Load
from .slow import post_slowly, read_slowly

TIMEOUT_S = 30.0
PAUSE_S = 0.05
# A key whose first try was killed is free again some seconds later.
KEY_PATIENCE_S = 30.0
FILE_RECORDS = (5, 50)
CONVERSATION_RECORDS = 40
# What a server may answer while its database is away: come again.
BROKEN_OFF = (400, 408)
LATER = (409, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Pace:
    """How long a sender rests between two requests at most, how many records a POST has, how many slow senders and
    slow readers there are beside, and how many records a second are accepted of all senders together, at most."""

    rest_s: float
    post_records: tuple[int, int]
    slow_clients: int = 0
    records_per_s: float = math.inf


# About a hundred records a second: less than the product takes in, so that what waits is what a kill has delayed.
CALM = Pace(rest_s=1.2, post_records=(2, 40), slow_clients=4)
# Hardly a moment without a request under way, each of them several transactions.
BUSY = Pace(rest_s=0.02, post_records=(80, 160))


class Traffic:
    """Senders in threads of their own, until `stop`.

    Args:
        door: the API.
        visitor: the pages; None sends no uploads.
        ledger: what becomes of every request is written there.
        channel: where to.
        label: what the names of its records begin with, after the channel.
        seed: of what is sent.
        pace: how much.
    """

    def __init__(
        self,
        *,
        door: Door,
        visitor: Visitor | None,
        ledger: Ledger,
        channel: str,
        seed: int,
        label: str = "",
        pace: Pace = CALM,
    ) -> None:
        self._door, self._visitor, self._ledger, self._channel = door, visitor, ledger, channel
        self._pace, self._label = pace, label
        self._started_at = time.monotonic()
        self._is_over = threading.Event()
        self._may_go = threading.Event()
        self._may_go.set()
        senders: dict[str, Callable[[random.Random, str], None]] = {
            "post_with_ids": self._post_with_ids,
            "post_with_key": self._post_with_key,
            **{f"post_slowly_{number}": self._post_slowly for number in range(pace.slow_clients)},
            **{f"read_slowly_{number}": self._read_slowly for number in range(pace.slow_clients)},
        }
        if visitor:
            senders["upload"] = self._upload
        self._idle = {name: threading.Event() for name in senders}
        self._threads = [
            threading.Thread(target=self._run, args=(name, sender, random.Random(f"{seed} {label}{name}")), daemon=True)
            for name, sender in senders.items()
        ]
        for thread in self._threads:
            thread.start()

    def pause(self, *, patience_s: float) -> bool:
        """Send nothing new; True when all that was under way has been answered or given up."""
        self._may_go.clear()
        deadline = time.monotonic() + patience_s
        return all(idle.wait(max(0.0, deadline - time.monotonic())) for idle in self._idle.values())

    def resume(self) -> None:
        """Go on."""
        for idle in self._idle.values():
            idle.clear()
        self._may_go.set()

    def stop(self) -> None:
        """End for good."""
        self._is_over.set()
        self._may_go.set()
        for thread in self._threads:
            thread.join(TIMEOUT_S + 5)

    def _run(self, name: str, sender: Callable[[random.Random, str], None], chance: random.Random) -> None:
        idle = self._idle[name]
        number = 0
        while not self._is_over.is_set():
            if not self._may_go.is_set():
                idle.set()
                self._may_go.wait(0.1)
                continue
            idle.clear()
            number += 1
            try:
                sender(chance, f"{self._channel}-{self._label}{name}-{number}")
            except Exception as error:
                self._ledger.blame(f"a sender failed: {error!r}")
                raise
            time.sleep(chance.uniform(0, self._pace.rest_s))
            while self._is_ahead() and self._may_go.is_set() and not self._is_over.wait(PAUSE_S):
                pass

    def _is_ahead(self) -> bool:
        elapsed_s = time.monotonic() - self._started_at
        return self._ledger.counts["accepted"] > self._pace.records_per_s * elapsed_s

    def _post_with_ids(self, chance: random.Random, name: str) -> None:
        """Records with ids: sent again they are known, without any key."""
        count = chance.randint(*self._pace.post_records)
        load = Load(tuple(make_known(chance, f"{name}-{index}", index) for index in range(count)))
        self._ledger.offer(load)
        while not self._is_over.is_set():
            status, answer = self._post(load.body, {})
            if status == 202:
                self._ledger.accept_post(load, json.loads(answer))
                return
            self._note(status, answer)

    def _post_with_key(self, chance: random.Random, name: str) -> None:
        """Records without id and time: only the key of their POST says that they are the same."""
        count = chance.randint(*self._pace.post_records)
        load = Load(tuple(make_nameless(chance, f"{name}-{index}", index) for index in range(count)))
        self._ledger.offer(load)
        deadline = time.monotonic() + KEY_PATIENCE_S
        while time.monotonic() < deadline:
            status, answer = self._post(load.body, {"Idempotency-Key": name})
            if status == 202:
                self._ledger.accept_post(load, json.loads(answer))
                return
            self._note(status, answer)
            if self._is_over.is_set():
                return
        # The server may take the first try for one that is still running. What nobody accepted may be there or not.
        self._ledger.count("given up")

    def _post_slowly(self, chance: random.Random, name: str) -> None:
        """A body that comes line by line; where it is broken off, the lines that its receipt counts are there."""
        load = Load(tuple(make_known(chance, f"{name}-{index}", index) for index in range(chance.randint(3, 12))))
        self._ledger.offer(load)
        status, answer = post_slowly(
            self._door,
            load.lines,
            channel=self._channel,
            pause_s=chance.uniform(0.05, 1.0),
            stops_after=chance.randrange(1, len(load.lines)) if chance.random() < 0.4 else None,
            is_over=self._is_over,
        )
        if status == 202:
            self._ledger.accept_post(load, json.loads(answer))
        elif status in BROKEN_OFF:
            self._ledger.accept_lines(load, json.loads(answer).get("stored", 0))
        else:
            self._note(status, answer)

    def _read_slowly(self, chance: random.Random, name: str) -> None:
        """An answer that is read a few bytes at a time, and given up in the middle."""
        self._ledger.count("answers read slowly")
        read_slowly(self._door, seconds=chance.uniform(0.5, 4.0), is_over=self._is_over)

    def _upload(self, chance: random.Random, name: str) -> None:
        """A file, and now and then a longer version of it: only what is new is added."""
        count = chance.randint(*FILE_RECORDS)
        makers = (make_nameless, make_timed, make_known)
        lines = [chance.choice(makers)(chance, f"{name}-{index}", index) for index in range(count)]
        if chance.random() < 0.3:
            lines[chance.randrange(1, count)] = b'{"raw": "\xff\xfe ' + name.encode() + b'"}'
        cut = chance.randrange(1, count) if chance.random() < 0.3 else 0
        known = 0
        for end in ([cut] if cut else []) + [count]:
            load = Load(tuple(lines[:end]), name=f"{name}-{end}.jsonl")
            self._ledger.offer(load)
            if not self._send_file(load, new=end - known):
                return
            known = end

    def _send_file(self, load: Load, *, new: int) -> bool:
        """Up to the card that shows its beginning, and from there into the log: only then it is accepted."""
        visitor = self._visitor
        assert visitor
        size = len(load.body)
        answer = self._insist(
            201, lambda: visitor.stage(load.name, [load.body], size_bytes=size, channel=self._channel)
        )
        for card in read_forms(answer):
            # A second try finds it loaded, and is led to the same place.
            self._insist(302, functools.partial(visitor.load, card))
        if self._is_over.is_set():
            return False
        self._ledger.accept_file(load, new)
        return True

    def _insist(self, wanted: int, ask: Callable[[], tuple[int, bytes]]) -> bytes:
        """Ask until the answer has this status, and return it; nothing once the traffic is over."""
        while not self._is_over.is_set():
            try:
                status, answer = ask()
            except (OSError, http.client.HTTPException, VisitorError):
                status, answer = 0, b""
            if status == wanted:
                return answer
            self._note(status, answer)
        return b""

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """One try; status 0 where the connection was cut."""
        connection = http.client.HTTPConnection(self._door.host, self._door.port, timeout=TIMEOUT_S)
        given = {
            "Authorization": f"Bearer {self._door.token}",
            "Content-Type": "application/x-ndjson",
            "X-Channel": self._channel,
        }
        try:
            connection.request("POST", "/api/v1/messages", body, {**given, **headers})
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def _note(self, status: int, answer: bytes) -> None:
        if status == 0:
            self._ledger.count("cut")
        elif status in LATER:
            self._ledger.count(f"answered {status}")
        else:
            self._ledger.blame(f"a good request was answered with {status}: {answer[:300]!r}")
        time.sleep(PAUSE_S if status != 409 else 0.4)


def make_known(chance: random.Random, name: str, index: int) -> bytes:
    """A record with an id: a CLowl message."""
    message = {
        "clowl": "0.2",
        "mid": name,
        "cid": f"{name.rpartition('-')[0]}-{index // CONVERSATION_RECORDS}",
        "ts": 1795118400 + index,
        "p": chance.choice(["REQ", "INF", "ACK"]),
        "from": chance.choice(["planner", "worker"]),
        "to": "archive",
        "body": {"t": "search", "d": {"q": f"{name} {chance.random()}"}},
    }
    return json.dumps(message).encode()


def make_timed(chance: random.Random, name: str, index: int) -> bytes:
    """A record without an id, with a time."""
    at = f"2026-11-21T{index // 60 % 24:02}:{index % 60:02}:00Z"
    return json.dumps({"raw": f"step {name} {chance.random()}", "at": at, "from": "planner"}).encode()


def make_nameless(chance: random.Random, name: str, index: int) -> bytes:
    """A record without id and time."""
    place = f"{name.rpartition('-')[0]}-{index // CONVERSATION_RECORDS}"
    return json.dumps({"raw": f"note {name} {chance.random()}", "conversation": place}).encode()
