"""Connect an agent: the lines work as they stand, the key is shown once, and the page says when a message came."""

from __future__ import annotations

import html
import re
import subprocess
from collections.abc import Callable

import pytest
from django.test import Client

from inspector.accounts.models import ApiKey, Membership
from tests.inspector.conftest import Cast, settle_all

pytestmark = pytest.mark.django_db
PAGE = "/w/acme/connect/"


def run_curl(lines: str) -> list[str]:
    """What curl is given by lines for a shell: its arguments, and last what it reads."""
    script = "curl() { printf '%s\\0' \"$@\"; cat; }\n" + lines
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout.split("\0")


def test_an_owner_makes_a_key_and_sees_its_first_message(cast: Cast, sign_in: Callable[[Membership], Client]) -> None:
    client = sign_in(cast.owner)
    assert "YOUR-KEY" in client.get(PAGE).content.decode()
    made = client.post(PAGE)
    page = html.unescape(made.content.decode())
    key = ApiKey.objects.get(workspace=cast.workspace)
    assert (made.status_code, key.scopes) == (201, ["ingest"])
    token = re.findall(r"aci_[0-9a-f]{12}_[0-9a-f]{64}", page)[0]
    assert f'Client("http://testserver", "{token}")' in page
    assert f"Authorization=Bearer%20{token}" in page
    assert f'-H "Authorization: Bearer {token}"' in page
    arrival = f"{PAGE}{key.pk}/"
    assert "Waiting for the first message" in client.get(arrival).content.decode()
    *arguments, data, body = run_curl(re.findall(r'id="way-curl"[^>]*>(.*?)</pre>', page, re.DOTALL)[0])
    assert arguments == [
        "http://testserver/api/v1/messages",
        *("-H", f"Authorization: Bearer {token}", "-H", "Content-Type: text/plain", "--data-binary"),
    ]
    assert data == "@-"
    sent = Client().post(
        "/api/v1/messages", body, content_type="text/plain", headers={"Authorization": f"Bearer {token}"}
    )
    assert sent.status_code == 202
    assert "being read" in client.get(arrival).content.decode()
    settle_all(is_examined=False)
    told = client.get(arrival).content.decode()
    assert "First message received" in told
    assert "The coordinator (agent 0) asks the planner (agent 1)" in told
    assert "hx-get" not in told
    assert token not in client.get(PAGE).content.decode()


def test_what_is_no_text_is_not_waited_for(cast: Cast, sign_in: Callable[[Membership], Client]) -> None:
    client = sign_in(cast.owner)
    token = re.findall(r"aci_[0-9a-f]{12}_[0-9a-f]{64}", client.post(PAGE).content.decode())[0]
    headers = {"Authorization": f"Bearer {token}"}
    assert Client().post("/api/v1/messages", b"\xff\xff", content_type="text/plain", headers=headers).status_code == 202
    key = ApiKey.objects.get(workspace=cast.workspace)
    told = client.get(f"{PAGE}{key.pk}/").content.decode()
    assert "no text" in told
    assert "hx-get" not in told


def test_who_is_no_owner_makes_no_key(cast: Cast, sign_in: Callable[[Membership], Client]) -> None:
    client = sign_in(cast.viewer)
    page = client.get(PAGE)
    assert page.status_code == 200
    assert "An owner makes keys" in page.content.decode()
    assert client.post(PAGE).status_code == 403
    assert not ApiKey.objects.filter(workspace=cast.workspace).exists()
