"""Members and accounts: invitations that are shown once, roles, the last owner, a password, a time zone; channels."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import Membership, Role, User
from inspector.accounts.services import ensure_channel
from tests.inspector.conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db
PASSWORD = "a long walk by the sea"


def invite(owner: Client, name: str, role: str = "auditor") -> tuple[int, str]:
    """The status and the page."""
    said = {"member-name": name, "member-role": role}
    response = owner.post(reverse("pages:invite", args=["acme"]), said, follow=True)
    return response.status_code, response.content.decode()


def test_somebody_new_comes_by_a_link_and_chooses_a_password(owner: Client, cast: Cast) -> None:
    status, page = invite(owner, "nadia", "viewer")
    link = re.search(r'id="invitation">([^<]+)<', page)
    assert (status, link is not None) == (201, True)
    assert Membership.objects.get(user__username="nadia").role == Role.VIEWER
    assert "/sign-in/" not in owner.get(reverse("pages:settings", args=["acme"])).content.decode()
    nadia = Client()
    assert nadia.get(link[1].removeprefix("http://testserver")).status_code == 302  # type: ignore[index]
    account = reverse("pages:account", args=["acme"])
    assert "Choose a password to come back" in nadia.get(account).content.decode()
    said = {"form": "password", "new_password1": PASSWORD, "new_password2": PASSWORD}
    assert "is in force" in nadia.post(account, said, follow=True).content.decode()
    assert nadia.get(account).status_code == 200
    again = Client().post(reverse("pages:sign-in"), {"username": "nadia", "password": PASSWORD}, follow=True)
    assert again.context["user"].get_username() == "nadia"


def test_nobody_gets_a_link_for_a_person_who_has_an_account(owner: Client, cast: Cast) -> None:
    stranger = cast.stranger.user
    status, page = invite(owner, stranger.get_username())
    assert (status, "signs in as before" in page) == (200, True)
    assert 'id="invitation"' not in page
    member = Membership.objects.get(user=stranger, workspace=cast.workspace)
    again = owner.post(reverse("pages:invite-again", args=["acme", member.pk]), follow=True).content.decode()
    assert 'id="invitation"' not in again


def test_a_link_can_be_made_anew_until_the_person_came(owner: Client, cast: Cast) -> None:
    invite(owner, "nadia")
    member = Membership.objects.get(user__username="nadia")
    address = reverse("pages:invite-again", args=["acme", member.pk])
    assert 'id="invitation"' in owner.post(address).content.decode()
    User.objects.filter(pk=member.user_id).update(last_login=timezone.now())
    refused = owner.post(address, follow=True).content.decode()
    assert "nobody else may use their name" in refused
    assert 'id="invitation"' not in refused


@pytest.mark.parametrize(("name", "says"), [("", "required"), ("two words", "valid username"), ("amir", "already")])
def test_a_name_that_cannot_be_invited_is_told_at_the_form(owner: Client, cast: Cast, name: str, says: str) -> None:
    status, page = invite(owner, name)
    assert (status, says in page) == (422, True)


def test_roles_change_and_members_leave(owner: Client, cast: Cast) -> None:
    change = reverse("pages:change-member", args=["acme", cast.viewer.pk])
    assert "is auditor from now on" in owner.post(change, {"role": "auditor"}, follow=True).content.decode()
    assert "Choose one of the roles" in owner.post(change, {"role": "king"}, follow=True).content.decode()
    assert Membership.objects.get(pk=cast.viewer.pk).role == Role.AUDITOR
    remove = reverse("pages:remove-member", args=["acme", cast.viewer.pk])
    assert "is no member any more" in owner.post(remove, follow=True).content.decode()
    assert not Membership.objects.filter(pk=cast.viewer.pk).exists()


def test_the_last_owner_stays(owner: Client, cast: Cast) -> None:
    for address, said in (("change-member", {"role": "viewer"}), ("remove-member", {})):
        answer = owner.post(reverse(f"pages:{address}", args=["acme", cast.owner.pk]), said, follow=True)
        assert "keeps at least one owner" in answer.content.decode()
    assert Membership.objects.get(pk=cast.owner.pk).is_owner


@pytest.mark.parametrize("who", ["auditor", "viewer"])
def test_only_owners_do_this(who: str, cast: Cast, sign_in: Callable[..., Client]) -> None:
    client = sign_in(getattr(cast, who))
    assert client.post(reverse("pages:invite", args=["acme"]), {"member-name": "x"}).status_code == 403
    for name in ("change-member", "invite-again", "remove-member"):
        assert (
            client.post(reverse(f"pages:{name}", args=["acme", cast.viewer.pk]), {"role": "owner"}).status_code == 403
        )


def test_another_workspaces_member_is_not_found(owner: Client, cast: Cast) -> None:
    assert owner.post(reverse("pages:remove-member", args=["acme", cast.stranger.pk])).status_code == 404


def test_times_are_shown_in_the_zone_one_chose(auditor: Client, cast: Cast) -> None:
    account = reverse("pages:account", args=["acme"])
    said = auditor.post(account, {"form": "zone", "time_zone": "Asia/Kolkata"}, follow=True).content.decode()
    assert "Times in Asia/Kolkata" in said
    assert auditor.post(account, {"form": "zone", "time_zone": "Mars/Olympus"}).status_code == 422


def test_a_weak_password_is_refused(auditor: Client) -> None:
    account = reverse("pages:account", args=["acme"])
    said = {"form": "password", "new_password1": "short", "new_password2": "short"}
    response = auditor.post(account, said)
    assert (response.status_code, "at least 12" in response.content.decode()) == (422, True)


def test_the_channels_are_listed_and_lead_to_what_came_by_them(viewer: Client, cast: Cast) -> None:
    lab = ensure_channel(workspace=cast.workspace, name="lab, night shift")
    deliver(cast, b"all is well\n", channel=lab)
    deliver(cast, b"oscar says hello\noscar says more\n")
    settle_all()
    page = viewer.get(reverse("pages:settings", args=["acme"])).content.decode()
    card = page.partition('id="channels"')[2].partition("</section>")[0]
    found = re.findall(r'<th scope="row">([^<]+)<.*?<a href="([^"]+)"', card.replace("</th>", "<"))
    assert [name.strip() for name, _ in found] == ["lab, night shift", "main"]
    hits = [viewer.get(html.unescape(address)).content.decode().count('<li class="hit"') for _, address in found]
    assert hits == [1, 2]
