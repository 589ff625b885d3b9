"""Links that sign in and invitations, followed in a real browser, which sends origins and cookies as browsers do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from inspector.accounts.services import create_sign_in_link
from inspector.accounts.workspaces import invite_member

from ..inspector.conftest import Cast

pytestmark = pytest.mark.long(seconds=5)

PASSWORD = "a long walk by the sea"


def test_a_link_signs_in_by_its_button(open_page: Any, cast: Cast) -> None:
    asked: list[str] = []
    token = create_sign_in_link(user=cast.owner.user)
    page: Page = open_page(None, reverse("pages:sign-in-link"))
    page.on("request", lambda request: asked.append(f"{request.url} {request.headers}"))
    # Of a page that is open already only what stands behind the "#" changes.
    page.goto(f"{reverse('pages:sign-in-link')}#{token}")
    page.get_by_role("button", name="Sign in as olivia").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert any("/sign-in-link/" in each for each in asked)
    assert token not in "".join(asked)


@pytest.mark.parametrize("paste", [str, lambda link: link.partition("#")[2]], ids=["link", "code"])
def test_without_script_the_link_or_its_code_is_pasted(open_page: Any, cast: Cast, paste: Callable[[str], str]) -> None:
    link = f"{reverse('pages:sign-in-link')}#{create_sign_in_link(user=cast.owner.user)}"
    page: Page = open_page(None, link, has_script=False)
    page.get_by_label("Code").fill(paste(link))
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Sign in as olivia").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_an_invitation_is_accepted_by_somebody_new(open_page: Any, cast: Cast) -> None:
    _, token = invite_member(workspace=cast.workspace, name="nadia", role="viewer")
    page: Page = open_page(None, f"{reverse('pages:invitation')}#{token}", width=360)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account and join").click()
    expect(page.get_by_text("You are viewer of Acme now")).to_be_visible()
