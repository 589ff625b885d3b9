"""A throw-away PostgreSQL for the tests, started when the first test asks for the database and gone with the last.

The settings read the address when they are imported, which is before any conftest: so the address is fixed at once, in
`pytest_load_initial_conftests`, and the server is started by whoever first sets up the test database. A run that needs
no database (`tests/codecs`, `--help`, `--collect-only`) never starts one. Where DATABASE_URL is set, that is used.

With workers (`-n 2`) each has a server of its own, so that what one does to its server disturbs no other; on a server
that is named each has a database of its own. Whose tests need the product's tables asks for a server with a migrated
database, by whose pattern others are made (`begin_migrated`).
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from inspector.embedded import EmbeddedError
from inspector.embedded.binaries import find_server_account
from inspector.embedded.cluster import Cluster, make_cluster
from inspector.embedded.processes import Supervisor
from inspector.embedded.state import open_state
from tests.migrated import PATTERN, find_kept

# How long a connection may take: where everything runs at once the server is late, and is not away.
PATIENCE_S = 60
KEPT_FROM_TESTS = ("INSPECTOR_STATE_DIR", "DATABASE_URL", "CELERY_BROKER_URL")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Choose the address of the database before Django's settings are read."""
    restore_interrupts()
    server = ThrowAwayServer()
    early_config.add_cleanup(server.stop)
    try:
        server.prepare()
    except EmbeddedError as reason:
        raise pytest.UsageError(str(reason)) from reason
    early_config.pluginmanager.register(server, "inspector-test-server")


@dataclass(eq=False)  # pytest keeps its plugins in sets
class ThrowAwayServer:
    """The state folder of the tests, and the cluster in it once one is needed."""

    root: Path | None = None
    cluster: Cluster | None = None
    is_running: bool = False
    is_migrated: bool = False
    _stack: ExitStack = field(default_factory=ExitStack)
    _environment: dict[str, str | None] = field(default_factory=dict)

    def prepare(self) -> None:
        """Make a private state folder and let the environment name it and the database to be."""
        account = find_server_account()
        # The usual temporary folder, or /tmp where PostgreSQL's account cannot reach that.
        usual = Path(tempfile.gettempdir())
        parent = usual if account is None or account.can_enter(usual) else "/tmp"  # mkdtemp makes it private
        self.root = Path(tempfile.mkdtemp(prefix="inspector-tests-", dir=parent))
        self._environment = {name: os.environ.get(name) for name in KEPT_FROM_TESTS}
        os.environ["INSPECTOR_STATE_DIR"] = str(self.root)
        state = open_state(self.root)
        self._stack.callback(state.release)
        if os.environ.get("DATABASE_URL"):
            return
        self.cluster = make_cluster(state, is_throw_away=True)
        self.cluster.prepare()
        os.environ["DATABASE_URL"] = f"{self.cluster.url}&connect_timeout={PATIENCE_S}"

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        """Leave everything to the workers: one that inherited our address would take it for one that a person named."""
        self.stop()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: "pytest.FixtureDef[object]") -> Generator[None, object, object]:
        """Start the server just before pytest-django makes the test database."""
        if fixturedef.argname != "django_db_setup":
            return (yield)
        self.start()
        made = yield
        # What is added last is done first: before pytest-django drops the database.
        fixturedef.addfinalizer(self.end_sessions)
        return made

    def begin_migrated(self) -> str | None:
        """Let the server have a migrated database when it starts: its name, or None where the server is not ours."""
        self.is_migrated = self.cluster is not None
        return PATTERN if self.is_migrated else None

    def end_sessions(self) -> None:
        """End what is still connected to a test database: a process that a test killed may leave a session."""
        if self.cluster is not None and self.is_running:
            self.cluster.end_sessions("test_")

    def start(self) -> None:
        """Start the cluster if there is one to start."""
        if self.cluster is None or self.root is None or self.is_running:
            return
        supervisor = self._stack.enter_context(Supervisor(say=print))
        supervisor.throw_away(self.root)
        self._stack.callback(self.cluster.stop, supervisor)
        if self.is_migrated:
            find_kept(self.cluster).give(self.cluster, supervisor)
        self.cluster.start(supervisor)
        self.is_running = True

    def stop(self) -> None:
        """Stop the server, remove its folder and give the environment back."""
        self._stack.close()
        self.cluster = None
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if self.root is not None:
            shutil.rmtree(self.root, ignore_errors=True)
            self.root = None


def restore_interrupts() -> None:
    """Let SIGINT interrupt again: a shell that starts us in the background turns it off, for us and all our children.

    Tests that end what they started by SIGINT would wait in vain then.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
