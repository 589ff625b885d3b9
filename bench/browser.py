"""A real browser: the longest frame of every view of a chain of replies, and when every page of a workspace is painted.

The chain comes in by the import command and is settled by the worker; chromium then opens each view at its beginning,
in its middle and at its end, goes through windows by the links that a person follows, and scrolls each to its end. A
frame is the time between two calls of `requestAnimationFrame` while it scrolls; what the browser calls a long task,
loading and laying out included, counts as one too. On a machine that does other things at the same time both say more
of these than of the page: the longest task by the processor time of its own thread stands beside them.

For the painting a log of mixed dialects and a long trace are taken in by the product, and one of each thing made that
an address can name. Every address of the product that answers with a page is then opened several times by chromium as
its owner; what is measured is the largest contentful paint as the browser says it, counted from the click, the parts
that a page asks for afterwards included. The measuring needs the development requirements.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import quantiles
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from inspector.embedded.state import PROJECT

from .installation import Installation, choose_environment
from .logs import Log
from .measure import Goal, Row
from .product import Product, enter_product

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

FRAME: Final = Goal("frames", "{view} of {count:,} replies: longest frame, ms", 100, 50, is_share=True)
TASK: Final = Goal("frames", "{view} of {count:,} replies: longest task, processor ms", 100, 50, is_share=True)
WEIGHT: Final = Goal("frames", "{view} of {count:,} replies: heaviest page, kB", 300, 150, is_share=True)
SERVED: Final = Goal("frames", "{view} of {count:,} replies: answer of the server, p95 ms", 500, 100, is_share=True)

CHROMIUM: Final = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
SIZE: Final = {"width": 1280, "height": 900}
PATIENCE_S: Final = 3600.0
WINDOWS_ON: Final = 3
# The views: (what it is called, the path below the conversation's, the parameter that says where a window begins).
VIEWS: Final = (
    ("transcript", "?order=time", "offset"),
    ("answers", "?", "offset"),
    ("sequence", "sequence/?", "offset"),
    ("raw", "raw/?", "offset"),
    ("tree", "tree/?", "at"),
)
# Notes every frame from now on, and every long task since the page began.
WATCH: Final = """
() => {
  window.frameTimes = [];
  let last = performance.now();
  const note = (now) => { window.frameTimes.push(now - last); last = now; requestAnimationFrame(note); };
  requestAnimationFrame((now) => { last = now; requestAnimationFrame(note); });
}
"""
LONG_TASKS: Final = """
() => new Promise((resolve) => {
  const seen = [];
  new PerformanceObserver((list) => seen.push(...list.getEntries().map((entry) => entry.duration)))
    .observe({ type: "longtask", buffered: true });
  setTimeout(() => resolve(seen), 50);
})
"""
# Scrolls by three quarters of the window's height at every frame, the page and then what scrolls within it.
SCROLL: Final = """
() => new Promise((resolve) => {
  const isHigher = (box) => box.scrollHeight > box.clientHeight;
  const inner = Array.from(document.querySelectorAll(".diagram, .scroller")).filter(isHigher);
  const boxes = [document.scrollingElement, ...inner];
  const step = () => {
    const box = boxes.find((one) => one.scrollTop + one.clientHeight < one.scrollHeight - 1 && !one.dataset?.done);
    if (!box) return resolve();
    const before = box.scrollTop;
    box.scrollTop += box.clientHeight * 0.75;
    if (box.scrollTop === before && box.dataset) box.dataset.done = "1";
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})
"""


@dataclass
class Seen:
    """What a view cost: frames, long tasks and processor time in milliseconds, pages in bytes, answers in seconds."""

    frames: list[float] = field(default_factory=list)
    tasks: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def make_chain(count: int) -> Iterator[bytes]:
    """The lines of a chain: two agents in turns, each answers the one before; the same whenever it is called."""
    for number in range(count):
        is_asking = number % 2 == 0
        record = {
            "clowl": "0.2",
            "mid": f"m{number}",
            "ts": 1_795_251_600 + number,
            "pid": f"m{number - 1}" if number else None,
            "p": "REQ" if is_asking else "INF",
            "from": "oscar" if is_asking else "radar",
            "to": "radar" if is_asking else "oscar",
            "cid": "chain",
            "body": {"t": "search", "d": {"q": f"question {number}"}},
        }
        yield json.dumps(record).encode() + b"\n"


def measure_browser(options: Namespace) -> Iterator[Row]:
    """Four rows for each view; a page with a fault makes its rows worth nothing."""
    choose_environment()
    with Installation() as installation:
        installation.start()
        load_chain(installation, options.replies)
        yield from measure_views(installation, options.replies)


def load_chain(installation: Installation, count: int) -> None:
    """Import the chain by the command, and wait until the worker has settled it.

    Raises:
        RuntimeError: where it is not settled whole in time.
    """
    path = installation.state.root / "chain.jsonl"
    with path.open("wb") as log:
        log.writelines(make_chain(count))
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "manage.py", "import_log", str(path)],
        cwd=PROJECT,
        env={**installation.environment(), "PYTHONPATH": str(PROJECT / "codecs")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the import failed: {done.stderr[-2000:]}")
    imported = time.monotonic() - start
    with installation.connect() as connection:
        while connection.execute("SELECT 1 FROM intake_job WHERE state <> 'done' LIMIT 1").fetchone():
            if time.monotonic() - start > PATIENCE_S:
                raise RuntimeError("the worker does not come to an end")
            time.sleep(0.5)
        rows = connection.execute("SELECT message_count FROM threads_conversation").fetchall()
    if rows != [(count,)]:
        raise RuntimeError(f"there are other conversations than one of {count}: {rows}")
    told = f"{count:,} replies imported in {imported:.0f} s, settled after {time.monotonic() - start:.0f} s"
    print(f"browser: {told}", file=sys.stderr, flush=True)


def measure_views(installation: Installation, count: int) -> Iterator[Row]:
    """Every view in one browser."""
    from playwright.sync_api import sync_playwright

    with installation.connect() as connection:
        found = connection.execute("SELECT id FROM threads_conversation").fetchone()
    assert found is not None
    address = f"http://{installation.door.host}:{installation.door.port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        context = browser.new_context(viewport=SIZE, base_url=address)  # type: ignore[arg-type]
        sign_in(context.new_page(), installation.link)
        for view, path, parameter in VIEWS:
            seen = watch_view(context, f"/w/default/conversations/{found[0]}/{path}&{parameter}=", count)
            yield from write_rows(view, count, seen)
        browser.close()


def sign_in(page: Page, link: str) -> None:
    """Follow a link that signs in, and press the button of the page to which its code leads."""
    page.goto(link)
    page.get_by_role("button", name="Sign in as").click()
    page.wait_for_load_state()


def watch_view(context: BrowserContext, address: str, count: int) -> Seen:
    """Open a view at three places, which follow its address, and from each go on by its own links."""
    seen = Seen()
    page = context.new_page()
    browser = context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["toplevel", "__metadata"])
    page.on("pageerror", lambda error: seen.faults.append(str(error)))
    page.on("console", lambda said: seen.faults.append(said.text) if said.type in ("error", "warning") else None)
    for offset in (0, count // 2 // 100 * 100, max(0, count - 100) // 100 * 100):
        open_page(page, f"{address}{offset}", seen)
        for _ in range(WINDOWS_ON):
            link = page.locator("a[rel=next]").first
            if not link.count():
                break
            open_page(page, str(link.evaluate("(node) => node.href")), seen)
    seen.processor = find_tasks(json.loads(browser.stop_tracing()))
    page.close()
    return seen


def find_tasks(trace: Any) -> list[float]:
    """The processor time of every task of the threads that draw pages, in milliseconds."""
    events = trace["traceEvents"]
    drawing = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"].get("name") == "CrRendererMain"
    }
    return [
        event["tdur"] / 1000
        for event in events
        if "tdur" in event and "RunTask" in event["name"] and (event["pid"], event["tid"]) in drawing
    ]


def open_page(page: Page, address: str, seen: Seen) -> None:
    """Open a page, scroll it to its end, and note what it cost."""
    start = time.perf_counter()
    response = page.goto(address, wait_until="load")
    if response is None or response.status != 200:
        seen.faults.append(f"{address}: {response and response.status}")
        return
    timing: Any = page.evaluate("() => performance.getEntriesByType('navigation')[0].responseEnd")
    seen.answers.append(float(timing) / 1000 if timing else time.perf_counter() - start)
    seen.sizes.append(len(response.body()))
    page.evaluate(WATCH)
    page.evaluate(SCROLL)
    seen.tasks += page.evaluate(LONG_TASKS)
    # The first is cut off by the moment at which watching began.
    seen.frames += page.evaluate("() => window.frameTimes.slice(1)")


def write_rows(view: str, count: int, seen: Seen) -> Iterator[Row]:
    """The longest frame and task, the heaviest page and the slowest answers of a view."""
    if seen.faults or not seen.frames:
        yield Row(_fill(FRAME, view, count), None, remark="; ".join(seen.faults)[:300] or "no page was opened")
        return
    frame, task = max(seen.frames), max(seen.tasks, default=0.0)
    told = (
        f"{len(seen.sizes)} pages, {len(seen.frames):,} frames; longest {frame:.0f} ms, "
        f"{len(seen.tasks)} long tasks, longest {task:.0f} ms"
    )
    yield Row(_fill(FRAME, view, count), max(frame, task), remark=told)
    longest = max(seen.processor, default=None)
    yield Row(_fill(TASK, view, count), longest, remark=f"{len(seen.processor):,} tasks")
    yield Row(_fill(WEIGHT, view, count), max(seen.sizes) / 1000)
    yield Row(_fill(SERVED, view, count), quantiles(seen.answers, n=20)[-1] * 1000)


def _fill(goal: Goal, view: str, count: int) -> Goal:
    return Goal(goal.id, goal.about.format(view=view, count=count), goal.required, goal.stretch, goal.is_share)


if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

PAINT: Final = Goal("paint", "{page}: largest contentful paint, ms", 1000, 500, is_share=True)
PAGE_WEIGHT: Final = Goal("paint", "{page}: HTML, kB", 300, 150, is_share=True)
ROUNDS: Final = 5
NAMED: Final = 5
TRACED: Final = 1000
MAX_PAINT: Final = """
() => new Promise((resolve) => {
  new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime))
    .observe({ type: "largest-contentful-paint", buffered: true });
  setTimeout(() => resolve(null), 2000);
})
"""


@dataclass
class Painted:
    """What opening a page came to: milliseconds, and bytes of its HTML."""

    name: str
    size: int
    times: list[float] = field(default_factory=list)

    @property
    def middle(self) -> float:
        """The median of its rounds."""
        return statistics.median(self.times)


def measure_painting(options: Namespace) -> Iterator[Row]:
    """The slowest pages and the heaviest, and every page that misses a goal; what was not opened makes it worthless."""
    with Installation() as installation, enter_product(installation) as product:
        product.take(Log(seed=9, records=options.records).pieces())
        product.take(make_trace(TRACED), name="trace.jsonl")
        product.work()
        ids = make_things(product)
        installation.start()
        found, faults = open_pages(installation, product, ids)
    for each in sorted(found, key=lambda one: -one.middle):
        print(f"paint: {each.name} {each.middle:.0f} ms, {each.size / 1000:.0f} kB", file=sys.stderr, flush=True)
    if faults or not found:
        yield Row(_name_page(PAINT, "named pages"), None, remark="; ".join(faults)[:500] or "no page was opened")
        return
    slow, heavy = sorted(found, key=lambda one: -one.middle), sorted(found, key=lambda one: -one.size)
    told = ", ".join(f"{each.name} {each.middle:.0f}" for each in slow[:NAMED])
    yield _row(f"slowest of {len(found)} named pages", slow[0], told)
    yield Row(_name_page(PAINT, "the middle one of them"), statistics.median(each.middle for each in found))
    told = ", ".join(f"{each.name} {each.size / 1000:.0f}" for each in heavy[:NAMED])
    yield Row(_name_page(PAGE_WEIGHT, "heaviest of them"), heavy[0].size / 1000, remark=told)
    yield from (_row(each.name, each, "") for each in slow[1:] if each.middle > PAINT.required)
    yield from (Row(_name_page(PAGE_WEIGHT, each.name), each.size / 1000) for each in heavy[1:] if each.size > 300_000)


def _row(page: str, painted: Painted, remark: str) -> Row:
    return Row(_name_page(PAINT, page), painted.middle, low=min(painted.times), high=max(painted.times), remark=remark)


def _name_page(goal: Goal, page: str) -> Goal:
    return Goal(goal.id, goal.about.format(page=page), goal.required, goal.stretch, goal.is_share)


def make_trace(count: int) -> Iterator[bytes]:
    """The lines of a trace: the logs from a seed have none."""
    for line in make_chain(count):
        yield line.replace(b'"cid"', b'"tid": "t-0123456789ab", "cid"')


def make_things(product: Product) -> dict[str, Any]:
    """One of each thing that the address of a page names, the largest where there are several."""
    from inspector.accounts.models import Membership, Role
    from inspector.audit.comments import write_comment
    from inspector.audit.models import Finding
    from inspector.audit.reviews.queues import create_queue, fill_queue
    from inspector.audit.samples import draw_sample
    from inspector.exports.services import ask_for_export
    from inspector.intake.models import Delivery
    from inspector.keyring.models import EscrowedKey
    from inspector.keyring.services import add_keys
    from inspector.keyring.spellings import PlainKey
    from inspector.threads.models import Agent, Conversation, Message, Trace

    owner = Membership.objects.select_related("user", "workspace").get(workspace=product.workspace, role=Role.OWNER)
    conversation = Conversation.objects.order_by("-message_count", "pk")[0]
    message = Message.objects.filter(conversation=conversation, dialect="clowl").order_by("place")[0]
    queue = create_queue(membership=owner, name="What is to be looked at")
    fill_queue(queue=queue, conversations=[conversation.pk], why="", membership=owner)
    key = PlainKey(kind=EscrowedKey.Kind.PSK, secret=b"secret")
    ids = {
        "conversation_id": conversation.pk,
        "message_id": message.pk,
        "record_id": message.record_id,
        "delivery_id": Delivery.objects.all()[0].pk,
        "agent_id": Agent.objects.order_by("name")[0].pk,
        "dialect": "clowl",
        "trace_id": Trace.objects.exclude(last_at=None).order_by("pk")[0].pk,
        "escrowed_key_id": add_keys(membership=owner, keys=[key], label="a key")[0].pk,
        "sample_id": draw_sample(membership=owner, name="A sample", stratum="dialect", wanted=5, seed="s").pk,
        "comment_id": write_comment(membership=owner, message=message, start=0, end=9, words="What is this?").pk,
        "finding_id": Finding.objects.filter(holds=True).order_by("-severity", "pk")[0].pk,
        "export_id": ask_for_export(
            workspace=product.workspace, membership=owner, form="jsonl", is_masked=False, query="from:planner"
        ).pk,
        "queue_id": queue.pk,
        "item_id": queue.items.get().pk,
    }
    product.work()
    return ids


def list_addresses(product: Product, ids: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, path) of every address of a workspace, also of those that only take forms."""
    from django.urls import reverse

    from inspector.pages.urls import workspace_urls

    for pattern in workspace_urls:
        converters = pattern.pattern.converters
        # What no page is about is named by forms alone.
        given = {name: ids.get(name, 1 if name == "membership_id" else uuid4()) for name in converters}
        yield pattern.name, reverse(f"pages:{pattern.name}", kwargs={"slug": product.workspace.slug, **given})


