"""Searching among many messages: P14 to P17 and P28 of the goals.

A log is taken in and settled by the product; its rows are then copied backwards in time until there are as many as
wanted, so that every message is one that the product wrote. The oldest tenth holds words that stand nowhere else, and
another workspace holds words that this one does not.
"""

from __future__ import annotations

import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from .installation import Installation
from .logs import Log
from .measure import Goal, Row
from .product import Product, enter_product

P14: Final = Goal("P14", "search page less its own SQL, p95 ms, {term}", 10, 5, is_share=True)
P15: Final = Goal("P15", "newest 25 of {large:,} messages v {small:,}, {term}", 2, 1.2, is_share=True)
P16: Final = Goal("P16", "a deep page v the first, {term}", 1.5, 1.1, is_share=True)
P17: Final = Goal("P17", "search page of {large:,} messages, p95 ms, {term}", 50, 15, is_share=True)

P28: Final = Goal("P28", "first page of {term}, median ms", 50, 15, is_share=True)

SEED_RECORDS: Final = 10_000
MANY, MORE, COMMON = 200_000, 1_000_000, 100_000
WARM_UPS, CALLS = 5, 60
DEEP: Final = 40
# Words of the generated logs: every message of CLowl has the first, few have the last.
TERMS: Final = {
    "one common word": "planner",
    "two common words": "planner request",
    "a rare word": "quilen*",
    "a phrase": '"asks archivist"',
    "a name": "from:planner performative:request",
    "alternatives": "(from:planner OR from:mill) -performative:request",
    "a path": "dialect:clowl has:content",
    "only old messages": "bygone",
    "half of the old": "bygone from:planner",
    "another workspace's word": "elsewhere",
    "a miss": "zzyzx",
    "a sign": "🛰",
    "a comparison": "severity:>=error",
}
# What a hundred thousand messages share: among the newest, and behind all others.
SHARED: Final = {
    "a channel of {large:,} messages, the newest": "channel:main",
    "a channel of {common:,} messages, behind {large:,} newer": "channel:big",
    "a dialect of {large:,} messages and {common:,} older": "dialect:clowl",
    "a word of {large:,} messages and {common:,} older": "planner",
    "a word of {common:,} messages, behind {large:,} newer": "bulky",
}


@dataclass(frozen=True)
class Timed:
    """Milliseconds: the median and the 95th of a hundred."""

    p50: float
    p95: float


def measure_searching(options: Namespace) -> Iterator[Row]:
    """Every row of the suite; a million messages with `--long`."""
    large = MORE if options.long else MANY
    with Installation() as installation, enter_product(installation) as product:
        print(product.tell_settings(), file=sys.stderr)
        small = plant(product, SEED_RECORDS)
        first = {name: time_page(product, query) for name, query in TERMS.items()}
        count = plant(product, large)
        print(f"search: {small:,} messages, then {count:,}", file=sys.stderr, flush=True)
        for name, query in TERMS.items():
            page, bare = time_page(product, query), time_statements(product, query)
            told = f"page {page.p50:.1f}/{page.p95:.1f} ms, SQL {bare.p50:.1f}/{bare.p95:.1f} ms (p50/p95)"
            yield Row(_fill(P14, term=name), page.p95 - bare.p95, remark=told)
            yield Row(_fill(P15, term=name, large=count, small=small), page.p95 / first[name].p95, remark=told)
            yield Row(_fill(P17, term=name, large=count), page.p95)
        for name in ("one common word", "a name"):
            yield measure_depth(product, name)
        yield from measure_shared(product, count)


