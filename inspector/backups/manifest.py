"""What a backup says of itself: a folder with `database.dump`, and `manifest.json`, which is written last; and the
database as a backup sees it: PostgreSQL's own programs, and the rows of each table.

The manifest counts the rows of each table in the snapshot that was dumped, names the newest migration of each app, and
holds the dump's SHA-256. A folder without a manifest is a backup that was not finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import connection
from psycopg import sql
from psycopg.conninfo import make_conninfo

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
    where = make_conninfo(**{_VARIABLES[name]: value for name, value in known.items()}, **_read_options(address))
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


def _read_options(address: dict[str, Any]) -> dict[str, str]:
    """What else stands in the address, as `sslmode`; a statement of a dump may take long."""
    return {name: str(value) for name, value in address.get("OPTIONS", {}).items() if name != "options"}


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
