"""Making a backup: the dump of one snapshot, and the manifest that counts the same snapshot."""

from __future__ import annotations

import base64
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from inspector.accounts.models import Workspace
from inspector.intake import object_store
from inspector.keyring.encryption import KeyringError, load_keks
from inspector.ledger.merkle import compute_root
from inspector.ledger.selectors import IncompleteError, get_checkpoint, make_reader
from inspector.ledger.sequencing import get_key, name_origin
from inspector.schema import list_applied

from .manifest import DUMP, MANIFEST, BackupError, Manifest, count_rows, get_server_version, measure, run_program


def make_backup(folder: Path, *, pg_dump: str) -> Manifest:
    """Write a backup into a new folder, private to whoever runs this. The product may run meanwhile.

    The folder has its name only when everything is in it and on the disk.

    Args:
        folder: which must not be there, or be empty.
        pg_dump: the program, of the server's major version or a newer one.

    Raises:
        BackupError: where the folder is in use, the disk is full, or PostgreSQL refuses.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BackupError(f"{folder} is there already: name a new folder.")
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700, parents=True)
        manifest = _fill(partial, pg_dump)
        for path in (partial / DUMP, partial / MANIFEST):
            path.chmod(0o600)
            _flush(path)
        _flush(partial)
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
        _flush(folder.parent)
    except OSError as error:
        raise BackupError(f"{partial} could not be written ({error.strerror}).") from error
    return manifest


def _fill(folder: Path, pg_dump: str) -> Manifest:
    # The transaction keeps its snapshot alive until pg_dump has read all of it.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
        made_at = datetime.now(UTC)
        arguments = ("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}")
        run_program(pg_dump, [*arguments, f"--file={folder / DUMP}"])
        rows, migrations, ledgers, outside = count_rows(), list_applied(), read_ledgers(), object_store.tell_named()
    dump_bytes, dump_sha256 = measure(folder / DUMP)
    manifest = Manifest(
        made_at=made_at.isoformat(timespec="seconds"),
        server=get_server_version()[1],
        migrations=migrations,
        rows=rows,
        dump_bytes=dump_bytes,
        dump_sha256=dump_sha256,
        ledgers=ledgers,
        outside=outside,
        key_encryption_key=name_key_encryption_key(),
    )
    manifest.write(folder)
    return manifest


def read_ledgers() -> dict[str, list[Any]]:
    """The size and the root of each ledger that has a checkpoint, worked out from its entries."""
    key = get_key()
    if key is None:
        return {}
    found = {}
    for workspace_id in Workspace.objects.values_list("pk", flat=True):
        checkpoint = get_checkpoint(workspace_id)
        if checkpoint is not None:
            try:
                root = base64.b64encode(compute_root(make_reader(workspace_id), checkpoint.size)).decode()
            except IncompleteError as error:
                # A copy matters most where something is lost already; what is restored is damaged in the same way.
                root = f"damaged: {error}"
            found[name_origin(key, workspace_id)] = [checkpoint.size, root]
    return found


def name_key_encryption_key() -> str:
    """What names the key that the keyring is sealed with; "" where there is none."""
    try:
        return load_keks()[0].id
    except KeyringError:
        return ""


def copy_secrets(path: Path) -> list[str]:
    """Copy the secrets of the state folder to a new file, private to whoever runs this; their names.

    Those that come from the environment are not copied: whoever gave them keeps them.

    Raises:
        BackupError: where the file is there already or cannot be written.
    """
    files = [settings.STATE_DIR / name for name in ("secret_key", "keyring_key")]
    there = [file for file in files if file.is_file()]
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as target:
            target.writelines(f"{file.name} {file.read_text().strip()}\n" for file in there)
    except FileExistsError:
        raise BackupError(f"{path} is there already: name a new file.") from None
    except OSError as error:
        raise BackupError(f"{path} could not be written ({error.strerror}).") from error
    return [file.name for file in there]


def _flush(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
