"""One PostgreSQL cluster of our own: made, started, recovered and reached through a private Unix socket.

Its home is in the state folder, unless the account that PostgreSQL runs as cannot reach it there. The home holds `data`
and `sockets`, which belong to that account, and the passwords, which do not. There is no TCP port and no trust: who can
read the passwords may come in, nobody else.

A server that was killed leaves `postmaster.pid`. PostgreSQL refuses to start beside its own living predecessor, and
takes any process that happens to have got the predecessor's id for it; its `pg_ctl stop` would even end that process.
We hold the lock of the state folder, so whatever runs on this data is ours to stop, and nothing else is.
"""

import errno
import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from inspector.trail.powers import spell_powers

from . import EmbeddedError
from .binaries import Binaries, ServerAccount, find_binaries, find_server_account, publish_binaries
from .processes import ProcessFailedError, Program, Supervisor
from .state import StateFolder, write_private

NAME = "postgresql"
POLL_S = 0.05
NO_SPACE = "There is no space left on the disk that holds {}: free some and start again."
# For root's projects in places like /root, which no other account may enter, and which nobody wants opened.
ELSEWHERE = Path("/var/lib/agent-conversation-inspector")
# The role that owns the database and its tables, and the one that the product works as.
ROLE = DATABASE = "inspector"
APPLICATION = "inspector_application"
SUPERUSER = "postgres"
PASSWORDS = {ROLE: "password", APPLICATION: "application_password", SUPERUSER: "superuser_password"}
# Nothing of ours: a PGDATA, PGHOST or locale in the environment must not change what the server does.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
PORT = 5432  # Only the name of the socket; named, so that a PGPORT in the environment changes nothing.
RANK = 9  # The last to stop: everything else still writes.
STOP_GRACE_S = 60.0
# The kernel's limit for a socket's path is 108 bytes on Linux and 104 on macOS, with a zero at the end.
MAX_SOCKET_BYTES = 103

# The same order and the same upper and lower case on every machine, whatever its C library knows.
LOCALES = {True: ("--locale-provider=builtin", "--builtin-locale=C.UTF-8"), False: ("--locale-provider=libc",)}
FIRST_WITH_BUILTIN_LOCALE = 17

