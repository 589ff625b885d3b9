"""Bytes of a payload: Base64, what is compressed within bounds, and what is sealed, opened with a key.

Specification: 0.4.0 Payload Encoding, which names neither alphabet, padding nor container; references/security. Its
documents write `HKDF(shared, session)` without saying which parameter the session is; both are tried, the session as
info first, then as salt. AES-GCM authenticates, so the one that opens is the one. Nothing is returned unless its tag
fits.
"""

from __future__ import annotations

import binascii
import re
import zlib
from base64 import b64decode, b64encode
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

MAX_UNPACKED_BYTES = 1 << 20
MAX_RATIO = 200
# All compressed payloads of one record together.
MAX_RECORD_BYTES = 4 << 20

_ALPHABET = re.compile(r"[A-Za-z0-9+/]*\Z")
_URL_SAFE = str.maketrans("-_", "+/")
_BREAKS = re.compile(r"[ \t]*[\r\n]+[ \t]*")


class Unpacked(NamedTuple):
    """The bytes, or why there are none; the container they were in, and how many bytes followed it."""

    data: bytes | None
    problem: str = ""
    container: str = "zlib"
    trailing_bytes: int = 0


class Room:
    """How many bytes the compressed payloads of one record may still unpack to."""

    def __init__(self, size_bytes: int = MAX_RECORD_BYTES) -> None:
        self.left_bytes = size_bytes


def decode_base64(text: str) -> tuple[bytes | None, tuple[str, ...]]:
    """The bytes of a Base64 text, or None, and what is odd about its spelling, in words."""
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = None
    if data is not None and b64encode(data).decode("ascii") == text:
        return data, ()
    odd: list[str] = []
    plain = text.strip()
    if "\n" in plain or "\r" in plain:
        plain = _BREAKS.sub("", plain)
        odd.append("line breaks inside")
    if "-" in plain or "_" in plain:
        plain = plain.translate(_URL_SAFE)
        odd.append("the URL-safe alphabet")
    body = plain.rstrip("=")
    if not _ALPHABET.match(body) or len(body) % 4 == 1:
        return None, ()
    padding = "=" * (-len(body) % 4)
    if plain != body + padding:
        odd.append("padding missing" if len(plain) < len(body + padding) else "too much padding")
    data = b64decode(body + padding)
    if b64encode(data).decode("ascii") != body + padding:
        odd.append("unused bits that are not zero")
    return data, tuple(odd)


def encode_base64(data: bytes) -> str:
    """The standard alphabet with padding, in one line."""
    return b64encode(data).decode("ascii")


def unpack(data: bytes, room: Room) -> Unpacked:
    """Decompress zlib, gzip or raw deflate, to at most 1 MiB, 200 times the input, and the room that is left."""
    limit = min(MAX_UNPACKED_BYTES, MAX_RATIO * len(data), room.left_bytes)
    problem = "it is neither zlib, gzip nor raw deflate"
    for window, container in ((47, "gzip" if data[:2] == b"\x1f\x8b" else "zlib"), (-15, "raw deflate")):
        stream = zlib.decompressobj(window)
        try:
            unpacked = stream.decompress(data, limit + 1)
        except zlib.error:
            continue
        room.left_bytes = max(room.left_bytes - len(unpacked), 0)
        if len(unpacked) > limit:
            return Unpacked(None, f"it unpacks to more than {limit} bytes", container)
        if stream.eof:
            return Unpacked(unpacked, "", container, len(stream.unused_data))
        if window > 0:
            problem = "it is cut short"
    return Unpacked(None, problem)


def pack(text: str) -> bytes:
    """The text compressed in a zlib container."""
    return zlib.compress(text.encode(), 9)


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
