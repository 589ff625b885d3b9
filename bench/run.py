"""`python -m bench.run`: measure, and print the table of goals. A miss fails nothing; it is named."""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from .browser import measure_browser, measure_painting
from .codecs import measure_codecs, measure_recorded
from .cost import measure_cost
from .doors import DOORS, measure_doors
from .exporting import measure_exporting
from .ingest import FORMS, LOADS, measure_ingest
from .ledger import measure_ledger
from .measure import Row, write_table
from .reliability import measure_reliability
from .searching import measure_searching
from .trees import measure_trees

SUITES: dict[str, Callable[[argparse.Namespace], Iterable[Row]]] = {
    "codecs": lambda options: measure_codecs(),
    "recorded": lambda options: measure_recorded(),
    "ingest": measure_ingest,
    "cost": measure_cost,
    "ledger": measure_ledger,
    "doors": measure_doors,
    "trees": measure_trees,
    "search": measure_searching,
    "exports": measure_exporting,
    "reliability": measure_reliability,
    "browser": measure_browser,
    "pages": measure_painting,
}
UNITS = {"kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}


def read_size(text: str) -> int:
    """A size as `10MB` or `1GB`.

    Raises:
        argparse.ArgumentTypeError: for anything else.
    """
    found = re.fullmatch(r"(\d+)\s*(kB|MB|GB)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write one as 10MB or 1GB")
    return int(found[1]) * UNITS[found[2]]


def main() -> int:
    """Run the suites that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", choices=[*SUITES, "all"], default="all")
    parser.add_argument("--out", type=Path, help="write the rows as JSON too")
    parser.add_argument("--rounds", type=int, default=5, help="ingest, exports: interleaved rounds (default 5)")
    parser.add_argument(
        "--records", type=int, default=4000, help="ingest: records a round; cost, pages: of the log (default 4,000)"
    )
    parser.add_argument(
        "--long",
        action="store_true",
        help="ingest: growth to a million records, memory with 1 GB; trees, search, exports: a million messages",
    )
    parser.add_argument("--load", choices=LOADS, action="append", help="ingest: growth with such logs only")
    parser.add_argument("--form", choices=FORMS, action="append", help="ingest: memory with this form of log only")
    parser.add_argument("--only", help="ingest, ledger, reliability: only these goals, as in P8,P24")
    parser.add_argument("--messages", type=int, default=1_000_000, help="reliability: that R23 migrates (a million)")
    parser.add_argument("--shuffles", type=int, default=50, help="reliability: how often writers meet (default 50)")
    parser.add_argument(
        "--permutations", type=int, default=40, help="reliability: in how many orders R6 is tried (default 40)"
    )
    parser.add_argument("--size", type=read_size, default="5MB", help="doors: how much goes in by each (default 5MB)")
    parser.add_argument("--words", type=int, default=60, help="doors: words of a larger message (default 60)")
    parser.add_argument("--replies", type=int, default=100_000, help="browser: length of the chain (default 100,000)")
    parser.add_argument("--door", choices=DOORS, action="append", help="doors: only this; may be given several times")
    parser.add_argument(
        "--minutes",
        type=float,
        default=360,
        help="doors: how long each may take once it is framed; then what is read so far is said",
    )
    arguments = parser.parse_args()
    chosen = SUITES if arguments.suite == "all" else {arguments.suite: SUITES[arguments.suite]}
    rows = []
    for name, suite in chosen.items():
        for row in suite(arguments):
            rows.append(row)
            print(f"{name}: {'  '.join(row.cells())}", file=sys.stderr, flush=True)
    print(f"Python {platform.python_version()}, {platform.machine()}")
    print(write_table(rows))
    if arguments.out:
        arguments.out.write_text(json.dumps([row.cells() for row in rows], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
