"""Windows of large trees, the drawing of traces, and what one late message costs: P19 to P21 of the goals.

The messages are copies of one that the product took in, each with its own id, place and parent: what is measured is the
tree and not the reading of logs. The trees are drawn by the product's own step for traces.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from .adding import measure_added, write
from .installation import Installation
from .measure import Goal, Row
from .product import Product, enter_product

if TYPE_CHECKING:
    from inspector.threads.models import Conversation, Trace

P19: Final = Goal("P19", "first window of {count:,} messages, {shape}, {where}, p95 ms", 60, 20, is_share=True)
P20: Final = Goal("P20", "the same of {large:,} messages v {small:,}, {where}", 1.5, 1.1, is_share=True)
P21: Final = Goal("P21", "growth of {what} less that of sorting the same ids, {shape}", 0.15, 0.05, is_share=True)
SETTLED: Final = Goal("late", "settling one late message {where} of {count:,} v settling all", 1.0, 0.2, is_share=True)

LARGE, SMALL, HUGE = 100_000, 10_000, 1_000_000
GROWING: Final = (10_000, 40_000, 160_000)
SETTLED_COUNT: Final = 10_000
ROUNDS: Final = 60
WINDOW: Final = 200
# The parent of the message n (from 1 on; 0 is the first), as SQL.
SHAPES: Final = {
    "chain": "n - 1",
    "star": "0",
    # Spread evenly. The first modulus is less than the product from the second message on: else it would be a star.
    "random": "mod(mod(n::bigint * 2654435761, 4294967291), n)",
}


def measure_trees(options: Namespace) -> Iterator[Row]:
    """Every row of the suite; a million messages with `--long`."""
    with Installation() as installation, enter_product(installation) as product:
        yield from measure_whole_growth(product)
        for shape in SHAPES:
            yield from measure_windows(product, shape)
        yield from measure_late(product)
        yield from measure_added(product)
        # At the end, for the disk is busy for a while with what a million messages leave behind.
        yield from measure_size(product, HUGE if options.long else None)


def measure_whole_growth(product: Product) -> Iterator[Row]:
    """P21: a trace read whole, its messages hung, its ghosts and headings found, and its row summed up.

    Beside it the same number of random ids are sorted.
    """
    drawn, ordered = [], []
    for size in GROWING:
        trace, _, elapsed = plant(product, "random", size)
        drawn.append(min([elapsed, *(_redraw(trace) for _ in range(2))]))
        chance = random.Random(size)
        ids = [chance.randbytes(16) for _ in range(size)]
        ordered.append(min(_spend(lambda ids=ids: sorted(ids)) for _ in range(5)))
    yield _compare_growth("reading and drawing a trace", "random", drawn, ordered)


def _redraw(trace: Trace) -> float:
    """The seconds that drawing takes from nothing."""
    from inspector.threads.models import TreeGroup
    from inspector.threads.tracing import draw_traces

    TreeGroup.objects.filter(trace=trace).delete()
    return _time(lambda: draw_traces(trace=trace, fence=_nothing, finish=_finish))


def _compare_growth(what: str, shape: str, drawn: list[float], ordered: list[float]) -> Row:
    span = math.log(GROWING[-1] / GROWING[0])
    own, theirs = (math.log(times[-1] / times[0]) / span for times in (drawn, ordered))
    # Small lists fit into the caches of the processor and large ones do not: sorting then grows much faster than its
    # comparisons, and whatever is compared with it looks good. More than n log n is not granted.
    granted = min(theirs, math.log(_count_comparisons(GROWING[-1]) / _count_comparisons(GROWING[0])) / span)
    told = f"exponents {own:.2f} and {granted:.2f} (sorting as measured {theirs:.2f})"
    return Row(
        _fill(P21, what=what, shape=shape), own - granted, remark=f"{told}; {GROWING[-1]:,} lines in {drawn[-1]:.2f} s"
    )


def _count_comparisons(size: int) -> float:
    return size * math.log(size)


def measure_windows(product: Product, shape: str) -> Iterator[Row]:
    """P19: the first window of a trace and of a conversation, from the selector, the page and the API."""
    trace, conversation, elapsed = plant(product, shape, LARGE)
    for where, call in doors(product, trace, conversation).items():
        value, told = _find_p95(call)
        yield Row(_fill(P19, count=LARGE, shape=shape, where=where), value, remark=f"{told}; drawn in {elapsed:.1f} s")


def measure_size(product: Product, huge: int | None) -> Iterator[Row]:
    """P20: a random tree of a million messages beside one of ten thousand."""
    found: dict[int, dict[str, float]] = {}
    for count in (SMALL, huge or LARGE):
        trace, conversation, elapsed = plant(product, "random", count)
        print(f"trees: {count:,} messages drawn in {elapsed:.0f} s", file=sys.stderr, flush=True)
        found[count] = {where: _find_p95(call)[0] for where, call in doors(product, trace, conversation).items()}
    for where, value in found[huge or LARGE].items():
        goal = _fill(P20, large=huge or LARGE, small=SMALL, where=where)
        told = f"{value:.1f} v {found[SMALL][where]:.1f} ms" + ("" if huge else "; --long takes a million")
        yield Row(goal, value / found[SMALL][where], remark=told)


def measure_late(product: Product) -> Iterator[Row]:
    """One message more in a large conversation, through the product's own reading and settling."""
    product.clear()
    product.take([write(10 + number, f"m{number}") for number in range(SETTLED_COUNT)])
    product.work(kinds=("ingest",))
    whole = _time(product.work)
    for where, second in (("near the front", 11), ("at the end", 10 + SETTLED_COUNT)):
        product.take([write(second, where)])
        product.work(kinds=("ingest",))
        before = int(product.execute("SELECT txid_current() % 4294967296")[0][0])
        spent = _time(product.work)
        written = product.execute(f"SELECT count(*) FROM threads_message WHERE xmin::text::bigint >= {before}")[0][0]
        goal = _fill(SETTLED, where=where, count=SETTLED_COUNT)
        yield Row(goal, spent / whole, remark=f"{spent:.2f} v {whole:.2f} s; {written:,} rows of messages written")


