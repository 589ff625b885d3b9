"""Members and accounts: invitations that are shown once, roles, the last owner, a password, a time zone; channels."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import Invitation, Membership, Role, User
from inspector.accounts.selectors import find_api_key
from inspector.accounts.services import add_member, create_api_key, create_sign_in_link, ensure_channel
from tests.inspector.conftest import Cast, deliver, take_in, use_link

from .conftest import page_of

pytestmark = pytest.mark.django_db
PASSWORD = "a long walk by the sea"


def invite(owner: Client, name: str, role: str = "auditor") -> tuple[int, str]:
    """The status and the page."""
    said = {"member-name": name, "member-role": role}
    response = owner.post(page_of("invite"), said, follow=True)
    return response.status_code, response.content.decode()


def follow(page: str) -> str:
    """The link of the invitation that a page shows."""
    link = re.search(r'id="invitation">http://testserver([^<]+)<', page)
    assert link is not None
    return link[1]


def test_somebody_new_comes_by_a_link_and_makes_an_account(owner: Client, cast: Cast) -> None:
    status, page = invite(owner, "nadia", "viewer")
    assert status == 200
    address = follow(page)
    assert "/invitation/" not in owner.get(page_of("settings")).content.decode()
    nadia = Client()
    offered = use_link(nadia, address).content.decode()
    assert ("Join Acme" in offered, 'value="nadia"' in offered) == (True, True)
    assert not User.objects.filter(username="nadia").exists()
    weak = use_link(nadia, address, confirm="", name="nadia", password="aaaaaaaaaaaa")
    assert (weak.status_code, b"different characters" in weak.content) == (422, True)
    joined = use_link(nadia, address, confirm="", name="nadia", password=PASSWORD, follow=True)
    assert "You are viewer of Acme now" in joined.content.decode()
    assert Membership.objects.get(user__username="nadia").role == Role.VIEWER
    assert use_link(Client(), address).status_code == 410
    again = Client().post(reverse("pages:sign-in"), {"username": "nadia", "password": PASSWORD}, follow=True)
    assert again.context["user"].get_username() == "nadia"


def test_a_name_in_one_workspace_is_not_a_name_in_another(cast: Cast, sign_in: Callable[..., Client]) -> None:
    """Who invites "cfo", keeps the link and follows it gets nowhere by another workspace's invitation of "cfo"."""
    stranger, owner = sign_in(cast.stranger), sign_in(cast.owner)
    said = {"member-name": "cfo", "member-role": "auditor"}
    kept = stranger.post(reverse("pages:invite", args=["other"]), said, follow=True)
    attacker = Client()
    use_link(attacker, follow(kept.content.decode()), confirm="", name="cfo", password=PASSWORD)
    assert attacker.get(reverse("pages:overview", args=["other"])).status_code == 200
    _, page = invite(owner, "cfo", "owner")
    assert attacker.get(page_of("overview")).status_code == 404
    assert not cast.workspace.memberships.filter(user__username="cfo").exists()
    real = Client()
    assert 'value="cfo"' not in use_link(real, follow(page)).content.decode(), "the name is taken, and is not suggested"
    taken = use_link(real, follow(page), confirm="", name="cfo", password=PASSWORD)
    assert taken.status_code == 422
    assert use_link(real, follow(page), confirm="", name="cfo.acme", password=PASSWORD).status_code == 302
    assert real.get(page_of("overview")).status_code == 200
    assert attacker.get(page_of("overview")).status_code == 404


def test_somebody_who_is_signed_in_joins_as_who_they_are(
    owner: Client, cast: Cast, sign_in: Callable[..., Client]
) -> None:
    _, page = invite(owner, "colleague", "viewer")
    stranger = sign_in(cast.stranger)
    assert "Join as sam" in use_link(stranger, follow(page)).content.decode()
    assert use_link(stranger, follow(page), confirm="").status_code == 302
    assert Membership.objects.get(workspace=cast.workspace, user=cast.stranger.user).role == Role.VIEWER
    assert use_link(Client(), follow(page), confirm="").status_code == 410


def test_a_members_role_is_changed_by_no_link(owner: Client, cast: Cast, viewer: Client) -> None:
    _, page = invite(owner, "promoted", "owner")
    assert use_link(viewer, follow(page), confirm="").status_code == 422
    assert Membership.objects.get(pk=cast.viewer.pk).role == Role.VIEWER


def test_an_invitation_is_renewed_and_withdrawn(owner: Client, cast: Cast) -> None:
    _, page = invite(owner, "nadia")
    first = follow(page)
    address = page_of("act-on-invitation", Invitation.objects.get().pk)
    second = follow(owner.post(address, {"action": "renew"}, follow=True).content.decode())
    assert (use_link(Client(), first).status_code, use_link(Client(), second).status_code) == (410, 200)
    address = page_of("act-on-invitation", Invitation.objects.get().pk)
    assert "is withdrawn" in owner.post(address, {"action": "withdraw"}, follow=True).content.decode()
    assert use_link(Client(), second).status_code == 410


