"""What a server that was killed leaves in its data folder, and how to begin again: `postmaster.pid`.

PostgreSQL refuses to start beside its own living predecessor, and takes any process that happens to have got the
predecessor's id for it; its `pg_ctl stop` would even end that process. We hold the lock of the state folder, so
whatever runs on this data is ours to stop, and nothing else is.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

from .errors import ClusterFailedError

POLL_S = 0.05
FAST_S = 30.0
IMMEDIATE_S = 10.0


def clear(data: Path) -> None:
    """Stop a server that still runs on this data, and remove the file, which by now may name somebody else's process.

    Raises:
        ClusterFailedError: if a server on this data cannot be stopped.
    """
    file = data / "postmaster.pid"
    try:
        pid = int(file.read_text().split()[0])
    except FileNotFoundError:
        return
    except (ValueError, IndexError):
        pid = 0  # Cut off while it was written: PostgreSQL would not read it either.
    for number, seconds in ((signal.SIGINT, FAST_S), (signal.SIGQUIT, IMMEDIATE_S)):
        deadline = time.monotonic() + seconds
        if _serves(pid, data):
            os.kill(pid, number)
        while _serves(pid, data) and time.monotonic() < deadline:
            time.sleep(POLL_S)
    if _serves(pid, data):
        raise ClusterFailedError(f"Another PostgreSQL (process {pid}) runs on {data} and does not stop.")
    file.unlink(missing_ok=True)


def _serves(pid: int, data: Path) -> bool:
    """Whether a living process is a PostgreSQL server on this folder, by its command line."""
    if Path("/proc/self").exists():
        try:
            return os.fsencode(data) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return False
    # Where there is no /proc, as on macOS, there is ps.
    told = subprocess.run(["/bin/ps", "-wwo", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return f"-D {data} " in told.stdout
