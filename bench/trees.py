"""Windows of large trees, the drawing of traces, and what one late message costs: P19 to P21 of the goals.
Then what one message more costs where there are ten times as many: settling it, drawing its trace, examining it.

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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .installation import Installation
from .measure import Goal, Row, time_call
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
        ordered.append(min(time_call(lambda ids=ids: sorted(ids), time.process_time) for _ in range(5)))
    yield _compare_growth("reading and drawing a trace", "random", drawn, ordered)


def _redraw(trace: Trace) -> float:
    """The seconds that drawing takes from nothing."""
    from inspector.threads.models import TreeGroup
    from inspector.threads.tracing import draw_traces

    TreeGroup.objects.filter(trace=trace).delete()
    return time_call(lambda: draw_traces(trace=trace, fence=_nothing, finish=_finish))


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
    whole = time_call(product.work)
    for where, second in (("near the front", 11), ("at the end", 10 + SETTLED_COUNT)):
        product.take([write(second, where)])
        product.work(kinds=("ingest",))
        before = int(product.execute("SELECT txid_current() % 4294967296")[0][0])
        spent = time_call(product.work)
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
    elapsed = time_call(lambda: draw_traces(trace=trace, fence=_nothing, finish=_finish))
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
    times = [time_call(call) * 1000 for _ in range(ROUNDS)]
    own = (time.process_time() - spent) / ROUNDS * 1000
    told = f"median {statistics.median(times):.1f} ms, {own:.1f} ms of it processor time outside the database"
    return statistics.quantiles(times, n=20)[-1], told


def _fill(goal: Goal, **names: Any) -> Goal:
    return Goal(goal.id, goal.about.format(**names), goal.required, goal.stretch, goal.is_share)


ADDED: Final = Goal(
    "late", "{step} after one {kind} {where}, in {large:,} v {small:,} messages", 1.5, 1.1, is_share=True
)
# Both so long that they are many blocks.
COUNTS: Final = (5_000, 50_000)
LATE_ROUNDS: Final = 5
START: Final = 1_763_715_600
# One of so many lines of CLowl answers a request that has not come.
LOST: Final = 200


class Case(NamedTuple):
    """Messages of one conversation.

    `held` gives the line of the so manieth. `added` are what may come after so many: its name, and its line from the
    so manieth second and a number that no other has.
    """

    kind: str
    steps: tuple[str, ...]
    held: Callable[[int], bytes]
    added: dict[str, Callable[[int, int], bytes]]


def write(second: int, name: str) -> bytes:
    """A line of the one conversation and trace of these measures."""
    said = {"raw": f"Line {name}.", "id": name, "conversation": "c", "from": "a", "to": ["b"], "trace": "t"}
    return json.dumps(said | {"at": START + second}).encode() + b"\n"


def write_clowl(second: int, name: str, answered: str | None = None) -> bytes:
    """A request in CLowl, or an answer to one: each of both establishes how its task stands."""
    pair = {"from": "a", "to": "b"} if answered is None else {"from": "b", "to": "a", "pid": answered}
    said = {"clowl": "0.2", "mid": name, "cid": "c", "p": "REQ" if answered is None else "DONE", **pair}
    return json.dumps(said | {"ts": START + second, "body": {"t": "work", "d": {}}}).encode() + b"\n"


def write_exchanged(number: int) -> bytes:
    """A line of an exchange in CLowl: each odd one answers the one before; some answer what has not come."""
    if number % LOST == LOST - 1:
        return write_clowl(10 + number, f"m{number}", f"lost {number // LOST}")
    return write_clowl(10 + number, f"m{number}", f"m{number - 1}" if number % 2 else None)


CASES: Final = (
    Case(
        "message",
        ("settle", "trace", "examine"),
        lambda number: write(10 + number, f"m{number}"),
        {
            "near the front": lambda _, number: write(11, f"near the front {number}"),
            "late by ten": lambda count, number: write(count, f"late by ten {number}"),
            "at the end": lambda count, number: write(10 + count + number, f"at the end {number}"),
        },
    ),
    # Half of them ask and half of them answer.
    Case(
        "message of CLowl",
        ("settle",),
        write_exchanged,
        {
            "near the front": lambda _, number: write_clowl(11, f"front {number}"),
            "near the front that is answered at the end": (
                lambda count, number: write_clowl(11, f"lost {count // LOST - 1 - number}")
            ),
            "late by ten": lambda count, number: write_clowl(count, f"late {number}"),
            "that asks": lambda count, number: write_clowl(10 + count + number, f"new {number}"),
            "that answers the first": lambda count, number: write_clowl(20 + count + number, f"old {number}", "m0"),
        },
    ),
)


def measure_added(product: Product) -> Iterator[Row]:
    """Each step of the work after one message more: the least of five times on the clock."""
    for case in CASES:
        spent: dict[tuple[int, str, str], float] = {}
        for count in COUNTS:
            product.clear()
            product.take([case.held(number) for number in range(count)])
            product.work()
            for where, add in case.added.items():
                times: dict[str, list[float]] = {step: [] for step in case.steps}
                for number in range(LATE_ROUNDS):
                    product.take([add(count, number)])
                    product.work(kinds=("ingest",))
                    for step in case.steps:
                        times[step].append(_time_work(product, step))
                spent |= {(count, where, step): min(times[step]) for step in case.steps}
        small, large = COUNTS
        for step in case.steps:
            for where in case.added:
                few, many = spent[small, where, step], spent[large, where, step]
                about = ADDED.about.format(step=step, kind=case.kind, where=where, large=large, small=small)
                goal = Goal(ADDED.id, about, ADDED.required, ADDED.stretch, ADDED.is_share)
                yield Row(goal, many / few, remark=f"{1000 * many:.0f} v {1000 * few:.0f} ms")


def _time_work(product: Product, step: str) -> float:
    start = time.perf_counter()
    product.work(kinds=(step,))
    return time.perf_counter() - start
