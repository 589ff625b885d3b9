"""Takes the README's pictures from the running product: `.venv/bin/python docs/take_pictures.py`.

It starts everything in an empty state folder of its own, waits for the samples, signs in with the link that is printed,
and opens the conversation of the story. It needs the development requirements, and a chromium (CHROMIUM names another).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PROJECT = Path(__file__).resolve().parent.parent
IMAGES = PROJECT / "docs" / "images"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
SIZE = {"width": 1280, "height": 1000}
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
        command = [sys.executable, "-m", "inspector.embedded", "--port", "0"]
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
    """From the list of conversations to the story's."""
    row = page.get_by_role("row").filter(has_text=re.compile(rf"\b(?<!-){STORY}\b")).first
    row.get_by_role("link").first.click()
    page.wait_for_load_state("networkidle")


def scroll_to(page: Page, text: str) -> None:
    """Let the first message with this text stand below the page's head."""
    box = page.get_by_text(text).first.bounding_box()
    top = (box["y"] if box else 0) + page.evaluate("window.scrollY") - 190
    page.evaluate("(top) => window.scrollTo(0, top)", top)


def take_pictures(link: str) -> None:
    """The story's tree in the light theme, its timeline at the failure in the dark one."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(link)
        if "/sign-in/" in page.url:
            page.locator("form button").first.click()
            page.wait_for_load_state()
        open_story(page)
        page.screenshot(path=IMAGES / "conversation-light.png")
        page.emulate_media(color_scheme="dark")
        page.get_by_role("link", name="Timeline").click()
        page.wait_for_load_state("networkidle")
        scroll_to(page, FAILURE)
        page.screenshot(path=IMAGES / "conversation-dark.png")
        browser.close()


def main() -> None:
    """Start, take, stop."""
    with run_product() as link:
        take_pictures(link)
    for path in sorted(IMAGES.glob("*.png")):
        print(f"{path.relative_to(PROJECT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
