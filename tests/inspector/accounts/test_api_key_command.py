"""`manage.py api_key`: keys of a workspace, made and revoked by whoever holds the machine."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from inspector.accounts.models import ApiKey
from inspector.accounts.selectors import find_api_key
from inspector.trail.models import Deed
from tests.inspector.conftest import Cast

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("api_key", *arguments, stdout=out)
    return out.getvalue()


def test_the_printed_key_posts_a_message(cast: Cast) -> None:
    token = run("create", "acme", "collector").strip()
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().post(
        "/api/v1/messages", "a line\n", content_type="text/plain", headers=headers, query_params={"channel": "main"}
    )
    assert answer.status_code == 202
    key = ApiKey.objects.get(name="collector")
    assert (key.scopes, key.agents, key.channel, key.expires_at, key.created_by) == (["ingest"], [], None, None, None)
    deed = Deed.objects.get(code="api-key.made", details__scopes=["ingest"])
    assert (deed.actor_kind, token in str(vars(deed))) == ("operator", False)


def test_a_key_is_bound_as_it_is_asked_for(cast: Cast) -> None:
    asked = "--scope ingest --scope read --agent ada --channel night --days 30 --member olivia"
    run("create", "acme", "planner", *asked.split())
    key = ApiKey.objects.select_related("channel", "created_by").get(name="planner")
    assert (key.scopes, key.agents) == (["ingest", "read"], ["ada"])
    assert str(key.channel) == "night"
    assert key.created_by == cast.owner.user
    assert key.expires_at is not None
    assert timedelta(days=29) < key.expires_at - timezone.now() < timedelta(days=30)


def test_a_revoked_key_is_refused_and_listed_as_such(cast: Cast) -> None:
    token = run("create", "acme", "old\tone").strip()
    prefix = token.split("_")[1]
    assert f"{prefix}\tusable\tingest\told one\n" in run("list", "acme")
    assert find_api_key(token=token)
    assert run("revoke", "acme", prefix) == f"old\tone ({prefix}…) is refused from now on\n"
    assert find_api_key(token=token) is None
    assert f"{prefix}\trevoked\tingest\t" in run("list", "acme")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("list", "nowhere"), "there is no workspace 'nowhere'"),
        (("create", "acme", " "), "a key needs a name"),
        (("create", "acme", "x", "--days", "0"), "a key lasts a day or more, and at most 3650"),
        (("create", "acme", "x", "--member", "nobody"), "'nobody' is no member of acme"),
        (("create", "acme", "x", "--channel", "x" * 300), "channel"),
        (("revoke", "acme", "0123456789ab"), "acme has no key '0123456789ab'"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(cast: Cast, arguments: tuple[str, ...], reason: str) -> None:
    before = ApiKey.objects.count()
    with pytest.raises(CommandError, match=reason):
        run(*arguments)
    assert ApiKey.objects.count() == before
