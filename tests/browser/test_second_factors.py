"""A passkey in a real browser, whose own virtual authenticator makes it: added, then used to sign in."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.urls import reverse
from playwright.sync_api import Page, expect

from ..inspector.conftest import Cast
from .conftest import at

pytestmark = pytest.mark.long(seconds=8)

PASSWORD = "a long walk by the sea"


def plug_in(page: Page) -> None:
    """An authenticator of the browser's own, of which nobody has to touch anything."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    kind = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    session.send(
        "WebAuthn.addVirtualAuthenticator",
        {"options": {**kind, "isUserVerified": True, "automaticPresenceSimulation": True}},
    )


@pytest.fixture
def page(open_page: Any, cast: Cast) -> Page:
    """The page that asks for name and password, of an owner who has one."""
    cast.owner.user.set_password(PASSWORD)
    cast.owner.user.save()
    asking: Page = open_page(None, reverse("pages:sign-in"))
    return asking


def confirm(page: Page) -> None:
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def fill_in(page: Page, cast: Cast) -> None:
    page.get_by_label("Username").fill(cast.owner.user.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_a_passkey_is_added_and_signs_in(page: Page, cast: Cast) -> None:
    plug_in(page)
    fill_in(page, cast)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.goto(at("account"))
    page.get_by_role("link", name="Authenticator app, passkeys").click()
    page.get_by_role("link", name="Add passkey").click()
    confirm(page)
    page.get_by_label("Name").fill("Laptop")
    page.get_by_role("button", name="Add passkey").click()
    page.get_by_role("link", name="Recovery codes").click()
    page.get_by_role("button", name="Create codes").click()
    expect(page.get_by_text("they are never shown again")).to_be_visible()
    assert Authenticator.objects.get(type="webauthn").wrap().name == "Laptop"
    page.goto(at("account"))
    page.context.clear_cookies()
    page.goto(reverse("pages:sign-in"))
    fill_in(page, cast)
    page.get_by_role("button", name="Use passkey").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_a_browser_that_gives_none_is_told_so(page: Page, cast: Cast) -> None:
    fill_in(page, cast)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.goto(reverse("mfa_add_webauthn"))
    confirm(page)
    page.evaluate("() => { navigator.credentials.create = async () => { throw new Error('given up'); }; }")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_text("The browser gave no passkey")).to_be_visible()
