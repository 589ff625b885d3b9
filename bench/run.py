"""`python -m bench.run`: measure, and print the table of goals. A miss fails nothing; it is named."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from .codecs import measure_codecs
from .measure import Row, write_table

SUITES: dict[str, Callable[[], Iterable[Row]]] = {"codecs": measure_codecs}


def main() -> int:
    """Run the suites that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", choices=[*SUITES, "all"], default="all")
    parser.add_argument("--out", type=Path, help="write the rows as JSON too")
    arguments = parser.parse_args()
    chosen = SUITES if arguments.suite == "all" else {arguments.suite: SUITES[arguments.suite]}
    rows = []
    for name, suite in chosen.items():
        for row in suite():
            rows.append(row)
            print(f"{name}: {'  '.join(row.cells())}", file=sys.stderr, flush=True)
    print(f"Python {platform.python_version()}, {platform.machine()}")
    print(write_table(rows))
    if arguments.out:
        arguments.out.write_text(json.dumps([row.cells() for row in rows], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
