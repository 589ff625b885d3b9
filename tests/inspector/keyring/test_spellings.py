"""The forms of keys: each that people have is read, and whatever is none is refused with a reason and no secret."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from inspector.keyring.spellings import SpellingError, read_keys, read_public
from tests.codecs.test_agent_lingua_sealed import LOW_ORDER
from tests.each import for_each

PRIVATE = x25519.X25519PrivateKey.from_private_bytes(bytes(range(32)))
RAW = PRIVATE.private_bytes_raw()
DER = PRIVATE.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
PEM = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
PEER = x25519.X25519PrivateKey.from_private_bytes(bytes(range(1, 33))).public_key()
PUBLIC = PEER.public_bytes_raw()
PUBLIC_DER = PEER.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
PUBLIC_PEM = PEER.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def pack(data: bytes) -> str:
    return base64.b64encode(data).decode()


def url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@for_each(
    [
        pack(RAW),
        url(RAW),
        RAW.hex(),
        RAW.hex(":").upper(),
        f"\ufeff {pack(RAW)} \r\n",
        pack(DER),
        DER.hex(),
        PEM.decode(),
    ]
)
def test_a_private_key_in_every_form(written: str) -> None:
    (key,) = read_keys(written.encode(), kind="x25519", peer=pack(PUBLIC), session=" s1 ")
    assert (key.kind, key.secret, key.peer, key.session) == ("x25519", RAW, PUBLIC, "s1")


@for_each([pack(PUBLIC), PUBLIC.hex(), pack(PUBLIC_DER), PUBLIC_PEM.decode(), url(PUBLIC)])
def test_a_public_key_in_every_form(written: str) -> None:
    assert read_public(written) == PUBLIC


def test_json_as_the_codecs_take_it_and_jwk() -> None:
    rows = [
        {"session": "s1", "private": pack(RAW), "peer": pack(PUBLIC), "label": "mine"},
        {"session": "s2", "psk": pack(b"shared")},
        {"kty": "OKP", "crv": "X25519", "d": url(RAW), "x": "…", "kid": "a jwk"},
    ]
    for text in (json.dumps(rows), json.dumps({"about": "…", "keys": rows}), json.dumps({"raw": "…", "keys": rows})):
        keys = read_keys(text.encode(), kind="psk")
        assert [(key.kind, key.secret, key.session, key.label) for key in keys] == [
            ("x25519", RAW, "s1", "mine"),
            ("psk", b"shared", "s2", ""),
            ("x25519", RAW, "", "a jwk"),
        ]
    assert read_keys(json.dumps(rows[1]).encode(), kind="x25519")[0].secret == b"shared"


@pytest.mark.parametrize(
    ("text", "written", "secret"),
    [
        ("c2hhcmVk", "any", b"shared"),
        ("c2hhcmVk", "text", b"c2hhcmVk"),
        ("abcd", "hex", b"\xab\xcd"),
        ("ab" * 16, "any", b"\xab" * 16),
    ],
)
def test_a_pre_shared_key(text: str, written: str, secret: bytes) -> None:
    assert read_keys(text.encode(), kind="psk", written=written)[0].secret == secret


LOCKED = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password"))
SIGNING = ed25519.Ed25519PrivateKey.generate()
SIGNING_PEM = SIGNING.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
SIGNING_PUBLIC = SIGNING.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
RSA_PEM = rsa.generate_private_key(65537, 1024).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@for_each(
    [
        (b"", {}, "no key yet"),
        (b" \n", {}, "no key yet"),
        (b"\xff\xfe", {}, "not text"),
        (b"x" * 70_000, {}, "too long"),
        (b"no key, at all!", {}, "cannot be read"),
        (pack(b"short").encode(), {}, "reads as 5"),
        (b"abcd" * 4, {"kind": "psk"}, "say which it is"),
        (b"", {"kind": "psk", "written": "text"}, "no key yet"),
        (b"x" * 2000, {"kind": "psk", "written": "text"}, "this has 2,000"),
        (RAW.hex().encode(), {"written": "text"}, "no plain text"),
        (LOCKED, {}, "locked with a password"),
        (SIGNING_PEM, {}, "needs? X25519"),
        (RSA_PEM, {}, "needs? X25519"),
        (PUBLIC_PEM, {}, "This is a public key"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", {}, "PKCS#8"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", {}, "damaged"),
        (b"{", {}, "begins like JSON"),
        (b"[" * 50_000, {}, "begins like JSON"),
        (b"[" + b"9" * 50_000 + b"]", {}, "begins like JSON"),
        (b"[]", {}, "empty"),
        (b"[1, 2]", {}, "Key 1: A key is an object"),
        (b"{}", {}, "A key is an object"),
        (b'{"psk": 5}', {}, "text as its value"),
        (b'{"psk": ""}', {}, "cannot be read"),
        (b'{"psk": "AA==", "private": "AA=="}', {}, "not both"),
        (b'{"psk": "AA==", "session": "\\ud800"}', {}, "session"),
        (b'{"kty": "OKP", "crv": "Ed25519", "d": "AA"}', {}, "JWK"),
        (json.dumps([{"psk": "AA=="}] * 101).encode(), {}, "at most 100"),
        (pack(RAW).encode(), {"peer": "zz!"}, "peer's public key cannot"),
        (pack(RAW).encode(), {"peer": pack(bytes(32))}, "low order"),
        (pack(RAW).encode(), {"peer": pack(SIGNING_PUBLIC)}, "Ed25519"),
        (pack(RAW).encode(), {"peer": pack(PRIVATE.public_key().public_bytes_raw())}, "of this key itself"),
        (pack(RAW).encode(), {"session": "s" * 300}, "at most 200"),
    ]
)
def test_what_is_no_key_is_refused_with_a_reason(data: bytes, said: dict[str, Any], words: str) -> None:
    with pytest.raises(SpellingError, match=words) as refused:
        read_keys(data, **{"kind": "x25519", **said})
    if len(data) > 12:
        assert data.decode("latin-1")[:12] not in str(refused.value).replace("-----BEGIN PRI", "")
    assert refused.value.__cause__ is None


@given(st.one_of(st.binary(max_size=200), st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace"))))
def test_no_input_breaks_it(data: bytes) -> None:
    for kind in ("x25519", "psk"):
        keys = []
        with suppress(SpellingError):
            keys = read_keys(data, kind=kind)
        assert all(key.secret for key in keys)


def test_a_peer_of_low_order_is_refused_in_every_spelling() -> None:
    for public in LOW_ORDER:
        with pytest.raises(SpellingError, match="low order"):
            read_public(public.hex())
    for seed in range(1, 50):
        public = x25519.X25519PrivateKey.from_private_bytes(bytes([seed]) * 32).public_key().public_bytes_raw()
        assert read_public(public.hex()) == public
