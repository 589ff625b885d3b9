"""The secret: sealed at rest, bound to its row, and in nothing that anybody reads."""

from __future__ import annotations

import base64
import hashlib
import io
import logging
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from inspector.keyring.encryption import KeyringError, load_ring
from inspector.keyring.models import EscrowedKey
from inspector.keyring.spellings import PlainKey, read_keys
from inspector.threads.models import Message, OpenedMessage
from tests.inspector.conftest import Cast

from .conftest import PSK, SECRET, WORDS, add

pytestmark = pytest.mark.django_db


def dump() -> str:
    """Every column of every table as text, bytes in hexadecimal."""
    with connection.cursor() as cursor:
        return "\n".join(
            repr(cursor.execute(f'SELECT t::text FROM "{table}" t').fetchall())
            for table in connection.introspection.table_names(cursor)
        )


def spell(secret: bytes) -> list[str]:
    """The forms in which a dump could hold it."""
    packed = base64.b64encode(secret).decode()
    return [
        secret.hex(),
        packed.rstrip("="),
        packed.replace("+", "-").replace("/", "_").rstrip("="),
        repr(secret)[2:-1],
    ]


def test_no_secret_and_nothing_opened_is_in_any_column(cast: Cast, sealed: list[Message]) -> None:
    add(cast)
    add(cast, PSK, kind="psk", written="text", label="shared")
    assert OpenedMessage.objects.count() == 2
    held = dump()
    for secret in (SECRET, PSK):
        assert not [form for form in spell(secret) if form in held]
    for words in WORDS:
        assert words not in held
        assert words.encode().hex() not in held
    # The scan does find what stands there in the clear.
    assert sealed[0].english in held
    assert EscrowedKey.objects.first().fingerprint in held  # type: ignore[union-attr]


def test_a_pre_shared_key_is_recognised_but_not_by_guessing(cast: Cast, settings: Any) -> None:
    key = add(cast, PSK, kind="psk", written="text", label="shared")
    digests = {name: hashlib.new(name, PSK).hexdigest() for name in ("sha256", "sha1", "md5", "sha512")}
    assert not any(digest.startswith(key.fingerprint) or key.fingerprint in digest for digest in digests.values())
    with pytest.raises(Exception, match="here already, as “shared”"):
        add(cast, base64.b64encode(PSK), kind="psk", label="again")


def test_sealed_columns_cannot_be_moved_to_another_row(cast: Cast) -> None:
    one = add(cast, PSK, kind="psk", written="text", label="one")
    other = add(cast, b"another", kind="psk", written="text", label="other")
    EscrowedKey.objects.filter(pk=other.pk).update(data_key=one.data_key, secret=one.secret)
    ring = load_ring(workspace_id=cast.workspace.pk)
    assert [held.row.pk for held in ring.keys] == [one.pk]
    assert [row.pk for row in ring.unusable] == [other.pk]
    EscrowedKey.objects.filter(pk=one.pk).update(session="another")
    assert not load_ring(workspace_id=cast.workspace.pk).keys


def test_nothing_that_is_printed_logged_or_raised_holds_a_secret(
    cast: Cast, sealed: list[Message], owner: Client, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    text = base64.b64encode(SECRET).decode()
    plain = read_keys(text.encode(), kind="x25519")[0]
    add(cast, text.encode(), label="executor")
    (held,) = load_ring(workspace_id=cast.workspace.pk).keys
    (codec_key,) = held.list_codec_keys([bytes(31) + b"\x09"])
    shown = [repr(plain), repr(held), repr(held.row), repr(codec_key), str(codec_key), repr(load_ring)]
    for said in (
        {"key": text, "kind": "x25519", "label": "twice"},
        {"key": f"{text}!", "kind": "x25519", "label": "x"},
    ):
        response = owner.post("/w/acme/keyring/", said)
        assert response.status_code == 422
        shown.append(response.content.decode())
    shown.append(owner.get("/w/acme/keyring/").content.decode())
    everything = "\n".join([*shown, caplog.text])
    assert not [form for form in spell(SECRET) if form in everything]


def test_another_key_encryption_key_takes_over(cast: Cast, sealed: list[Message], settings: Any) -> None:
    from inspector.opening import find_openings_of

    add(cast)
    psk = add(cast, PSK, kind="psk", written="text", label="shared")
    old, settings.KEYRING_KEY = settings.KEYRING_KEY, "the key-encryption key that comes after it"
    with pytest.raises(CommandError, match="2 could not be opened"):
        call_command("rewrap_keyring", stdout=io.StringIO())
    settings.KEYRING_OLD_KEYS = [old]
    call_command("rewrap_keyring", stdout=(said := io.StringIO()))
    assert said.getvalue() == "2 sealed anew.\n"
    settings.KEYRING_OLD_KEYS = []
    assert len(load_ring(workspace_id=cast.workspace.pk).keys) == 2
    assert len(find_openings_of(messages=sealed)) == 2
    before, psk.fingerprint = psk.fingerprint, EscrowedKey.objects.get(pk=psk.pk).fingerprint
    assert before != psk.fingerprint
    with pytest.raises(Exception, match="here already"):
        add(cast, PSK, kind="psk", written="text", label="again")


def test_the_file_of_the_key_encryption_key_is_made_with_the_first_key_for_its_owner_alone(
    cast: Cast, settings: Any, tmp_path: Any
) -> None:
    settings.KEYRING_KEY, settings.KEYRING_KEY_FILE = "", tmp_path / "state" / "keyring_key"
    assert load_ring(workspace_id=cast.workspace.pk).problem == ""
    assert not settings.KEYRING_KEY_FILE.exists()
    add(cast, PSK, kind="psk", written="text", label="shared")
    assert settings.KEYRING_KEY_FILE.stat().st_mode & 0o777 == 0o600
    assert len(load_ring(workspace_id=cast.workspace.pk).keys) == 1
    settings.KEYRING_KEY_FILE.write_bytes(b"\xff\xfe")
    assert "cannot be read: it is no text" in load_ring(workspace_id=cast.workspace.pk).problem


def test_what_was_opened_is_bound_to_its_message(cast: Cast, sealed: list[Message]) -> None:
    from inspector.opening import find_openings_of

    add(cast)
    rows = {row.message_id: row for row in OpenedMessage.objects.all()}
    OpenedMessage.objects.filter(message=sealed[0]).update(sealed=rows[sealed[1].pk].sealed)
    assert set(find_openings_of(messages=sealed)) == {sealed[1].pk}
    (held,) = load_ring(workspace_id=cast.workspace.pk).keys
    with pytest.raises(KeyringError):
        held.unseal(bytes(rows[sealed[1].pk].sealed), sealed[0].pk)


def test_a_plain_key_says_what_it_is_and_not_what_it_holds() -> None:
    assert repr(PlainKey(kind="psk", secret=b"hidden")) == "PlainKey(kind='psk', peer=b'', session='', label='')"
