"""Connect an agent: the lines work as they stand, the key is shown once, and the page says when a message came."""

from __future__ import annotations

import html
import re
import subprocess

import pytest
from django.test import Client

from inspector.accounts.models import ApiKey
from tests.inspector.conftest import Cast, resolve_all

from .conftest import shows

pytestmark = pytest.mark.django_db
PAGE = "/w/acme/connect/"


def run_curl(lines: str) -> list[str]:
    """What curl is given by lines for a shell: its arguments, and last what it reads."""
    script = "curl() { printf '%s\\0' \"$@\"; cat; }\n" + lines
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout.split("\0")


def test_an_owner_makes_a_key_and_sees_its_first_message(cast: Cast, owner: Client) -> None:
    assert "YOUR-KEY" in owner.get(PAGE).content.decode()
    made = owner.post(PAGE)
    key = ApiKey.objects.get(workspace=cast.workspace)
    assert (made["Location"], key.scopes) == (f"{PAGE}?key={key.pk}", ["ingest"])
    page = html.unescape(owner.get(made["Location"]).content.decode())
    # Loaded again, the page makes no second key, and waits on.
    shows(
        owner.get(made["Location"]).content.decode(), "Waiting for the first message", "YOUR-KEY", never=["new-token"]
    )
    token = re.findall(r"aci_[0-9a-f]{12}_[0-9a-f]{64}", page)[0]
    shows(
        page,
        f'Client("http://testserver", "{token}")',
        f"Authorization=Bearer%20{token}",
        f'-H "Authorization: Bearer {token}"',
    )
    arrival = f"{PAGE}{key.pk}/"
    assert "Waiting for the first message" in owner.get(arrival).content.decode()
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
    assert "being read" in owner.get(arrival).content.decode()
    resolve_all(is_examined=False)
    told = owner.get(arrival).content.decode()
    shows(told, "First message received", "The coordinator (agent 0) asks the planner (agent 1)", never=["hx-get"])
    assert token not in owner.get(PAGE).content.decode()


def test_what_is_no_text_is_not_waited_for(cast: Cast, owner: Client) -> None:
    token = re.findall(r"aci_[0-9a-f]{12}_[0-9a-f]{64}", owner.post(PAGE, follow=True).content.decode())[0]
    headers = {"Authorization": f"Bearer {token}"}
    assert Client().post("/api/v1/messages", b"\xff\xff", content_type="text/plain", headers=headers).status_code == 202
    key = ApiKey.objects.get(workspace=cast.workspace)
    told = owner.get(f"{PAGE}{key.pk}/").content.decode()
    shows(told, "no text", never=["hx-get"])


def test_who_is_no_owner_makes_no_key(cast: Cast, viewer: Client) -> None:
    page = viewer.get(PAGE)
    assert page.status_code == 200
    assert "An owner makes keys" in page.content.decode()
    assert viewer.post(PAGE).status_code == 403
    assert not ApiKey.objects.filter(workspace=cast.workspace).exists()
