"""The key that signs checkpoints: made once for an installation, and sealed by the key-encryption key."""

from __future__ import annotations

import uuid

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from inspector.keyring.encryption import KeyringError, bind, load_keks, make_kek

from .models import LedgerKey
from .notes import Checkpoint, Note, Verifier, sign

_BOUND_TO = bind(b"ledger")
_opened: dict[bytes, Ed25519PrivateKey] = {}


def get_key() -> LedgerKey | None:
    """The installation's key; None before the first checkpoint."""
    return LedgerKey.objects.order_by("pk").first()


def ensure_key() -> LedgerKey:
    """The installation's key, made where there is none. Whoever calls this is alone.

    Raises:
        KeyringError: where there is no key-encryption key to seal it with, and none can be made.
    """
    key = get_key()
    if key is None:
        make_kek()
        private = Ed25519PrivateKey.generate()
        public = private.public_key().public_bytes_raw()
        sealed = load_keks()[0].wrap(private.private_bytes_raw(), _BOUND_TO)
        key = LedgerKey.objects.create(name=f"inspector-{public.hex()[:12]}", public=public, sealed=sealed)
    return key


def name_origin(key: LedgerKey, workspace_id: uuid.UUID) -> str:
    """What names the ledger of a workspace in its checkpoints, and the key in their signatures."""
    return f"{key.name}/ledger/{workspace_id}"


def get_verifier(key: LedgerKey, workspace_id: uuid.UUID) -> Verifier:
    """The public key, by which anybody can verify a workspace's checkpoints."""
    return Verifier(name_origin(key, workspace_id), bytes(key.public))


def sign_checkpoint(key: LedgerKey, workspace_id: uuid.UUID, size: int, root: bytes) -> Note:
    """A checkpoint, signed.

    Raises:
        KeyringError: where the private part cannot be opened.
    """
    origin = name_origin(key, workspace_id)
    text = Checkpoint(origin, size, root).text
    return Note(text, (sign(text, origin, _open(key)),))


def _open(key: LedgerKey) -> Ed25519PrivateKey:
    sealed = bytes(key.sealed)
    if sealed not in _opened:
        _opened.clear()
        _opened[sealed] = Ed25519PrivateKey.from_private_bytes(_unwrap(sealed))
    return _opened[sealed]


def rewrap_signing_key() -> int:
    """Seal the private part with the key-encryption key in use; how many were sealed anew, 0 or 1.

    Raises:
        KeyringError: where it cannot be opened.
    """
    key, kek = get_key(), load_keks()[0]
    if key is None:
        return 0
    try:
        kek.unwrap(bytes(key.sealed), _BOUND_TO)
    except KeyringError:
        LedgerKey.objects.filter(pk=key.pk).update(sealed=kek.wrap(_unwrap(bytes(key.sealed)), _BOUND_TO))
        return 1
    return 0


def _unwrap(sealed: bytes) -> bytes:
    failed: KeyringError | None = None
    for kek in load_keks():
        try:
            return kek.unwrap(sealed, _BOUND_TO)
        except KeyringError as error:
            failed = error
    raise failed or KeyringError("There is no key-encryption key.")