def open_pages(installation: Installation, product: Product, ids: dict[str, Any]) -> tuple[list[Painted], list[str]]:
    """Every page that there is, each several times in one browser; and what went wrong."""
    from playwright.sync_api import sync_playwright

    addresses = [*list_addresses(product, ids)]
    found: list[Painted] = []
    faults: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        base = f"http://{installation.door.host}:{installation.door.port}"
        context = browser.new_context(viewport=SIZE, base_url=base)  # type: ignore[arg-type]
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        sign_in(page, installation.link)
        for name, path in addresses:
            size = weigh_page(context, name, path, faults)
            if size is None:
                continue
            found.append(Painted(name, size))
            for _ in range(ROUNDS):
                time_page(page, path, found[-1], faults)
        browser.close()
    return found, faults


def weigh_page(context: BrowserContext, name: str, path: str, faults: list[str]) -> int | None:
    """The bytes of a page; None for what is none: a part of one, data, a file, or an address that takes forms alone."""
    response = context.request.get(path, max_redirects=0)
    body = response.body()
    if response.status == 405 or 300 <= response.status < 400:
        return None
    if response.status >= 400:
        faults.append(f"{name} was answered with {response.status}")
    is_page = "text/html" in response.headers.get("content-type", "") and body.lstrip().startswith(b"<!doctype html")
    return len(body) if is_page and response.status == 200 else None


def time_page(page: Page, path: str, painted: Painted, faults: list[str]) -> None:
    """Open a page, and note when the last of its largest pieces was painted."""
    page.goto(path, wait_until="networkidle")
    time = page.evaluate(MAX_PAINT)
    if time is None:
        faults.append(f"{painted.name} said no largest paint")
    else:
        painted.times.append(float(time))
