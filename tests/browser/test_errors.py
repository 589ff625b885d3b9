"""The pages of errors are looked at like any page: both themes, narrow and wide, and each leads back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open, at
from tests.browser.test_accessibility import find_faults, keep_picture
from tests.browser.test_clicks import FIND_COVERED
from tests.inspector.conftest import Cast

pytestmark = pytest.mark.long(seconds=20)

PAGES = {
    "400": "This request cannot be read",
    "403": "You do not have permission",
    "form": "This form was open too long",
    "404": "There is nothing here",
    "413": "This is too large",
    "429": "Too many attempts",
    "500": "Something went wrong",
    "503": "The database cannot be reached",
}


@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
def test_every_page_of_an_error(open_page: Open, cast: Cast, settings: Any, forgiven: set[str], width: int) -> None:
    settings.ROOT_URLCONF = "tests.browser.faults"
    forgiven.add("Failed to load resource")
    page = open_page(cast.viewer, at("account"), width=width)
    for name, words in PAGES.items():
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            answer = page.goto(f"/fault/{name}/")
            assert answer is not None
            assert answer.status == (403 if name == "form" else int(name))
            expect(page.get_by_role("heading", level=1)).to_have_text(words)
            assert find_faults(page) == [], (name, theme)
            assert page.evaluate(FIND_COVERED) == [], name
            keep_picture(page, f"error-{name}-{width}-{theme}")
        page.get_by_role("main").get_by_role("link").last.click()
        expect(page).to_have_url(re.compile("/sign-in/|/overview/"))
