"""Keys of periods: what the records of a workspace are sealed with at rest, a key for each month of receipt.

They are wrapped by the key-encryption key, as escrowed keys are. What a key sealed cannot be read without it: to
destroy it is to erase the month. A sealed value is the SHA-256 of the clear bytes, then nonce, ciphertext and tag. It
is bound to its key, column and row, so that it cannot be put elsewhere. Where there are no bytes nothing is sealed.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC
from typing import Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from inspector.accounts.models import Membership, Workspace
from inspector.accounts.workspaces import require_owner, set_choice
from inspector.trail.row_security import across

from .encryption import (
    NONCE_BYTES,
    OTHER_KEK,
    KeyEncryptionKey,
    KeyringError,
    LockedError,
    SealError,
    bind,
    hold_ring,
    load_keks,
    make_data_key,
    make_kek,
    open_sealed,
    seal,
)
from .models import EscrowedKey, PeriodKey

_DIGEST_BYTES: Final = 32
# By so much a sealed value is longer than what it holds.
OVERHEAD_BYTES: Final = _DIGEST_BYTES + NONCE_BYTES + 16
# For so long a process may go on opening after another one has destroyed the key.
_KEPT_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Seal:
    """The key of a period, as it seals and opens values."""

    id: uuid.UUID
    _wrapped: bytes = field(repr=False)
    _data_key: bytes = field(repr=False)

    def seal(self, data: bytes, column: str, row: uuid.UUID, offset: int = 0) -> bytes:
        """These bytes as a column of a row keeps them; `offset` tells rows of one delivery apart."""
        if not data:
            return b""
        return hashlib.sha256(data).digest() + seal(self._data_key, data, self._bind(column, row, offset))

    def open(self, sealed: bytes, column: str, row: uuid.UUID, offset: int = 0) -> bytes:
        """What `seal` sealed for this place.

        Raises:
            SealError: for anything else.
        """
        digest, rest = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:]
        try:
            data = open_sealed(self._data_key, rest, self._bind(column, row, offset))
        except KeyringError:
            data = b""
        if not data or hashlib.sha256(data).digest() != digest:
            raise SealError("the sealed bytes were changed in the database, or belong to another row: they do not open")
        return data

    def _bind(self, column: str, row: uuid.UUID, offset: int) -> bytes:
        return bind(column.encode(), self.id, row) + b" %d" % offset


_seals: dict[uuid.UUID, tuple[float, Seal]] = {}
# By workspace: until when it is known, and whether texts of sealed records are left out of the index.
_unindexed: dict[uuid.UUID, tuple[float, bool]] = {}


def open_value(key_id: uuid.UUID | None, held: bytes, column: str, row: uuid.UUID, offset: int = 0) -> bytes:
    """The bytes that a column holds: as they are where no key sealed them.

    Raises:
        SealError: where they were changed or destroyed.
        LockedError: where the key-encryption key is missing or another one.
    """
    return find_seal(key_id).open(bytes(held), column, row, offset) if key_id and held else bytes(held)


def find_seal(key_id: uuid.UUID) -> Seal:
    """A key by its id, also of a month that is over.

    Raises:
        SealError: where it was destroyed, or is not there.
        LockedError: where the key-encryption key is missing or another one.
    """
    now = time.monotonic()
    kept = _seals.get(key_id)
    if kept is None or kept[0] < now:
        for each, (until, _) in list(_seals.items()):
            if until < now:
                _seals.pop(each, None)
        row = PeriodKey.objects.filter(pk=key_id).first()
        if row is None:
            raise SealError("the key that these bytes were sealed with is not in this database")
        if row.destroyed_at is not None:
            raise SealError(f"these bytes were destroyed with the keys of {row.period}", is_destroyed=True)
        kept = _seals[key_id] = (now + _KEPT_SECONDS, _unwrap(row))
    return kept[1]


def _unwrap(row: PeriodKey) -> Seal:
    wrapped = bytes(row.data_key)
    try:
        kek = {each.id: each for each in load_keks()}.get(row.kek_id)
        if kek is None:
            raise LockedError(OTHER_KEK)
        return Seal(row.pk, wrapped, kek.unwrap(wrapped, _bind_key(row)))
    except KeyringError as error:
        raise LockedError(str(error)) from None


def _bind_key(row: PeriodKey) -> bytes:
    return bind(b"period " + row.period.encode(), row.workspace_id, row.pk)


def name_period() -> str:
    """The month that it is, in UTC."""
    return timezone.now().astimezone(UTC).strftime("%Y-%m")


def hold_seal(workspace: Workspace) -> Seal | None:
    """What is written now is sealed with; None where the workspace does not seal. The key is there at the commit.

    Call inside the transaction that writes.

    Raises:
        LockedError: where the key-encryption key is missing or another one.
    """
    if not workspace.seals_records:
        return None
    hold_ring(workspace.pk, is_shared=True)
    row = PeriodKey.objects.filter(workspace=workspace, period=name_period()).first() or _make(workspace)
    _, kept = _seals.get(row.pk, (0.0, None))
    if kept is None or kept._wrapped != bytes(row.data_key):
        kept = _unwrap(row)
        _seals[row.pk] = (time.monotonic() + _KEPT_SECONDS, kept)
    return kept


def _make(workspace: Workspace) -> PeriodKey:
    try:
        kek, period = ensure_kek(), name_period()
    except KeyringError as error:
        raise LockedError(str(error)) from None
    row = PeriodKey(workspace=workspace, period=period, kek_id=kek.id)
    row.data_key = kek.wrap(make_data_key(), _bind_key(row))
    # Of two that come together one makes it, and the other waits for its transaction.
    PeriodKey.objects.bulk_create([row], ignore_conflicts=True)
    return PeriodKey.objects.get(workspace=workspace, period=period)


@across()
def ensure_kek() -> KeyEncryptionKey:
    """The key-encryption key, made with the very first key. While others were sealed with one, none is made anew.

    Raises:
        KeyringError: where there is none that can be used.
    """
    if not (EscrowedKey.objects.exists() or PeriodKey.objects.exists()):
        make_kek()
    return load_keks()[0]


def rewrap_period_key(row: PeriodKey, old: KeyEncryptionKey | None, new: KeyEncryptionKey) -> None:
    """Wrap the key with another key-encryption key; what it sealed stays as it is.

    Raises:
        KeyringError: where `old` does not open it.
    """
    if old is None:
        raise KeyringError(OTHER_KEK)
    data_key = old.unwrap(bytes(row.data_key), _bind_key(row))
    row.kek_id, row.data_key = new.id, new.wrap(data_key, _bind_key(row))


@transaction.atomic
def set_sealing(workspace: Workspace, by: Membership | None, *, is_sealed: bool) -> None:
    """Seal the bytes of what comes in from now on, or seal no more.

    Raises:
        PermissionDenied: for anybody but an owner of it, or the operator, who is None.
        ValidationError: where it is so already, or the key-encryption key cannot be used.
    """
    require_owner(workspace, by)
    if is_sealed:
        try:
            ensure_kek()
        except KeyringError as error:
            raise ValidationError(str(error)) from None
    already = f"the workspace {'seals its records already' if is_sealed else 'seals no records'}"
    code = "workspace.sealing-begun" if is_sealed else "workspace.sealing-ended"
    set_choice(workspace, by, "seals_records", is_sealed, code=code, already=already)


@transaction.atomic
def set_indexing(workspace: Workspace, by: Membership | None, *, is_indexed: bool) -> None:
    """Put the words of sealed records that are told from now on into the index of search, or leave them out.

    Raises:
        PermissionDenied: for anybody but an owner of it, or the operator, who is None.
        ValidationError: where it is so already.
    """
    already = f"words of sealed records are {'' if is_indexed else 'not '}indexed already"
    code = "workspace.sealed-indexed" if is_indexed else "workspace.sealed-not-indexed"
    set_choice(workspace, by, "indexes_sealed", is_indexed, code=code, already=already)
    _unindexed.pop(workspace.pk, None)


def leaves_unindexed(workspace_id: uuid.UUID) -> bool:
    """Whether the texts of sealed records of a workspace are left out of the index of search; as old as a key that is
    kept in memory may be."""
    until, kept = _unindexed.get(workspace_id, (0.0, False))
    if time.monotonic() > until:
        kept = Workspace.objects.filter(pk=workspace_id, indexes_sealed=False).exists()
        _unindexed[workspace_id] = (time.monotonic() + _KEPT_SECONDS, kept)
    return kept


def find_period_key(*, workspace_id: uuid.UUID, period: str) -> PeriodKey:
    """The key of a month that is over.

    Raises:
        ValidationError: where there is none, it is destroyed, or the month is not over yet.
    """
    row = PeriodKey.objects.filter(workspace=workspace_id, period=period).first()
    if row is None:
        raise ValidationError("no record is sealed for this period: write it as 2026-10")
    if row.destroyed_at is not None:
        raise ValidationError("the key of this period is destroyed already")
    if period >= name_period():
        raise ValidationError("this period is not over yet: its key is in use")
    return row


def destroy_key(key: PeriodKey) -> None:
    """Destroy a key for good, after those who are just writing under it. The database refuses it under a legal hold.

    Call inside a transaction.
    """
    hold_ring(key.workspace_id, is_shared=False)
    PeriodKey.objects.filter(pk=key.pk, destroyed_at=None).update(data_key=b"", kek_id="", destroyed_at=timezone.now())
    _seals.pop(key.pk, None)
