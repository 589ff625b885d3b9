"""The state folder: everything that `make run` keeps between two starts, private to the user who started it."""

import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import StateFolderError, StateInUseError
from .watchdog import is_alive

PROJECT = Path(__file__).resolve().parent.parent.parent
MARK = ".inspector-state"
POLL_S = 0.1


@dataclass(frozen=True, kw_only=True)
class StateFolder:
    """The names in the folder. `lock` is the descriptor that holds it; who inherits it holds it too."""

    root: Path
    lock: int

    @property
    def logs(self) -> Path:
        """One file for each process."""
        return self.root / "logs"

    @property
    def database_url(self) -> Path:
        """Written while the embedded server runs, so that `manage.py` finds it without being told."""
        return self.root / "database_url"

    @property
    def secret_key(self) -> Path:
        """Where the settings keep the secret that signs sessions."""
        return self.root / "secret_key"

    @property
    def temporary(self) -> Path:
        """Temporary files of the processes: uploads on their way, messages being read."""
        return self.root / "tmp"

    @property
    def postgres(self) -> Path:
        """The cluster's home, unless PostgreSQL's account cannot reach it here."""
        return self.root / "postgres"

    def read_samples_loaded(self, workspace: str) -> dict[str, str] | None:
        """The delivery that each sample became in this workspace; None before they were taken in there."""
        try:
            loaded = json.loads((self.root / "samples_loaded").read_text())
        except FileNotFoundError:
            return None
        deliveries: dict[str, str] | None = loaded.get(workspace)
        return deliveries

    def write_samples_loaded(self, workspace: str, deliveries: dict[str, str]) -> None:
        """Remember that the samples were taken in, in one step: a cut-off start takes them in again."""
        fresh = self.root / "samples_loaded.fresh"
        fresh.write_text(json.dumps({workspace: deliveries}))
        fresh.replace(self.root / "samples_loaded")

    def describe_holder(self, **facts: Any) -> None:
        """Write down who holds the folder, for the sentence that another start shows."""
        text = json.dumps({"pid": os.getpid(), **facts}).encode()
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, text, 0)

    def write_database_url(self, url: str) -> None:
        """Tell `manage.py` where the server is; it holds a password, so it is private from its first byte on."""
        fresh = self.database_url.with_name("database_url.fresh")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(url)
        fresh.replace(self.database_url)

    def release(self) -> None:
        """Give the folder free; a watchdog that still stops processes keeps holding it."""
        os.close(self.lock)


def find_state_root() -> Path:
    """The folder named by INSPECTOR_STATE_DIR, else `.state` in the project."""
    named = os.environ.get("INSPECTOR_STATE_DIR", "")
    return Path(named).expanduser().absolute() if named else PROJECT / ".state"


def find_served_url(root: Path) -> str | None:
    """Where the installation that runs on this folder serves its pages; None where none does."""
    try:
        lock = os.open(root / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _read_holder(lock)
        return str(holder["url"]) if _holds(holder) and "url" in holder else None
    else:
        return None
    finally:
        os.close(lock)


def open_state(root: Path, *, patience_s: float = 30.0, say: Callable[[str], None] | None = None) -> StateFolder:
    """Make the folder if needed, close it to others and hold it.

    A start whose predecessor was killed waits for that one's watchdog, at most `patience_s` seconds.

    Raises:
        StateFolderError: if the folder is not ours to use.
        StateInUseError: if another start holds it.
    """
    _prepare(root)
    lock = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience_s
    told = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            holder = _read_holder(lock)
            if _holds(holder) or time.monotonic() > deadline:
                os.close(lock)
                raise StateInUseError(root, _name_holder(holder)) from None
            if say and not told:
                say("The last run was killed; waiting until its processes are stopped.")
                told = True
            time.sleep(POLL_S)
    state = StateFolder(root=root, lock=lock)
    state.describe_holder()
    for folder in (state.logs, state.temporary):
        folder.mkdir(mode=0o700, exist_ok=True)
    return state


def _prepare(root: Path) -> None:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = root.stat()
    except OSError as refused:
        raise StateFolderError(
            f"The state folder {root} cannot be made ({refused.strerror}): set INSPECTOR_STATE_DIR to another folder."
        ) from refused
    if facts.st_uid != os.geteuid():
        raise StateFolderError(
            f"The state folder {root} belongs to another user: set INSPECTOR_STATE_DIR to a folder of your own."
        )
    mark = root / MARK
    if not mark.exists():
        # A folder with other things in it was not made by us: we do not change its mode, but put no secrets there.
        if any(root.iterdir()) and facts.st_mode & 0o077:
            raise StateFolderError(
                f"The state folder {root} is open to other users: close it with `chmod 700 {root}`, or set "
                "INSPECTOR_STATE_DIR to another folder."
            )
        mark.touch(mode=0o600)
    if facts.st_mode & 0o067:
        root.chmod(0o700)


def _read_holder(lock: int) -> dict[str, Any]:
    try:
        holder = json.loads(os.pread(lock, 4096, 0) or b"{}")
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _holds(holder: dict[str, Any]) -> bool:
    pid = holder.get("pid")
    return isinstance(pid, int) and is_alive(pid)


def _name_holder(holder: dict[str, Any]) -> str:
    place = f", serving {holder['url']}" if "url" in holder else ""
    return f"process {holder.get('pid', 'unknown')}{place}"
