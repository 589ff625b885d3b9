"""Second factors: asked for by every way in, guarded against guessing, changed only by whoever proves who they are."""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from axes.models import AccessAttempt
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.twofactor import totp
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import NoReverseMatch, reverse

from inspector.accounts.models import Membership, Pace, User
from inspector.accounts.services import create_sign_in_link
from inspector.accounts.sessions import BACKEND
from inspector.accounts.workspaces import set_second_factor
from inspector.pages.live import Ear, _find_reader
from inspector.trail.models import Deed

from ..conftest import Cast, use_link

PASSWORD = "a long walk by the sea"
OVERVIEW = "/w/acme/overview/"
FACTOR = "/second-factor/"


# When every code is shown and compared, however slow this machine is.
NOW = 1_764_000_010.0


@pytest.fixture(autouse=True)
def emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    for module in ("inspector.accounts.second_factors", "allauth.mfa.totp.internal.auth"):
        monkeypatch.setattr(f"{module}.time", SimpleNamespace(time=lambda: NOW))


def give_app(user: User) -> str:
    """A password and an authenticator app; the app's secret."""
    user.set_password(PASSWORD)
    user.save()
    secret = generate_totp_secret()
    TOTP.activate(user, secret)
    return secret


def code_of(secret: str, *, step: int = 0, algorithm: SHA1 | SHA256 = SHA256()) -> str:  # noqa: B008 (has no state)
    """What an app shows, some half minutes from now."""
    app = totp.TOTP(base64.b32decode(secret), 6, algorithm, 30)
    return app.generate(NOW + 30 * step).decode()


def wrong(secret: str) -> str:
    return f"{(int(code_of(secret)) + 1) % 1_000_000:06}"


def give_password(user: User, client: Client | None = None, path: str = "") -> Client:
    client = client or Client()
    answer = client.post("/sign-in/", {"username": user.username, "password": PASSWORD, "next": path})
    assert answer.status_code == 302
    return client


def is_signed_in(client: Client) -> bool:
    return client.get(OVERVIEW).status_code == 200


def enter(member: Membership) -> Client:
    client = Client()
    client.force_login(member.user, backend=BACKEND)
    return client


def list_codes(*, since: int = 0) -> list[str]:
    return list(Deed.objects.filter(sequence__gt=since, workspace__slug="acme").values_list("code", flat=True))


def test_a_password_alone_does_not_sign_in_and_the_code_leads_to_what_was_wanted(cast: Cast) -> None:
    secret = give_app(cast.owner.user)
    client = give_password(cast.owner.user, path="/w/acme/reviews/")
    assert not is_signed_in(client)
    page = client.get(f"{FACTOR}sign-in/")
    assert ("no-store" in page["Cache-Control"], "authenticator app" in page.content.decode()) == (True, True)
    answer = client.post(f"{FACTOR}sign-in/", {"code": code_of(secret)})
    assert answer["Location"] == "/w/acme/reviews/"
    assert is_signed_in(client)
    deed = Deed.objects.get(code="account.signed-in")
    assert deed.details == {"by": "name and password", "second factor": "totp"}


def test_a_code_works_once_whichever_process_is_asked(cast: Cast) -> None:
    secret = give_app(cast.owner.user)
    code = code_of(secret)
    first, second = give_password(cast.owner.user), give_password(cast.owner.user)
    assert first.post(f"{FACTOR}sign-in/", {"code": code}).status_code == 302
    cache.clear()  # What another process knows.
    again = second.post(f"{FACTOR}sign-in/", {"code": code[:3] + " " + code[3:]})
    assert again.status_code == 200 or not is_signed_in(second)
    assert not is_signed_in(second)


def test_a_code_of_another_half_minute_is_refused(cast: Cast) -> None:
    secret = give_app(cast.owner.user)
    for step in (-1, 2):
        Pace.objects.all().delete()
        cache.clear()
        client = give_password(cast.owner.user)
        client.post(f"{FACTOR}sign-in/", {"code": code_of(secret, step=step)})
        assert not is_signed_in(client)


