"""A sign-in that fails is an entry of the trail with the name that was tried and the address it came from."""

from __future__ import annotations

import logging

import pytest
from django.test import Client

from inspector.trail.models import Deed

from ..conftest import Cast

PASSWORD = "not-the-right-one-9137"


def try_to_sign_in(name: str) -> None:
    answer = Client().post("/sign-in/", {"username": name, "password": PASSWORD}, REMOTE_ADDR="198.51.100.7")
    assert answer.status_code == 422


def test_a_members_failed_sign_in_is_in_the_trail_of_their_workspace_alone(cast: Cast) -> None:
    try_to_sign_in("vera")
    entry = Deed.objects.get(code="account.refused")
    assert (entry.workspace_id, entry.object_label, entry.address) == (cast.workspace.pk, "vera", "198.51.100.7")
    assert entry.told == "The product refused to sign in the account “vera”"


@pytest.mark.parametrize("name", ["nobody", "nul\x00name", "x" * 150])
def test_a_name_that_nobody_has_is_in_the_trail_of_the_oldest_workspace(cast: Cast, name: str) -> None:
    try_to_sign_in(name)
    entry = Deed.objects.filter(code="account.refused").last()
    # A form may refuse a name before anything is asked: then no sign-in was tried.
    assert entry is None if "\x00" in name else entry is not None and entry.workspace_id == cast.workspace.pk


def test_neither_trail_nor_log_keeps_the_password(cast: Cast, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        try_to_sign_in("vera")
    assert "sign-in failed for 'vera' from 198.51.100.7" in caplog.text
    entry = Deed.objects.get(code="account.refused")
    assert PASSWORD not in caplog.text + str(vars(entry))
