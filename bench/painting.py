"""Every page of a workspace in a real browser: when its largest piece is painted, and how heavy its HTML is.

A log of mixed dialects and a long trace are taken in by the product, and one of each thing is made that an address can
name. Every address of the product that answers with a page is then opened several times by chromium as its owner; what
is measured is the largest contentful paint as the browser says it, counted from the click, the parts that a page asks
for afterwards included. The measuring needs the development requirements.
"""

from __future__ import annotations

import statistics
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from .browser import CHROMIUM, FLAGS, SIZE, make_chain, sign_in
from .installation import Installation
from .logs import Log
from .measure import Goal, Row
from .product import Product, enter_product

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

PAINT: Final = Goal("paint", "{page}: largest contentful paint, ms", 1000, 500, is_share=True)
WEIGHT: Final = Goal("paint", "{page}: HTML, kB", 300, 150, is_share=True)
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
        yield Row(_fill(PAINT, "named pages"), None, remark="; ".join(faults)[:500] or "no page was opened")
        return
    slow, heavy = sorted(found, key=lambda one: -one.middle), sorted(found, key=lambda one: -one.size)
    told = ", ".join(f"{each.name} {each.middle:.0f}" for each in slow[:NAMED])
    yield _row(f"slowest of {len(found)} named pages", slow[0], told)
    yield Row(_fill(PAINT, "the middle one of them"), statistics.median(each.middle for each in found))
    told = ", ".join(f"{each.name} {each.size / 1000:.0f}" for each in heavy[:NAMED])
    yield Row(_fill(WEIGHT, "heaviest of them"), heavy[0].size / 1000, remark=told)
    yield from (_row(each.name, each, "") for each in slow[1:] if each.middle > PAINT.required)
    yield from (Row(_fill(WEIGHT, each.name), each.size / 1000) for each in heavy[1:] if each.size > 300_000)


def _row(page: str, painted: Painted, remark: str) -> Row:
    return Row(_fill(PAINT, page), painted.middle, low=min(painted.times), high=max(painted.times), remark=remark)


def _fill(goal: Goal, page: str) -> Goal:
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