def plant(product: Product, shape: str, count: int) -> tuple[Trace, Conversation, float]:
    """A conversation and its trace of so many messages in this shape, drawn; and how many seconds drawing took."""
    from django.db import connection

    from inspector.threads.models import Conversation, Message, Trace
    from inspector.threads.tracing import draw_traces

    product.clear()
    said = {"raw": "Count aisle 6.", "id": "m0", "from": "ada", "to": ["bob"], "conversation": "c", "trace": "t"}
    product.take([json.dumps(said | {"at": 1_763_715_600}).encode() + b"\n"])
    product.work()
    first = Message.objects.get()
    parent = SHAPES[shape]
    prefix = str(first.pk)[:23]
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO threads_message
            SELECT (jsonb_populate_record(model, jsonb_build_object(
                'id', '{prefix}-' || lpad(to_hex(n), 12, '0'),
                'part', n + 1, 'order_index', n,
                'place', '\\x' || repeat('00', 36) || lpad(to_hex(n), 8, '0'),
                'order_time', model.order_time + n * interval '1 second',
                'performative', CASE WHEN n %% 5 = 0 THEN 'request' ELSE 'inform' END,
                'parent', CASE WHEN {parent} = 0 THEN %s ELSE '{prefix}-' || lpad(to_hex({parent}), 12, '0') END,
                'above', CASE WHEN {parent} = 0 THEN %s ELSE '{prefix}-' || lpad(to_hex({parent}), 12, '0') END,
                'trace_above', CASE WHEN {parent} = 0 THEN %s ELSE '{prefix}-' || lpad(to_hex({parent}), 12, '0') END,
                'parent_basis', 'explicit'))).*
              FROM threads_message AS model, generate_series(1, %s) AS n WHERE model.id = %s
            """,
            [*[str(first.pk)] * 3, count - 1, first.pk],
        )
        cursor.execute("UPDATE threads_message SET place = decode(repeat('00', 40), 'hex') WHERE id = %s", [first.pk])
        cursor.execute("UPDATE threads_block SET count = %s", [count])
        cursor.execute("ANALYZE threads_message")
    last_at = first.order_time + timedelta(seconds=count - 1)
    Conversation.objects.update(message_count=count, last_at=last_at)
    Trace.objects.update(message_count=count)
    trace = Trace.objects.filter(last_at__isnull=False).get()
    conversation = Conversation.objects.get()
    elapsed = _time(lambda: draw_traces(trace=trace, fence=_nothing, finish=_finish))
    trace.refresh_from_db()
    return trace, conversation, elapsed


def _finish(_done: object) -> None:
    """Nobody waits for it."""


def _nothing() -> None:
    """A fence and an end for work that nobody else does."""


def doors(product: Product, trace: Trace, conversation: Conversation) -> dict[str, Callable[[], object]]:
    """What reads a first window: the selectors, the pages and the endpoints."""
    from django.test import Client
    from django.urls import reverse

    from inspector.accounts.models import Membership
    from inspector.accounts.services import create_api_key
    from inspector.threads.lines import OPEN, Fold
    from inspector.threads.models import Message
    from inspector.threads.trees import Place, load_contents, load_tree

    owner = Membership.objects.filter(workspace=product.workspace).select_related("user").first()
    if owner is None:
        raise RuntimeError("the workspace has no member")
    client = Client()
    client.force_login(owner.user, backend="django.contrib.auth.backends.ModelBackend")
    key = {"Authorization": f"Bearer {create_api_key(workspace=product.workspace, name='bench', scopes=['read'])[1]}"}
    slug = product.workspace.slug

    middle = Message.objects.get(order_index=trace.message_count // 2).pk

    def read(tree_of: Trace | Conversation, fold: Fold = OPEN, at: Place | None = None) -> object:
        tree = load_tree(tree_of)
        if tree is None:
            raise RuntimeError("there is no tree")
        rows = tree.read_window(at=at, limit=WINDOW, fold=fold).rows
        if not rows:
            raise RuntimeError("there are no rows")
        return load_contents(owner=tree_of, rows=rows)

    def ask(address: str, **headers: str) -> object:
        answer = client.get(address, headers=headers, SERVER_NAME="localhost")
        if answer.status_code != 200:
            raise RuntimeError(f"{address} was answered with {answer.status_code}")
        return answer

    return {
        "selector": lambda: read(trace),
        "selector, from the message in the middle on": lambda: read(trace, at=Place(middle)),
        "selector, one level": lambda: read(trace, Fold(level=2)),
        "selector of a conversation": lambda: read(conversation),
        "page": lambda: ask(reverse("pages:trace", args=[slug, trace.pk])),
        "page of a conversation's tree": lambda: ask(reverse("pages:conversation-tree", args=[slug, conversation.pk])),
        "API": lambda: ask(f"/api/v1/traces/{trace.pk}/tree", **key),
    }


def _find_p95(call: Callable[[], object]) -> tuple[float, str]:
    """The 95th percentile in milliseconds, and the median in words."""
    for _ in range(3):
        call()
    spent = time.process_time()
    times = [_time(call) * 1000 for _ in range(ROUNDS)]
    own = (time.process_time() - spent) / ROUNDS * 1000
    told = f"median {statistics.median(times):.1f} ms, {own:.1f} ms of it processor time outside the database"
    return statistics.quantiles(times, n=20)[-1], told


def _time(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _spend(call: Callable[[], object]) -> float:
    """The processor time of a call in seconds."""
    start = time.process_time()
    call()
    return time.process_time() - start


def _fill(goal: Goal, **names: Any) -> Goal:
    return Goal(goal.id, goal.about.format(**names), goal.required, goal.stretch, goal.is_share)
