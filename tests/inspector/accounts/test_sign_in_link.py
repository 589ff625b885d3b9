"""`manage.py sign_in_link` prints a link that signs in once, and adds a person where a role is given."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from inspector.accounts.models import Membership
from inspector.accounts.services import ensure_first_workspace
from inspector.embedded.state import open_state

from ..conftest import use_link

pytestmark = pytest.mark.django_db


def print_link(*arguments: str) -> str:
    out = StringIO()
    call_command("sign_in_link", *arguments, "--url", "", stdout=out)
    return out.getvalue().strip()


def test_the_owner_signs_in_by_it() -> None:
    ensure_first_workspace()
    link = print_link()
    assert link.startswith("/sign-in-link/#")
    assert use_link(Client(), link).status_code == 200
    assert use_link(Client(), link, confirm="").status_code == 302
    assert use_link(Client(), link).status_code == 410


def test_a_new_auditor_is_added_with_a_role() -> None:
    ensure_first_workspace()
    assert print_link("ada", "--role", "auditor")
    assert Membership.objects.get(user__username="ada").role == "auditor"


def test_nobody_is_added_without_a_role() -> None:
    ensure_first_workspace()
    with pytest.raises(CommandError, match="nobody named"):
        print_link("ada")


def test_it_leads_to_where_the_installation_of_this_folder_serves(settings: Any, tmp_path: Path) -> None:
    ensure_first_workspace()
    settings.STATE_DIR = tmp_path / "state"

    def print_address() -> str:
        out = StringIO()
        call_command("sign_in_link", stdout=out)
        return out.getvalue().partition("/sign-in-link/")[0]

    assert print_address() == "http://127.0.0.1:8000"
    state = open_state(settings.STATE_DIR)
    assert print_address() == "http://127.0.0.1:8000", "it is not known yet"
    state.describe_holder(url="http://127.0.0.1:8765/")
    assert print_address() == "http://127.0.0.1:8765"
    state.release()
    assert print_address() == "http://127.0.0.1:8000", "it has ended"
