"""Envelope encryption: secrets under a data key of their own, data keys under one key that is not in the database.

The key-encryption key comes from `INSPECTOR_KEYRING_KEY`, or from a file in the state folder that is made when the
first key is added. It is looked at anew each time, so that a file that was put back is noticed at once. Everything
is AES-256-GCM; what it is bound to (workspace, key, purpose) is authenticated with it, so that no ciphertext can be
moved to another row.
"""

from __future__ import annotations

import hmac
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from inspector.starting import read_or_make_secret

MIN_CHARACTERS = 32
KEY_BYTES, NONCE_BYTES = 32, 12


class KeyringError(Exception):
    """The keyring cannot be used as it is; the sentence says why and what to do. It never holds a secret."""


class SealError(KeyringError):
    """Sealed bytes cannot be had any more: they were changed, or destroyed with their key. The sentence says which."""

    def __init__(self, text: str, *, is_destroyed: bool = False) -> None:
        super().__init__(text)
        self.is_destroyed = is_destroyed


class LockedError(KeyringError):
    """Nothing can be sealed or opened just now: the key-encryption key is missing or another one. Put back, it can."""


@dataclass(frozen=True, slots=True)
class KeyEncryptionKey:
    """What data keys are wrapped with. `id` names it without telling anything of it."""

    id: str
    _wrapping: bytes = field(repr=False)
    _naming: bytes = field(repr=False)

    @classmethod
    def derive(cls, text: str) -> KeyEncryptionKey:
        """The key of a secret text, which has to be random: no password."""
        secret = text.encode("utf-8", "surrogateescape")
        return cls(
            _derive(secret, b"keyring id").hex()[:16], _derive(secret, b"keyring"), _derive(secret, b"fingerprint")
        )

    def wrap(self, data_key: bytes, bound_to: bytes) -> bytes:
        """The data key, sealed."""
        return seal(self._wrapping, data_key, bound_to)

    def unwrap(self, wrapped: bytes, bound_to: bytes) -> bytes:
        """The data key.

        Raises:
            KeyringError: where this is not what it was wrapped with, or was changed.
        """
        return open_sealed(self._wrapping, wrapped, bound_to)

    def name_secret(self, secret: bytes, workspace_id: uuid.UUID) -> str:
        """A code by which the same secret is recognised in a workspace, and that allows no guessing without the key."""
        return hmac.digest(self._naming, workspace_id.bytes + secret, "sha256").hex()[:32]


def _derive(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=b"inspector " + purpose).derive(secret)


def load_keks() -> list[KeyEncryptionKey]:
    """The key that seals, and after it those that opened what is older.

    Raises:
        KeyringError: where there is none, or it is unusable.
    """
    text = settings.KEYRING_KEY or _read_file(settings.KEYRING_KEY_FILE)
    if not text:
        raise KeyringError(
            "The key-encryption key is missing: it is neither in INSPECTOR_KEYRING_KEY nor in the state folder's file"
            f" {settings.KEYRING_KEY_FILE.name}. Put it back: without it no key here can be used."
        )
    if len(text) < MIN_CHARACTERS:
        raise KeyringError(
            f"The key-encryption key is too short: it has {len(text)} characters, and needs at least"
            f" {MIN_CHARACTERS} random ones."
        )
    return [KeyEncryptionKey.derive(each) for each in (text, *settings.KEYRING_OLD_KEYS)]


def make_kek() -> None:
    """Make the file of the key-encryption key where there is neither it nor the setting.

    Raises:
        KeyringError: where the file cannot be written.
    """
    if settings.KEYRING_KEY:
        return
    try:
        read_or_make_secret(settings.KEYRING_KEY_FILE)
    except OSError as error:
        raise KeyringError(
            "There is no key-encryption key yet, and the state folder cannot be written to:"
            f" {error.strerror}. Set INSPECTOR_KEYRING_KEY, the same for every process."
        ) from None


def _read_file(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise KeyringError(f"The file of the key-encryption key, {path.name}, cannot be read: {reason}.") from None


def make_data_key() -> bytes:
    """A fresh data key."""
    return os.urandom(KEY_BYTES)


def seal(key: bytes, plaintext: bytes, bound_to: bytes) -> bytes:
    """Nonce, ciphertext and tag."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plaintext, bound_to)


def open_sealed(key: bytes, sealed: bytes, bound_to: bytes) -> bytes:
    """The plaintext.

    Raises:
        KeyringError: where the key is another one, or anything was changed.
    """
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound_to)
    except (InvalidTag, ValueError):
        raise KeyringError("The stored keys were sealed with another key, or have been changed.") from None


def bind(purpose: bytes, *ids: uuid.UUID) -> bytes:
    """What a ciphertext is bound to: what it is for, and the rows it belongs to."""
    return b"inspector.keyring.1 " + purpose + b" " + b"".join(each.bytes for each in ids)
