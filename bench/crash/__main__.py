"""`make crash`: kill everything again and again under load, and count; then see that broken variants are caught.

The exit status is 0 when nothing was lost or doubled and every broken variant was caught, else 1.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from bench.broker import NONE
from bench.hosts import Shared, enter_namespace, find_obstacle
from bench.installation import FRONT, POSTGRES, POSTING, WEB, WORKER, Installation, choose_environment

from .across import check_across
from .campaign import DRAIN_S, Campaign, Result
from .checks import drop_key
from .kills import CHOICES, list_kinds
from .traffic import BUSY, CALM
from .variants import CHOICE, PRODUCT, VARIANTS, Variant

LOG_LINES, LOG_WIDTH = 25, 300
SKIPPED = 75
VARIANT_CYCLES = 40
VARIANT_DRAIN_EVERY = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and the variants, and print the table."""
    parser = argparse.ArgumentParser(prog="make crash ARGS='…'", description=__doc__)
    parser.add_argument("--cycles", type=int, default=40, help="kills of the product itself (default 40)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9, help="repeats what is sent and killed")
    parser.add_argument("--kill", choices=CHOICES, action="append", help="only this; may be given several times")
    parser.add_argument("--drain-every", type=int, default=10, help="count it all every so many cycles (default 10)")
    parser.add_argument(
        "--patience",
        type=float,
        default=DRAIN_S,
        help="seconds in which a backlog has to drain (default 60, which is the goal); more where the machine is busy",
    )
    parser.add_argument(
        "--records-per-s",
        type=float,
        default=math.inf,
        help="of all senders together at most; fewer leave the machine more time for kills (default: as they come)",
    )
    parser.add_argument("--variants", choices=["all", "required", "none"], default="all", help="the broken ones to try")
    parser.add_argument(
        "--broker",
        default=os.environ.get("REDIS_URL", NONE),
        help="none, the product's default; redis, a server of our own; or the URL of a server (default: REDIS_URL)",
    )
    parser.add_argument("--hosts", type=int, choices=[1, 2], default=1, help="2: each with a network and folders apart")
    options = parser.parse_args(arguments)
    choose_environment()
    if options.hosts > 1:
        return run_hosts(options)
    print(f"seed {options.seed}, broker {tell_broker(options.broker)}", flush=True)
    variables = {"DJANGO_SETTINGS_MODULE": "bench.crash.settings"}
    with Installation(variables=variables, broker=options.broker) as installation:
        result = run_product(installation, options)
        print(write_result(result), flush=True)
        if result.has_failed:
            print_logs(installation)
            return 1
        required = [variant for variant in VARIANTS if variant.name in ("ack-early", "no-unique-key")]
        chosen = {"all": list(VARIANTS), "required": required, "none": []}[options.variants]
        missed = [variant for variant in chosen if not is_caught(installation, variant, options.seed)]
    for variant in missed:
        print(f"NOT CAUGHT: {variant.name}: {variant.about}. A harness that misses this proves nothing.")
    return 1 if missed else 0


def tell_broker(choice: str) -> str:
    """Which broker that is, and what else could be tried."""
    if choice == NONE:
        return "none (--broker redis, or REDIS_URL, tries a Redis server)"
    return "a Redis server of our own" if choice == "redis" else "the Redis server of REDIS_URL or --broker"


def run_hosts(options: argparse.Namespace) -> int:
    """The campaign against several hosts; then what one made is had of the other."""
    obstacle = find_obstacle()
    if obstacle:
        print(f"SKIPPED, nothing was run: {obstacle}")
        return SKIPPED
    enter_namespace("bench.crash", sys.argv[1:])
    print(f"seed {options.seed}, {options.hosts} hosts, a Redis server of our own", flush=True)
    with Shared(hosts=options.hosts, variables={"DJANGO_SETTINGS_MODULE": "bench.crash.settings"}) as installation:
        result = run_product(installation, options)
        if not result.has_failed:
            result.findings.faults += check_across(installation)
        print(write_result(result), flush=True)
        if result.has_failed:
            print_logs(installation)
    return int(result.has_failed)


def run_product(installation: Installation, options: argparse.Namespace) -> Result:
    """The campaign against the product as it is; several hosts, which have the same cores here, share the traffic."""
    installation.start()
    count = len(installation.hosts)
    pace = replace(
        CALM,
        rest_s=CALM.rest_s * count,
        slow_clients=CALM.slow_clients // count,
        records_per_s=options.records_per_s,
    )
    campaign = Campaign(
        installation=installation,
        kinds=options.kill or list_kinds(installation),
        seed=options.seed,
        channel="crash",
        visitors=[host.visit() for host in installation.hosts],
        say=say,
        pace=pace,
        patience_s=options.patience,
    )
    return campaign.run(options.cycles, drain_every=options.drain_every)


def is_caught(installation: Installation, variant: Variant, seed: int) -> bool:
    """Run a broken variant until something is found."""
    installation.stop()
    installation.variables[CHOICE] = variant.name
    if variant.name == "no-unique-key":
        with installation.connect() as connection:
            drop_key(connection)
    installation.start()
    # What is under way when it starts is not its own: it has a channel of its own.
    campaign = Campaign(
        installation=installation,
        kinds=variant.kinds,
        seed=seed,
        channel=variant.name,
        say=say,
        pace=BUSY if variant.is_busy else CALM,
    )
    result = campaign.run(VARIANT_CYCLES, drain_every=VARIANT_CYCLES if variant.is_busy else VARIANT_DRAIN_EVERY)
    installation.variables[CHOICE] = PRODUCT
    found = "; ".join(result.findings.tell()[:2])
    has_shown = any(variant.shows in sentence for sentence in result.findings.tell())
    told = f"caught after {result.cycles} kills: {found}" if has_shown else f"NOT CAUGHT; found: {found or 'nothing'}"
    print(f"variant {variant.name} ({variant.about}): {told}", flush=True)
    return has_shown


def write_result(result: Result) -> str:
    """The table."""
    counts = result.ledger.counts
    claim = result.ledger.claim()
    lines = [
        ("cycles", f"{result.cycles}, {result.seconds / max(1, result.cycles):.2f} s each"),
        *(("kills", f"{count:4}  {name}") for name, count in sorted(result.kills.items())),
        ("accepted", f"{counts['accepted']:,} records in {counts['posts']:,} posts and {len(claim.files):,} uploads"),
        ("cut", f"{counts['cut']:,} requests, sent again; {counts['given up']:,} given up by their sender"),
        ("slow", f"{counts['broken off']:,} bodies broken off; {counts['answers read slowly']:,} answers read slowly"),
        ("in part", f"{len(result.ledger.parts):,} records whose line was cut in the middle, quarantined"),
        *((name, f"{count:,} requests, sent again") for name, count in sorted(counts.items()) if "answered" in name),
        ("lost", f"{len(result.findings.lost):,}"),
        ("doubled", f"{len(result.findings.doubled):,}"),
        ("drained", f"after a kill: {result.tell_drains()}"),
        ("put aside", f"{result.driven_again:,} jobs and records after too many deaths, driven again"),
        *(("FAULT", sentence) for sentence in result.findings.tell()),
    ]
    return "\n".join(f"{name:<14} {words}" for name, words in lines)


def print_logs(installation: Installation) -> None:
    """What the processes wrote last, and the work that is left."""
    with installation.connect() as connection:
        for row in connection.execute(
            "SELECT kind, state, attempts, requests, due_at - now(), lease_until - now(), left(failure, 200) "
            "FROM intake_job WHERE state <> 'done' ORDER BY due_at LIMIT 20"
        ):
            print(*row)
    for host in {installation, *installation.hosts}:
        for name in (FRONT, WEB, POSTING, WORKER, POSTGRES):
            lines = host.read_log(name, LOG_LINES).splitlines()
            print(f"\n--- the log of {name} at {host.address} ends:", *(line[:LOG_WIDTH] for line in lines), sep="\n")


def say(words: str) -> None:
    """Progress goes where it does not stand in the way of the table."""
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
