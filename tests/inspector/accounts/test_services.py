"""Accounts: keys shown once and hashed, links that sign in once, a workspace that keeps an owner."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from inspector.accounts import selectors, services
from inspector.accounts.models import ApiKey, Role, SignInLink

from ..conftest import Cast, make_user

pytestmark = pytest.mark.django_db


def test_a_token_is_found_and_never_stored(cast: Cast) -> None:
    key, token = services.create_api_key(workspace=cast.workspace, name="robot", scopes=["ingest"])
    assert selectors.find_api_key(token=token) == key
    stored = " ".join(str(value) for value in ApiKey.objects.filter(pk=key.pk).values_list()[0])
    assert token.rpartition("_")[2] not in stored
    assert token.encode() not in bytes(key.digest)


@pytest.mark.parametrize("state", ["revoked", "expired", "off"])
def test_an_unusable_token_is_not_found(cast: Cast, state: str) -> None:
    expires = timezone.now() - timedelta(seconds=1) if state == "expired" else None
    key, token = services.create_api_key(workspace=cast.workspace, name="robot", scopes=["ingest"], expires_at=expires)
    if state == "revoked":
        services.revoke_api_key(key=key)
    if state == "off":
        token = token[:-1] + ("0" if token[-1] != "0" else "1")
    assert selectors.find_api_key(token=token) is None


@pytest.mark.parametrize(("name", "scopes"), [("", ["read"]), ("k", []), ("k", ["write"])])
def test_a_key_needs_a_name_and_known_scopes(cast: Cast, name: str, scopes: list[str]) -> None:
    with pytest.raises(ValidationError):
        services.create_api_key(workspace=cast.workspace, name=name, scopes=scopes)


def test_a_key_takes_no_channel_of_another_workspace(cast: Cast) -> None:
    channel = cast.stranger.workspace.channels.get()
    with pytest.raises(ValidationError):
        services.create_api_key(workspace=cast.workspace, name="k", scopes=["read"], channel=channel)


def test_a_sign_in_link_works_once(cast: Cast) -> None:
    token = services.create_sign_in_link(user=cast.owner.user)
    assert token.encode() not in bytes(SignInLink.objects.get().digest)
    link = services.use_sign_in_link(token=token)
    assert link is not None
    assert link.user == cast.owner.user
    assert services.use_sign_in_link(token=token) is None


def test_a_new_sign_in_link_ends_the_older(cast: Cast) -> None:
    older = services.create_sign_in_link(user=cast.owner.user)
    services.create_sign_in_link(user=cast.owner.user)
    assert services.use_sign_in_link(token=older) is None


def test_an_expired_sign_in_link_is_refused(cast: Cast) -> None:
    token = services.create_sign_in_link(user=cast.owner.user, lasts=timedelta(seconds=-1))
    assert services.use_sign_in_link(token=token) is None


def test_the_last_owner_stays(cast: Cast) -> None:
    with pytest.raises(ValidationError):
        services.add_member(workspace=cast.workspace, user=cast.owner.user, role=Role.VIEWER)
    with pytest.raises(ValidationError):
        services.remove_member(membership=cast.owner)
    second = make_user("second")
    services.add_member(workspace=cast.workspace, user=second, role=Role.OWNER)
    services.remove_member(membership=cast.owner)
    assert selectors.find_membership(user=cast.owner.user, slug="acme") is None


def test_a_stranger_has_no_membership(cast: Cast) -> None:
    assert selectors.find_membership(user=cast.stranger.user, slug="acme") is None
    assert selectors.find_membership(user=cast.stranger.user, slug="nowhere") is None


def test_the_first_workspace_is_made_once(db: None) -> None:
    assert services.ensure_first_workspace() == services.ensure_first_workspace()


@pytest.mark.parametrize("name", ["", " a", "x" * 65, "a\nb", "a\u202eb"])
def test_a_channel_has_a_plain_name(cast: Cast, name: str) -> None:
    with pytest.raises(ValidationError):
        services.ensure_channel(workspace=cast.workspace, name=name)
