"""Two hosts as network namespaces whose processes do not see each other's folders, and what they share beside them.

PostgreSQL and the broker are reached over a bridge, as those of another machine are. All of it is within a network and
a mount namespace of this process, so that nothing of it is seen outside, or stays.
"""

from __future__ import annotations

import ctypes
import os
import random
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from inspector.embedded.cluster import DATABASE, PORT, ROLE, Cluster
from inspector.embedded.processes import Program
from inspector.embedded.run import BACKLOG

from .broker import SERVER
from .installation import Installation
from .visitor import Visitor

ENTERED = "BENCH_NAMESPACE"
NETWORK, GATE = "10.27.0.0/24", "10.27.0.1"
BRIDGE = "inspector"
NAMES = Path("/run/netns")
CLONE_NEWNET = 0x40000000
AWAY_S = (1.0, 6.0)


def find_obstacle() -> str:
    """Why there can be no hosts here; empty where there can."""
    missing = [name for name in ("ip", "unshare", SERVER) if not shutil.which(name)]
    if os.geteuid() != 0 or missing:
        return f"hosts need root, and {', '.join(missing) or 'nothing else'}"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "ip", "link", "add", BRIDGE, "type", "bridge"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"this system makes no namespaces or bridges: {tried.stderr.strip()[-200:]}" if tried.returncode else ""


def enter_namespace(module: str, arguments: Sequence[str]) -> None:
    """Run this module again in namespaces of its own, unless it is there already."""
    if ENTERED not in os.environ:
        os.environ[ENTERED] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, "-m", module, *arguments])


class Shared(Installation):
    """PostgreSQL and a Redis server, and so many hosts with web server, worker and beat."""

    address = GATE
    hosts: Sequence[Host]

    def __init__(self, *, hosts: int, variables: Mapping[str, str]) -> None:
        given = {name: secrets.token_urlsafe(32) for name in ("SECRET_KEY", "INSPECTOR_KEYRING_KEY")}
        super().__init__(variables={**variables, **given}, broker="redis")
        self._count = hosts

    def _open(self) -> None:
        NAMES.mkdir(exist_ok=True)
        _run("mount", "-t", "tmpfs", "none", str(NAMES))
        _run("ip", "link", "add", BRIDGE, "type", "bridge")
        _run("ip", "address", "add", f"{GATE}/24", "dev", BRIDGE)
        for device in ("lo", BRIDGE):
            _run("ip", "link", "set", device, "up")
        super()._open()
        self.hosts = [self._stack.enter_context(Host(self, number)) for number in range(self._count)]

    def _listen(self) -> socket.socket:
        return _open_listener(GATE)

    def _make_cluster(self) -> Cluster:
        return ReachedCluster(**vars(super()._make_cluster()))

    def start(self) -> None:
        """Start web server and worker on each host, and wait until it answers."""
        places = [self, *self.hosts]
        for host in self.hosts:
            others = [str(folder) for each in places if each is not host for folder in (each.state.root, each.sockets)]
            hidden = " && ".join(f"mount -t tmpfs none {shlex.quote(folder)}" for folder in others)
            host.enter = (*host.enter[:4], "sh", "-c", f'{hidden} && exec "$@"', "sh")
            host.start()

    def bring_back(self) -> None:
        """Start again what fell, here and on the hosts."""
        super().bring_back()
        for host in self.hosts:
            host.bring_back()


class Host(Installation):
    """One host: its network, its folders, and its own web server, worker and beat."""

    def __init__(self, shared: Shared, number: int) -> None:
        self.address = f"10.27.0.{11 + number}"
        self.name, self._line = f"host{number}", f"line{number}"
        self.enter = ("ip", "netns", "exec", self.name)
        self._shared = shared
        super().__init__(variables={**shared.variables, "ALLOWED_HOSTS": self.address})

    def _open(self) -> None:
        _run("ip", "netns", "add", self.name)
        _run("ip", "link", "add", self._line, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _run("ip", "link", "set", self._line, "master", BRIDGE, "up")
        _run("ip", "-n", self.name, "address", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _run("ip", "-n", self.name, "link", "set", device, "up")
        super()._open()

    def _listen(self) -> socket.socket:
        """A thread has a network of its own once it enters one: what it opens there belongs to that."""
        made: list[socket.socket] = []

        def listen() -> None:
            with (NAMES / self.name).open() as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "the host's network cannot be entered")
            made.append(_open_listener(self.address))

        thread = threading.Thread(target=listen)
        thread.start()
        thread.join()
        return made[0]

    def _start_services(self) -> None:
        self.cluster, self.broker = self._shared.cluster, self._shared.broker

    def environment(self) -> dict[str, str]:
        """What the processes see: the database at the other end of the bridge."""
        password = quote((self.cluster.home / "password").read_text(), safe="")
        return {**super().environment(), "DATABASE_URL": f"postgresql://{ROLE}:{password}@{GATE}:{PORT}/{DATABASE}"}

    def bring_back(self) -> None:
        """Start again what fell."""
        self._bring_back(self._programs)

    def visit(self) -> Visitor:
        """Somebody who signs in here, by a link of their own: the last that was made is the one that holds."""
        self.renew()
        return super().visit()

    def cut_off(self, chance: random.Random) -> bool:
        """Nothing comes through to this host, or from it, for some seconds, also where we wait for it meanwhile."""
        _run("ip", "link", "set", self._line, "down")
        mending = threading.Timer(chance.uniform(*AWAY_S), _run, ("ip", "link", "set", self._line, "up"))
        mending.daemon = True
        mending.start()
        return True

    def list_hidden(self) -> str:
        """What its processes see of the others' folders: nothing."""
        others = [str(each.state.root) for each in (self._shared, *self._shared.hosts) if each is not self]
        return subprocess.check_output([*self.enter, "ls", "-A", *others], text=True)


class ReachedCluster(Cluster):
    """A cluster that other machines reach."""

    def _program(self) -> Program:
        program = super()._program()
        given = ("-c", f"listen_addresses={GATE}", "-c", "max_connections=200")
        return replace(program, command=(*program.command, *given))

    def _initialise(self) -> None:
        super()._initialise()
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {NETWORK} scram-sha-256\n")


def _open_listener(address: str) -> socket.socket:
    return socket.create_server((address, 0), backlog=BACKLOG)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
