"""A real browser on the real pages: Debian's chromium, driven by playwright.

Where there is no chromium the tests are skipped with the reason, but with CI=true they fail: a check that silently
does not run proves nothing. Whatever the console complains about, a breach of the content security policy included,
fails the test that caused it. With INSPECTOR_SCREENSHOTS=folder the tests of accessibility leave their pictures there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from inspector.accounts.models import Membership
from inspector.accounts.sessions import BACKEND
from tests.inspector.conftest import Cast, cast

__all__ = ["cast"]  # The live server makes its database transactional: what it holds is committed.

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


# How long something may take to show: patience with a busy machine, and no measure of the product.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        reason = f"there is no browser at {CHROMIUM}: install chromium, or name another by CHROMIUM"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    # Playwright runs an event loop in this thread, in which Django's database guard would refuse to work.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield running
        running.close()
        # While the loop runs this thread has a connection of its own for it. Kept to the next test of a browser, it
        # would be found broken there if a test in between had ended all sessions.
        connections.close_all()
    for thread in threading.enumerate():
        if "process_request_thread" in thread.name:
            thread.join(timeout=10)
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


Open = Callable[..., Page]


@pytest.fixture
def forgiven() -> set[str]:
    """Words of complaints that a test provokes on purpose."""
    return set()


@pytest.fixture
def open_page(browser: Browser, live_server: Any, cast: Cast, forgiven: set[str]) -> Iterator[Open]:
    """Open a page for a member: `open_page(membership, path, width=…, theme=…, has_script=…)`."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def enter(
        membership: Membership | None, path: str, *, width: int = 1280, theme: str = "light", has_script: bool = True
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,  # type: ignore[arg-type]
            java_script_enabled=has_script,
            base_url=live_server.url,
        )
        contexts.append(context)
        if membership is not None:
            context.add_cookies(
                [{"name": settings.SESSION_COOKIE_NAME, "value": sign_in(membership), "url": live_server.url}]
            )
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path)
        return page

    yield enter
    for context in contexts:
        context.close()
    assert [said for said in complaints if not any(words in said for words in forgiven)] == []


def at(name: str, *things: object) -> str:
    """The address of a page of the workspace, and of the things that it names."""
    return reverse(f"pages:{name}", args=["acme", *things])


def wait_for_rest(page: Page) -> None:
    """Until the scripts of the page in sight have run and nothing is on its way.

    A page shows its text before its scripts listen: a key or a click that comes in between is lost. After a click that
    leads elsewhere, expect something of the new page first.
    """
    page.wait_for_load_state()
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling, .htmx-added")).to_have_count(0)


def sign_in(membership: Membership) -> str:
    """The key of a session of this member."""
    client = Client()
    client.force_login(membership.user, backend=BACKEND)
    assert isinstance(client.session, SessionStore)
    key = client.session.session_key
    assert key is not None
    return key
