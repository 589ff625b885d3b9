"""Opening sealed payloads: X25519 or a pre-shared key, HKDF-SHA256, AES-256-GCM.

Specification: references/security. The documents write `HKDF(shared, session)` without saying which parameter the
session is; both are tried, the session as info first, then as salt. AES-GCM authenticates, so the one that opens
is the one. Nothing is returned unless its tag fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .._context import Key
from .packing import decode_base64

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
# More keys than this are not tried on one message.
MAX_KEYS = 64

X25519_PREFIX = bytes.fromhex("302a300506032b656e032100")
ED25519_PREFIX = bytes.fromhex("302a300506032b6570032100")
_PRIVATE_PREFIX = bytes.fromhex("302e020100300506032b656e04220420")

_PRIME = 2**255 - 19
# The u-coordinates of the points of low order, RFC 7748 section 6.1: with these every secret is zero.
_LOW_ORDER = frozenset(
    {
        0,
        1,
        _PRIME - 1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
    }
)


class Opened(NamedTuple):
    """What trying the keys gave: the plaintext, or None; how many were tried, and whether one was refused."""

    plaintext: bytes | None
    tried: int = 0
    has_weak: bool = False
    label: str | None = None
    is_bound: bool = False


def strip_prefix(key: bytes) -> bytes:
    """The 32 bytes of an X25519 key that may stand in a DER structure."""
    for prefix in (X25519_PREFIX, ED25519_PREFIX, _PRIVATE_PREFIX):
        if len(key) == len(prefix) + KEY_BYTES and key.startswith(prefix):
            return key[len(prefix) :]
    return key


def is_weak(public: bytes) -> bool:
    """Whether a public key of 32 bytes is a point of low order, in any of its spellings."""
    if len(public) != KEY_BYTES:
        return False
    number = int.from_bytes(public, "little") & ((1 << 255) - 1)
    return number % _PRIME in _LOW_ORDER


def read_public_key(written: str) -> bytes | None:
    """The bytes of a public key as a handshake writes it, in Base64; None where it is no Base64."""
    data, _ = decode_base64(written)
    return data


@lru_cache(maxsize=512)
def agree(private: bytes, peer: bytes) -> bytes | None:
    """The X25519 shared secret of a pair; None for a key of the wrong size or of low order."""
    private, peer = strip_prefix(private), strip_prefix(peer)
    if len(private) != KEY_BYTES or len(peer) != KEY_BYTES or is_weak(peer):
        return None
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(peer))
    except ValueError:
        return None


def derive_key(secret: bytes, *, salt: bytes | None = None, info: bytes | None = None) -> bytes:
    """A key of 32 bytes by HKDF-SHA256, RFC 5869."""
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=info).derive(secret)


def derive_session_keys(secret: bytes, session: str | None) -> Iterator[bytes]:
    """The session keys that the documents' `HKDF(shared, session)` may mean, likeliest first."""
    name = (session or "").encode("utf-8", "surrogatepass")
    yield derive_key(secret, info=name)
    if name:
        yield derive_key(secret, salt=name)


def decrypt(key: bytes, nonce: bytes, sealed: bytes) -> bytes | None:
    """The plaintext of ciphertext and tag, or None where the tag does not fit. The nonce has exactly 12 bytes."""
    if len(nonce) != NONCE_BYTES or len(sealed) < TAG_BYTES:
        return None
    try:
        return AESGCM(key).decrypt(nonce, sealed, None)
    except InvalidTag:
        return None


def open_sealed(keys: Iterable[Key], session: str | None, nonce: bytes, sealed: bytes) -> Opened:
    """Try each key in turn until one opens the payload."""
    tried, has_weak, is_bound = 0, False, False
    for key in islice(keys, MAX_KEYS):
        secret = _secret(key)
        if secret is None:
            has_weak = has_weak or _is_refused(key)
            continue
        tried += 1
        is_bound = is_bound or key.session is not None
        for session_key in derive_session_keys(secret, session):
            plaintext = decrypt(session_key, nonce, sealed)
            if plaintext is not None:
                return Opened(plaintext, tried, has_weak, key.label, is_bound)
    return Opened(None, tried, has_weak, None, is_bound)


def _secret(key: Key) -> bytes | None:
    if key.psk is not None:
        return key.psk
    if key.private is not None and key.peer is not None:
        return agree(key.private, key.peer)
    return None


def _is_refused(key: Key) -> bool:
    return key.peer is not None and is_weak(strip_prefix(key.peer))
