"""The API's manual is shown by scripts of our own alone, and breaches no policy."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from .conftest import Open

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_manual_shows_every_operation(open_page: Open, live_server: Any) -> None:
    page = open_page(None, "/api/docs/")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    expect(page.get_by_text("/api/v1/deliveries/{delivery_id}/withdrawal").first).to_be_visible(timeout=30_000)
    expect(page.get_by_text("/api/v1/messages", exact=True).first).to_be_visible()
    assert asked
    assert all(address.startswith((live_server.url, "data:", "blob:")) for address in asked)