@pytest.mark.parametrize("name", ["sha-256", "from before", "unreadable"])
def test_an_app_signs_in_by_codes_of_the_algorithm_it_was_added_with(cast: Cast, name: str, settings: Any) -> None:
    secret = give_app(cast.owner.user)
    if name == "from before":
        kept = Authenticator.objects.get().data
        Authenticator.objects.update(data={"secret": kept["secret"]})
    if name == "unreadable":
        settings.SECRET_KEY = "another one, of which nothing was sealed"
    told = enter(cast.owner).get(FACTOR).content.decode()
    assert ("by SHA-1, which is outdated" in told) == (name == "from before")
    for algorithm, works_with in ((SHA1(), "from before"), (SHA256(), "sha-256")):
        Pace.objects.all().delete()
        client = give_password(cast.owner.user)
        client.post(f"{FACTOR}sign-in/", {"code": code_of(secret, algorithm=algorithm)})
        assert is_signed_in(client) == (name == works_with), algorithm.name


def test_a_link_asks_for_the_second_factor_too(cast: Cast) -> None:
    secret = give_app(cast.owner.user)
    client = Client()
    answer = client.post("/sign-in-link/", {"code": create_sign_in_link(user=cast.owner.user), "confirm": ""})
    assert (answer["Location"], is_signed_in(client)) == (f"{FACTOR}sign-in/", False)
    client.post(f"{FACTOR}sign-in/", {"code": code_of(secret)})
    assert is_signed_in(client)
    assert client.session["came_by_link"]


def test_the_session_of_somebody_else_ends_before_the_second_factor_is_asked_for(cast: Cast) -> None:
    give_app(cast.owner.user)
    client = enter(cast.viewer)
    give_password(cast.owner.user, client)
    assert not is_signed_in(client)


def test_wrong_codes_count_as_wrong_passwords_do(cast: Cast, settings: Any) -> None:
    secret = give_app(cast.owner.user)
    client = give_password(cast.owner.user)
    for _ in range(settings.AXES_FAILURE_LIMIT):
        cache.clear()
        client.post(f"{FACTOR}sign-in/", {"code": wrong(secret)}, REMOTE_ADDR="198.51.100.7")
    assert Deed.objects.filter(code="account.refused", object_label="olivia").count() == settings.AXES_FAILURE_LIMIT
    attempt = AccessAttempt.objects.get()
    assert (attempt.failures_since_start, wrong(secret) in attempt.post_data) == (settings.AXES_FAILURE_LIMIT, False)
    cache.clear()
    client.post(f"{FACTOR}sign-in/", {"code": code_of(secret)}, REMOTE_ADDR="198.51.100.7")
    assert not is_signed_in(client)


def test_codes_are_tried_no_faster_than_passwords(cast: Cast, settings: Any) -> None:
    secret = give_app(cast.owner.user)
    settings.LIMITS = settings.LIMITS | {"sign_ins_per_minute": 2}
    client = give_password(cast.owner.user)
    said = [client.post(f"{FACTOR}sign-in/", {"code": wrong(secret)}).content.decode() for _ in range(2)]
    assert ["Too many tries" in each for each in said] == [False, True]


def add_app(client: Client) -> tuple[str, str]:
    """Add an app by the pages, proving who it is when asked; the secret, and the page that comes after."""
    asked = client.get(f"{FACTOR}app/add/")
    if asked.status_code == 302:
        assert client.post(asked["Location"], {"password": "something else"}).status_code == 200
        assert client.post(asked["Location"], {"password": PASSWORD}).status_code == 302
    answer = client.get(f"{FACTOR}app/add/")
    assert "no-store" in answer["Cache-Control"]
    page = answer.content.decode()
    secret = re.search(r'<code class="hash">(\w+)</code>', page)
    assert secret is not None
    assert 'src="data:image/svg+xml;base64,' in page
    # An app that ignores which algorithm is asked for is noticed before its secret is kept.
    refused = client.post(f"{FACTOR}app/add/", {"code": code_of(secret[1], algorithm=SHA1())}).content.decode()
    assert [each in refused for each in ("Incorrect code", secret[1], "use another app")] == [True, True, True]
    shown = client.post(f"{FACTOR}app/add/", {"code": code_of(secret[1])}, follow=True)
    return secret[1], shown.content.decode()


