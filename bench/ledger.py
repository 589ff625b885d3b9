"""The ledger: what entering adds to taking a log in (P22), and a tree verified beside bare SHA-256 (P23)."""

from __future__ import annotations

import hashlib
import time
from argparse import Namespace
from collections.abc import Iterator

from .installation import Installation
from .logs import Log
from .measure import Goal, Row, summarise, time_call
from .product import Product, enter_product

P22 = Goal("P22", "ingest and settling with every row entered and signed v without", 1.10, 1.05, is_share=True)
P23 = Goal("P23", "verification of a tree of 100,000 leaves v SHA-256 of the leaves alone", 0.4, 0.8)
LEAVES = 100_000
REPEATS = 15


def measure_ledger(options: Namespace) -> Iterator[Row]:
    """P22 in rounds on one installation, and P23."""
    wanted = set(options.only.split(",")) if options.only else {"P22", "P23"}
    with Installation() as installation, enter_product(installation) as product:
        if "P22" in wanted:
            yield _measure_entering(product, options)
        if "P23" in wanted:
            yield _measure_verifying()


def _measure_entering(product: Product, options: Namespace) -> Row:
    from inspector.ledger.sequencing import enter_new

    pairs, entered = [], 0
    for number in range(options.rounds):
        pieces = list(Log(seed=number, records=options.records).pieces())
        product.clear()
        enter_new(at_once=True)
        ours = time_call(lambda pieces=pieces: product.take(pieces)) + time_call(product.work)
        start = time.perf_counter()
        entered += enter_new(at_once=True)
        pairs.append((ours + time.perf_counter() - start, ours))
    seconds = sum(whole - ours for whole, ours in pairs)
    return summarise(
        P22, pairs, remark=f"{entered / options.rounds:,.0f} entries, {seconds / entered * 1e6:.0f} µs each"
    )


def _measure_verifying() -> Row:
    from inspector.ledger.merkle import hash_leaves
    from inspector.ledger.verifying import Roots

    digest = hashlib.sha256(b"").hexdigest()
    leaves = [
        b'{"at":"2026-11-01T08:00:00.000000+00:00","id":"%036d","kind":"record","sha256":"%s","v":1}'
        % (number, digest.encode())
        for number in range(LEAVES)
    ]

    def verify() -> None:
        roots = Roots()
        roots.extend(hash_leaves(leaves))
        roots.compute()

    def hash_alone() -> None:
        for leaf in leaves:
            hashlib.sha256(leaf).digest()

    # Both take the processor alone, so its time is counted: what else runs on the machine disturbs it less.
    timed = [(time_call(verify, time.process_time), time_call(hash_alone, time.process_time)) for _ in range(REPEATS)]
    return summarise(P23, timed, remark="processor time")
