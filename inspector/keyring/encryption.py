"""Envelope encryption: secrets under a data key of their own, data keys under one key that is not in the database.

The key-encryption key comes from `INSPECTOR_KEYRING_KEY`, or from a file in the state folder that is made when the
first key is added. It is looked at anew each time, so that a file that was put back is noticed at once. Everything is
AES-256-GCM; what it is bound to (workspace, key, purpose) is authenticated with it, so that no ciphertext can be moved
to another row.

And the ring: the keys of a workspace as they open messages, and the sealing of what they opened.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import connection

from dialects import Key
from inspector.starting import read_or_make_secret

from .models import EscrowedKey
from .spellings import KEY_BYTES, PUBLIC_PREFIX, PlainKey

MIN_CHARACTERS = 32
NONCE_BYTES = 12


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


OTHER_KEK = (
    "The key-encryption key in use is not the one that these keys were sealed with. Put that one back, or name it in"
    " INSPECTOR_KEYRING_OLD_KEYS."
)
# The first half of the advisory lock's key; the second is of the workspace.
_LOCK_SPACE = 0x4B_45_59_52


@dataclass(frozen=True, slots=True)
class HeldKey:
    """A key of the ring, unsealed in memory."""

    row: EscrowedKey
    _data_key: bytes = field(repr=False)
    _secret: bytes = field(repr=False)

    def list_codec_keys(self, peers: Sequence[bytes]) -> list[Key]:
        """The key as the codecs take it: once for each peer it may have; `peers` are tried where it names none."""
        session = self.row.session or None
        if self.row.kind == EscrowedKey.Kind.PSK:
            return [Key(session=session, psk=self._secret)]
        named = [bytes(self.row.peer)] if self.row.peer else peers
        return [Key(session=session, private=self._secret, peer=peer) for peer in named]

    @property
    def needs_peers(self) -> bool:
        """Whether it opens only with public keys that a conversation shows."""
        return self.row.kind == EscrowedKey.Kind.X25519 and not self.row.peer

    def seal(self, text: bytes, message_id: uuid.UUID) -> bytes:
        """What the key has opened of a message, sealed under its data key."""
        return seal(self._data_key, text, bind(b"opened", self.row.workspace_id, self.row.pk, message_id))

    def unseal(self, sealed: bytes, message_id: uuid.UUID) -> bytes:
        """What `seal` sealed for this message.

        Raises:
            KeyringError: for anything else.
        """
        return open_sealed(self._data_key, sealed, bind(b"opened", self.row.workspace_id, self.row.pk, message_id))

    def digest(self, text: bytes) -> bytes:
        """A digest that tells whether a text is the same, and allows nobody without the key to guess it."""
        return hmac.digest(self._data_key, text, "sha256")


@dataclass(frozen=True, slots=True)
class Ring:
    """The keys of a workspace that can be used now, and those that cannot, with the reason."""

    keys: tuple[HeldKey, ...] = ()
    unusable: tuple[EscrowedKey, ...] = ()
    problem: str = ""

    @property
    def needs_peers(self) -> bool:
        """Whether the public keys that conversations show are of use."""
        return any(key.needs_peers for key in self.keys)


def hold_ring(workspace_id: uuid.UUID, *, is_shared: bool) -> None:
    """Until the transaction ends, keep adding or destroying keys (alone) apart from relying on them (shared).

    Else a key and a sealed message that arrive together could pass each other unseen, or a record be written under a
    key that is being destroyed.
    """
    function = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {function}(%s, %s)", [_LOCK_SPACE, int.from_bytes(workspace_id.bytes[12:], signed=True)]
        )


def load_ring(*, workspace_id: uuid.UUID) -> Ring:
    """The ring of a workspace. Never raises for a key-encryption key that is missing or wrong: the ring says so."""
    return unseal_keys(EscrowedKey.objects.in_force().filter(workspace_id=workspace_id).order_by("pk"))


def unseal_keys(rows: Iterable[EscrowedKey]) -> Ring:
    """These keys, unsealed as far as they can be."""
    rows = tuple(rows)
    if not rows:
        return Ring()
    try:
        keks = {kek.id: kek for kek in load_keks()}
    except KeyringError as error:
        return Ring(unusable=rows, problem=str(error))
    held: list[HeldKey] = []
    unusable: list[EscrowedKey] = []
    problem = ""
    for row in rows:
        try:
            held.append(unseal_key(row, keks.get(row.kek_id)))
        except KeyringError as error:
            unusable.append(row)
            problem = problem or str(error)
    return Ring(tuple(held), tuple(unusable), problem)


def find_unusable(rows: Iterable[EscrowedKey]) -> tuple[set[uuid.UUID], str]:
    """Which of these keys cannot be used now, and why; told by names alone, without unsealing any."""
    rows = list(rows)
    try:
        known = {kek.id for kek in load_keks()} if rows else set()
    except KeyringError as error:
        return {row.pk for row in rows}, str(error)
    unusable = {row.pk for row in rows if row.kek_id not in known}
    return unusable, OTHER_KEK if unusable else ""


def unseal_key(row: EscrowedKey, kek: KeyEncryptionKey | None) -> HeldKey:
    """A key as it opens messages.

    Raises:
        KeyringError: where it was sealed with another key-encryption key, or has been changed.
    """
    if kek is None:
        raise KeyringError(OTHER_KEK)
    data_key = kek.unwrap(bytes(row.data_key), bind(b"data key", row.workspace_id, row.pk))
    return HeldKey(row, data_key, open_sealed(data_key, bytes(row.secret), _bind_secret(row)))


def seal_key(row: EscrowedKey, plain: PlainKey, kek: KeyEncryptionKey) -> None:
    """Fill the row with what the key is: sealed, and named by its fingerprint."""
    data_key = make_data_key()
    row.kind, row.peer, row.session = plain.kind, plain.peer, plain.session
    row.kek_id = kek.id
    row.data_key = kek.wrap(data_key, bind(b"data key", row.workspace_id, row.pk))
    row.fingerprint = name_key(plain, kek, row.workspace_id)
    row.secret = seal(data_key, plain.secret, _bind_secret(row))


def rewrap_key(row: EscrowedKey, old: KeyEncryptionKey | None, new: KeyEncryptionKey) -> None:
    """Seal the row's data key with another key-encryption key; what the data key sealed stays as it is.

    Raises:
        KeyringError: where `old` does not open it.
    """
    held = unseal_key(row, old)
    row.kek_id = new.id
    row.data_key = new.wrap(held._data_key, bind(b"data key", row.workspace_id, row.pk))
    if row.kind == EscrowedKey.Kind.PSK:
        row.fingerprint = new.name_secret(held._secret, row.workspace_id)


def name_key(plain: PlainKey, kek: KeyEncryptionKey, workspace_id: uuid.UUID) -> str:
    """The fingerprint: of an X25519 key as handshakes write it, of a pre-shared one a code of this workspace's own."""
    if plain.kind == EscrowedKey.Kind.PSK:
        return kek.name_secret(plain.secret, workspace_id)
    digest = hashlib.sha256(PUBLIC_PREFIX + plain.public).digest()
    return f"SHA256:{base64.b64encode(digest).decode()}"


def _bind_secret(row: EscrowedKey) -> bytes:
    # With whom and in which session a key is used is as much part of it as the secret is.
    return bind(b"secret", row.workspace_id, row.pk) + f" {row.kind} {row.session} ".encode() + bytes(row.peer)
