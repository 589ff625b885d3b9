"""A program that holds one embedded PostgreSQL until it is told to stop; its argument is the state folder.

It prints one line of JSON, {"url", "pid", "watchdog"}, as soon as the server answers, and ends at the end of its input.
The tests run it as different users and kill it in different ways.
"""

import json
import os
import sys
from pathlib import Path

import psycopg

from inspector.embedded import EmbeddedError
from inspector.embedded.cluster import NAME, make_cluster
from inspector.embedded.processes import Supervisor
from inspector.embedded.state import open_state


def main(folder: Path) -> int:
    """Start the server, tell where it is, wait, stop it."""
    try:
        state = open_state(folder, say=lambda line: print(line, file=sys.stderr))
        cluster = make_cluster(state)
        with Supervisor(say=lambda line: print(line, file=sys.stderr), held=(state.lock,)) as supervisor:
            cluster.start(supervisor)
            pid = (
                int((cluster.data / "postmaster.pid").read_text().split()[0]) if os.access(cluster.data, os.R_OK) else 0
            )
            print(json.dumps({"url": cluster.url, "pid": pid, "watchdog": supervisor.watchdog_pid}), flush=True)
            for line in sys.stdin:
                if line.strip() == "check":
                    supervisor.wait_until(lambda: supervisor.is_running(NAME) and answers(cluster.url), seconds=30)
                    print(json.dumps({"running": supervisor.is_running(NAME)}), flush=True)
            cluster.stop(supervisor)
    except EmbeddedError as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


def answers(url: str) -> bool:
    """Whether the role that owns the database gets an answer to a query."""
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
