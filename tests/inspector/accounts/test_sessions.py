"""A person sees their sessions and ends them; nobody ends another's, and no key of a session is shown."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import Session
from inspector.accounts.services import set_active
from inspector.accounts.sessions import name_program
from inspector.trail.models import Deed

from ..conftest import Cast

pytestmark = pytest.mark.django_db
SignIn = Callable[..., Client]
ACCOUNT = "/w/acme/account/"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


def sign_in_by_form(name: str, program: str) -> Client:
    client = Client(headers={"User-Agent": program})
    answer = client.post(reverse("pages:sign-in"), {"username": name, "password": "a long password"})
    assert answer.status_code == 302
    return client


@pytest.fixture
def clients(cast: Cast) -> tuple[Client, Client, Client]:
    user = cast.auditor.user
    user.set_password("a long password")
    user.save()
    programs = (FIREFOX, "<b>curl</b>/8.1", "")
    return tuple(sign_in_by_form(user.username, program) for program in programs)  # type: ignore[return-value]


def is_in(client: Client) -> bool:
    return client.get(ACCOUNT).status_code == 200


def prove(client: Client) -> None:
    assert client.post("/second-factor/password/", {"password": "a long password"}).status_code == 302


def read(client: Client) -> str:
    return client.get(ACCOUNT).content.decode()


def test_they_are_listed_without_their_keys(clients: tuple[Client, ...]) -> None:
    page = read(clients[0])
    assert page.count("this session") == 1
    assert "Firefox on Linux" in page
    assert "127.0.0.1" in page
    assert "<b>curl" not in page
    assert not any(key in page for key in Session.objects.values_list("session_key", flat=True))


def test_one_is_ended_or_all_others(clients: tuple[Client, ...]) -> None:
    own, second, _ = clients
    prove(own)
    ended = Session.objects.get(session_key=second.session.session_key)
    assert str(ended.public_id) in read(own)
    own.post(ACCOUNT, {"form": "sessions", "session": str(ended.public_id)})
    assert [is_in(each) for each in clients] == [True, False, True]
    own.post(ACCOUNT, {"form": "sessions"})
    assert [is_in(each) for each in clients] == [True, False, False]
    assert Deed.objects.filter(code="account.sessions-ended").count() == 2
    assert "No other session was open" in own.post(ACCOUNT, {"form": "sessions"}, follow=True).content.decode()
    assert own.post(ACCOUNT, {"form": "sessions", "session": "x"}).status_code == 404


def test_ending_them_asks_for_proof(cast: Cast, clients: tuple[Client, ...], sign_in: SignIn) -> None:
    own, *_ = clients
    asked = own.post(ACCOUNT, {"form": "sessions"})
    assert asked["Location"].startswith("/second-factor/password/")
    assert own.post(asked["Location"], {"password": "another"}).status_code == 200
    assert all(is_in(each) for each in clients)
    assert own.post(asked["Location"], {"password": "a long password"})["Location"] == ACCOUNT
    assert [is_in(each) for each in clients] == [True, False, False], "what was asked for is done then"
    # Nothing can be asked of somebody who has neither a password nor a factor: a new session is the proof.
    other, viewer = sign_in(cast.viewer), sign_in(cast.viewer)
    Session.objects.filter(user=cast.viewer.user).update(started_at=timezone.now() - timedelta(minutes=6))
    assert "Sign out and in again" in viewer.post(ACCOUNT, {"form": "sessions"}, follow=True).content.decode()
    assert is_in(other)
    assert (
        "2 sessions have ended"
        in sign_in(cast.viewer).post(ACCOUNT, {"form": "sessions"}, follow=True).content.decode()
    )
    assert not is_in(other)


def test_nobody_ends_anothers(cast: Cast, clients: tuple[Client, ...], sign_in: SignIn) -> None:
    owner = sign_in(cast.owner)
    for row in Session.objects.filter(user=cast.auditor.user):
        owner.post(ACCOUNT, {"form": "sessions", "session": str(row.public_id)})
    owner.post(ACCOUNT, {"form": "sessions", "session": str(uuid.uuid4())})
    owner.post(ACCOUNT, {"form": "sessions"})
    assert all(is_in(each) for each in clients)


def test_their_names_stay_while_they_are_used(clients: tuple[Client, ...]) -> None:
    named = re.findall(r'name="session" value="([^"]+)"', read(clients[0]))
    session = clients[1].session
    session["x"] = 1
    session.save()
    assert re.findall(r'name="session" value="([^"]+)"', read(clients[0])) == named


def test_a_new_password_and_a_deactivation_end_them(cast: Cast, clients: tuple[Client, ...]) -> None:
    old, new = "a long password", "another long one 4"
    fields = {"form": "password", "old_password": old, "new_password1": new, "new_password2": new}
    assert clients[0].post(ACCOUNT, fields).status_code == 302
    assert [is_in(each) for each in clients] == [True, False, False]
    assert Session.objects.filter(user=cast.auditor.user).count() == 1
    set_active(user=cast.auditor.user, is_active=False)
    assert not Session.objects.filter(user=cast.auditor.user).exists()


def test_signing_in_begins_another_session_and_signing_out_ends_it_for_good(cast: Cast) -> None:
    cast.auditor.user.set_password("a long password")
    cast.auditor.user.save()
    client = Client()
    said = {"username": cast.auditor.user.username, "password": "a long password"}
    keys = []
    for _ in range(2):
        client.post(reverse("pages:sign-in"), said)
        keys.append(client.cookies["sessionid"].value)
    first, second = keys
    assert first != second
    kept = Client()
    kept.cookies["sessionid"] = second
    assert is_in(kept)
    client.post(reverse("pages:sign-out"))
    assert (is_in(kept), Session.objects.filter(session_key__in=keys).exists()) == (False, False)
    # 32 of 36 characters: 165 bits. What a client makes up is no session.
    assert all(re.fullmatch("[a-z0-9]{32}", key) for key in keys)
    kept.cookies["sessionid"] = "a" * 32
    kept.post(reverse("pages:sign-in"), said)
    assert kept.cookies["sessionid"].value not in {"a" * 32, *keys}


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64) AppleWebKit/537.36 Chrome/156.0 Safari/537.36 Edg/156.0",
            "Edge on Windows",
        ),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1", "Safari on iPhone"),
        ("curl/8.1", "curl"),
        ("", "unknown program"),
    ],
)
def test_a_program_in_words(agent: str, name: str) -> None:
    assert name_program(agent) == name
