"""Single sign-on against a real provider of OpenID Connect, which runs in a thread of the tests."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
import requests
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialAccount, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.test import Client, RequestFactory
from jwt.algorithms import OKPAlgorithm
from oidc_provider_mock import run_server_in_thread

from inspector.accounts.models import Membership, Role, User
from inspector.accounts.services import add_member, create_api_key
from inspector.accounts.single_sign_on import ProviderTokens, choose_roles, read_claims
from inspector.accounts.workspaces import set_second_factor
from inspector.trail.models import Deed

from ..conftest import Cast

# The provider's own library warns of its own later version.
pytestmark = pytest.mark.filterwarnings("ignore:.*(get_jwt_config|authlib).*:DeprecationWarning")


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture(autouse=True)
def configured(settings: Any, provider: str) -> None:
    configure(settings, provider)


def configure(settings: Any, url: str, **more: Any) -> None:
    app = {"provider_id": "sso", "name": "Acme ID", "client_id": "inspector", "secret": "not-told-to-anybody"}
    settings.OIDC_NAME = "Acme ID"
    settings.SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [{**app, "settings": {"server_url": url, **more}}]}
    }
    settings.OIDC_ROLES = {
        "acme": {"auditor": ["audit"], "owner": ["heads"], "viewer": ["all"]},
        "other": {"viewer": ["x"]},
    }


def come(provider: str, sub: str, *, client: Client | None = None, path: str = "", **claims: Any) -> Any:
    """Press the button, sign in at the provider, and come back: the last answer."""
    requests.put(f"{provider}/users/{sub}", json=claims, timeout=10).raise_for_status()
    client = client or Client()
    asked = client.post("/single-sign-on/", {"next": path})
    assert (asked.status_code, asked["Location"].startswith(provider)) == (302, True)
    answer = requests.post(asked["Location"], data={"sub": sub}, allow_redirects=False, timeout=10)
    return client.get(answer.headers["Location"].removeprefix("http://testserver"))


def role_of(name: str) -> str | None:
    return Membership.objects.filter(user__username=name, workspace__slug="acme").values_list("role", flat=True).first()


def test_a_person_of_a_group_becomes_a_member_and_the_audit_log_says_how(cast: Cast, provider: str) -> None:
    assert "Sign in with Acme ID" in Client().get("/sign-in/").content.decode()
    client = Client()
    answer = come(provider, "n1", client=client, path="/w/acme/reviews/", preferred_username="nadia", groups=["audit"])
    assert (answer.status_code, answer["Location"]) == (302, "/w/acme/reviews/")
    assert client.get("/w/acme/reviews/").status_code == 200
    assert (role_of("nadia"), User.objects.get(username="nadia").has_usable_password()) == (Role.AUDITOR, False)
    told = {deed.code: (deed.told, deed.details) for deed in Deed.objects.filter(workspace=cast.workspace)}
    assert told["member.added"] == ("Acme ID added the member “nadia”", {"role": "auditor"})
    assert told["account.signed-in"] == ("nadia signed in", {"by": "Acme ID"})


def test_groups_change_and_take_back_what_they_gave_and_nothing_else(cast: Cast, provider: str) -> None:
    come(provider, "n2", preferred_username="nadia", groups=["audit", "all"])
    nadia = User.objects.get(username="nadia")
    key, _ = create_api_key(workspace=cast.workspace, name="k", scopes=["read"], created_by=nadia)
    add_member(workspace=cast.stranger.workspace, user=nadia, role=Role.AUDITOR)
    come(provider, "n2", preferred_username="another", groups="heads")
    assert role_of("nadia") == Role.OWNER
    answer = come(provider, "n2", preferred_username="nadia")
    assert (answer.status_code, role_of("nadia")) == (302, None)
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert [each.workspace.slug for each in nadia.memberships.all()] == ["other"]
    assert SocialAccount.objects.count() == 1


def test_the_last_owner_stays_one(cast: Cast, provider: str) -> None:
    come(provider, "n3", preferred_username="nadia", groups=["heads"])
    cast.owner.delete()
    come(provider, "n3", preferred_username="nadia", groups=[])
    assert role_of("nadia") == Role.OWNER


@pytest.mark.parametrize("groups", [None, [], ["Audit"], {"audit": 1}, [["audit"]], "au"], ids=str)
def test_nobody_comes_in_without_a_group_that_has_a_role(cast: Cast, provider: str, groups: Any) -> None:
    before = User.objects.count()
    answer = come(provider, "n4", preferred_username="nadia", groups=groups)
    if groups == {"audit": 1}:  # The names of an object are read as a list of them.
        assert role_of("nadia") == Role.AUDITOR
        return
    assert (answer.status_code, b"None of your groups" in answer.content) == (403, True)
    assert User.objects.count() == before
    assert Deed.objects.get(code="account.refused").object_label == "n4 of Acme ID"


def test_the_name_or_address_of_an_account_made_here_opens_it_to_nobody(cast: Cast, provider: str) -> None:
    cast.owner.user.email = "olivia@example.com"
    cast.owner.user.save()
    client = Client()
    claims = {"preferred_username": "olivia", "email": "olivia@example.com", "email_verified": True}
    come(provider, "n5", client=client, groups=["all"], **claims)
    come_in = User.objects.get(pk=client.session["_auth_user_id"])
    assert (come_in.username, come_in == cast.owner.user, role_of("olivia@example.com")) == (
        "olivia@example.com",
        False,
        Role.VIEWER,
    )
    # All three names look like olivia's: `о` is Cyrillic.
    refused = come(provider, "оlivia", preferred_username="olivia", email="оlivia", groups=["all"])
    assert (refused.status_code, b"looks like a member" in refused.content) == (403, True)


def test_somebody_who_was_deactivated_stays_outside(cast: Cast, provider: str) -> None:
    come(provider, "n6", preferred_username="nadia", groups=["all"])
    User.objects.filter(username="nadia").update(is_active=False)
    client = Client()
    answer = come(provider, "n6", client=client, preferred_username="nadia", groups=["heads"])
    assert (answer.status_code, "_auth_user_id" in client.session, role_of("nadia")) == (403, False, Role.VIEWER)


def test_an_answer_that_this_browser_did_not_ask_for_signs_nobody_in(cast: Cast, provider: str) -> None:
    asked = Client().post("/single-sign-on/")
    answer = requests.post(asked["Location"], data={"sub": "n7"}, allow_redirects=False, timeout=10)
    path = answer.headers["Location"].removeprefix("http://testserver")
    victim = Client()
    assert victim.get(path).status_code == 401
    assert "_auth_user_id" not in victim.session
    assert Client(enforce_csrf_checks=True).post("/single-sign-on/").status_code == 403
    assert Client().get("/single-sign-on/").status_code == 405
    signed_in = Client()
    signed_in.force_login(cast.owner.user, backend="inspector.accounts.sessions.SessionBackend")
    requests.put(f"{provider}/users/n7", json={"groups": ["all"]}, timeout=10).raise_for_status()
    refused = signed_in.post("/single-sign-on/", {"process": "connect"})
    answer = requests.post(refused["Location"], data={"sub": "n7"}, allow_redirects=False, timeout=10)
    assert signed_in.get(answer.headers["Location"].removeprefix("http://testserver")).status_code == 403
    assert SocialAccount.objects.count() == 0


def test_a_person_of_the_provider_has_no_password_and_no_second_factor_here(cast: Cast, provider: str) -> None:
    client = Client()
    come(provider, "n10", client=client, preferred_username="nadia", groups=["all"])
    page = client.get("/w/acme/account/").content.decode()
    assert ("kept by its provider" in page, "new_password1" in page) == (True, False)
    chosen = {"form": "password", "new_password1": "a long walk by the sea", "new_password2": "a long walk by the sea"}
    assert client.post("/w/acme/account/", chosen).status_code == 403
    assert not User.objects.get(username="nadia").has_usable_password()
    assert client.get("/second-factor/app/add/").status_code == 403


def test_no_address_leads_away(cast: Cast, provider: str) -> None:
    away = come(provider, "n8", path="https://evil.example/", preferred_username="nadia", groups=["all"])
    assert away["Location"] == "/"


def test_a_provider_that_is_away_is_told_so_and_asked_no_faster_than_the_pace(cast: Cast, settings: Any) -> None:
    configure(settings, "http://localhost:9")
    settings.LIMITS = settings.LIMITS | {"sign_ins_per_minute": 2}
    assert [Client().post("/single-sign-on/").status_code for _ in range(3)] == [503, 503, 429]


def test_a_second_factor_that_a_workspace_requires_is_the_providers(cast: Cast, provider: str) -> None:
    set_second_factor(cast.workspace, None, is_required=True)
    client = Client()
    come(provider, "n9", client=client, preferred_username="nadia", groups=["all"])
    assert client.get("/w/acme/overview/").status_code == 200


TOKENS: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"amr": ["pwd"], "acr": "0"}, False),
    ({"amr": "mfa"}, False),
    ({"amr": {"mfa": 1}, "acr": ["gold"]}, False),
    ({"amr": ["pwd", "mfa"]}, True),
    ({"acr": "gold"}, True),
]


def test_a_required_second_factor_is_what_the_signed_token_says(
    cast: Cast, provider: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_second_factor(cast.workspace, None, is_required=True)
    settings.OIDC_SECOND_FACTOR = ["mfa", "gold"]
    decode = ProviderTokens._decode_id_token
    for said, is_in in TOKENS:
        # What only its userinfo says, which is not signed, counts for nothing.
        token = {"amr": None, "acr": None, **said}
        monkeypatch.setattr(ProviderTokens, "_decode_id_token", lambda *given, token=token: decode(*given) | token)
        client = Client()
        come(provider, "n11", client=client, preferred_username="nadia", groups=["all"], amr=["mfa"], acr="gold")
        assert (client.get("/w/acme/overview/").status_code == 200) is is_in, said


def test_without_a_provider_there_is_no_button_and_no_way(cast: Cast, settings: Any) -> None:
    settings.SOCIALACCOUNT_PROVIDERS = {}
    assert "Sign in with" not in Client().get("/sign-in/").content.decode()
    assert Client().post("/single-sign-on/").status_code == 404
    assert Client().get("/single-sign-on/sso/?code=x&state=y").status_code == 404


def test_two_answers_about_different_people_are_about_nobody() -> None:
    with pytest.raises(Exception, match="who you are"):
        read_claims({"id_token": {"sub": "a"}, "userinfo": {"sub": "b", "groups": ["heads"]}})
    with pytest.raises(Exception, match="who you are"):
        read_claims({"userinfo": {"sub": "b"}})
    assert read_claims({"id_token": {"sub": "a", "groups": ["all"]}, "userinfo": {"sub": "a"}})["groups"] == ["all"]


def test_of_several_groups_the_highest_role_counts() -> None:
    assert choose_roles({"groups": ["all", "heads", "audit"]}) == {"acme": "owner"}
    assert choose_roles({"groups": ["somebody"]}) == {}


URL, KEY, OTHER_KEY = "https://id.example", Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
GOOD = {"sub": "n", "iss": URL, "aud": "inspector", "exp": int(time.time()) + 3600, "iat": int(time.time())}
# What is not an ID token of this provider for the product: other claims, another key, and other headers.
FORGED = [
    *(({"aud": "another"}, KEY, {}), ({"iss": "https://evil.example"}, KEY, {}), ({"exp": 1}, KEY, {})),
    *(({"exp": None}, KEY, {}), ({"sub": None}, KEY, {}), ({}, OTHER_KEY, {}), ({}, KEY, {"typ": "at+jwt"})),
    *(({}, KEY, {"kid": "unknown"}), ({}, None, {}), ({}, "the public key as a password: 32 characters", {})),
]


@pytest.mark.parametrize("forged", [None, *range(len(FORGED))])
def test_only_an_id_token_that_the_provider_signed_is_believed(
    monkeypatch: pytest.MonkeyPatch, forged: int | None
) -> None:
    listed = {"keys": [{**json.loads(OKPAlgorithm.to_jwk(KEY.public_key())), "kid": "k", "alg": "EdDSA"}]}
    answer = SimpleNamespace(raise_for_status=lambda: None, json=lambda: listed)
    monkeypatch.setattr(requests.Session, "get", lambda *_: answer)
    adapter = ProviderTokens(RequestFactory().get("/"), "sso")
    monkeypatch.setattr(adapter, "_openid_config", {"issuer": URL, "jwks_uri": f"{URL}/keys"}, raising=False)
    monkeypatch.setattr(adapter, "get_provider", lambda: SimpleNamespace(server_url=f"{URL}/.well-known/x"))
    claims, key, header = ({}, KEY, {}) if forged is None else FORGED[forged]
    given = {name: value for name, value in (GOOD | claims).items() if value is not None}
    algorithm = "none" if key is None else "HS256" if isinstance(key, str) else "EdDSA"
    token = jwt.encode(given, key, algorithm=algorithm, headers={"kid": "k"} | header)
    app = SimpleNamespace(client_id="inspector")
    if forged is None:
        assert adapter._decode_id_token(app, token)["sub"] == "n"
        monkeypatch.setattr(adapter, "_openid_config", {"issuer": "https://evil.example"})
        with pytest.raises(OAuth2Error, match="issuer"):
            _ = adapter.openid_config
        return
    with pytest.raises(OAuth2Error):
        adapter._decode_id_token(app, token)


def test_metadata_of_another_issuer_and_a_provider_that_leads_on_sign_nobody_in(
    cast: Cast, provider: str, settings: Any
) -> None:
    configure(settings, provider, openid_configuration_overrides={"issuer": "https://evil.example"})
    answer = come(provider, "n12", groups=["all"])
    assert (answer.status_code, User.objects.filter(username="n12").exists()) == (401, False)
    with get_adapter().get_requests_session() as session, pytest.raises(requests.TooManyRedirects):
        session.post(f"{provider}/oauth2/end_session/confirm", data={"redirect_uri": f"{provider}/userinfo"})


def test_no_token_of_the_provider_is_kept_or_given_to_the_browser(cast: Cast, provider: str) -> None:
    client = Client()
    answer = come(provider, "n11", client=client, preferred_username="nadia", groups=["all"])
    assert not SocialToken.objects.exists()
    kept = str(SocialAccount.objects.values("extra_data")[0]) + str(dict(client.session))
    assert "access_token" not in kept
    assert "eyJ" not in kept + str(answer.headers) + answer.content.decode()
