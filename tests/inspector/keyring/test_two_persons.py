"""Keys that a second owner has to release, and keys that expire."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inspector import worker
from inspector.accounts.models import Membership, Role, User
from inspector.keyring.models import EscrowedKey, KeyEvent
from inspector.keyring.services import release_key, set_two_for_keys
from inspector.threads.models import Message, OpenedMessage
from inspector.trail.models import Deed
from tests.inspector.conftest import Cast, resolve_all

from .conftest import SAMPLE_KEY, WORDS, add

pytestmark = pytest.mark.django_db


@pytest.fixture
def second(cast: Cast) -> Membership:
    user = User.objects.create_user("otto")
    return Membership.objects.create(workspace=cast.workspace, user=user, role=Role.OWNER)


def test_a_key_opens_nothing_before_a_second_owner_releases_it(
    cast: Cast, sealed: list[Message], second: Membership, owner: Client, sign_in: Callable[[Membership], Client]
) -> None:
    set_two_for_keys(cast.workspace, cast.owner, is_required=True)
    key = add(cast)
    message = reverse("pages:message", args=["acme", sealed[0].pk])
    keyring = reverse("pages:keyring", args=["acme"])
    release = reverse("pages:release-escrowed-key", args=["acme", key.pk])
    assert not OpenedMessage.objects.exists()
    assert "waits for a second owner" in owner.get(keyring).content.decode()
    assert release not in owner.get(keyring).content.decode()
    refused = owner.post(release, follow=True).content.decode()
    assert "The owner who added a key cannot release it" in refused
    resolve_all()
    assert not OpenedMessage.objects.exists()

    other = sign_in(second)
    assert release in other.get(keyring).content.decode()
    assert "are being tried now" in other.post(release, follow=True).content.decode()
    resolve_all()
    assert WORDS[0] in other.get(message).content.decode()
    assert "released by otto" in owner.get(keyring).content.decode()
    assert KeyEvent.objects.filter(kind="released", by=second.user).count() == 1
    assert Deed.objects.filter(code="key.released").count() == 1
    assert "does not wait for a release" in other.post(release, follow=True).content.decode()


def test_only_an_owner_releases(cast: Cast, sealed: list[Message], second: Membership, auditor: Client) -> None:
    set_two_for_keys(cast.workspace, cast.owner, is_required=True)
    key = add(cast)
    assert auditor.post(reverse("pages:release-escrowed-key", args=["acme", key.pk])).status_code == 403
    with pytest.raises(PermissionDenied):
        release_key(membership=cast.auditor, key=key)
    assert not EscrowedKey.objects.in_force().exists()


def test_what_waits_goes_on_waiting_when_two_are_needed_no_more(
    cast: Cast, sealed: list[Message], second: Membership
) -> None:
    set_two_for_keys(cast.workspace, cast.owner, is_required=True)
    add(cast)
    set_two_for_keys(cast.workspace, cast.owner, is_required=False)
    resolve_all()
    assert not OpenedMessage.objects.exists()
    assert [deed.code for deed in Deed.objects.filter(code__endswith="for-keys").order_by("sequence")] == [
        "workspace.two-for-keys",
        "workspace.one-for-keys",
    ]


def test_one_owner_alone_cannot_lock_everybody_out(cast: Cast) -> None:
    with pytest.raises(ValidationError, match="one owner"):
        set_two_for_keys(cast.workspace, cast.owner, is_required=True)


def test_the_switch_is_on_the_settings_page_for_owners(
    cast: Cast, second: Membership, owner: Client, auditor: Client
) -> None:
    change = reverse("pages:change-workspace", args=["acme"])
    assert auditor.post(change, {"action": "two-for-keys"}).status_code == 403
    assert (
        "until a second owner releases them"
        in owner.post(change, {"action": "two-for-keys"}, follow=True).content.decode()
    )
    cast.workspace.refresh_from_db()
    assert cast.workspace.releases_keys_by_two


def test_an_expired_key_opens_nothing_at_once_and_is_removed(cast: Cast, sealed: list[Message], owner: Client) -> None:
    key = add(cast)
    message = reverse("pages:message", args=["acme", sealed[0].pk])
    assert WORDS[0] in owner.get(message).content.decode()
    EscrowedKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert WORDS[0] not in owner.get(message).content.decode(), "also before it is removed"
    worker.sweep()
    assert not EscrowedKey.objects.exists()
    assert not OpenedMessage.objects.exists()
    assert [(event.kind, event.by) for event in KeyEvent.objects.order_by("at", "id")][-1] == ("expired", None)
    assert Deed.objects.filter(code="key.expired").count() == 1
    assert "whose time was over" in owner.get(reverse("pages:keyring", args=["acme"])).content.decode()


def test_a_key_is_added_with_the_day_on_which_it_expires(cast: Cast, owner: Client) -> None:
    keyring = reverse("pages:keyring", args=["acme"])
    said = {"kind": "x25519", "key": SAMPLE_KEY["private"], "written": "base64", "label": "for a week"}
    for wrong in ("2020-01-01", "9999-12-31", "soon"):
        refused = owner.post(keyring, {**said, "expires": wrong})
        assert refused.status_code == 422
        assert not EscrowedKey.objects.exists()
    day = timezone.now().date() + timedelta(days=7)
    owner.post(keyring, {**said, "expires": day.isoformat()})
    expires_at = EscrowedKey.objects.get().expires_at
    assert expires_at is not None
    assert expires_at.isoformat() == f"{day + timedelta(days=1)}T00:00:00+00:00"
    assert "expires" in owner.get(keyring).content.decode()


@pytest.mark.django_db(transaction=True)
def test_what_the_audit_log_cannot_record_is_not_switched(
    cast: Cast, second: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no record")

    monkeypatch.setattr("inspector.accounts.workspaces.record_deed", refuse)
    with pytest.raises(RuntimeError, match="no record"):
        set_two_for_keys(cast.workspace, cast.owner, is_required=True)
    cast.workspace.refresh_from_db()
    assert not cast.workspace.releases_keys_by_two
