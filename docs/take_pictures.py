"""Takes the pictures that README and docs show from the running product: `make screenshots`.

It starts everything in an empty state folder of its own, waits for the samples, signs in with the link that is printed,
and goes through the story. It needs the development requirements, and a chromium (CHROMIUM names another). Pictures are
WebP, which shows text as well in a fifth of the bytes.
"""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

PROJECT = Path(__file__).resolve().parent.parent
IMAGES = PROJECT / "docs" / "images"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
SIZE = {"width": 1280, "height": 900}
QUALITY = 80
# The story's conversation by its own id, and the place in it where batch 2 fails.
STORY = "2611"
FAILURE = "tax service timeout"


@contextmanager
def run_product() -> Iterator[str]:
    """The running product, as the address of its sign-in link.

    Raises:
        RuntimeError: if it ends before it printed one.
    """
    with tempfile.TemporaryDirectory(prefix="inspector-pictures-") as folder:
        changed = {"INSPECTOR_STATE_DIR": f"{folder}/state"}
        kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "CELERY_BROKER_URL")}
        command = [sys.executable, "-m", "inspector.embedded.run", "--port", "0"]
        with subprocess.Popen(  # noqa: S603  # our own program
            command, cwd=PROJECT, env=kept | changed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as product:
            try:
                yield find_link(product)
            finally:
                product.send_signal(signal.SIGTERM)
                product.communicate(timeout=60)


def find_link(product: subprocess.Popen[str]) -> str:
    """The sign-in link among what the product prints."""
    printed = []
    for line in product.stdout or ():
        printed.append(line)
        if found := re.search(r"Open\s+(http://\S+)", line):
            return found[1]
    raise RuntimeError(f"the product ended: {''.join(printed[-5:])}")


def open_story(page: Page) -> None:
    """To the story's conversation, by its id in the palette."""
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    with page.expect_response(lambda answer: f"q={STORY}" in answer.url):
        palette.get_by_role("combobox").fill(STORY)
    palette.locator("li:has(span:text-is('conversation'))").first.click()
    page.wait_for_url("**/conversations/*-*/**")
    page.wait_for_load_state("networkidle")


def scroll_to(page: Page, text: str) -> None:
    """Let the first message with this text stand below the page's head."""
    box = page.get_by_text(text).first.bounding_box()
    top = (box["y"] if box else 0) + page.evaluate("window.scrollY") - 190
    page.evaluate("(top) => window.scrollTo(0, top)", top)


def keep(page: Page, name: str, theme: str) -> None:
    """Keep what the window shows, in a theme."""
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.wait_for_load_state("networkidle")
    session = page.context.new_cdp_session(page)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    session.detach()
    (IMAGES / f"{name}-{theme}.webp").write_bytes(base64.b64decode(taken["data"]))


def show_failure(page: Page) -> None:
    """The story along the time, where it fails."""
    page.get_by_role("link", name="Chronological").click()
    page.wait_for_load_state("networkidle")
    scroll_to(page, FAILURE)


def show_message(page: Page) -> None:
    """The failure itself, its words selected in all three panes."""
    page.goto(search(page, f'conversation:{STORY} "{FAILURE}"'))
    page.locator(".hit [data-open]").last.click()
    page.wait_for_load_state("networkidle")
    page.locator(".pane .wire [data-span]").filter(has_text=FAILURE.replace(" ", "_")).or_(
        page.locator(".pane .wire [data-span]").filter(has_text=FAILURE)
    ).first.click()
    page.locator("#selected .facts").wait_for()


def show_search(page: Page) -> None:
    """What failed or was refused, with what stands around the newest of it."""
    page.goto(search(page, "performative:failure,reject OR severity:>=warning"))
    page.wait_for_load_state("networkidle")
    page.locator(".surroundings summary").first.click()
    page.locator(".around li").first.wait_for()


def search(page: Page, query: str) -> str:
    """The address of a search in the workspace of this page."""
    start = re.match(r"(https?://[^/]+/w/[^/]+/)", page.url)
    return f"{start[1] if start else page.url}search/?{urlencode({'q': query})}"


def go_to(name: str) -> Callable[[Page], None]:
    """Follow an entry of the navigation."""

    def follow(page: Page) -> None:
        page.get_by_role("navigation", name="Main").get_by_role("link", name=name).click()
        page.wait_for_load_state("networkidle")

    return follow


def go_to_view(name: str) -> Callable[[Page], None]:
    """The story, in one of its views."""

    def follow(page: Page) -> None:
        go_to("Conversations")(page)
        open_story(page)
        page.get_by_role("navigation", name="Views of this conversation").get_by_role("link", name=name).click()
        page.wait_for_load_state("networkidle")

    return follow


def verify_everything(page: Page) -> None:
    """The ledger, and that all of it holds."""
    go_to("Integrity")(page)
    page.get_by_role("button", name="Verify now").click()
    page.get_by_text("Everything is as it was entered and signed").wait_for()


# Picture, theme, and how one comes to it from the picture before.
PICTURES: tuple[tuple[str, str, Callable[[Page], None]], ...] = (
    ("conversation", "light", open_story),
    ("conversation", "dark", show_failure),
    ("message", "light", show_message),
    ("search", "light", show_search),
    ("sequence", "dark", go_to_view("Sequence")),
    ("trace", "light", go_to_view("Tree")),
    ("overview", "light", go_to("Overview")),
    ("integrity", "light", verify_everything),
)


def take_pictures(link: str) -> None:
    """All of them, one after the other."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(link)
        page.get_by_role("button", name="Sign in as").click()
        page.wait_for_load_state()
        go_to("Conversations")(page)
        for name, theme, show in PICTURES:
            show(page)
            keep(page, name, theme)
        browser.close()


def main() -> None:
    """Start, take, stop."""
    with run_product() as link:
        take_pictures(link)
    for path in sorted(IMAGES.glob("*.webp")):
        print(f"{path.relative_to(PROJECT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
