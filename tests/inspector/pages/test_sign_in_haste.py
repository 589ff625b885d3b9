"""Sign-ins come at a bounded pace from one address, and a bounded number of passwords is hashed at a time."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from inspector.pages.settings import haste

pytestmark = pytest.mark.django_db


def try_to_enter(address: str, name: str = "nobody") -> Any:
    return Client(REMOTE_ADDR=address).post("/sign-in/", {"username": name, "password": "wrong but long enough"})


def test_an_address_that_tries_too_often_waits_whatever_the_name(settings: Any) -> None:
    settings.LIMITS = settings.LIMITS | {"sign_ins_per_minute": 3}
    assert [try_to_enter("192.0.2.1", f"name-{number}").status_code for number in range(3)] == [422] * 3
    refused = try_to_enter("192.0.2.1", "another")
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 20
    assert b"Too many sign-ins at once." in refused.content
    assert try_to_enter("192.0.2.2").status_code == 422


def test_who_waits_too_long_for_a_hash_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(haste, "PATIENCE_SECONDS", 0.05)
    for _ in range(haste.MOST_HASHES):
        assert haste._hashes.acquire(blocking=False)
    try:
        refused = try_to_enter("192.0.2.3")
    finally:
        haste._hashes.release(haste.MOST_HASHES)
    assert (refused.status_code, refused["Retry-After"]) == (429, "5")
    assert try_to_enter("192.0.2.3").status_code == 422