def make_codes(client: Client) -> list[str]:
    page = client.post(f"{FACTOR}codes/", follow=True).content.decode()
    assert "never shown again" in page
    return re.findall(r"<li><code>([\w-]+)</code>", page)


def test_an_app_is_added_by_the_password_and_gives_recovery_codes_once(cast: Cast) -> None:
    cast.owner.user.set_password(PASSWORD)
    cast.owner.user.save()
    client, other = give_password(cast.owner.user), give_password(cast.owner.user)
    before = Deed.objects.filter(workspace=cast.workspace).count()
    secret, page = add_app(client)
    assert "You have none" in page
    codes = make_codes(client)
    assert len(set(codes)) == 10
    assert all(re.fullmatch("(-?[0-9a-f]{6}){5}", code) for code in codes)  # 120 bits
    shown = client.get(f"{FACTOR}codes/").content.decode()
    assert ("10 codes can still be used" in shown, codes[0] in shown) == (True, False)
    # A session that began without it has ended; the secret is stored sealed, and of codes a hash.
    assert (is_signed_in(client), is_signed_in(other)) == (True, False)
    stored = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert [each in stored for each in (secret, codes[0], codes[0].replace("-", ""))] == [False, False, False]
    (hashes,) = Authenticator.objects.filter(type="recovery_codes").values_list("data", flat=True)
    assert hashes["migrated_codes"][0] == f"sha256:{sha256(codes[0].replace('-', '').encode()).hexdigest()}"
    assert {"account.factor-added", "account.recovery-codes-made", "account.sessions-ended"} <= set(
        list_codes(since=before)
    )
    assert "in use" in client.get(FACTOR).content.decode()
    third = give_password(cast.owner.user)
    for _ in range(2):
        third.post(f"{FACTOR}sign-in/", {"code": codes[0]})
    assert is_signed_in(third)
    assert Deed.objects.filter(code="account.signed-in").last().details["second factor"] == "recovery codes"  # type: ignore[union-attr]
    fourth = give_password(cast.owner.user)
    Pace.objects.all().delete()
    for wrong_code in (codes[0], hashes["migrated_codes"][1], "", "sha256:", "\x00", codes[1][:-1]):
        fourth.post(f"{FACTOR}sign-in/", {"code": wrong_code})
        assert not is_signed_in(fourth), wrong_code
    # Codes are made anew, and the app removed, by somebody who proved who they are just now.
    newer = make_codes(client)
    Pace.objects.all().delete()
    for code in (codes[1], newer[0].replace("-", " ").upper()):
        cache.clear()
        fourth.post(f"{FACTOR}sign-in/", {"code": code})
        assert is_signed_in(fourth) == (code != codes[1])
    assert "9 codes can still be used" in client.get(f"{FACTOR}codes/").content.decode()
    assert client.post(f"{FACTOR}app/remove/").status_code == 302
    assert not Authenticator.objects.exists()
    assert list_codes().count("account.factor-removed") == 1
    assert is_signed_in(give_password(cast.owner.user))


def test_nothing_is_changed_without_proof_and_nothing_of_somebody_else(cast: Cast) -> None:
    give_app(cast.owner.user)
    passkey = Authenticator.objects.create(user=cast.owner.user, type="webauthn", data={"name": "k", "credential": {}})
    client = enter(cast.owner)
    names = ("app/remove/", "codes/", f"passkeys/{passkey.pk}/remove/")
    for path in names:
        assert client.post(f"{FACTOR}{path}")["Location"].startswith(f"{FACTOR}password/"), path
    assert Authenticator.objects.count() == 2
    for stranger in (enter(cast.viewer), Client()):
        for path in ("", "app/add/", "passkeys/add/", "proof/", "sign-in/", *names):
            answer = stranger.post(f"{FACTOR}{path}")
            assert answer.status_code in {302, 403, 404, 405}, path
    assert Authenticator.objects.count() == 2
    forged = Client(enforce_csrf_checks=True)
    forged.force_login(cast.owner.user, backend=BACKEND)
    assert forged.post(f"{FACTOR}app/remove/").status_code == 403


