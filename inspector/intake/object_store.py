"""The object store: pieces of files that are kept beside the database, where `OBJECT_STORE` names a place for them.

A piece is written there first, under a key that was never used, and its row names it in the transaction, with size and
SHA-256; the column `data` is empty then. A kill leaves at most an object that no row names. Whoever drops rows leaves
their objects where they are: `sweep`, each minute, deletes those whose owner (a delivery, an export) has no such row
any more, and nobody who is just writing. While the store is away it tries again; so no request waits for deletions.

The keys begin with a folder of this very database: a restored copy reads what its rows name, and sweeps only its own,
for the other may be alive. Where it takes the place of the other, `OBJECT_STORE` says whose folder it inherits.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import cache
from operator import methodcaller
from typing import Any, ClassVar, Final

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.files.storage import InvalidStorageError, Storage, storages
from django.db import connection, models, transaction
from django.db.models import Count, Sum

from inspector.accounts.models import make_id
from inspector.keyring.encryption import SealError
from inspector.starting import RefusedStartError
from inspector.tokens import hide_tokens

logger = logging.getLogger(__name__)

ALIAS: Final = "objects"
SWEEP_SECONDS: Final = 20.0
# The class of the locks of those who write, and how many there are: an archive has many owners, and needs no lock each.
_WRITING, _LOCKS = 0x6F626A73, 64
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class StoreError(Exception):
    """The object store cannot be used as it is; the sentence says why."""


class MissingObjectError(StoreError):
    """The object store has not what a row names."""


class Stored(models.Model):
    """A row whose `data` may be in the object store: then the key says where, and size and SHA-256 are those there.

    `FOLDER` is what its keys have in common, `OWNER` the column of what it is a piece of.
    """

    FOLDER: ClassVar[str]
    OWNER: ClassVar[str]
    data: Any
    object_key = models.TextField(blank=True, default="", db_default="")
    object_bytes = models.BigIntegerField(null=True)
    object_sha256 = models.BinaryField(max_length=32, null=True)

    class Meta:
        abstract = True

    def keep(self, data: bytes) -> None:
        """Take these bytes, sealed where they are to be, as the row's; call inside the transaction that saves it.

        Raises:
            StoreError: where the object store takes nothing.
        """
        self.data = data
        if data and settings.OBJECT_STORE_TAKES_NEW:
            owner = getattr(self, self.OWNER)
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock_shared(%s, %s)", [_WRITING, owner.int % _LOCKS])
            self.object_key = _save(f"{self.FOLDER}/{owner}", data)
            self.object_bytes, self.object_sha256, self.data = len(data), hashlib.sha256(data).digest(), b""


def load(row: Stored) -> bytes:
    """The bytes of a row that names an object, as they were kept: compared with its SHA-256.

    Raises:
        StoreError: where the object store cannot be reached, or has not the object.
        SealError: for other bytes than were written.
    """

    def read(store: Storage) -> bytes:
        with store.open(row.object_key) as file:
            return bytes(file.read())

    data = bytes(_ask(read))
    if hashlib.sha256(data).digest() != bytes(row.object_sha256 or b""):
        raise SealError("these bytes were changed in the object store: they have another SHA-256")
    return data


def _save(folder: str, data: bytes) -> str:
    return str(_ask(lambda store: store.save(f"{name_folder()}/{folder}/{make_id()}", ContentFile(data))))


def _ask(what: Callable[[Storage], Any]) -> Any:
    if ALIAS not in settings.STORAGES:
        raise StoreError("These bytes are in an object store, and OBJECT_STORE names none: set it as it was.")
    try:
        return what(storages[ALIAS])
    except FileNotFoundError as error:
        raise MissingObjectError(
            "The object store has not what the database names: it was removed there, or OBJECT_STORE names another."
        ) from error
    except Exception as error:  # each storage has errors of its own
        logger.warning("the object store failed: %s", hide_tokens(str(error)))
        kind = type(error).__name__
        raise StoreError(f"The object store cannot be used just now ({kind}): try again later.") from error


@cache
def name_folder() -> str:
    """The folder of this database in the store: no other has its name, nor has a restored copy."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT system_identifier || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())"
            " FROM pg_control_system()"
        )
        return str(cursor.fetchone()[0])


