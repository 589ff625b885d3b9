"""docker-compose.yml as an operator uses it: brought up, asked over HTTP, scaled, restarted and taken down."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from tests.inspector.api.test_server import find_port

PROJECT = Path(__file__).parents[2]
HOST = "inspector.example.org"
PATIENCE_SECONDS = 600.0
# Where somebody says until when all has to be done, by the seconds of the clock; and what comes after the image takes.
UNTIL = float(os.environ.get("COMPOSE_UNTIL", "inf"))
AFTER_BUILD_SECONDS = 180.0
# What an answer may be while something behind the proxy is away.
AWAY = frozenset({429, 502, 503, 504})


def find_compose() -> list[str]:
    """The command of whichever compose is installed; empty where there is none."""
    if shutil.which("docker") and not subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else []


def find_obstacle() -> str:
    """Why no containers can be run here; empty where they can."""
    if os.environ.get("COMPOSE_TEST") != "1":
        return "containers are run by `make compose-test` alone"
    if not find_compose():
        return "neither `docker compose` nor `docker-compose` is installed"
    asked = subprocess.run(["docker", "info"], capture_output=True, text=True, check=False)
    return "" if asked.returncode == 0 else f"no container engine answers: {asked.stderr.strip()[-200:]}"


def build_or_skip(stack: Stack) -> None:
    """Build the image that every service of the product has; skip all where the time is then too short for the rest."""
    left = UNTIL - time.time() - AFTER_BUILD_SECONDS
    try:
        stack.run("build", "web", timeout=min(900.0, max(1.0, left)))
    except subprocess.TimeoutExpired:
        pytest.skip(f"the image was not built in {left:.0f} seconds, which is what COMPOSE_UNTIL leaves for it")


class Stack:
    """One project of compose, with secrets of its own or of another, in `folder`; of these files of the checkout in
    `source`.

    What the files look for in `./tls` is looked for in `folder`.
    """

    def __init__(
        self,
        folder: Path,
        source: Path = PROJECT,
        files: Sequence[str] = ("docker-compose.yml",),
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self.port = find_port()
        self._folder, self._files = folder, files
        self.secrets = secrets or {
            "POSTGRES_PASSWORD": os.urandom(16).hex(),
            "POSTGRES_APP_PASSWORD": os.urandom(16).hex(),
            "SECRET_KEY": os.urandom(32).hex(),
            "INSPECTOR_KEYRING_KEY": os.urandom(32).hex(),
            "METRICS_TOKEN": os.urandom(16).hex(),
        }
        self.metrics_token = self.secrets["METRICS_TOKEN"]
        settings = {**self.secrets, "ALLOWED_HOSTS": HOST, "LOG_FORMAT": "json", "PORT": str(self.port)}
        (folder / "env").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.name = f"inspector-test-{os.getpid()}-{self.port}"
        self.use(source)
        self.session = requests.Session()
        self.session.headers["Host"] = HOST
        self.session.trust_env = False

    def use(self, source: Path) -> None:
        """Go on with the checkout in this folder; what volumes hold stays."""
        self._command = [*find_compose(), "-p", self.name, "--project-directory", str(source)]
        self._command += ["--env-file", str(self._folder / "env")]
        for name in self._files:
            # The old compose of Debian does not know the name at the top, which `-p` replaces.
            text = re.sub(r"^name: .*$", "", (source / name).read_text(), flags=re.MULTILINE)
            (self._folder / name).write_text(text.replace("./tls/", f"{self._folder}/tls/"))
            self._command += ["-f", str(self._folder / name)]

    def run(self, *arguments: str, check: bool = True, timeout: float = 900.0) -> str:
        """What a command of compose prints."""
        done = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, timeout=timeout, check=False, cwd=PROJECT
        )
        assert not check or done.returncode == 0, f"{arguments}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def manage(self, *arguments: str, service: str = "web") -> str:
        """What a command of manage.py prints in a container of a service."""
        return self.run("exec", "-T", service, "python", "manage.py", *arguments).strip()

    def list_containers(self) -> list[dict[str, Any]]:
        """What the engine says of each container, those that have ended included."""
        ids = self.run("ps", "-aq").split()
        return json.loads(subprocess.check_output(["docker", "inspect", *ids])) if ids else []

    def wait_until_well(self, services: Sequence[str] = ()) -> None:
        """Wait until every container that says how it is says that it is well."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            states = {}
            for each in self.list_containers():
                service = each["Config"]["Labels"]["com.docker.compose.service"]
                health = each["State"].get("Health")
                if health and (not services or service in services):
                    states[each["Name"]] = health["Status"] if each["State"]["Running"] else "ended"
            if states and set(states.values()) == {"healthy"}:
                return
            assert time.monotonic() < until, f"{states}\n{self.run('logs', '--tail=20', check=False)[-8000:]}"
            time.sleep(1)

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        """An answer of the product through the proxy's published port, asked for again while something is away."""
        until = time.monotonic() + 120
        while True:
            try:
                answer = self.session.request(method, f"http://127.0.0.1:{self.port}{path}", timeout=60, **options)
                if answer.status_code not in AWAY or time.monotonic() > until:
                    return answer
            except requests.RequestException:
                if time.monotonic() > until:
                    raise
            time.sleep(0.5)

    def measure(self, name: str) -> float:
        """The sum of one measure of /metrics over its labels."""
        answer = self.ask("GET", "/metrics", headers={"Authorization": f"Bearer {self.metrics_token}"})
        assert answer.status_code == 200
        families = text_string_to_metric_families(answer.text)
        values = [sample.value for family in families for sample in family.samples if sample.name == name]
        assert values, name
        return sum(values)
