"""Restoring a backup into an empty database: all of it or nothing, counted afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction

from inspector.schema import list_newer

from .database import count_rows, run_program
from .errors import BackupError
from .making import name_key_encryption_key
from .manifest import DUMP, Manifest, read_manifest

KEYRING_KEY: Final = "keyring_key"


def restore_backup(folder: Path, *, pg_restore: str, say: Callable[[str], None]) -> Manifest:
    """Restore a backup, compare each table's rows with its manifest, and bring the schema up to date.

    Args:
        folder: of the backup.
        pg_restore: the program, of the server's major version.
        say: hears what is done.

    Raises:
        BackupError: where the backup is not what was written or from a newer version, the database is not empty, or
            what was restored is not what the manifest says. Up to the last, nothing of the database has changed.
    """
    say(f"Checking {folder}")
    manifest = read_manifest(folder)
    newer = list_newer(manifest.migrations)
    if newer:
        raise BackupError(
            f"The backup was made by a newer version of the inspector ({', '.join(newer)}). Restore it with that one."
        )
    # No lock is held while pg_restore works: the tables appear when its one transaction ends.
    with transaction.atomic():
        there = count_rows()
    if there:
        raise BackupError(
            f"The database has {len(there)} tables already. A backup is restored into an empty database: make one, or "
            "name an empty state folder."
        )
    say(f"Restoring {sum(manifest.rows.values()):,} rows of {manifest.made_at}")
    run_program(pg_restore, ["--exit-on-error", "--single-transaction", "--no-owner", str(folder / DUMP)])
    connection.close()
    with transaction.atomic():
        found = count_rows()
    wrong = [name for name in sorted({*found, *manifest.rows}) if found.get(name) != manifest.rows.get(name)]
    if wrong:
        raise BackupError(
            "The rows that were restored are not those that were counted: "
            + ", ".join(f"{name} has {found.get(name)}, not {manifest.rows.get(name)}" for name in wrong)
        )
    say("Every table has the rows that the backup counted")
    call_command("migrate", interactive=False, verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return manifest


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
        "stay sealed until INSPECTOR_KEYRING_KEY, or keyring_key in the state folder, is put back."
    )
