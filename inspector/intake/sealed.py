"""Columns of bytes that may be sealed at rest: how a row opens them, and what statements may know of them.

A row is sealed where `sealed_with` names the key of a period (`keyring.periods`), all its sealed columns by that one.
A loaded row holds what the database holds, and opens a column when somebody asks for it. Whoever reads a column past
Django's models opens it by `open_value`, and asks for its length and digest as below: those of the clear bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any, Final

from django.db import models
from django.db.models import BinaryField, Case, F, Func, Q, When
from django.db.models.functions import Length, Sign
from django.db.models.lookups import Exact
from django.db.models.query_utils import DeferredAttribute

from inspector.keyring.encryption import KeyringError, SealError
from inspector.keyring.periods import OVERHEAD_BYTES, find_seal, open_value

from .object_store import Stored, load

# The same two for plain SQL over a table with a column `source`.
SQL_SHA256: Final = (
    "CASE WHEN {0}.sealed_with_id IS NULL OR length({0}.source) = 0 THEN sha256({0}.source)"
    " ELSE substring({0}.source FROM 1 FOR 32) END"
)
SQL_LENGTH: Final = (
    "length({0}.{1}) - CASE WHEN {0}.sealed_with_id IS NULL OR length({0}.{1}) = 0 THEN 0"
    f" ELSE {OVERHEAD_BYTES} END"
)


class _Opened(bytes):
    """What a row's sealed column says, once it was opened."""


class _Opening(DeferredAttribute):
    """A column that opens when it is asked for."""

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        """The clear bytes; of a row that names an object those of the object.

        Raises:
            SealError: where they were changed or destroyed.
            LockedError: where the key-encryption key is missing or another one.
            StoreError: where the object store cannot be used.
        """
        held = super().__get__(instance, cls)
        if instance is None or isinstance(held, _Opened):
            return held
        is_elsewhere = isinstance(instance, Stored) and bool(instance.object_key)
        if not is_elsewhere and (not held or instance.sealed_with_id is None):
            return held
        kept = load(instance) if is_elsewhere else held
        opened = _Opened(open_value(instance.sealed_with_id, kept, *instance.place_of(self.field.attname)))
        instance.__dict__[self.field.attname] = opened
        return opened

    def __set__(self, instance: Any, value: Any) -> None:
        """What the database holds. With this the row's own value does not go before the attribute."""
        instance.__dict__[self.field.attname] = value


class SealedField(models.BinaryField):  # type: ignore[type-arg]
    """Bytes that are sealed where the row's `sealed_with` names a key; its `place_of` says to what they are bound."""

    descriptor_class = _Opening

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """What the row holds for the database.

        Raises:
            TypeError: for what was sealed, or elsewhere, and is open now: it is never written back.
        """
        held = model_instance.__dict__[self.attname]
        if isinstance(held, _Opened):
            raise TypeError(f"{self.name} is sealed at rest, or in the object store, and would be written in clear")
        return held


def clear_length(column: str, key: str = "sealed_with") -> Case:
    """How many clear bytes a column holds; of none 0, and of null null."""
    length = Length(column)
    return Case(When(Q(**{f"{key}__isnull": True}), then=length), default=length - Sign(length) * OVERHEAD_BYTES)


def clear_sha256(column: str, key: str = "sealed_with") -> Case:
    """The SHA-256 of the clear bytes, worked out by the database: the bytes stay there. Of sealed ones as they say."""
    plain = Func(F(column), function="sha256", output_field=BinaryField())
    said = Func(F(column), template="substring((%(expressions)s), 1, 32)", output_field=BinaryField())
    return Case(When(Q(**{f"{key}__isnull": True}) | Q(Exact(Length(column), 0)), then=plain), default=said)


def seal_row(row: Any, column: str, data: bytes | None) -> bytes | None:
    """Bytes as a column of a row keeps them that is there already: sealed where its others are.

    Raises:
        SealError: where their key was destroyed.
    """
    if data is None or row.sealed_with_id is None:
        return data
    return find_seal(row.sealed_with_id).seal(data, *row.place_of(column))


def find_unreadable(record_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, SealError]:
    """Of these records those whose sealed bytes cannot be had any more, with the reason. Opens every sealed one.

    Raises:
        LockedError: where the key-encryption key is missing or another one.
    """
    from .models import Record

    found: dict[uuid.UUID, SealError] = {}
    rows = Record.objects.filter(pk__in=list(record_ids), sealed_with__isnull=False)
    for record in rows.only("source", "wire", "sealed_with").iterator(chunk_size=20):
        error = find_obstacle(record)
        if isinstance(error, SealError):
            found[record.pk] = error
        elif error is not None:
            raise error
    return found


def find_obstacle(record: Any) -> KeyringError | None:
    """Why the sealed bytes of a loaded record cannot be had; None where they can, and are open now."""
    try:
        _ = record.source, record.wire
    except KeyringError as error:
        return error
    return None
