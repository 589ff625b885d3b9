"""A session ends when nobody uses it, and a set time after its sign-in however much it is used."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.conf import LazySettings
from django.http import QueryDict
from django.test import Client

from inspector.accounts import sessions
from inspector.accounts.models import Session
from inspector.pages import live

from ..conftest import Cast

pytestmark = pytest.mark.django_db
Wait = Callable[[float], None]
SignIn = Callable[..., Client]
PAGE = "/w/acme/translator/"
LIVE = "/w/acme/live/"


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Wait:
    """Let minutes pass for sessions."""
    passed = [0.0]

    def later(minutes: float) -> None:
        passed[0] += minutes * 60

    now = time.time
    monkeypatch.setattr(sessions, "time", SimpleNamespace(time=lambda: now() + passed[0], monotonic=time.monotonic))
    return later


def test_a_session_ends_when_idle(cast: Cast, sign_in: SignIn, settings: LazySettings, wait: Wait) -> None:
    settings.SESSION_IDLE_MINUTES = 30
    client = sign_in(cast.auditor)
    for _ in range(3):
        wait(29)
        assert client.get(PAGE).status_code == 200
    wait(31)
    assert client.get(PAGE).status_code == 302
    assert not Session.objects.exists()


def test_what_an_open_page_asks_by_itself_is_no_use(
    cast: Cast, sign_in: SignIn, settings: LazySettings, wait: Wait
) -> None:
    settings.SESSION_IDLE_MINUTES = 30
    client = sign_in(cast.auditor)
    wait(20)
    assert client.get(LIVE).status_code != 302
    wait(20)
    assert client.get(PAGE).status_code == 302


def test_a_session_in_use_ends_too(cast: Cast, sign_in: SignIn, settings: LazySettings, wait: Wait) -> None:
    settings.SESSION_IDLE_MINUTES, settings.SESSION_HOURS = 50, 1
    client = sign_in(cast.auditor)
    wait(40)
    assert client.get(PAGE).status_code == 200
    wait(21)
    assert client.get(PAGE).status_code == 302


def test_the_event_stream_hears_no_more_either(cast: Cast, sign_in: SignIn, settings: LazySettings, wait: Wait) -> None:
    settings.SESSION_IDLE_MINUTES = 30
    key = sign_in(cast.auditor).cookies[settings.SESSION_COOKIE_NAME].value
    ear = live.Ear(session_key=key, slug="acme", given=QueryDict())
    assert live._find_reader(ear) == cast.auditor
    wait(31)
    assert live._find_reader(ear) is None
