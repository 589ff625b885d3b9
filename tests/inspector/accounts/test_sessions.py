"""Who a session belongs to is asked anew at each request, with what they may enter, in one statement."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from inspector.accounts import services
from inspector.accounts.models import Role
from inspector.accounts.sessions import SessionBackend, recall_memberships

from ..conftest import Cast, make_user

pytestmark = pytest.mark.django_db
PAGE = "/w/acme/translator/"


def test_a_person_comes_with_their_memberships_in_one_statement(cast: Cast) -> None:
    services.add_member(workspace=cast.stranger.workspace, user=cast.viewer.user, role=Role.VIEWER)
    with CaptureQueriesContext(connection) as asked:
        user = SessionBackend().get_user(cast.viewer.user_id)
        known = [(each.workspace.slug, each.role, each.user is user) for each in recall_memberships(user)]
    assert known == [("acme", "viewer", True), ("other", "viewer", True)]
    assert len(asked) == 1
    nobody = SessionBackend().get_user(make_user("nina").pk)
    assert recall_memberships(nobody) == []
    assert SessionBackend().get_user(0) is None
    assert SessionBackend().authenticate(None, username="vera", password="") is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "backend", ["inspector.accounts.sessions.SessionBackend", "django.contrib.auth.backends.ModelBackend"]
)
def test_who_is_taken_out_is_out_at_the_next_request(cast: Cast, backend: str) -> None:
    client = Client()
    client.force_login(cast.viewer.user, backend=backend)
    assert client.get(PAGE).status_code == 200
    services.remove_member(membership=cast.viewer)
    assert client.get(PAGE).status_code == 404


def test_a_session_ends_with_its_person_and_with_their_password(cast: Cast, sign_in: Callable[..., Client]) -> None:
    user, client = cast.auditor.user, sign_in(cast.auditor)
    assert client.get(PAGE).status_code == 200
    user.is_active = False
    user.save()
    assert client.get(PAGE).status_code == 302
    user.is_active = True
    user.save()
    assert client.get(PAGE).status_code == 200
    user.set_password("correct horse battery staple")
    user.save()
    answer = client.get(PAGE)
    assert answer.status_code == 302
    assert isinstance(answer.wsgi_request.user._wrapped, AnonymousUser)  # type: ignore[union-attr]