def test_a_page_that_shows_a_secret_is_loaded_again_without_harm(owner: Client, cast: Cast) -> None:
    """A page that answered the form itself would send it again, and the link would be replaced."""
    said = {"member-name": "ines", "member-role": "auditor"}
    answer = owner.post(page_of("invite"), said)
    assert (answer.status_code, answer["Location"]) == (302, page_of("settings"))
    held = str(owner.session._session)
    # The page of another address takes nothing.
    assert 'id="invitation"' not in owner.get(page_of("connect")).content.decode()
    link = follow(owner.get(page_of("settings")).content.decode())
    token = link.partition("#")[2]
    assert (len(token), token in held, base64.b64encode(token.encode()).decode()[:56] in held) == (43, False, False)
    assert 'id="invitation"' not in owner.get(page_of("settings")).content.decode()
    assert "shown_once" not in owner.session
    assert use_link(Client(), link).status_code == 200
    # Where a form was refused, its address stays, and leads back.
    assert owner.get(page_of("invite"))["Location"] == page_of("settings")


def test_a_secret_that_nobody_came_for_is_not_shown_later(
    owner: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.post(page_of("invite"), {"member-name": "ines", "member-role": "auditor"})
    monkeypatch.setattr("inspector.accounts.sessions._SHOWN_ONCE_SECONDS", -1)
    assert 'id="invitation"' not in owner.get(page_of("settings")).content.decode()
    assert "shown_once" not in owner.session


def test_an_invitation_ends_after_a_week(owner: Client, cast: Cast) -> None:
    _, page = invite(owner, "nadia")
    Invitation.objects.update(expires_at=timezone.now())
    assert use_link(Client(), follow(page)).status_code == 410
    assert use_link(Client(), follow(page), confirm="", name="nadia", password=PASSWORD).status_code == 410


@pytest.mark.parametrize("name", ["аmir", "AMIR", "am1r"])
def test_a_name_that_looks_like_a_members_is_refused(name: str, owner: Client, cast: Cast) -> None:
    status, page = invite(owner, name)
    assert (status, "looks like amir" in page) == (422, True)
    _, page = invite(owner, "somebody")
    refused = use_link(Client(), follow(page), confirm="", name=name, password=PASSWORD)
    assert (refused.status_code, b"looks like amir" in refused.content) == (422, True)


def test_a_person_is_deactivated_and_let_in_again(owner: Client, cast: Cast, sign_in: Callable[..., Client]) -> None:
    amir = sign_in(cast.auditor)
    _, token = create_api_key(workspace=cast.workspace, name="k", scopes=["read"], created_by=cast.auditor.user)
    switch = page_of("switch-member", cast.auditor.pk)
    assert "is deactivated" in owner.post(switch, follow=True).content.decode()
    assert amir.get(page_of("overview")).status_code == 302
    assert find_api_key(token=token) is None
    assert "can sign in again" in owner.post(switch, follow=True).content.decode()
    assert find_api_key(token=token) is not None


def test_nobody_closes_the_account_of_another_workspaces_member(owner: Client, cast: Cast) -> None:
    add_member(workspace=cast.stranger.workspace, user=cast.viewer.user, role=Role.VIEWER)
    switch = page_of("switch-member", cast.viewer.pk)
    assert "belongs to another workspace too" in owner.post(switch, follow=True).content.decode()
    assert User.objects.get(pk=cast.viewer.user_id).is_active


def test_the_last_owner_is_not_deactivated(owner: Client, cast: Cast) -> None:
    switch = page_of("switch-member", cast.owner.pk)
    assert "keeps at least one owner" in owner.post(switch, follow=True).content.decode()
    assert User.objects.get(pk=cast.owner.user_id).is_active


def test_a_key_ends_with_its_makers_membership_unless_an_owner_takes_it_over(owner: Client, cast: Cast) -> None:
    maker = cast.auditor.user
    ended = create_api_key(workspace=cast.workspace, name="ended", scopes=["read"], created_by=maker)
    kept = create_api_key(workspace=cast.workspace, name="kept", scopes=["read"], created_by=maker)
    taken = owner.post(page_of("take-over-key", kept[0].pk), follow=True)
    assert "is yours now" in taken.content.decode()
    owner.post(page_of("remove-member", cast.auditor.pk))
    assert find_api_key(token=ended[1]) is None
    found = find_api_key(token=kept[1])
    assert found is not None
    assert found.created_by == cast.owner.user


def test_a_new_password_asks_for_the_old_one_unless_a_link_proved_who_it_is(cast: Cast, auditor: Client) -> None:
    cast.auditor.user.set_password("an old walk by the sea")
    cast.auditor.user.save()
    auditor.force_login(cast.auditor.user)
    account = page_of("account")
    said = {"form": "password", "new_password1": PASSWORD, "new_password2": PASSWORD}
    assert auditor.post(account, said).status_code == 422
    assert auditor.post(account, {**said, "old_password": "wrong"}).status_code == 422
    assert auditor.post(account, {**said, "old_password": "an old walk by the sea"}).status_code == 302
    by_link = Client()
    link = f"{reverse('pages:sign-in-link')}#{create_sign_in_link(user=cast.auditor.user)}"
    use_link(by_link, link, confirm="")
    newer = {"form": "password", "new_password1": PASSWORD + " again", "new_password2": PASSWORD + " again"}
    assert by_link.post(account, newer).status_code == 302
    assert by_link.post(account, newer).status_code == 422, "the link proves it once"


@pytest.mark.parametrize(("name", "says"), [("", "required"), ("two words", "valid username"), ("amir", "already")])
def test_a_name_that_cannot_be_invited_is_told_at_the_form(owner: Client, cast: Cast, name: str, says: str) -> None:
    status, page = invite(owner, name)
    assert (status, says in page) == (422, True)


def test_roles_change_and_members_leave(owner: Client, cast: Cast) -> None:
    change = page_of("change-member", cast.viewer.pk)
    assert "is auditor from now on" in owner.post(change, {"role": "auditor"}, follow=True).content.decode()
    assert "Choose one of the roles" in owner.post(change, {"role": "king"}, follow=True).content.decode()
    assert Membership.objects.get(pk=cast.viewer.pk).role == Role.AUDITOR
    remove = page_of("remove-member", cast.viewer.pk)
    assert "is no member any more" in owner.post(remove, follow=True).content.decode()
    assert not Membership.objects.filter(pk=cast.viewer.pk).exists()


def test_the_last_owner_stays(owner: Client, cast: Cast) -> None:
    for address, said in (("change-member", {"role": "viewer"}), ("remove-member", {})):
        answer = owner.post(page_of(f"{address}", cast.owner.pk), said, follow=True)
        assert "keeps at least one owner" in answer.content.decode()
    assert Membership.objects.get(pk=cast.owner.pk).is_owner


@pytest.mark.parametrize("who", ["auditor", "viewer"])
def test_only_owners_do_this(who: str, cast: Cast, sign_in: Callable[..., Client]) -> None:
    client = sign_in(getattr(cast, who))
    assert client.post(page_of("invite"), {"member-name": "x"}).status_code == 403
    for name in ("change-member", "switch-member", "remove-member"):
        assert client.post(page_of(f"{name}", cast.viewer.pk), {"role": "owner"}).status_code == 403


def test_another_workspaces_member_is_not_found(owner: Client, cast: Cast) -> None:
    assert owner.post(page_of("remove-member", cast.stranger.pk)).status_code == 404


def test_times_are_shown_in_the_zone_one_chose(auditor: Client, cast: Cast) -> None:
    account = page_of("account")
    said = auditor.post(account, {"form": "zone", "time_zone": "Asia/Kolkata"}, follow=True).content.decode()
    assert "Times in Asia/Kolkata" in said
    assert auditor.post(account, {"form": "zone", "time_zone": "Mars/Olympus"}).status_code == 422


@pytest.mark.parametrize(("weak", "says"), [("short", "at least 12"), ("aaaaaaaaaaaa", "different characters")])
def test_a_weak_password_is_refused(weak: str, says: str, auditor: Client) -> None:
    account = page_of("account")
    said = {"form": "password", "new_password1": weak, "new_password2": weak}
    response = auditor.post(account, said)
    assert (response.status_code, says in response.content.decode()) == (422, True)


def test_the_channels_are_listed_and_lead_to_what_came_by_them(viewer: Client, cast: Cast) -> None:
    lab = ensure_channel(workspace=cast.workspace, name="lab, night shift")
    deliver(cast, b"all is well\n", channel=lab)
    take_in(cast, b"oscar says hello\noscar says more\n")
    page = viewer.get(page_of("settings")).content.decode()
    card = page.partition('id="channels"')[2].partition("</section>")[0]
    found = re.findall(r'<th scope="row">([^<]+)<.*?<a href="([^"]+)"', card.replace("</th>", "<"))
    assert [name.strip() for name, _ in found] == ["lab, night shift", "main"]
    hits = [viewer.get(html.unescape(address)).content.decode().count('<li class="hit"') for _, address in found]
    assert hits == [1, 2]
