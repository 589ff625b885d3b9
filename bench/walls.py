"""`python -m bench.walls`: searches and pages with the policies of row-level security and without them, by turns."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from .installation import Installation
from .logs import Log
from .product import Product, enter_product

ROUNDS, TURNS = 6, 2
PAGES: Final = ("overview/", "conversations/", "findings/", "agents/", "traces/", "deliveries/")
QUERIES: Final = (
    *("work", "severity:error", "severity:warning", "dialect:clowl", "dialect:nslip work", "quarterly report"),
    *('"please send"', "zzzznothing", "is:malformed", "work OR task", "-work dialect:clowl"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Load a log, ask for everything in both ways, and print the medians in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=30_000)
    options = parser.parse_args(arguments)
    with Installation() as installation, enter_product(installation) as product:
        product.take(Log(seed=3, records=options.records).pieces())
        product.work()
        product.execute("VACUUM ANALYZE")
        spent = measure(product)
        print(f"{'asked':36} {'with':>8} {'without':>8} ratio")
        for what, (held, free) in spent.items():
            print(f"{what:36} {held:8.1f} {free:8.1f} {held / free:5.2f}")
    return 0


def measure(product: Product) -> dict[str, tuple[float, float]]:
    """Of each page and search the milliseconds with policies and without."""
    from django.test import Client

    from inspector.accounts.models import Membership
    from inspector.trail import row_security

    member = Membership.objects.select_related("user").filter(workspace=product.workspace)[0]
    client = Client(HTTP_HOST="localhost")
    client.force_login(member.user, backend="django.contrib.auth.backends.ModelBackend")
    root = f"/w/{product.workspace.slug}/"
    asked: list[tuple[str, dict[str, Any]]] = [(page, {}) for page in PAGES]
    asked += [("search/", {"q": query}) for query in QUERIES]
    spent: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        for is_held in (True, False):
            for table in row_security.list_tables():
                product.execute(f"ALTER TABLE {table} {'ENABLE' if is_held else 'DISABLE'} ROW LEVEL SECURITY")
            row_security._stands.cache_clear()
            for page, given in asked:
                client.get(root + page, given)
                for _ in range(TURNS):
                    start = time.perf_counter()
                    status = client.get(root + page, given).status_code
                    if status != 200:
                        raise RuntimeError(f"{page} {given} was answered with {status}")
                    spent[f"{page} {given.get('q', '')}", is_held].append(1000 * (time.perf_counter() - start))
    names = dict.fromkeys(name for name, _ in spent)
    return {name: (median(spent[name, True]), median(spent[name, False])) for name in names}


if __name__ == "__main__":
    raise SystemExit(main())
