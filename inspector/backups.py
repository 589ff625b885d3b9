"""Backups: making one, and restoring it into an empty database, all of it or nothing, counted afterwards.

A backup is a folder with `database.dump`, and `manifest.json`, which is written last. The manifest counts the rows of
each table in the snapshot that was dumped, names the newest migration of each app, and holds the dump's SHA-256. A
folder without a manifest is a backup that was not finished.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from psycopg import sql
from psycopg.conninfo import make_conninfo

from inspector.accounts.models import Workspace
from inspector.intake import object_store
from inspector.keyring.encryption import KeyringError, load_keks
from inspector.ledger.merkle import compute_root
from inspector.ledger.notes import Checkpoint, Note
from inspector.ledger.proofs import IncompleteError, get_checkpoint, get_key, get_size, make_reader, name_origin
from inspector.schema import find_fault, list_applied
from inspector.trail.roles import as_owner

FORMAT: Final = "inspector-backup/1"
MANIFEST, DUMP = "manifest.json", "database.dump"
_BLOCK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is in a backup.

    Attributes:
        made_at: when the snapshot was taken, ISO 8601 in UTC.
        server: the version of PostgreSQL, as in "18.1".
        migrations: all applied migrations, as in "trail.0001_initial".
        rows: how many rows each table had.
        dump_bytes, dump_sha256: of `database.dump`.
        ledgers: the size and the root, in Base64, of each ledger by the name that its checkpoints bear.
        outside: what is not in the backup but in the object store, as a clause; "" where there is nothing.
        key_encryption_key: names the one that the keyring is sealed with, and tells nothing of it; "" where none is.
    """

    made_at: str
    server: str
    migrations: list[str]
    rows: dict[str, int]
    dump_bytes: int
    dump_sha256: str
    ledgers: dict[str, list[Any]]
    key_encryption_key: str
    outside: str = ""

    def write(self, folder: Path) -> None:
        """Write it into the folder of its backup."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a backup, whose dump was compared with it.

    Raises:
        BackupError: where it is no backup, is unfinished, or is not what was written.
    """
    try:
        told: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if told.pop("format") != FORMAT:
            raise BackupError(f"{folder} was written in another format: use the version of the inspector that made it.")
        manifest = Manifest(**told)
    except FileNotFoundError:
        raise BackupError(f"{folder} has no {MANIFEST}: it is no backup, or one that was not finished.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupError(f"{folder / MANIFEST} cannot be read ({error}).") from None
    try:
        found_bytes, found_sha256 = measure(folder / DUMP)
    except OSError as error:
        raise BackupError(f"{folder / DUMP} cannot be read ({error.strerror}).") from None
    if (found_bytes, found_sha256) != (manifest.dump_bytes, manifest.dump_sha256):
        raise BackupError(
            f"{folder / DUMP} is not the file that was written: it has {found_bytes:,} of {manifest.dump_bytes:,} bytes"
            f" and the SHA-256 {found_sha256}, not {manifest.dump_sha256}. Nothing was restored."
        )
    return manifest


def measure(path: Path) -> tuple[int, str]:
    """The size of a file in bytes, and its SHA-256 in hex."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()


class BackupError(Exception):
    """It cannot be done, or was not; the sentence says why and what to do."""


_VARIABLES: Final = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}


def get_address() -> dict[str, Any]:
    """The address to dump from and to restore to: the owner of the tables, where one is named, and never a pooler."""
    return settings.DATABASE_OWNER or settings.DATABASES.get("direct") or settings.DATABASES["default"]


def run_program(program: str, arguments: Sequence[str]) -> None:
    """Run one of PostgreSQL's programs on the database of `get_address`.

    Args:
        program: its path.
        arguments: what it is to do. The address is given by a service file's means, the environment, so that no
            password is in the list of processes.

    Raises:
        BackupError: with the last lines it wrote.
    """
    address = get_address()
    known = {name: str(address[name]) for name in _VARIABLES if address.get(name)}
    password = known.pop("PASSWORD", "")
    # What else stands in the address, as `sslmode`; but a statement of a dump may take long.
    beside = {name: str(value) for name, value in address.get("OPTIONS", {}).items() if name != "options"}
    where = make_conninfo(**{_VARIABLES[name]: value for name, value in known.items()}, **beside)
    done = subprocess.run(  # noqa: S603  # one of PostgreSQL's programs, and paths that are no options
        [program, f"--dbname={where}", "--no-password", *arguments],
        env={"PATH": os.defpath, "LC_ALL": "C", **({"PGPASSWORD": password} if password else {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        lines = " ".join(done.stderr.split("\n")[-6:]).strip()
        raise BackupError(f"{Path(program).name} failed: {lines or f'exit status {done.returncode}'}")


def get_server_version() -> tuple[int, str]:
    """The major version of the server, and all of it as text."""
    connection.ensure_connection()
    number = connection.connection.info.server_version
    return number // 10_000, f"{number // 10_000}.{number % 10_000}"


def count_rows() -> dict[str, int]:
    """How many rows each table of the schema has, in the transaction that asks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname"
        )
        names = [name for (name,) in cursor.fetchall()]
        rows = {}
        for name in names:
            cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name)))
            (rows[name],) = cursor.fetchone()
    return rows


def make_backup(folder: Path, *, pg_dump: str) -> Manifest:
    """Write a backup into a new folder, private to whoever runs this. The product may run meanwhile.

    The folder has its name only when everything is in it and on the disk.

    Args:
        folder: which must not be there, or be empty.
        pg_dump: the program, of the server's major version or a newer one.

    Raises:
        BackupError: where the folder is in use, the disk is full, or PostgreSQL refuses.
    """
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BackupError(f"{folder} is there already: name a new folder.")
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

    Those that come from the environment are not copied: whoever gave them keeps them. Where that are all, no file is
    written.

    Raises:
        BackupError: where the file is there already or cannot be written.
    """
    files = [settings.STATE_DIR / name for name in ("secret_key", "keyring_key")]
    there = [file for file in files if file.is_file()]
    if not there:
        return []
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
    with as_owner_of_tables(), connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return manifest


def _count_rows() -> dict[str, int]:
    with as_owner_of_tables(), transaction.atomic():
        return count_rows()


def as_owner_of_tables() -> AbstractContextManager[None]:
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
        BackupError: where the file is none of ours, the state folder cannot take them, or has another key already.
    """
    if not os.access(settings.STATE_DIR, os.W_OK):
        raise BackupError(
            f"{settings.STATE_DIR} cannot be written: restore without --secrets, and give what is in {path} by the "
            "environment. Nothing was changed."
        )
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