def test_pages_of_a_workspace_that_requires_a_second_factor_open_to_who_has_one(cast: Cast, settings: Any) -> None:
    owner, viewer = enter(cast.owner), enter(cast.viewer)
    change = reverse("pages:change-workspace", args=["acme"])
    refused = owner.post(change, {"action": "require-factor"}, follow=True).content.decode()
    assert "first add a second factor to your own account" in refused
    assert enter(cast.auditor).post(change, {"action": "require-factor"}).status_code == 403
    give_app(cast.owner.user)
    owner = enter(cast.owner)
    owner.post(change, {"action": "require-factor"})
    assert is_signed_in(owner)
    key = viewer.session.session_key
    assert key is not None
    ear = Ear(session_key=key, slug="acme", given={})  # type: ignore[arg-type]
    assert viewer.get(OVERVIEW)["Location"] == FACTOR
    assert viewer.post(reverse("pages:save-search", args=["acme"]))["Location"] == FACTOR
    assert _find_reader(ear) is None
    assert is_signed_in(owner)
    owner.post(change, {"action": "waive-factor"})
    assert (is_signed_in(viewer), _find_reader(ear) is None) == (True, False)
    settings.REQUIRE_SECOND_FACTOR = True
    assert (is_signed_in(owner), viewer.get(OVERVIEW)["Location"], _find_reader(ear)) == (True, FACTOR, None)
    assert {"workspace.second-factor-required", "workspace.second-factor-waived"} <= set(list_codes())


def call(*arguments: str) -> str:
    out = StringIO()
    call_command("sign_in_link", *arguments, "--url", "http://testserver", stdout=out)
    return out.getvalue().strip().removeprefix("http://testserver")


def test_an_owner_breaks_the_glass_once_and_the_audit_log_says_so(cast: Cast) -> None:
    give_app(cast.owner.user)
    set_second_factor(cast.workspace, None, is_required=True)
    path = call("olivia", "--break-glass")
    client = Client()
    use_link(client, path, confirm="")
    assert is_signed_in(client)
    # With no app at hand, the way back is a new password, by which the app is removed.
    account = reverse("pages:account", args=["acme"])
    client.post(account, {"form": "password", "new_password1": PASSWORD + "!", "new_password2": PASSWORD + "!"})
    client.post(f"{FACTOR}password/", {"password": PASSWORD + "!"})
    client.post(f"{FACTOR}app/remove/")
    assert not Authenticator.objects.exists()
    again = Client()
    assert (use_link(again, path, confirm="").status_code, is_signed_in(again)) == (410, False)
    told = {deed.code: (deed.told, deed.details.get("by")) for deed in Deed.objects.filter(workspace=cast.workspace)}
    assert (
        told["account.break-glass-made"][0]
        == "The operator created a link without second factor for the member “olivia”"
    )
    assert told["account.signed-in"] == ("olivia signed in", "a link without second factor")


def test_the_glass_is_broken_for_an_owner_by_name_alone(cast: Cast) -> None:
    for arguments in (["vera", "--break-glass"], ["--break-glass"], ["nobody", "--break-glass"]):
        with pytest.raises(CommandError):
            call(*arguments)
    assert not Deed.objects.filter(code="account.break-glass-made").exists()


def test_what_is_not_wanted_of_allauth_has_no_address() -> None:
    unwanted = ("account_signup", "account_reset_password", "account_confirm_email", "account_email", "account_logout")
    for name in (*unwanted, "account_inactive", "socialaccount_signup", "socialaccount_connections", "mfa_trust"):
        with pytest.raises(NoReverseMatch):
            reverse(name)
