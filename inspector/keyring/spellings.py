"""The forms in which people have keys: Base64, base64url, hex, plain text, PEM, PKCS#8, JWK, and the codecs' JSON.

No error and no `repr` here holds anything of a secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from .models import EscrowedKey

MAX_BYTES: Final = 64 * 1024
MAX_AT_ONCE: Final = 100
MAX_PSK_LENGTH: Final = 1024
MAX_SESSION_LENGTH: Final = 200
KEY_BYTES: Final = 32
# What stands before an X25519 public key in its DER structure.
PUBLIC_PREFIX: Final = bytes.fromhex("302a300506032b656e032100")
_SIGNING_PREFIX = bytes.fromhex("302a300506032b6570032100")
_PRIVATE_PREFIX = bytes.fromhex("302e020100300506032b656e04220420")
# Bytes from which on hexadecimal digits alone cannot be anything else.
_SURELY_HEX = 16
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[\s:]*)+")
_BASE64 = re.compile(r"[0-9A-Za-z+/_-]+={0,2}")
_OTHER_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----")
_NAMES = {"private", "peer", "psk", "session", "label"}
# Any key agrees on zero with a point of low order, and on something else with every other.
_PROBE: Final = X25519PrivateKey.from_private_bytes(bytes(KEY_BYTES))

Written = str  # "any", "base64", "hex" or "text"


class SpellingError(Exception):
    """What was given is no key; the sentence says why and what to give instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainKey:
    """A key as it was given. `peer` is b"" and `session` and `label` are "" where nothing is said."""

    kind: str
    secret: bytes = field(repr=False)
    peer: bytes = b""
    session: str = ""
    label: str = ""

    @property
    def public(self) -> bytes:
        """The public key of an X25519 key, 32 bytes; b"" of a pre-shared one."""
        if self.kind != EscrowedKey.Kind.X25519:
            return b""
        key = X25519PrivateKey.from_private_bytes(self.secret).public_key()
        return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def read_keys(data: bytes, *, kind: str, written: Written = "any", peer: str = "", session: str = "") -> list[PlainKey]:
    """The keys of a file or of pasted text.

    Args:
        data: JSON, PEM, or one key by itself.
        kind: what one key by itself is; JSON and PEM say it themselves.
        written: how one key by itself is written; "any" where that is to be seen from it.
        peer: the other side's public key, for those that do not name it.
        session: the session, for those that do not name it.

    Raises:
        SpellingError: for anything else, and for JSON of which any key is wrong.
    """
    if len(data) > MAX_BYTES:
        raise SpellingError(f"This is too long for a key: more than {MAX_BYTES // 1024} KiB.")
    text = _decode(data)
    around: dict[str, Any] = {
        "peer": read_public(peer) if peer.strip() else b"",
        "session": _check_session(session.strip()),
    }
    if text[:1] in ("{", "["):
        return [_check(key) for key in _read_json(text, around)]
    if "-----BEGIN" in text:
        return [_check(PlainKey(kind=EscrowedKey.Kind.X25519, secret=_read_pem(text), **around))]
    if kind == EscrowedKey.Kind.PSK:
        secret = _check_psk(text.encode() if written == "text" else _read_bytes(text, written))
        return [_check(PlainKey(kind=kind, secret=secret, **around))]
    return [_check(PlainKey(kind=kind, secret=_read_private(text, written), **around))]


def read_public(text: str) -> bytes:
    """The 32 bytes of an X25519 public key in Base64, hex or PEM, alone or in its DER structure.

    Raises:
        SpellingError: for anything else, and for a point of low order.
    """
    bare = re.sub(r"-----(BEGIN|END) PUBLIC KEY-----", "", text).strip()
    try:
        data = _strip(_read_bytes(bare, "any", sizes=(KEY_BYTES, KEY_BYTES + len(PUBLIC_PREFIX))), PUBLIC_PREFIX)
    except SpellingError:
        raise SpellingError("The peer's public key cannot be read as Base64, hex or PEM.") from None
    if data.startswith(_SIGNING_PREFIX):
        raise SpellingError("The peer's public key is an Ed25519 key, for signatures: an X25519 key is needed.")
    if len(data) != KEY_BYTES:
        raise SpellingError(
            f"The peer's public key has {KEY_BYTES} bytes, in Base64, hex or PEM; this reads as {len(data)}."
        )
    if is_weak(data):
        raise SpellingError("The peer's public key is a point of low order: nothing secret can be agreed with it.")
    return data


