"""The state folder: everything that `make run` keeps between two starts, private to the user who started it."""

import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from . import EmbeddedError

PROJECT = Path(__file__).resolve().parent.parent.parent
MARK = ".inspector-state"
POLL_S = 0.1


class StateFolder:
    """The names in a folder that this process holds.

    Attributes:
        root: the folder.
        lock: the descriptor that holds it; who inherits it holds it too.
        logs: one file for each process.
        temporary: temporary files of the processes: uploads on their way, messages being read.
        database_url: written while the embedded server runs, so that `manage.py` finds it without being told.
    """

    def __init__(self, root: Path, lock: int) -> None:
        self.root = root
        self.lock = lock
        self.logs = root / "logs"
        self.temporary = root / "tmp"
        self.database_url = root / "database_url"
        self._samples = root / "samples_loaded"

    def read_samples_loaded(self, workspace: str) -> dict[str, str] | None:
        """The delivery that each sample became in this workspace; None before they were taken in there."""
        loaded: dict[str, dict[str, str]] = json.loads(self._samples.read_text()) if self._samples.exists() else {}
        return loaded.get(workspace)

    def write_samples_loaded(self, workspace: str, deliveries: dict[str, str]) -> None:
        """Remember that the samples were taken in; a start that is cut off before takes them in again."""
        write_private(self._samples, json.dumps({workspace: deliveries}))

    def describe_holder(self, **facts: Any) -> None:
        """Write down who holds the folder, for the sentence that another start shows."""
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, json.dumps({"pid": os.getpid(), **facts}).encode(), 0)

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
        return holder.get("url") if is_alive(holder.get("pid")) else None
    else:
        return None
    finally:
        os.close(lock)


def open_state(root: Path, *, patience_s: float = 30.0, say: Callable[[str], None] | None = None) -> StateFolder:
    """Make the folder if needed, close it to others and hold it.

    A start whose predecessor was killed waits for that one's watchdog, at most `patience_s` seconds.

    Raises:
        EmbeddedError: if the folder is not ours to use, or another start holds it.
    """
    _prepare(root)
    lock = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            holder = _read_holder(lock)
            if is_alive(holder.get("pid")) or time.monotonic() > deadline:
                os.close(lock)
                name = f"process {holder.get('pid', 'unknown')}" + (
                    f", serving {holder['url']}" if "url" in holder else ""
                )
                raise EmbeddedError(
                    f"Another inspector ({name}) is running on {root}: "
                    "stop it, or set INSPECTOR_STATE_DIR to another folder."
                ) from None
            if say:
                say("The last run was killed; waiting until its processes are stopped.")
                say = None
            time.sleep(POLL_S)
    state = StateFolder(root, lock)
    state.describe_holder()
    for folder in (state.logs, state.temporary):
        folder.mkdir(mode=0o700, exist_ok=True)
    return state


def is_alive(pid: object) -> bool:
    """Whether a process works under this id; one that has ended and only waits for its parent's notice does not."""
    try:
        return isinstance(pid, int) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def write_private(path: Path, text: str) -> None:
    """Write a file in one step, that is private from its first byte on and survives a power cut."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _prepare(root: Path) -> None:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = root.stat()
    except OSError as refused:
        raise EmbeddedError(
            f"The state folder {root} cannot be made ({refused.strerror}): set INSPECTOR_STATE_DIR to another folder."
        ) from refused
    if facts.st_uid != os.geteuid():
        raise EmbeddedError(
            f"The state folder {root} belongs to another user: set INSPECTOR_STATE_DIR to a folder of your own."
        )
    mark = root / MARK
    if not mark.exists():
        # A folder with other things in it was not made by us: we do not change its mode, but put no secrets there.
        if any(root.iterdir()) and facts.st_mode & 0o077:
            raise EmbeddedError(
                f"The state folder {root} is open to other users: close it with `chmod 700 {root}`, or set "
                "INSPECTOR_STATE_DIR to another folder."
            )
        mark.touch(mode=0o600)
    if facts.st_mode & 0o067:
        root.chmod(0o700)


def _read_holder(lock: int) -> dict[str, Any]:
    """What the holder wrote: its `pid`, and the `url` where it serves; nothing while it writes."""
    try:
        holder = json.loads(os.pread(lock, 4096, 0) or b"{}")
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}
