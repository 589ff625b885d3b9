"""A tiny process that outlives its parent by a few seconds, to stop what the parent had started.

It reads lines of JSON on its standard input, whose other end only the parent holds, so that the end of the input means
the end of the parent, even by kill -9. Each child announces itself before it runs its program (`processes.py`), so no
child is ever unknown. When the input ends, the groups are stopped in the order of `rank` (the worker before
PostgreSQL), each with its own signal and grace, and the throw-away folders are removed.

It is run by path, with the standard library alone: it starts in some hundredths of a second and needs a few megabytes.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

POLL_S = 0.05


def main() -> None:
    """Follow the parent until its end, then stop what is left."""
    # The terminal's Ctrl-C and the end of its session are the parent's affair.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[int, dict[str, Any]] = {}
    folders: list[str] = []
    for line in sys.stdin.buffer:
        order = json.loads(line)
        if "watch" in order:
            watched[order["watch"]] = order
        elif "forget" in order:
            watched.pop(order["forget"], None)
        elif "remove" in order:
            folders.append(order["remove"])
    for rank in sorted({order["rank"] for order in watched.values()}):
        stop_groups([order for order in watched.values() if order["rank"] == rank])
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def stop_groups(orders: list[dict[str, Any]]) -> None:
    """Signal the leader of each group, wait for it, and kill what then still lives in the group."""
    for order in orders:
        _signal(os.kill, order["watch"], order["signal"])
    deadline = time.monotonic() + max(order["grace_s"] for order in orders)
    while time.monotonic() < deadline and any(is_alive(order["watch"]) for order in orders):
        time.sleep(POLL_S)
    for order in orders:
        _signal(os.killpg, order["watch"], signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Whether a process works under this id; one that has ended and only waits for its parent's notice does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # It lives, as another user.
    try:
        # The state is the first word behind the command's name, which may itself hold anything, brackets included.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return not Path("/proc/self/stat").exists()  # Without /proc (macOS) the answer to the signal has to do.


def _signal(send: Any, target: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send(target, number)


if __name__ == "__main__":
    main()
