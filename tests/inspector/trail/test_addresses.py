"""Whose address a deed has: the socket's, and the client's only behind as many proxies as the setting names."""

from __future__ import annotations

from typing import Any

import pytest
from axes.models import AccessAttempt
from django.test import Client, RequestFactory

from inspector.intake.models import Delivery
from inspector.trail.acting import find_client_address
from inspector.trail.models import Deed

from ..conftest import Cast, deliver

SOCKET = "10.0.0.9"


@pytest.mark.parametrize(
    ("proxies", "header", "address"),
    [
        # Without the setting no header counts.
        (0, "203.0.113.7", SOCKET),
        (0, "203.0.113.7, 198.51.100.1", SOCKET),
        # What the client says of itself stands before what the proxy wrote.
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "192.0.2.66, 203.0.113.7", "203.0.113.7"),
        (2, "203.0.113.7, 10.0.0.8", "203.0.113.7"),
        (2, "192.0.2.66, 203.0.113.7, 10.0.0.8", "203.0.113.7"),
        # It did not come that way, or nothing there is an address.
        (1, None, SOCKET),
        (2, "203.0.113.7", SOCKET),
        (1, "203.0.113.7, unknown", SOCKET),
        (1, "203.0.113.7,", SOCKET),
        (1, "<script>", SOCKET),
        (1, "fe80::1%<script>", SOCKET),
        # As some proxies write it.
        (1, "203.0.113.7:4711", "203.0.113.7"),
        (1, "[2001:DB8::7]:4711", "2001:db8::7"),
        (1, "2001:db8:0::7", "2001:db8::7"),
    ],
)
def test_only_what_a_trusted_proxy_wrote_counts(settings: Any, proxies: int, header: str | None, address: str) -> None:
    settings.TRUSTED_PROXIES = proxies
    given = {} if header is None else {"HTTP_X_FORWARDED_FOR": header}
    assert find_client_address(RequestFactory().get("/", REMOTE_ADDR=SOCKET, **given)) == address


def test_behind_a_unix_socket_nothing_is_told() -> None:
    assert find_client_address(RequestFactory().get("/", REMOTE_ADDR="")) is None


@pytest.mark.django_db
@pytest.mark.parametrize(("proxies", "address"), [(0, SOCKET), (1, "203.0.113.7")])
def test_a_forged_header_changes_no_deed_no_receipt_and_no_lock(
    cast: Cast, token: str, settings: Any, proxies: int, address: str
) -> None:
    settings.TRUSTED_PROXIES = proxies
    client = Client(REMOTE_ADDR=SOCKET, HTTP_X_FORWARDED_FOR="192.0.2.66, 203.0.113.7")
    user = cast.auditor.user
    user.set_password("correct horse battery")
    user.save()
    client.post("/sign-in/", {"username": "amir", "password": "wrong"})
    assert [attempt.ip_address for attempt in AccessAttempt.objects.all()] == [address]
    client.post("/sign-in/", {"username": "amir", "password": "correct horse battery"})
    assert Deed.objects.get(code="account.signed-in").address == address
    bearer = {"Authorization": f"Bearer {token}"}
    sent = client.post("/api/v1/messages", b"hello\n", content_type="text/plain", headers=bearer)
    assert Delivery.objects.get(pk=sent.json()["delivery"]).remote_address == address
    delivery = deliver(cast, b"one\n")
    key = cast.workspace.api_keys.get()
    key.scopes, key.created_by = ["withdraw"], user
    key.save()
    said = {"reason": "a test"}
    client.post(f"/api/v1/deliveries/{delivery.pk}/withdrawal", said, content_type="application/json", headers=bearer)
    assert Deed.objects.get(code="delivery.withdrawn").address == address