def _list_models() -> list[type[Stored]]:
    return [model for model in apps.get_models() if issubclass(model, Stored)]


def tell_named() -> str:
    """A clause that counts the objects which rows of this database name; "" where there are none."""
    named = (model._default_manager.exclude(object_key="") for model in _list_models())
    counts = [rows.aggregate(count=Count("pk"), size=Sum("object_bytes")) for rows in named]
    count, size = (sum(each[name] or 0 for each in counts) for name in ("count", "size"))
    return (
        f"{count:,} pieces of files ({size:,} bytes) are in the object store's folder {name_folder()}" if count else ""
    )


def refuse_unusable() -> None:
    """Refuse a start, by RefusedStartError, where `OBJECT_STORE` names no storage that can be made; it is not asked."""
    try:
        _ = storages[ALIAS] if ALIAS in settings.STORAGES else None
    except Exception as error:  # noqa: BLE001  # a class of another package fails in its own way, and may quote a secret
        said = error if isinstance(error, (InvalidStorageError, ImproperlyConfigured)) else type(error).__name__
        raise RefusedStartError(f"OBJECT_STORE names no storage that can be used: {said}.") from None


def try_out() -> None:
    """Write a small object, look at it and delete it; where nothing new goes there, only list. Raises StoreError."""
    _list(name_folder())
    if settings.OBJECT_STORE_TAKES_NEW:
        key = _save("tried", b"tried")
        _ask(methodcaller("size", key))
        _ask(methodcaller("delete", key))


def sweep() -> int:
    """Delete the objects of owners of whom no row names one; how many. For `SWEEP_SECONDS`, the rest next time."""
    until, count = time.monotonic() + SWEEP_SECONDS, 0
    try:
        for path in _list_unnamed() if ALIAS in settings.STORAGES else ():
            if time.monotonic() > until:
                break
            _ask(methodcaller("delete", path))
            count += 1
    except StoreError as error:
        logger.warning("what no row names stays in the object store for now: %s", error)
    return count


def _list_unnamed() -> Iterator[str]:
    folders = (name_folder(), *settings.OBJECT_STORE_INHERITED)
    for root, model in ((f"{folder}/{model.FOLDER}", model) for folder in folders for model in _list_models()):
        owners = {uuid.UUID(name) for name in _list(root)[0] if _ID.fullmatch(name)}
        for owner in sorted(owners - _find_named(model, owners)):
            # What is listed before nobody writes any more is all there is to delete: new keys are always others.
            files = _list(f"{root}/{owner}")[1]
            if not _is_in_use(model, owner):
                yield from (f"{root}/{owner}/{file}" for file in files)
                # A storage of folders keeps an empty one.
                yield f"{root}/{owner}"


def _list(folder: str) -> tuple[list[str], list[str]]:
    """The folders and files in a folder; nothing in one that is not there."""
    with suppress(MissingObjectError):
        folders, files = _ask(methodcaller("listdir", folder))
        return folders, files
    return [], []


def _find_named(model: type[Stored], owners: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of whom a row names an object."""
    named = f"SELECT FROM {model._meta.db_table} WHERE {model.OWNER} = owner AND object_key <> ''"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT owner FROM unnest(%s::uuid[]) owner WHERE EXISTS ({named})", [list(owners)])  # noqa: S608
        return {owner for (owner,) in cursor.fetchall()}


@transaction.atomic
def _is_in_use(model: type[Stored], owner: uuid.UUID) -> bool:
    """Whether somebody is writing for an owner, or a row of it names an object by now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_WRITING, owner.int % _LOCKS])
        is_free = cursor.fetchone()[0]
    return not is_free or bool(_find_named(model, [owner]))
