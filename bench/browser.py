"""A chain of replies in a real browser: the longest frame of every view, how heavy its pages are, how soon they come.

The chain comes in by the import command and is settled by the worker; chromium then opens each view at its beginning,
in its middle and at its end, goes through windows by the links that a person follows, and scrolls each to its end. A
frame is the time between two calls of `requestAnimationFrame` while it scrolls; what the browser calls a long task,
loading and laying out included, counts as one too. On a machine that does other things at the same time both say more
of these than of the page: the longest task by the processor time of its own thread stands beside them. The measuring
needs the development requirements.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import quantiles
from typing import TYPE_CHECKING, Any, Final

from inspector.embedded.state import PROJECT

from .installation import Installation, choose_environment
from .measure import Goal, Row

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
