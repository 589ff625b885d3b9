"""A campaign: traffic, a kill at a random point, everything up again, the count; so many times."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from statistics import median

from bench.installation import Installation
from bench.visitor import Visitor
from inspector.embedded import EmbeddedError

from .checks import (
    Connection,
    Findings,
    check_durable,
    check_settled,
    drain,
    find_oldest_waiting,
)
from .kills import list_ways
from .ledger import Ledger
from .traffic import CALM, Pace, Traffic

# A kill falls this long after everything was up and busy again.
POINT_S = (0.05, 0.9)
# How long the backlog may take to drain after a kill: the goal on a machine that is not busy with anything else.
DRAIN_S = 60.0
DRAIN_EVERY = 10
POLL_S = 0.05


@dataclass
class Result:
    """What a campaign saw."""

    cycles: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    ledger: Ledger = field(default_factory=Ledger)
    findings: Findings = field(default_factory=Findings)
    drain_seconds: list[float] = field(default_factory=list)
    driven_again: int = 0
    seconds: float = 0.0

    @property
    def has_failed(self) -> bool:
        """Whether anything was found."""
        return bool(self.findings)

    def tell_drains(self) -> str:
        """How long after a kill all that was accepted before it was read and told."""
        if not self.drain_seconds:
            return "none"
        return f"median {median(self.drain_seconds):.1f} s, longest {max(self.drain_seconds):.1f} s"


class Campaign:
    """One campaign against a running installation.

    Args:
        installation: started.
        kinds: what is killed, of `CHOICES`.
        seed: of the kills and of the traffic.
        channel: a name of its own; other campaigns' records do not count.
        visitors: who uploads, one for each host, or nobody.
        pace: of the traffic.
        patience_s: how long a backlog may take to drain.
        point_s: how long after everything was up a kill falls, at least and at most.
        tail_s: how long the traffic goes on before all is counted.
        say: hears a line now and then.
    """

    def __init__(
        self,
        *,
        installation: Installation,
        kinds: Sequence[str],
        seed: int,
        channel: str,
        visitors: Sequence[Visitor] = (),
        say: Callable[[str], None],
        pace: Pace = CALM,
        patience_s: float = DRAIN_S,
        point_s: tuple[float, float] = POINT_S,
        tail_s: float = 0.0,
    ) -> None:
        self._installation, self._kinds, self._channel, self._say = installation, kinds, channel, say
        self._seed, self._visitors, self._pace = seed, visitors, pace
        self._patience_s, self._point_s, self._tail_s = patience_s, point_s, tail_s
        self._chance = random.Random(seed)
        self._result = Result()
        # Kills after which not everything has been told yet.
        self._waiting: list[datetime] = []

    def run(self, cycles: int, *, drain_every: int = DRAIN_EVERY) -> Result:
        """So many cycles, or fewer if something is found."""
        result, started = self._result, time.monotonic()
        traffic = [
            Traffic(
                door=host.door,
                visitor=visitor,
                ledger=result.ledger,
                channel=self._channel,
                label=f"at {number}-",
                seed=self._seed,
                pace=self._pace,
            )
            for number, (host, visitor) in enumerate(zip_longest(self._installation.hosts, self._visitors))
        ]
        try:
            while result.cycles < cycles and not result.has_failed:
                self._cycle()
                result.cycles += 1
                if result.cycles % drain_every == 0 or result.cycles == cycles:
                    self._settle(traffic)
                    self._say(f"{result.cycles} cycles: {result.ledger.counts['accepted']:,} records accepted")
        finally:
            for each in traffic:
                each.stop()
            result.seconds = time.monotonic() - started
        return result

    def _cycle(self) -> None:
        self._look_after(self._chance.uniform(*self._point_s))
        kind = self._chance.choice(self._kinds)
        ways = list_ways(self._installation, kind, self._chance)
        tried = self._result.kills
        # The way that was tried least goes first, so that a campaign tries all of them alike; where it finds nothing to
        # kill (a pool that is just starting, say), another may.
        for way in sorted(self._chance.sample(sorted(ways), k=len(ways)), key=lambda way: tried[f"{kind}, {way}"]):
            if ways[way](self._chance):
                tried[f"{kind}, {way}"] += 1
                self._waiting.append(datetime.now(UTC))
                break
        else:
            tried[f"{kind}, down already"] += 1
        self._wait_until_up()
        claim = self._result.ledger.claim()
        with self._connect() as connection:
            self._find(check_durable(connection, self._result.ledger, claim, self._channel))
            self._note_drained(connection)

    def _settle(self, traffic: Sequence[Traffic]) -> None:
        """With no traffic the backlog has to be gone in time, and then everything has to be in its place."""
        self._look_after(self._tail_s)
        answered = [each.pause(patience_s=self._patience_s) for each in traffic]
        if not all(answered):
            self._find(Findings(faults=[f"requests are still not answered after {self._patience_s:.0f} seconds"]))
        fault, driven = drain(self._connect, patience_s=self._patience_s, look_after=self._installation.bring_back)
        self._result.driven_again += driven
        with self._connect() as connection:
            claim = self._result.ledger.claim()
            if fault:
                self._find(Findings(faults=[fault]))
            else:
                self._find(check_settled(connection, claim, self._channel))
                self._note_drained(connection)
            self._find(check_durable(connection, self._result.ledger, claim, self._channel))
        for each in traffic:
            each.resume()

    def _find(self, findings: Findings) -> None:
        self._result.findings.add(findings)
        self._result.findings.add(Findings(faults=list(self._result.ledger.faults)))

    def _note_drained(self, connection: Connection) -> None:
        now, oldest = datetime.now(UTC), find_oldest_waiting(connection, self._channel)
        done = [moment for moment in self._waiting if oldest is None or oldest > moment]
        self._result.drain_seconds += [(now - moment).total_seconds() for moment in done]
        self._waiting = [moment for moment in self._waiting if moment not in done]
        late = [moment for moment in self._waiting if (now - moment).total_seconds() > self._patience_s]
        if late:
            self._find(
                Findings(faults=[f"what came before {late[0]:%H:%M:%S} is not told after {self._patience_s:.0f} s"])
            )

    def _look_after(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._installation.bring_back()
            time.sleep(POLL_S)

    def _wait_until_up(self) -> None:
        """Until pages and posting answer and their database is there: what is still starting has nothing to lose."""
        deadline = time.monotonic() + self._patience_s
        while True:
            self._installation.bring_back()
            # Its socket is ours: it waits in there for a server that is started again, and is refused by none.
            if all(host.door.is_open() and host.door.takes_messages() for host in self._installation.hosts):
                return
            if time.monotonic() > deadline:
                raise EmbeddedError(f"the web server does not answer {self._patience_s:.0f} seconds after a kill")
            time.sleep(POLL_S)

    def _connect(self) -> Connection:
        return self._installation.connect()
