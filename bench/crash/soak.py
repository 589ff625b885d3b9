"""`make soak`: R22, the product at half of what it carries, with kills, slow clients and readers of its pages.

First the same senders without a rest say what it carries: what was accepted, by the time until all of it is told. Then
they keep to half of that. The exit status is 1 where anything was lost, doubled or wrong; a missed bound is named.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean, linear_regression

import psutil

from bench.installation import FRONT, POSTING, WEB, WORKER, Installation, choose_environment
from bench.visitor import Visitor, VisitorError

from .__main__ import print_logs, say, write_result
from .campaign import DRAIN_S, Campaign
from .checks import drain
from .kills import CHOICES, KINDS
from .ledger import Ledger
from .traffic import CALM, Traffic

# The key of the senders lasts two hours.
MOST_MINUTES = 100.0
CAPACITY_S = 60.0
FULL = replace(CALM, rest_s=0.0)
SAMPLED_EVERY_S = 5.0
READER_RESTS_S = 0.4
# A process grows for a while after it was started: that is no leak.
WARM_SHARE, WARM_S = 1 / 6, 600.0
FEWEST_SAMPLES = 5
MOST_SLOPE, MOST_DRIFT = 1.0, 10.0
PAGES = ("/overview/", "/conversations/", "/search/?q=search", "/findings/", "/agents/")
CONVERSATION = re.compile(rb"/conversations/[0-9a-f-]{36}/")
Life = list[tuple[float, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what it carries, send half of it, and print the table."""
    parser = argparse.ArgumentParser(prog="make soak ARGS='…'", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help=f"default 60, at most {MOST_MINUTES:.0f}")
    parser.add_argument("--kills", type=int, default=2, help="evenly spread (default 2)")
    parser.add_argument("--kill", choices=CHOICES, action="append", help="only this; may be given several times")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9, help="repeats what is sent and killed")
    parser.add_argument("--patience", type=float, default=DRAIN_S, help="seconds in which a backlog has to drain")
    options = parser.parse_args(arguments)
    if not 0 < options.minutes <= MOST_MINUTES or options.kills < 1:
        parser.error(f"more than 0 and at most {MOST_MINUTES:.0f} minutes, and one kill or more")
    choose_environment()
    with Installation() as installation:
        installation.start()
        visitor = installation.visit()
        capacity = measure_capacity(installation, visitor, options)
        say(f"it carries {capacity:.0f} records a second of these")
        stretch_s = options.minutes * 60 / (options.kills + 1)
        campaign = Campaign(
            installation=installation,
            kinds=options.kill or tuple(KINDS),
            seed=options.seed,
            channel="soak",
            visitors=[visitor],
            say=say,
            pace=replace(FULL, records_per_s=capacity / 2),
            patience_s=options.patience,
            point_s=(stretch_s, stretch_s),
            tail_s=stretch_s,
        )
        with Watch(installation, visitor) as watch:
            result = campaign.run(options.kills, drain_every=options.kills)
        # It is looked at too seldom here to say how long it took.
        result.drain_seconds.clear()
        with installation.connect() as connection:
            row = connection.execute(
                "SELECT count(*) FROM intake_record record JOIN accounts_channel channel "
                "ON channel.id = record.channel_id WHERE channel.name = 'soak'"
            ).fetchone()
        print(f"seed           {options.seed}")
        print(f"capacity       {capacity:.0f} records a second; half of it for {options.minutes:g} minutes")
        print(f"stored         {row[0] if row else 0:,} records")
        print(*watch.tell(min(WARM_S, WARM_SHARE * options.minutes * 60)), write_result(result), sep="\n", flush=True)
        if result.has_failed:
            print_logs(installation)
    return int(result.has_failed)


def measure_capacity(installation: Installation, visitor: Visitor, options: argparse.Namespace) -> float:
    """Records a second that are accepted and told where nobody rests."""
    ledger, started = Ledger(), time.monotonic()
    traffic = Traffic(
        door=installation.door, visitor=visitor, ledger=ledger, channel="capacity", seed=options.seed, pace=FULL
    )
    try:
        time.sleep(min(CAPACITY_S, options.minutes * 60))
        traffic.pause(patience_s=options.patience)
        # However much waits, nothing is wrong with it yet.
        fault, _ = drain(installation.connect, patience_s=60 * DRAIN_S, look_after=installation.bring_back)
        if fault or ledger.faults:
            raise RuntimeError(f"the product could not be measured: {fault or ledger.faults}")
        return ledger.counts["accepted"] / (time.monotonic() - started)
    finally:
        traffic.stop()