def is_weak(public: bytes) -> bool:
    """Whether a public key of 32 bytes is a point of low order (RFC 7748, section 6.1), in any of its spellings."""
    try:
        _PROBE.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        return True
    return False


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise SpellingError("This is not text. Give the key in Base64, hex or PEM, or the codecs' JSON.") from None
    if not text:
        raise SpellingError("There is no key yet: paste it, or choose its file.")
    return text


def _check_session(session: str) -> str:
    if len(session) > MAX_SESSION_LENGTH or "\x00" in session or not _is_storable(session):
        raise SpellingError(f"A session's name has at most {MAX_SESSION_LENGTH} characters, and no NUL.")
    return session


def _is_storable(text: str) -> bool:
    """Whether the text has no half of a surrogate pair, which JSON can spell and UTF-8 cannot."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _read_label(text: str | None) -> str:
    return "".join(char for char in text or "" if _is_storable(char)).strip()[:120]


def _check(key: PlainKey) -> PlainKey:
    if key.peer and key.peer == key.public:
        raise SpellingError("The peer's public key is that of this key itself: give the other side's.")
    return key


def _read_json(text: str, around: Mapping[str, Any]) -> list[PlainKey]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        # The parser's own words would hold a piece of the text.
        raise SpellingError("This begins like JSON and is none: look for a missing bracket or comma.") from None
    rows = given["keys"] if isinstance(given, dict) and "keys" in given else given
    rows = rows if isinstance(rows, list) else [rows]
    if not rows:
        raise SpellingError("The list of keys is empty.")
    if len(rows) > MAX_AT_ONCE:
        raise SpellingError(f"These are {len(rows):,} keys: add at most {MAX_AT_ONCE} at once.")
    keys = []
    for number, row in enumerate(rows, 1):
        try:
            keys.append(_read_row(row, around))
        except SpellingError as error:
            raise SpellingError(f"Key {number}: {error}" if len(rows) > 1 else str(error)) from None
    return keys


def _read_row(row: Any, around: Mapping[str, Any]) -> PlainKey:
    if isinstance(row, dict) and row.get("kty") == "OKP":
        return _read_jwk(row, around)
    if not isinstance(row, dict) or not {"private", "psk"} & row.keys():
        raise SpellingError('A key is an object with "private" (and "peer"), or with "psk".')
    if {"private", "psk"} <= row.keys():
        raise SpellingError('A key has "private" or "psk", and not both.')
    if any(not isinstance(row.get(name, ""), str) for name in _NAMES if row.get(name) is not None):
        raise SpellingError("Every name of a key has text as its value, in Base64 where it is bytes.")
    said = {**around, "label": _read_label(row.get("label"))}
    if row.get("session"):
        said["session"] = _check_session(row["session"])
    if row.get("peer"):
        said["peer"] = read_public(row["peer"])
    if "psk" in row:
        return PlainKey(kind=EscrowedKey.Kind.PSK, secret=_check_psk(_read_bytes(row["psk"], "base64")), **said)
    return PlainKey(kind=EscrowedKey.Kind.X25519, secret=_read_private(row["private"], "any"), **said)


def _read_jwk(row: Mapping[str, Any], around: Mapping[str, Any]) -> PlainKey:
    if row.get("crv") != "X25519" or not isinstance(row.get("d"), str):
        raise SpellingError("This JWK is no X25519 private key: crv has to be X25519, and d the private key.")
    label = _read_label(row["kid"]) if isinstance(row.get("kid"), str) else ""
    return PlainKey(
        kind=EscrowedKey.Kind.X25519, secret=_read_private(row["d"], "base64"), **{**around, "label": label}
    )


def _read_pem(text: str) -> bytes:
    """The private key of a PEM file.

    Raises:
        SpellingError: for every other kind of PEM file, with what it is.
    """
    kinds = set(_OTHER_PEM.findall(text))
    if "ENCRYPTED PRIVATE KEY" in kinds:
        raise SpellingError(
            "This key is locked with a password. Unlock it first: openssl pkey -in key.pem -out unlocked.pem"
        )
    if "PRIVATE KEY" not in kinds:
        if "PUBLIC KEY" in kinds:
            raise SpellingError("This is a public key. What opens messages is the private key that belongs to it.")
        raise SpellingError("This PEM file holds no PKCS#8 private key: its heading has to be PRIVATE KEY.")
    try:
        key = load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise SpellingError("This PEM file is damaged, or of a kind that is not known here.") from None
    if not isinstance(key, X25519PrivateKey):
        raise SpellingError("This is a private key of another kind: sealed messages need X25519.")
    return key.private_bytes_raw()


def _read_private(text: str, written: Written) -> bytes:
    if written == "text":
        raise SpellingError("An X25519 key is bytes, and no plain text: give it in Base64 or hex.")
    data = _strip(_read_bytes(text, written, sizes=(KEY_BYTES, KEY_BYTES + len(_PRIVATE_PREFIX))), _PRIVATE_PREFIX)
    if len(data) != KEY_BYTES:
        raise SpellingError(
            f"An X25519 private key has {KEY_BYTES} bytes, in Base64, hex or PEM; this reads as {len(data)}."
        )
    return data


def _check_psk(secret: bytes) -> bytes:
    if not 0 < len(secret) <= MAX_PSK_LENGTH:
        raise SpellingError(f"A pre-shared key has between 1 and {MAX_PSK_LENGTH:,} bytes; this has {len(secret):,}.")
    return secret


def _strip(data: bytes, prefix: bytes) -> bytes:
    return data[len(prefix) :] if len(data) == KEY_BYTES + len(prefix) and data.startswith(prefix) else data


def _read_bytes(text: str, written: Written, *, sizes: tuple[int, ...] = ()) -> bytes:
    """The bytes of a text in hex or Base64. Where it can be either, the one of a fitting size.

    A long text of hexadecimal digits alone is no Base64: by chance that happens once in 2^64 keys.

    Raises:
        SpellingError: where it is neither, or nothing tells which of the two.
    """
    is_hex = written in ("any", "hex") and _HEX.fullmatch(text)
    as_hex = bytes.fromhex(re.sub(r"[\s:]", "", text)) if is_hex else None
    as_base64 = _read_base64(text) if written in ("any", "base64") else None
    if as_hex is not None and len(as_hex) >= _SURELY_HEX:
        as_base64 = None
    found = [data for data in (as_hex, as_base64) if data is not None]
    fitting = [data for data in found if len(data) in sizes]
    if len(fitting) == 1 or len(found) == 1:
        return (fitting or found)[0]
    if not found:
        wanted = {"hex": "hex", "base64": "Base64"}.get(written, "Base64, hex or PEM")
        raise SpellingError(f"This cannot be read as {wanted}.")
    if sizes:
        return found[0]
    raise SpellingError(
        f"This can be read as hex ({len(found[0])} bytes) and as Base64 ({len(found[1])} bytes): say which it is."
    )


def _read_base64(text: str) -> bytes | None:
    """Base64 or base64url, with or without its padding."""
    packed = re.sub(r"\s", "", text)
    if not _BASE64.fullmatch(packed) or len(packed.rstrip("=")) % 4 == 1:
        return None
    bare = packed.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except binascii.Error:
        return None
