"""How things die: kill -9 of web server, worker and PostgreSQL, in part and whole; the broker emptied and spoilt."""

from __future__ import annotations

import os
import random
import secrets
import signal
from collections.abc import Callable, Mapping

import psutil
import psycopg

from bench.installation import POSTGRES, WEB, WORKER, Installation

QUEUE = "celery"
DEATH_S = 10.0


def kill_one_process(installation: Installation, program: str, chance: random.Random) -> bool:
    """kill -9 of one process below the leader; the leader starts another."""
    children = _list_children(installation, program)
    return bool(children) and _kill(chance.choice(children))


def kill_all_processes(installation: Installation, program: str, chance: random.Random) -> bool:
    """kill -9 of the leader and of everything in its group, at once."""
    leader = _find_leader(installation, program)
    if leader is None:
        return False
    family = [leader, *leader.children(recursive=True)]
    os.killpg(leader.pid, signal.SIGKILL)
    # Until the system has taken them away, they look alive to whoever would start others.
    psutil.wait_procs(family, timeout=DEATH_S)
    return True


def kill_backend(installation: Installation, program: str, chance: random.Random) -> bool:
    """kill -9 of one session's process, a busy one if there is one: PostgreSQL throws out all others and recovers."""
    try:
        with installation.connect() as connection:
            rows = connection.execute(
                "SELECT pid, state <> 'idle' FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchall()
    except psycopg.OperationalError:
        return False
    busy = [int(str(pid)) for pid, is_busy in rows if is_busy] or [int(str(pid)) for pid, _ in rows]
    if not busy:
        return False
    try:
        return _kill(psutil.Process(chance.choice(busy)))
    except psutil.NoSuchProcess:
        return False


def kill_postmaster(installation: Installation, program: str, chance: random.Random) -> bool:
    """kill -9 of PostgreSQL's first process: its sessions find out by themselves, and nothing was written down."""
    leader = _find_leader(installation, program)
    return leader is not None and _kill(leader)


def empty_broker(installation: Installation, program: str, chance: random.Random) -> bool:
    """Every waiting message is gone, as when a broker without a disk is restarted."""
    for file in (installation.state.root / "broker" / "queue").iterdir():
        file.unlink(missing_ok=True)
    return True


def spoil_broker(installation: Installation, program: str, chance: random.Random) -> bool:
    """Messages that are none: cut short, empty, or anything at all."""
    kinds = (b'{"body": "', b"", secrets.token_bytes(200), b"[]", b"{}")
    for _ in range(chance.randint(1, 3)):
        name = f"{chance.randrange(10**9)}_{secrets.token_hex(8)}.{QUEUE}.msg"
        (installation.state.root / "broker" / "queue" / name).write_bytes(chance.choice(kinds))
    return True


Death = Callable[[Installation, str, random.Random], bool]
# For each kind the program, and the ways, each with its name in the table.
KINDS: Mapping[str, tuple[str, Mapping[str, Death]]] = {
    "web": (WEB, {"one process": kill_one_process, "all": kill_all_processes}),
    "worker": (WORKER, {"one process": kill_one_process, "all": kill_all_processes}),
    "postgres": (POSTGRES, {"one backend": kill_backend, "postmaster": kill_postmaster}),
    "broker": (WORKER, {"emptied": empty_broker, "garbage": spoil_broker}),
}


def _find_leader(installation: Installation, program: str) -> psutil.Process | None:
    try:
        leader = installation.find_process(program)
        return leader if leader.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def _list_children(installation: Installation, program: str) -> list[psutil.Process]:
    try:
        return [child for child in installation.find_process(program).children() if child.is_running()]
    except psutil.NoSuchProcess:
        return []


def _kill(process: psutil.Process) -> bool:
    try:
        process.kill()
        psutil.wait_procs([process], timeout=DEATH_S)
    except psutil.NoSuchProcess:
        return False
    return True