class Watch:
    """Samples the memory of the product's processes, and reads pages as somebody does who goes from one to the next."""

    def __init__(self, installation: Installation, visitor: Visitor) -> None:
        self._installation, self._visitor = installation, visitor
        self._is_over = threading.Event()
        # Of each process when, and how many bytes it has for itself.
        self._lives: dict[tuple[str, int], Life] = defaultdict(list)
        # Of each in turn what it was, and the seconds it took.
        self._pages: list[tuple[str, float]] = []
        self._failed: Counter[str] = Counter()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._sample, self._read)]

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _sample(self) -> None:
        while not self._is_over.wait(SAMPLED_EVERY_S):
            now = time.monotonic()
            for name in (FRONT, WEB, POSTING, WORKER):
                # What is killed meanwhile has no sample.
                with contextlib.suppress(psutil.Error, KeyError):
                    leader = self._installation.find_process(name)
                    for process in (leader, *leader.children(recursive=True)):
                        self._lives[name, process.pid].append((now, process.memory_full_info().uss))

    def _read(self) -> None:
        for path in self._choose_pages():
            if self._is_over.wait(READER_RESTS_S):
                return
            started = time.monotonic()
            try:
                body = self._visitor.open(path)
            except (VisitorError, OSError, http.client.HTTPException) as error:
                self._failed[type(error).__name__] += 1
                continue
            what = "a conversation" if path == self._next else path.split("/")[1]
            self._pages.append((what, time.monotonic() - started))
            found = CONVERSATION.search(body)
            self._next = found[0].decode() if found else ""

    def _choose_pages(self) -> Iterator[str]:
        """In turns, and after each a conversation that it leads to."""
        self._next = ""
        while True:
            for path in PAGES:
                yield path
                if self._next:
                    yield self._next

    def tell(self, warm_s: float) -> list[str]:
        """The lines of the table."""
        last_at = max(life[-1][0] for life in self._lives.values())
        held = sum(life[-1][1] for life in self._lives.values() if life[-1][0] >= last_at - 1)
        slope = find_slope(self._lives.values(), warm_s)
        told = f"{slope:+.1f} % an hour, {judge(slope, MOST_SLOPE)}; {held / 1e6:,.0f} MB at the end"
        for name in (FRONT, WEB, POSTING, WORKER):
            part = find_slope([life for (whose, _), life in self._lives.items() if whose == name], warm_s)
            told += f", {name} {part:+.1f} %"
        third = max(1, len(self._pages) // 3)
        parts = self._pages[:third], self._pages[-third:]
        first, last = (find_p95(seconds for _, seconds in part) for part in parts)
        drift = 100 * (last / first - 1)
        by_page = [
            f"{what} {' to '.join(f'{find_p95(taken for each, taken in part if each == what):.0f}' for part in parts)}"
            for what in dict(self._pages)
        ]
        return [
            f"memory         {told}",
            f"pages          p95 {drift:+.0f} %, {judge(drift, MOST_DRIFT)}; {first:.0f} ms in the first third of "
            f"{len(self._pages):,}, {last:.0f} in the last; {self._failed.total()} failed",
            f"the same       {', '.join(by_page)} ms",
        ]


def judge(value: float, bound: float) -> str:
    """Whether a figure is within its bound."""
    return f"{'met' if value <= bound else 'missed'} (at most {bound:g})"


def find_slope(lives: Iterable[Life], warm_s: float) -> float:
    """By how many percent an hour the memory of these processes grew, each from some time after its start on.

    Args:
        lives: of each process its samples: seconds and bytes.
        warm_s: what is left out at the start of each.
    """
    grown = held = 0.0
    for life in lives:
        steady = [(at, size) for at, size in life if at - life[0][0] >= warm_s]
        if len(steady) >= FEWEST_SAMPLES:
            times, sizes = zip(*steady, strict=True)
            lasted = times[-1] - times[0]
            grown += linear_regression(times, sizes).slope * lasted
            held += fmean(sizes) * lasted
    return 100 * 3600 * grown / held if held else float("nan")


def find_p95(seconds: Iterable[float]) -> float:
    """The milliseconds that 95 of a hundred answers took at most."""
    ordered = sorted(seconds)
    return 1000 * ordered[int(len(ordered) * 0.95)] if ordered else float("nan")


if __name__ == "__main__":
    sys.exit(main())
