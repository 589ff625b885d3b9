"""The broker of an installation that has one, a Redis server, and the ways in which it fails.

A server that is given by its URL can be emptied, spoilt, silent and without its lines. One that we start
ourselves can be killed and stay away too.
"""

from __future__ import annotations

import random
import secrets
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import redis

from inspector.embedded import EmbeddedError
from inspector.embedded.processes import Program
from inspector.embedded.run import HOST
from inspector.embedded.state import PROJECT, StateFolder

NAME = "broker"
QUEUE = "celery"
SERVER = "redis-server"
NONE = "none"
# How long a broker is silent, or away: longer than anybody waits for it.
SILENT_S, AWAY_S = (1.5, 4.0), (1.0, 8.0)
NO_MESSAGES = (b'{"body": "', b"", b"[]", b"{}", b"\x00")


class Broker:
    """A Redis server.

    Args:
        url: of the server, with the number of a database that holds nothing.
        program: how it is started, if it is ours.

    Attributes:
        ways: how it fails, by name; each answers for how many seconds its program must stay down, or None.

    Raises:
        EmbeddedError: where a server that is not ours does not answer, or holds something: emptying it would destroy
            what is not ours.
    """

    def __init__(self, url: str, program: Program | None = None) -> None:
        self.url, self.program = url, program
        self.ways: dict[str, Callable[[random.Random], float | None]] = {
            "emptied": self._empty,
            "garbage": self._spoil,
            "silent": self._silence,
            "lines cut": self._cut_lines,
        }
        if program is not None:
            self.ways |= {"killed": self._kill, "away": self._take_away}
            return
        try:
            held = self._connect().dbsize()
        except redis.RedisError as error:
            raise EmbeddedError(f"the Redis server at {url} does not answer: {error}") from error
        if held:
            raise EmbeddedError(f"the database {url} holds {held} keys, and would be emptied: name one that is empty")

    def leave(self) -> None:
        """Leave a server that is not ours as it was found."""
        if self.program is None:
            self._connect().flushdb()

    def _connect(self) -> redis.Redis:
        return redis.Redis.from_url(self.url or "", socket_timeout=5)

    def _empty(self, chance: random.Random) -> None:
        self._connect().flushdb()

    def _spoil(self, chance: random.Random) -> None:
        self._connect().lpush(QUEUE, *_make_garbage(chance))

    def _silence(self, chance: random.Random) -> None:
        """It takes connections and answers nobody."""
        self._connect().execute_command("CLIENT", "PAUSE", int(chance.uniform(*SILENT_S) * 1000), "ALL")

    def _cut_lines(self, chance: random.Random) -> None:
        for kind in ("normal", "pubsub"):
            self._connect().execute_command("CLIENT", "KILL", "TYPE", kind)

    def _kill(self, chance: random.Random) -> float:
        """What it held is gone with it."""
        return 0.0

    def _take_away(self, chance: random.Random) -> float:
        return chance.uniform(*AWAY_S)


def _make_garbage(chance: random.Random) -> list[bytes]:
    return [chance.choice((*NO_MESSAGES, secrets.token_bytes(200))) for _ in range(chance.randint(1, 3))]


def open_broker(choice: str, state: StateFolder, *, host: str = HOST) -> Broker | None:
    """The broker that is asked for: `none`, `redis` for a server of our own at `host`, or the URL of one.

    Raises:
        EmbeddedError: where there is no such server.
    """
    if choice == NONE:
        return None
    if choice != "redis":
        return Broker(choice)
    server = shutil.which(SERVER)
    if server is None:
        raise EmbeddedError(f"{SERVER} is not installed: install it, or give the URL of a server")
    port = _find_port(host)
    return Broker(f"redis://{host}:{port}/0", _make_server(Path(server), host, port, state))


def _make_server(server: Path, host: str, port: int, state: StateFolder) -> Program:
    """A server that keeps nothing: what it holds when it dies is lost, as it may be."""
    return Program(
        name=NAME,
        command=(
            *(str(server), "--bind", host, "--port", str(port), "--dir", str(state.temporary)),
            *("--save", "", "--appendonly", "no", "--daemonize", "no", "--protected-mode", "no"),
        ),
        environment={},
        folder=PROJECT,
        log=state.logs / "broker.log",
        rank=3,
        grace_s=5.0,
    )


def _find_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
