"""What every answer says to a browser, and what none does: policies, types, caches, cookies, methods, HTTPS."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from inspector.accounts.models import Membership, User
from inspector.accounts.services import create_api_key
from inspector.pages.urls import workspace_urls
from inspector.trail.models import Deed

from .conftest import Cast, take_in

pytestmark = pytest.mark.django_db
SignIn = Callable[[Membership], Client]
# A page, a page of another section, a form, a refusal, nothing, an answer of the API, one of its refusals, a file.
ADDRESSES = (
    *("/w/acme/overview/", "/w/acme/settings/", "/sign-in/", "/w/other/overview/", "/nothing", "/api/v1/limits"),
    *("/api/v1/nothing", "/healthz", "/static/js/theme.js", "/static/nothing", "/api/schema/"),
)
# Each page of a workspace whose address names nothing else.
PAGES = [reverse(f"pages:{each.name}", args=["acme"]) for each in workspace_urls if not each.pattern.converters]


def ask_each(client: Client, **how: Any) -> dict[str, Any]:
    answers = {path: client.get(path, **how) for path in ADDRESSES}
    for answer in answers.values():
        answer.getvalue()  # What is static is a file, and closed at its end.
    return answers


def test_every_answer_carries_the_policies(cast: Cast, sign_in: SignIn) -> None:
    for path, answer in ask_each(sign_in(cast.owner)).items():
        policy = answer.headers.get("Content-Security-Policy", "")
        for directive in ("default-src 'none'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"):
            assert directive in policy or path.startswith("/static/"), (path, directive)
        assert answer["X-Content-Type-Options"] == "nosniff", path
        assert answer["Referrer-Policy"] == "same-origin", path
        kind = answer["Content-Type"]
        assert re.search(r"charset=|json", kind), (path, kind)


def test_no_other_origin_is_let_in(cast: Cast, sign_in: SignIn, token: str) -> None:
    origin = {"Origin": "https://evil.example"}
    answers = [
        *ask_each(sign_in(cast.owner), headers=origin).values(),
        Client().get("/api/v1/limits", headers={**origin, "Authorization": f"Bearer {token}"}),
        Client().options("/api/v1/messages", headers={**origin, "Access-Control-Request-Method": "POST"}),
    ]
    assert not [name for answer in answers for name in answer.headers if name.startswith("Access-Control-")]
    # The API knows no session, so that no page of another origin acts by one.
    assert sign_in(cast.owner).get("/api/v1/limits").status_code == 401
    assert sign_in(cast.owner).post("/api/v1/messages", b"x", content_type="text/plain").status_code == 401


def test_behind_https_every_answer_says_so_for_a_year(cast: Cast, sign_in: SignIn, settings: Any) -> None:
    settings.SECURE_HSTS_SECONDS, settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = 31_536_000, True
    for path, answer in ask_each(sign_in(cast.owner), secure=True).items():
        assert answer["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains", path


def test_behind_https_pages_lead_there_and_a_key_in_clear_is_refused(cast: Cast, token: str, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = settings.IS_BEHIND_HTTPS = True
    bearer = {"Authorization": f"Bearer {token}"}
    led = Client().get("/sign-in/")
    assert (led.status_code, led["Location"]) == (301, "https://testserver/sign-in/")
    refused = Client().post("/api/v1/messages", b"x\n", content_type="text/plain", headers=bearer)
    assert (refused.status_code, "https" in refused.json()["detail"]) == (403, True)
    assert Client().post("/v1/traces", b"{}", content_type="application/json", headers=bearer).status_code == 403
    assert not cast.workspace.deliveries.exists()
    assert Client().get("/api/v1/limits", headers=bearer, secure=True).status_code == 200


def test_behind_https_each_cookie_is_of_this_host_and_kept_from_scripts_and_others(cast: Cast, settings: Any) -> None:
    settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    cast.owner.user.set_password("a long walk by the sea")
    cast.owner.user.save()
    client = Client()
    client.get("/sign-in/", secure=True)
    client.post("/sign-in/", {"username": "olivia", "password": "a long walk by the sea"}, secure=True)
    # What a page says once is the session's too.
    client.post("/w/acme/account/", {"form": "zone", "time_zone": "Asia/Kolkata"}, secure=True)
    given = {name: cookie for name, cookie in client.cookies.items() if cookie.value}
    assert set(given) == {"__Host-sessionid", "__Host-csrftoken"}
    for name, cookie in given.items():
        assert (cookie["secure"], cookie["path"], cookie["domain"], cookie["samesite"]) == (True, "/", "", "Lax"), name
    assert given["__Host-sessionid"]["httponly"] is True
    assert "Times are shown in" in client.get("/w/acme/account/", secure=True).content.decode()


@pytest.mark.long(seconds=12)
def test_no_page_is_kept_by_a_browser_and_each_offers_to_sign_out(cast: Cast, sign_in: SignIn) -> None:
    client, asked = sign_in(cast.owner), 0
    for path in PAGES:
        answer = client.get(path)
        if answer.status_code == 200:
            asked += 1
            assert "no-store" in answer.headers.get("Cache-Control", ""), path
            page = answer.getvalue()
            if b"<!doctype html>" in page:
                assert reverse("pages:sign-out").encode() in page, path
    assert asked > 15


@pytest.mark.long(seconds=12)
def test_looking_changes_nothing(cast: Cast, sign_in: SignIn, token: str) -> None:
    """What changes something is no GET: people and keys are as before, and of acts a download alone is recorded."""
    take_in(cast, b'{"clowl":"0.2","mid":"m1","p":"INF","from":"a","to":["b"],"cid":"c","body":{"t":"x"}}\n')
    client = sign_in(cast.owner)
    before = Deed.objects.latest("pk").pk
    kept = list(Membership.objects.values()), list(cast.workspace.api_keys.values("id", "scopes", "revoked_at"))
    for path in PAGES:
        assert client.get(path).status_code < 500, path
        assert client.head(path).status_code < 500, path
    assert set(Deed.objects.filter(pk__gt=before).values_list("code", flat=True)) <= {"trail.exported"}
    now = list(Membership.objects.values()), list(cast.workspace.api_keys.values("id", "scopes", "revoked_at"))
    assert now == kept


def test_trace_is_refused_everywhere(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.owner)
    for path in ADDRESSES:
        answer = client.generic("TRACE", path, headers={"X-Probe": "come back"})
        assert answer.status_code in {403, 404, 405}, path
        assert b"come back" not in answer.getvalue()


def test_a_refusal_names_who_asked_in_the_access_log(cast: Cast, sign_in: SignIn, token: str) -> None:
    from inspector.server import access_log_format

    refused = sign_in(cast.viewer).get("/w/acme/upload/")
    assert refused.status_code == 403
    assert refused.wsgi_request.META["inspector.actor"] == f"member {cast.viewer.user_id}"
    asked = Client().get("/api/v1/trail", headers={"Authorization": f"Bearer {token}"})
    assert asked.status_code == 403
    assert asked.wsgi_request.META["inspector.actor"].startswith("api-key ")
    assert "%({inspector.actor}e)s" in access_log_format


def test_no_directory_is_listed_and_no_source_is_served() -> None:
    for path in ("/static/", "/static/js/", "/.git/config", "/static/../manage.py", "/.env", "/inspector/settings.py"):
        assert Client().get(path).status_code == 404, path


def test_no_name_of_a_download_is_the_senders(cast: Cast, sign_in: SignIn) -> None:
    delivery = take_in(cast, b"one\n\xff\n", name='a"; filename=evil.html\r\nX-Evil: 1')
    client, record = sign_in(cast.owner), cast.workspace.deliveries.get().sightings.first().record
    addresses = [
        reverse("pages:raw", args=["acme", record.pk]),
        reverse("pages:problems-csv", args=["acme", delivery.pk]),
        *(path for path in PAGES if "trail" in path),
    ]
    names = []
    for path in addresses:
        answer = client.get(path)
        answer.getvalue()
        assert "X-Evil" not in answer, path
        names += [answer["Content-Disposition"]] if "Content-Disposition" in answer else []
    assert len(names) >= 2
    assert all(re.fullmatch(r'attachment; filename="[\w.-]+"', name) for name in names), names


def test_fields_that_a_form_does_not_have_change_nothing(cast: Cast, sign_in: SignIn) -> None:
    client, viewer = sign_in(cast.viewer), cast.viewer
    more = {"role": "owner", "is_superuser": "1", "is_staff": "1", "username": "root", "workspace": "other"}
    before = User.objects.filter(pk=viewer.user_id).values().get()
    assert client.post("/w/acme/account/", {"form": "zone", "time_zone": "Asia/Kolkata", **more}).status_code == 302
    assert client.post("/w/acme/account/", {"form": "sessions", **more}).status_code == 302
    after = User.objects.filter(pk=viewer.user_id).values().get()
    assert {name for name in after if after[name] != before[name]} == {"time_zone"}
    viewer.refresh_from_db()
    assert (viewer.role, viewer.workspace_id) == ("viewer", cast.workspace.pk)
    # A key's body is taken as it is described, and no more.
    key, token = create_api_key(workspace=cast.workspace, name="k", scopes=["workspace"], created_by=cast.owner.user)
    bearer, body = (
        {"Authorization": f"Bearer {token}"},
        {"name": "Renamed", "slug": "mine", "archived_at": "2026-01-01"},
    )
    Client().patch("/api/v1/workspace", body, content_type="application/json", headers=bearer)
    cast.workspace.refresh_from_db()
    assert (cast.workspace.slug, cast.workspace.archived_at) == ("acme", None)
    assert cast.workspace.name in {"Acme", "Renamed"}
    key.refresh_from_db()
    assert key.scopes == ["workspace"]