SETTINGS = {
    # What was committed survives a power cut.
    **dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), "on"),
    "listen_addresses": "",
    "unix_socket_permissions": "0600",
    "port": str(PORT),
    "password_encryption": "scram-sha-256",
    "max_connections": "60",
    # Enough for sixteen partitions of each large table, as `manage.py partition_tables` asks for.
    "max_locks_per_transaction": "512",
    "shared_buffers": "128MB",
    # Statements are short and their estimates high: compiling them is seldom worth its while.
    "jit": "off",
    # Where a page is logged whole, after a checkpoint or because it was split, it takes a fraction of its room.
    "wal_compression": "on",
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] ",
    "log_timezone": "UTC",
    "timezone": "UTC",
}
# What a throw-away cluster has committed survives a kill alone. A test that is undone leaves pages full of rows that
# count no more. A table that is analysed while the next test has written thousands of rows, which nobody else sees yet,
# is taken for empty from then on, and joined row by row. When that would be depends on the clock: so it never is, and
# whoever runs the tests sees to the pages between them.
THROW_AWAY = dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes", "autovacuum"), "off")


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster in its home. `account` is None where PostgreSQL runs as we do; a throw-away one serves tests."""

    home: Path
    binaries: Binaries
    log: Path
    account: ServerAccount | None = None
    is_throw_away: bool = False

    @property
    def data(self) -> Path:
        """The folder PostgreSQL calls its data directory."""
        return self.home / "data"

    @property
    def url(self) -> str:
        """The address for the role that owns the database, in libpq's form: what migrates, and tests."""
        return self._url(ROLE, DATABASE)

    @property
    def application_url(self) -> str:
        """The address for the role that the product works as: it may not change what is evidence."""
        return self._url(APPLICATION, DATABASE)

    def prepare(self) -> None:
        """Make the home and the passwords: from then on the addresses are known, though nothing answers there yet."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        if self.account:
            self.account.admit(self.home)
        for name in PASSWORDS.values():
            if not (self.home / name).exists():
                write_private(self.home / name, secrets.token_urlsafe(32))

    def start(self, supervisor: Supervisor, *, patience_s: float = 600.0) -> None:
        """Make the cluster if it does not exist, start it and wait until it answers, after a crash also for recovery.

        Raises:
            EmbeddedError: with the reason PostgreSQL gave.
            ProcessFailedError: if the server ends instead of answering.
        """
        self.prepare()
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        clear_away(self.data)
        self._make_socket_folder()
        old_bytes = self.log.stat().st_size if self.log.exists() else 0
        supervisor.start(self._program())
        try:
            is_up = supervisor.wait_until(self._answers, seconds=patience_s, needs=NAME)
        except ProcessFailedError as failed:
            with self.log.open("rb") as log:
                log.seek(old_bytes)
                if os.strerror(errno.ENOSPC).encode() in log.read():
                    raise EmbeddedError(NO_SPACE.format(self.home)) from failed
            raise
        if not is_up:
            raise EmbeddedError(f"PostgreSQL does not answer after {patience_s:.0f} seconds; its log is {self.log}.")
        self._ensure_database()

    def stop(self, supervisor: Supervisor) -> None:
        """Stop the server: open transactions are rolled back, everything committed is on disk."""
        supervisor.stop(NAME)
        self._remove_socket_folder()

    def end_sessions(self, prefix: str) -> None:
        """End every session on the databases whose name begins so."""
        with psycopg.connect(self._url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE starts_with(datname, %s)", [prefix]
            )

    def _program(self) -> Program:
        settings = {**SETTINGS, **(THROW_AWAY if self.is_throw_away else {})}
        settings["unix_socket_directories"] = str(self._socket_folder())
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return Program(
            name=NAME,
            command=(self.binaries.program("postgres"), "-D", str(self.data), *options),
            environment=ENVIRONMENT,
            folder=self.data,
            log=self.log,
            rank=RANK,
            stop_signal=signal.SIGINT,  # PostgreSQL's fast shutdown.
            grace_s=STOP_GRACE_S,
            account=self.account,
        )

    def _initialise(self) -> None:
        # Made beside and renamed when complete: a start that was cut off leaves nothing that looks like a cluster.
        partial = self.home / "data.partial"
        if partial.exists():
            shutil.rmtree(partial)
        partial.mkdir(mode=0o700)
        password = self.home / "initdb_password"
        write_private(password, (self.home / PASSWORDS[SUPERUSER]).read_text())
        if self.account:
            self.account.own(partial, 0o700)
            self.account.own(password, 0o600)
        try:
            made = subprocess.run(
                [
                    self.binaries.program("initdb"),
                    f"--pgdata={partial}",
                    f"--username={SUPERUSER}",
                    f"--pwfile={password}",
                    "--auth-local=scram-sha-256",
                    "--auth-host=scram-sha-256",
                    "--encoding=UTF8",
                    "--locale=C",
                    *LOCALES[self.binaries.major >= FIRST_WITH_BUILTIN_LOCALE],
                    "--data-checksums",
                    "--no-instructions",
                    *(["--no-sync"] if self.is_throw_away else []),
                ],
                cwd=partial,
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                umask=0o077,
                check=False,
                **(self.account.launch_options() if self.account else {}),
            )
        finally:
            password.unlink()
        if made.returncode != 0:
            if os.strerror(errno.ENOSPC) in made.stdout:
                raise EmbeddedError(NO_SPACE.format(self.home))
            raise EmbeddedError(f"PostgreSQL's initdb failed in {self.home}; it last wrote:\n{made.stdout[-2000:]}")
        partial.rename(self.data)

    def _make_socket_folder(self) -> None:
        self._remove_socket_folder()
        link = self.home / "sockets"
        if len(os.fsencode(link / f".s.PGSQL.{PORT}")) <= MAX_SOCKET_BYTES:
            link.mkdir(mode=0o700)
        else:
            # Short, private, and removed when the server stops.
            link.symlink_to(tempfile.mkdtemp(prefix="inspector-", dir="/tmp"))
        if self.account:
            self.account.own(self._socket_folder(), 0o700)

    def _remove_socket_folder(self) -> None:
        folder, link = self._socket_folder(), self.home / "sockets"
        if folder.is_dir():
            shutil.rmtree(folder)
        if link.is_symlink():
            link.unlink()

    def _socket_folder(self) -> Path:
        link = self.home / "sockets"
        return link.readlink() if link.is_symlink() else link

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self._url(), connect_timeout=5):
                return True
        except psycopg.OperationalError as refused:
            if "password authentication failed" in str(refused):
                raise EmbeddedError(
                    f"PostgreSQL refuses the password in {self.home / PASSWORDS[SUPERUSER]}: "
                    f"put the file back, or move {self.home} away to start anew."
                ) from refused
            return False

    def _ensure_database(self) -> None:
        # Only the owner of tests may make other databases, and roles.
        powers = {ROLE: "CREATEDB CREATEROLE" if self.is_throw_away else "NOCREATEDB NOCREATEROLE"}
        powers[APPLICATION] = "NOCREATEDB NOCREATEROLE"
        with psycopg.connect(self._url(), autocommit=True) as connection:
            for role, power in powers.items():
                known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
                connection.execute(
                    sql.SQL("{} ROLE {} LOGIN NOSUPERUSER {} PASSWORD {}").format(
                        sql.SQL("ALTER" if known else "CREATE"),
                        sql.Identifier(role),
                        sql.SQL(power),
                        sql.Literal((self.home / PASSWORDS[role]).read_text()),
                    )
                )
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
                connection.execute(
                    sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), sql.Identifier(ROLE))
                )
        with psycopg.connect(self._url(SUPERUSER, DATABASE), autocommit=True) as connection:
            for role in powers:
                for statement in spell_powers(role=role, owner=ROLE):
                    connection.execute(statement)

    def _url(self, role: str = SUPERUSER, database: str = "postgres") -> str:
        folder = quote(str(self._socket_folder()), safe="")
        password = quote((self.home / PASSWORDS[role]).read_text(), safe="")
        return f"postgresql://{role}:{password}@/{database}?host={folder}&port={PORT}"


def clear_away(data: Path) -> None:
    """Stop a server that still runs on this data, and remove the file, which by now may name somebody else's process.

    Raises:
        EmbeddedError: if a server on this data cannot be stopped.
    """
    file = data / "postmaster.pid"
    try:
        pid = int(file.read_text().split()[0])
    except FileNotFoundError:
        return
    except (ValueError, IndexError):
        pid = 0  # Cut off while it was written: PostgreSQL would not read it either.
    for number, seconds in (
        (signal.SIGINT, 30.0),
        (signal.SIGQUIT, 10.0),
    ):  # PostgreSQL's fast shutdown, and immediate.
        deadline = time.monotonic() + seconds
        if _serves(pid, data):
            os.kill(pid, number)
        while _serves(pid, data) and time.monotonic() < deadline:
            time.sleep(POLL_S)
    if _serves(pid, data):
        raise EmbeddedError(f"Another PostgreSQL (process {pid}) runs on {data} and does not stop.")
    file.unlink(missing_ok=True)


def _serves(pid: int, data: Path) -> bool:
    """Whether a living process is a PostgreSQL server on this folder, by its command line."""
    try:
        return str(data) in psutil.Process(pid).cmdline()
    except psutil.Error:
        return False


def make_cluster(state: StateFolder, *, is_throw_away: bool = False) -> Cluster:
    """The cluster of a state folder, with the PostgreSQL that can open its data; nothing is started.

    Raises:
        EmbeddedError: where there is no PostgreSQL, no account to run it as, or no place that account can reach.
    """
    account = find_server_account()
    digest = hashlib.sha256(os.fsencode(state.root)).hexdigest()[:12]
    home = choose_home([state.root / "postgres", ELSEWHERE / digest / "postgres"], account, state.root)
    binaries = find_binaries(major=read_major(home))
    if account:
        binaries = publish_binaries(binaries, account, home.parent / "binaries")
    log = state.logs / "postgresql.log"
    return Cluster(home=home, binaries=binaries, log=log, account=account, is_throw_away=is_throw_away)


def choose_home(candidates: Sequence[Path], account: ServerAccount | None, root: Path) -> Path:
    """The first candidate that the account can reach; the folders on the way that do not exist yet are made.

    `root` is the state folder, which is opened to the account's group if the cluster lives in it, and only then.

    Raises:
        EmbeddedError: when the account can reach none.
    """
    if account is None:
        return candidates[0]
    for home in candidates:
        existing = next(folder for folder in home.parents if folder.exists() and folder != root)
        if account.can_enter(existing):
            for folder in reversed(home.parents):
                if folder == root or not folder.exists():
                    folder.mkdir(mode=0o700, exist_ok=True)
                    account.admit(folder)
            return home
    raise EmbeddedError(
        f"The account `{account.name}`, as which PostgreSQL runs, can reach none of "
        f"{', '.join(map(str, candidates))}: set INSPECTOR_STATE_DIR to a folder it can reach, or DATABASE_URL."
    )


def read_major(home: Path) -> int | None:
    """The major version that wrote the data in this home, or None where there is none yet."""
    written = home / "data" / "PG_VERSION"
    return int(written.read_text()) if written.exists() else None
