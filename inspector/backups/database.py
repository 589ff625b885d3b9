"""The database as a backup sees it: PostgreSQL's own programs, and the rows of each table."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import connection
from psycopg import sql
from psycopg.conninfo import make_conninfo

from .manifest import BackupError

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