def measure_shared(product: Product, large: int) -> Iterator[Row]:
    """P28: the page's whole answer, and the bare SQL of its messages beside it."""
    from inspector.accounts.models import Channel

    channel = Channel.objects.create(workspace=product.workspace, name="big")
    common = COMMON // SEED_RECORDS * SEED_RECORDS
    for number in range(common // SEED_RECORDS):
        copy_seed(product, 10_000 + number, word="bulky", channel=channel)
    product.execute("VACUUM ANALYZE threads_message")
    product.execute("VACUUM ANALYZE intake_record")
    for name, query in SHARED.items():
        page, bare = time_page(product, query), time_statements(product, query)
        told = f"page {page.p50:.1f}/{page.p95:.1f} ms, SQL {bare.p50:.1f}/{bare.p95:.1f} ms (p50/p95)"
        yield Row(_fill(P28, term=name.format(large=large, common=common)), page.p50, remark=told)


def _fill(goal: Goal, **values: Any) -> Goal:
    return Goal(goal.id, goal.about.format(**values), goal.required, goal.stretch, goal.is_share)


def plant(product: Product, count: int, *, records: int = SEED_RECORDS) -> int:
    """So many messages at least in the workspace, the oldest tenth with a word of their own; how many there are.

    They are copies of those that the product makes of so many `records`.
    """
    if not product.execute("SELECT 1 FROM threads_message LIMIT 1"):
        product.take(Log(seed=5, records=records).pieces())
        product.work()
        product.execute("CREATE TABLE bench_seed AS SELECT id FROM threads_message")
        copy_seed(product, 0, word="elsewhere", workspace=make_workspace("bench-other"))
    (have,) = product.execute(f"SELECT count(*) FROM threads_message WHERE workspace_id = '{product.workspace.pk}'")[0]
    (seeds,) = product.execute("SELECT count(*) FROM bench_seed")[0]
    first = have // seeds
    last = -(-count // seeds)
    for number in range(first, last):
        copy_seed(product, number, word="bygone" if number >= last * 9 // 10 else "")
        print(f"search: copy {number} of {last - 1}", file=sys.stderr, flush=True) if number % 10 == 0 else None
    product.execute("VACUUM ANALYZE threads_message")
    product.execute("VACUUM ANALYZE intake_record")
    (found,) = product.execute(f"SELECT count(*) FROM threads_message WHERE workspace_id = '{product.workspace.pk}'")[0]
    return int(found)


def make_workspace(slug: str) -> Any:
    """One that has nothing yet."""
    from inspector.accounts.services import create_workspace

    return create_workspace(slug=slug, name=slug)


def copy_seed(product: Product, number: int, *, word: str = "", workspace: Any = None, channel: Any = None) -> None:
    """The seed once more, `number` spans of time earlier, in a channel of the product's workspace or of another."""
    from inspector.threads.terms import mark_workspace

    channel = channel or (workspace.channels.get(name="main") if workspace else product.channel)
    workspace = workspace or product.workspace
    mark = f"copy {number} {workspace.slug}"
    (span,) = product.execute(
        "SELECT max(order_time) - min(order_time) FROM threads_message JOIN bench_seed USING (id)"
    )[0]
    earlier = f"interval '{(span.total_seconds() + 1) * number:.0f} seconds'"
    fresh = "md5({0}::text || '" + mark + "')::uuid"
    own, other = mark_workspace(product.workspace.pk), mark_workspace(workspace.pk)
    of_workspace = {"workspace_id": f"'{workspace.pk}'::uuid", "channel_id": f"'{channel.pk}'::uuid"}
    digest = "sha256(convert_to({0}::text || '" + mark + "', 'UTF8'))"
    words = "words" if own == other else f"replace(words::text, '''{own}', '''{other}')::tsvector"
    changed = {
        "threads_conversation": of_workspace | {"id": fresh.format("id"), "key": digest.format("key")},
        "intake_record": of_workspace | {"id": fresh.format("id"), "identity": digest.format("identity"),
                                          "order_time": f"order_time - {earlier}"},
        "threads_message": of_workspace | {
            "id": fresh.format("id"),
            "record_id": fresh.format("record_id"),
            "conversation_id": fresh.format("conversation_id"),
            "parent": "CASE WHEN parent IS NULL THEN NULL ELSE " + fresh.format("parent") + " END",
            "order_time": f"order_time - {earlier}",
            "words": words + (f" || '''{other}{word}'':1'::tsvector" if word else ""),
            "atoms": "atoms" if own == other else f"ARRAY(SELECT '{other}' || substr(a, 5) FROM unnest(atoms) AS a)",
        },
    }  # fmt: skip
    chosen = {
        "threads_message": "JOIN bench_seed USING (id)",
        "intake_record": "WHERE id IN (SELECT record_id FROM threads_message JOIN bench_seed USING (id))",
        "threads_conversation": "WHERE id IN (SELECT conversation_id FROM threads_message JOIN bench_seed USING (id))",
    }
    for table, values in changed.items():
        names = [name for (name,) in product.execute(
            f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}' ORDER BY ordinal_position"
        )]  # fmt: skip
        columns = ", ".join(f'"{name}"' for name in names)
        given = ", ".join(values.get(name, f'{table}."{name}"') for name in names)
        given = given.replace("order_time -", f"{table}.order_time -").replace("md5(id::", f"md5({table}.id::")
        product.execute(f"INSERT INTO {table} ({columns}) SELECT {given} FROM {table} {chosen[table]}")


def time_page(product: Product, query: str, **more: str) -> Timed:
    """The search page, as its view answers a signed-in member."""
    client, address = _enter(product)
    path = f"{address}?{urlencode({'q': query, **more})}"
    return _time(lambda: client.get(path))


def _enter(product: Product) -> tuple[Any, str]:
    from django.conf import settings
    from django.test import Client
    from django.urls import reverse

    from inspector.accounts.models import Membership

    settings.ALLOWED_HOSTS = ["*"]
    client = Client()
    client.force_login(Membership.objects.filter(workspace=product.workspace).first().user)  # type: ignore[union-attr]
    return client, reverse("pages:search", args=[product.workspace.slug])


def time_statements(product: Product, query: str) -> Timed:
    """What the database takes to find the page's messages: all the statements of it together, as they are sent."""
    from django.db import connection

    from inspector.pages.search import PAGE_ROWS
    from inspector.search.selectors import find_messages

    held = 0.0

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal held
        start = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            held += time.perf_counter() - start

    def find() -> float:
        nonlocal held
        held = 0.0
        find_messages(workspace=product.workspace, query=query, limit=PAGE_ROWS + 1)
        return held

    with connection.execute_wrapper(note):
        return _time(find)


def measure_depth(product: Product, name: str) -> Row:
    """P16: the fortieth page of a common query beside its first."""
    import html
    import re

    client, address = _enter(product)
    path = first = f"{address}?{urlencode({'q': TERMS[name]})}"
    for _ in range(DEEP):
        page = client.get(path).content.decode()
        older = re.search(r'rel="next" href="([^"]+)"', page)
        if older is None:
            break
        path = address + html.unescape(older[1])
    deep, front = _time_beside(lambda: client.get(path), lambda: client.get(first))
    told = f"{deep.p95:.1f} v {front.p95:.1f} ms, page {DEEP}"
    return Row(_fill(P16, term=name), deep.p95 / front.p95, remark=told)


def _time(call: Callable[[], object]) -> Timed:
    return _time_beside(call)[0]


def _time_beside(*calls: Callable[[], object]) -> list[Timed]:
    """How long each of these calls takes, by turns, so that what else the machine does meets all of them.

    Where a call says itself what is to count, in seconds, it is that; else the clock.
    """
    spent: list[list[float]] = [[] for _ in calls]
    for number in range(WARM_UPS + CALLS):
        for call, held in zip(calls, spent, strict=True):
            start = time.perf_counter()
            said = call()
            if number >= WARM_UPS:
                held.append((said if isinstance(said, float) else time.perf_counter() - start) * 1000)
    return [Timed(statistics.median(held), statistics.quantiles(held, n=20)[-1]) for held in spent]
