"""Restoring a backup into an empty database: all of it or nothing, counted afterwards."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction

from inspector.ledger.merkle import compute_root
from inspector.ledger.notes import Checkpoint, Note
from inspector.ledger.selectors import IncompleteError, make_reader
from inspector.ledger.sequencing import get_size
from inspector.schema import find_fault
from inspector.trail.roles import as_owner

from .making import name_key_encryption_key, read_ledgers
from .manifest import DUMP, BackupError, Manifest, count_rows, read_manifest, run_program

KEYRING_KEY: Final = "keyring_key"


def restore_backup(
    folder: Path, *, pg_restore: str, say: Callable[[str], None], kept: Sequence[Note] = (), is_older_fine: bool = False
) -> Manifest:
    """Restore a backup, compare rows and ledgers with its manifest, and bring the schema up to date.

    Args:
        folder: of the backup.
        pg_restore: the program, of the server's major version.
        say: hears what is done.
        kept: checkpoints that were kept elsewhere: a backup that is older than one is refused.
        is_older_fine: restore it nonetheless.

    Raises:
        BackupError: where the backup is not what was written or from another version, the database is not empty, or
            what was restored is not what the manifest says. Up to the last, nothing of the database has changed.
    """
    say(f"Checking {folder}")
    manifest = read_manifest(folder)
    fault = find_fault(manifest.migrations)
    if fault:
        raise BackupError(f"The backup cannot be restored here. {fault}")
    for note in kept:
        _compare_kept(manifest, note.checkpoint, is_older_fine=is_older_fine, say=say)
    # No lock is held while pg_restore works: the tables appear when its one transaction ends.
    there = _count_rows()
    if there:
        raise BackupError(
            f"The database has {len(there)} tables already. A backup is restored into an empty database: make one, or "
            "name an empty state folder."
        )
    say(f"Restoring {sum(manifest.rows.values()):,} rows of {manifest.made_at}")
    run_program(pg_restore, ["--exit-on-error", "--single-transaction", "--no-owner", str(folder / DUMP)])
    connection.close()
    found = _count_rows()
    wrong = [name for name in sorted({*found, *manifest.rows}) if found.get(name) != manifest.rows.get(name)]
    if wrong:
        raise BackupError(
            "The rows that were restored are not those that were counted: "
            + ", ".join(f"{name} has {found.get(name)}, not {manifest.rows.get(name)}" for name in wrong)
        )
    say("Every table has the rows that the backup counted")
    call_command("migrate", interactive=False, verbosity=0)
    ledgers = read_ledgers()
    if ledgers != manifest.ledgers:
        raise BackupError("The ledgers that were restored have other roots than those that the backup noted.")
    say(f"Every ledger has the root that the backup noted ({len(ledgers)})")
    for note in kept:
        _look_into(note.checkpoint)
    with _as_owner(), connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return manifest


def _count_rows() -> dict[str, int]:
    with _as_owner(), transaction.atomic():
        return count_rows()


def _as_owner() -> AbstractContextManager[None]:
    """Work as the owner of the tables, where one is named: the application may read them only when it is admitted."""
    return as_owner(settings.DATABASE_OWNER) if settings.DATABASE_OWNER else nullcontext()


def _compare_kept(manifest: Manifest, kept: Checkpoint, *, is_older_fine: bool, say: Callable[[str], None]) -> None:
    """Refuse a backup that was made before a checkpoint which somebody kept.

    Raises:
        BackupError: for such a one, and where the backup has no ledger of that name.
    """
    if kept.origin not in manifest.ledgers:
        raise BackupError(f"The backup has no ledger {kept.origin}: the checkpoint is of another installation.")
    size = manifest.ledgers[kept.origin][0]
    if size >= kept.size:
        return
    told = f"The backup has {size:,} entries of the ledger {kept.origin}, and the checkpoint vouches for {kept.size:,}"
    if not is_older_fine:
        raise BackupError(f"{told}: the backup is older. Restore a later one, or say --accept-older.")
    say(f"{told}: what came between is lost, and everybody who kept that checkpoint will see it")


def _look_into(kept: Checkpoint) -> None:
    """Compare a restored ledger with a checkpoint that it should continue.

    Raises:
        BackupError: where its first entries are others.
    """
    workspace_id = uuid.UUID(kept.origin.rsplit("/", 1)[-1])
    try:
        is_same = get_size(workspace_id) < kept.size or compute_root(make_reader(workspace_id), kept.size) == kept.root
    except IncompleteError:
        is_same = False
    if not is_same:
        raise BackupError(
            f"The first {kept.size:,} entries of the ledger {kept.origin} are not those that the checkpoint signed: "
            "this backup is of another past. manage.py verify_ledger says more."
        )


def read_secrets(path: Path) -> dict[str, str]:
    """The secrets that were copied beside a backup, by the names of their files in the state folder.

    Raises:
        BackupError: where the file is none of ours, or another key of the keyring is there already.
    """
    try:
        secrets = dict(line.split(" ", 1) for line in path.read_text().splitlines() if line)
    except OSError as error:
        raise BackupError(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError:
        secrets = {"": ""}
    if not secrets.keys() <= {"secret_key", KEYRING_KEY}:
        raise BackupError(f"{path} is no file that a backup wrote its secrets to.")
    there = settings.STATE_DIR / KEYRING_KEY
    if KEYRING_KEY in secrets and there.is_file() and there.read_text().strip() != secrets[KEYRING_KEY]:
        raise BackupError(f"{there} holds another key: move it away first. Nothing was changed.")
    return secrets


def put_back_secrets(secrets: Mapping[str, str]) -> None:
    """Write secrets into the state folder. The signing key of a folder that was just made protects nothing yet."""
    for name, secret in secrets.items():
        fresh = settings.STATE_DIR / f"{name}.{os.getpid()}"
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secret)
        fresh.rename(settings.STATE_DIR / name)


def warn_of_keys(manifest: Manifest) -> str:
    """A sentence where the keyring's key is not the one that the backup was sealed with; "" where all is well."""
    if manifest.key_encryption_key in ("", name_key_encryption_key()):
        return ""
    return (
        "The keys of the keyring were sealed with another key-encryption key than the one here: decrypted messages "
        "and sealed records stay unreadable until INSPECTOR_KEYRING_KEY, or keyring_key in the state folder, is back."
    )
