"""What a server that was killed leaves in its data folder, and how to begin again: `postmaster.pid`.

PostgreSQL refuses to start beside its own living predecessor, and takes any process that happens to have got the
predecessor's id for it. We hold the lock of the state folder, so whatever runs on this data is ours to stop.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

from .errors import ClusterFailedError
from .watchdog import is_alive

POLL_S = 0.05
FAST_S = 30.0
IMMEDIATE_S = 10.0


def clear(data: Path) -> None:
    """Stop a server that still runs on this data, wait until its process is reaped, and remove a stale file.

    Raises:
        ClusterFailedError: if a server on this data cannot be stopped.
    """
    file = data / "postmaster.pid"
    pid = _read_pid(file)
    if pid is None:
        return
    if is_alive(pid) and _serves(pid, data):
        for number, seconds in ((signal.SIGINT, FAST_S), (signal.SIGQUIT, IMMEDIATE_S)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                break
            if _wait_for_end(pid, seconds):
                break
        else:
            raise ClusterFailedError(f"Another PostgreSQL (process {pid}) runs on {data} and does not stop.")
    _wait_until_reaped(pid)
    # It is there still if the server was killed; the id in it may by now belong to someone else.
    file.unlink(missing_ok=True)


def _read_pid(file: Path) -> int | None:
    try:
        return int(file.read_text().splitlines()[0])
    except FileNotFoundError:
        return None
    except (ValueError, IndexError):
        file.unlink()  # Cut off while it was written: PostgreSQL would not read it either.
        return None


def _serves(pid: int, data: Path) -> bool:
    """Whether the process is a PostgreSQL server on this folder, by its command line."""
    proc = Path(f"/proc/{pid}/cmdline")
    if proc.parent.parent.joinpath("self").exists():
        try:
            words = proc.read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return False
        return os.fsencode(data) in words
    # Where there is no /proc, as on macOS, there is ps.
    told = subprocess.run(
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return f"-D {data} " in told.stdout


def _wait_for_end(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _wait_until_reaped(pid: int) -> None:
    """Give the parent of an ended process a moment to notice: until then PostgreSQL takes its id for a living one."""
    deadline = time.monotonic() + IMMEDIATE_S
    while Path(f"/proc/{pid}").exists() and not is_alive(pid) and time.monotonic() < deadline:
        time.sleep(POLL_S)
