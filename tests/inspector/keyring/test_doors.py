"""The doors of the keyring: who may see what was opened, by page and by API, and that each look leaves a trace."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.accounts.services import create_api_key
from inspector.keyring.models import EscrowedKey, KeyEvent
from inspector.threads.models import Message
from tests.inspector.conftest import Cast, deliver, resolve_all

from .conftest import KEY_FILE, PSK, SAMPLE_KEY, WORDS, add, make_line

pytestmark = pytest.mark.django_db

KEYRING = "/w/acme/keyring/"


def get(client: Client, name: str, *args: Any) -> str:
    response = client.get(reverse(f"pages:{name}", args=["acme", *args]))
    assert response.status_code == 200
    return response.content.decode()


def ask(cast: Cast, address: str, *scopes: str) -> Any:
    _, token = create_api_key(workspace=cast.workspace, name=f"with {' '.join(scopes)}", scopes=list(scopes))
    return Client().get(address, headers={"Authorization": f"Bearer {token}"}).json()


def test_the_whole_way_from_sealed_to_open_and_back(cast: Cast, sealed: list[Message], owner: Client) -> None:
    conversation = sealed[0].conversation_id
    before = get(owner, "conversation", conversation)
    assert before.count("sealed</span>") == 2
    assert not any(words in before for words in WORDS)
    assert f'No key of the <a href="{KEYRING}">keyring</a> opens it.' in get(owner, "message", sealed[0].pk)

    said = {"kind": "x25519", "file": SimpleUploadedFile("keys.json", KEY_FILE)}
    kept = owner.post(KEYRING, said, follow=True)
    assert "are being tried now" in kept.content.decode()
    assert "Opening 1 conversation" in kept.content.decode()
    resolve_all()
    assert owner.get(reverse("pages:opening", args=["acme"]))["HX-Refresh"] == "true"
    page = get(owner, "keyring")
    assert "2 messages" in page
    assert SAMPLE_KEY["private"] not in page

    after = get(owner, "conversation", conversation)
    assert after.count("opened with the executor&#x27;s demonstration key") == 2
    assert all(words in after for words in WORDS)
    message = get(owner, "message", sealed[0].pk)
    assert WORDS[0] in message
    assert "Plaintext, from" in message, "the layer that the key opened"

    key = EscrowedKey.objects.get()
    removal = reverse("pages:remove-escrowed-key", args=["acme", key.pk])
    assert "2 messages will be unreadable" in owner.get(removal).content.decode()
    gone = owner.post(removal, follow=True).content.decode()
    assert "2 messages are sealed again" in gone
    assert get(owner, "conversation", conversation).count("sealed</span>") == 2
    assert not any(words in get(owner, "message", sealed[0].pk) for words in WORDS)


def test_only_who_may_sees_what_was_opened(
    cast: Cast, sealed: list[Message], auditor: Client, viewer: Client, sign_in: Callable[[Membership], Client]
) -> None:
    add(cast)
    pages = [("conversation", sealed[0].conversation_id), *(("message", message.pk) for message in sealed)]
    for name, pk in pages:
        address = reverse(f"pages:{name}", args=["acme", pk])
        seen, kept_from = get(auditor, name, pk), get(viewer, name, pk)
        assert any(words in seen for words in WORDS)
        assert "opened with" in seen
        assert not any(words in kept_from for words in (*WORDS, "opened with", "demonstration"))
        assert "sealed; you may not see it" in kept_from
        assert sign_in(cast.stranger).get(address).status_code == 404
    for client in (auditor, viewer):
        for words in ("debits", '"direct debits"', "mandates"):
            found = client.get(reverse("pages:search", args=["acme"]), {"q": words}).content.decode()
            assert str(sealed[0].pk) not in found
    for name, pk in pages:
        address = reverse(f"pages:{name}", args=["acme", pk]) + "?order=time"
        assert not any(words in viewer.get(address).content.decode() for words in WORDS)


def test_the_api_opens_for_the_scope_secrets_alone(cast: Cast, sealed: list[Message]) -> None:
    add(cast)
    address = f"/api/v1/messages/{sealed[0].pk}"
    plain, seeing = ask(cast, address, "read"), ask(cast, address, "read", "secrets")
    assert plain["opened_with"] == []
    assert not any(words in json.dumps(plain) for words in WORDS)
    assert seeing["opened_with"] == ["the executor's demonstration key"]
    assert WORDS[0] in seeing["english"]
    assert seeing["message"]["security"]["opened"] is True
    assert "plaintext" in [layer["kind"] for layer in seeing["layers"]]
    assert "plaintext" not in [layer["kind"] for layer in plain["layers"]]
    for lists in ("/api/v1/messages", f"/api/v1/conversations/{sealed[0].conversation_id}"):
        assert not any(words in json.dumps(ask(cast, lists, "read", "secrets")) for words in WORDS)
    assert ask(cast, "/api/v1/messages?q=debits", "read", "secrets")["results"] == []


def test_each_act_and_each_look_leaves_a_trace_that_nobody_changes(
    cast: Cast, sealed: list[Message], auditor: Client, viewer: Client, owner: Client
) -> None:
    key = add(cast)
    get(viewer, "conversation", sealed[0].conversation_id)
    get(viewer, "message", sealed[0].pk)
    get(auditor, "conversation", sealed[0].conversation_id)
    get(auditor, "message", sealed[1].pk)
    ask(cast, f"/api/v1/messages/{sealed[0].pk}", "read")
    ask(cast, f"/api/v1/messages/{sealed[0].pk}", "read", "secrets")
    owner.post(reverse("pages:remove-escrowed-key", args=["acme", key.pk]))
    both = sorted(message.pk for message in sealed)
    rows = [
        (row.kind, row.by.get_username() if row.by else row.by_api_key, row.door, row.count, sorted(row.messages))
        for row in KeyEvent.objects.order_by("at", "id")
    ]
    by_program = rows[4][1]
    assert by_program.startswith("with read secrets (")
    assert rows == [
        ("added", "olivia", "", 0, []),
        ("opened", "", "", 2, both),
        ("shown", "amir", "conversation", 2, both),
        ("shown", "amir", "message", 1, [sealed[1].pk]),
        ("shown", by_program, "api", 1, [sealed[0].pk]),
        ("removed", "olivia", "", 2, []),
    ]
    for change in ("UPDATE keyring_keyevent SET count = 0", "DELETE FROM keyring_keyevent"):
        with pytest.raises(DatabaseError, match="only added to"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(change)
    page = get(auditor, "keyring")
    assert "2 messages became unreadable" in page
    assert "saw 2 opened messages on the conversation&#x27;s page" in page


def test_hostile_text_that_was_sealed_is_as_harmless_as_any_other(cast: Cast, auditor: Client) -> None:
    packed = base64.b64encode(
        b'{"t":"<script>alert(1)</script>\\u202e\\ud800\\u0000","bd":"https://evil.example/"}'
    ).decode()
    deliver(cast, make_line(f"j:{packed}", "s9", "c9") + b"\n")
    resolve_all()
    add(cast, PSK, kind="psk", written="text", label="<b>\u202elabel")
    message = Message.objects.get(is_sealed=True)
    for page in (
        get(auditor, "message", message.pk),
        get(auditor, "conversation", message.conversation_id),
        get(auditor, "keyring"),
    ):
        assert not any(raw in page for raw in ("<script>alert", "<b>", "\u202e", 'href="https://evil'))
    assert "&lt;script&gt;alert(1)" in get(auditor, "message", message.pk)
    assert "alert(1)" in ask(cast, f"/api/v1/messages/{message.pk}", "read", "secrets")["english"]


def test_an_auditor_looks_at_the_keyring_and_changes_nothing(
    cast: Cast, sealed: list[Message], auditor: Client, viewer: Client
) -> None:
    key = add(cast)
    removal = reverse("pages:remove-escrowed-key", args=["acme", key.pk])
    page = get(auditor, "keyring")
    assert key.fingerprint.startswith("SHA256:")
    assert key.label.split("'")[0] in page
    assert removal not in page
    assert "Save key" not in page
    assert auditor.post(KEYRING, {"key": "x", "kind": "psk", "label": "x"}).status_code == 403
    assert auditor.get(removal).status_code == auditor.post(removal).status_code == 403
    for address in (KEYRING, removal, reverse("pages:opening", args=["acme"])):
        assert viewer.get(address).status_code == 403
    assert KEYRING not in get(viewer, "conversations")
    assert EscrowedKey.objects.get() == key


def test_a_key_encryption_key_that_is_missing_or_wrong_is_said_on_the_page(
    cast: Cast, sealed: list[Message], owner: Client, settings: Any, tmp_path: Any
) -> None:
    add(cast)
    settings.KEYRING_KEY, settings.KEYRING_KEY_FILE = "", tmp_path / "none" / "keyring_key"
    page = get(owner, "keyring")
    assert "The key-encryption key is missing" in page
    assert "cannot be used" in page
    said = {"key": "00" * 32, "kind": "psk", "label": "x"}
    refused = owner.post(KEYRING, said)
    assert (refused.status_code, "is missing" in refused.content.decode()) == (422, True)
    assert not settings.KEYRING_KEY_FILE.exists(), "a fresh one would hide that the old one is gone"
    for key, words in (("x" * 10, "too short"), ("another one, that is long enough for it", "not the one")):
        settings.KEYRING_KEY = key
        assert words in get(owner, "keyring")
        shown = get(owner, "conversation", sealed[0].conversation_id)
        assert not any(opened in shown for opened in WORDS)
        assert get(owner, "message", sealed[0].pk)


@pytest.mark.long(seconds=5)
def test_pages_cost_the_same_however_much_is_sealed(
    cast: Cast, sealed: list[Message], owner: Client, django_assert_max_num_queries: Any
) -> None:
    add(cast)
    with django_assert_max_num_queries(40) as few:
        get(owner, "keyring")
    count = len(few)
    for number in range(5):
        add(cast, f"{number:064x}".encode(), kind="psk", label=f"k{number}")
    for _ in range(26):
        get(owner, "message", sealed[0].pk)
    with django_assert_max_num_queries(count):
        page = get(owner, "keyring")
    assert page.count("saw 1 opened message") == 26
    older = re.search(r'href="([^"#]+)#trace">Older', page)
    assert older is not None, "33 events are more than a page holds"
    rest = owner.get(f"{KEYRING}{older[1]}").content.decode()
    assert "added the key" in rest
    assert "Older" not in rest
    assert owner.get(f"{KEYRING}?before=nonsense").status_code == 404
