"""How things die: kill -9 of web server, worker and PostgreSQL, in part and whole; the broker, as it can fail."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import psutil
import psycopg
import redis

from bench.broker import NAME as BROKER_PROGRAM
from bench.hosts import Host
from bench.installation import BEAT, FRONT, POSTGRES, POSTING, WEB, WORKER, Installation

DEATH_S, POLL_S = 10.0, 0.01


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
    _wait_until_dead(family)
    return True


def kill_everything(installation: Installation, program: str, chance: random.Random) -> bool:
    """kill -9 of all that runs on a host, as when its current fails."""
    killed = [kill_all_processes(installation, each, chance) for each in (FRONT, WEB, POSTING, WORKER, BEAT)]
    return any(killed)


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


Death = Callable[[Installation, str, random.Random], bool]
# For each kind the program, and the ways, each with its name in the table.
KINDS: Mapping[str, tuple[str, Mapping[str, Death]]] = {
    "web": (WEB, {"one process": kill_one_process, "all": kill_all_processes}),
    "posting": (POSTING, {"one process": kill_one_process, "all": kill_all_processes}),
    "front": (FRONT, {"all": kill_all_processes}),
    "worker": (WORKER, {"one process": kill_one_process, "all": kill_all_processes}),
    "postgres": (POSTGRES, {"one backend": kill_backend, "postmaster": kill_postmaster}),
}
BROKER, HOST = "broker", "host"
CHOICES = (*KINDS, BROKER, HOST)
# What there is once, however many hosts there are.
SHARED = ("postgres", BROKER)


def list_kinds(installation: Installation) -> tuple[str, ...]:
    """What can be hurt in an installation."""
    return (*KINDS, *[BROKER] * bool(installation.broker), *[HOST] * (len(installation.hosts) > 1))


def list_ways(
    installation: Installation, kind: str, chance: random.Random
) -> Mapping[str, Callable[[random.Random], bool]]:
    """The ways to hurt what this kind names, on one of the hosts; each says whether it found something to hurt."""
    if kind == BROKER and installation.broker:
        return {name: partial(_break_broker, installation, way) for name, way in installation.broker.ways.items()}
    if kind not in SHARED:
        installation = chance.choice(installation.hosts)
    if kind == HOST:
        cut_off = {"cut off": installation.cut_off} if isinstance(installation, Host) else {}
        return {"all at once": partial(kill_everything, installation, ""), **cut_off}
    program, ways = KINDS[kind]
    return {name: partial(way, installation, program) for name, way in ways.items()}


def _break_broker(
    installation: Installation, way: Callable[[random.Random], float | None], chance: random.Random
) -> bool:
    try:
        seconds = way(chance)
    except redis.RedisError:
        return False  # It is away already, or silent.
    if seconds is None:
        return True
    leader = _find_leader(installation, BROKER_PROGRAM)
    if leader is None:
        return False
    installation.keep_away(BROKER_PROGRAM, seconds)
    return _kill(leader)


def _find_leader(installation: Installation, program: str) -> psutil.Process | None:
    try:
        leader = installation.find_process(program)
    except psutil.NoSuchProcess:
        return None
    return leader if _is_alive(leader) else None


def _list_children(installation: Installation, program: str) -> list[psutil.Process]:
    try:
        return [child for child in installation.find_process(program).children() if child.is_running()]
    except psutil.NoSuchProcess:
        return []


def _kill(process: psutil.Process) -> bool:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return False
    _wait_until_dead([process])
    return True


def _wait_until_dead(processes: Sequence[psutil.Process]) -> None:
    """Until they run no more. Those of a dead parent may stay in the system's table for seconds longer, as nothing."""
    deadline = time.monotonic() + DEATH_S
    while any(map(_is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
