"""Bodies are refused by their head: nothing of what is too long, or comes from a stranger, is read."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client, RequestFactory
from django.test.client import FakePayload

from inspector.accounts.models import Membership
from inspector.intake.models import Delivery
from tests.inspector.conftest import Cast

pytestmark = pytest.mark.django_db

LONG = 400_000_000


class Unread(FakePayload):
    """A body that must not be read."""

    def read(self, *args: Any, **names: Any) -> bytes:
        """Fail the test."""
        raise AssertionError("the body was read")


def post_unread(client: Client, path: str, **extra: Any) -> Any:
    form = "multipart/form-data; boundary=x"
    environ = {"wsgi.input": Unread(b""), "CONTENT_LENGTH": str(LONG), "CONTENT_TYPE": form, **extra}
    return client.post(path, **environ)


@pytest.mark.parametrize("path", ["/sign-in/", "/nothing/of/the/kind", "/api/v1/decode", "/w/acme/settings/"])
def test_a_long_body_is_refused_unread(path: str) -> None:
    environ = RequestFactory().post(path).environ
    response = post_unread(Client(enforce_csrf_checks=True), path)
    assert response.status_code == 413, environ
    if path.startswith("/api/"):
        assert response["Content-Type"] == "application/problem+json"
        assert response.json()["status"] == 413


def test_a_stranger_s_body_is_not_read_where_long_ones_are_taken(cast: Cast, sign_in: Callable[..., Client]) -> None:
    assert post_unread(Client(), "/api/v1/messages").status_code == 401
    address = f"/w/{cast.workspace.slug}/upload/"
    assert post_unread(Client(enforce_csrf_checks=True), address).status_code == 302
    assert post_unread(sign_in(cast.stranger), address).status_code == 404
    assert post_unread(sign_in(cast.viewer), address).status_code == 403


def test_what_waits_is_bounded(cast: Cast, token: str, sign_in: Callable[[Membership], Client], settings: Any) -> None:
    settings.LIMITS = settings.LIMITS | {"waiting_bytes": 10}
    client = sign_in(cast.auditor)
    address = f"/w/{cast.workspace.slug}/upload/"

    def upload() -> Any:
        return client.post(address, {"logs": io.BytesIO(b"ten bytes and more\n"), "channel": "main"})

    assert upload().status_code in (200, 201, 302)
    assert Delivery.objects.filter(state=Delivery.State.STAGED).count() == 1
    refused = upload()
    assert (refused.status_code, refused["Retry-After"]) == (503, "60")
    assert b"load or throw away what waits" in refused.content
    said = post_unread(Client(), "/api/v1/messages", HTTP_AUTHORIZATION=f"Bearer {token}")
    assert (said.status_code, said["Retry-After"]) == (503, "60")
    assert Delivery.objects.count() == 1
