"""A streaming replica answers what it may and has all of; behind, broken off or away, the primary does, and says so."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

from bench.installation import Installation
from bench.visitor import Visitor
from inspector import database
from inspector.accounts.models import ApiKey, Session
from inspector.bounds import GoneError
from inspector.embedded.binaries import ServerAccount, find_program
from inspector.embedded.cluster import ROLE, Cluster
from inspector.embedded.processes import WEB
from inspector.embedded.state import PROJECT
from inspector.threads.models import Message
from inspector.trail.powers import name_within

INSPECTOR = Path(database.__file__).parent
PAGES = (
    *("/overview/", "/overview/activity/", "/conversations/", "/traces/", "/agents/", "/agents/graph/"),
    *("/findings/", "/search/?q=hello", "/search/facets/?q=hello", "/search/suggestions/?q=from:a"),
)
LISTS = ("messages", "conversations", "traces", "agents", "findings", "facets", "totals")
# What a view reads before it is let in, or that a replica is never asked for.
PRIMARYS = ("accounts_session", "accounts_apikey", "accounts_membership", "trail_", "keyring_", "ledger_")


@dataclass(frozen=True, kw_only=True)
class Follower(Cluster):
    """A hot standby of another cluster, made of a copy of it; its log has every statement that it is asked."""

    primary: Cluster

    def follow(self, installation: Installation) -> None:
        """Copy the primary, start, and answer."""
        self.home.mkdir(mode=0o700)
        for name in ("password", "application_password", "superuser_password"):
            shutil.copy(self.primary.home / name, self.home / name)
        source = self.primary._url()
        copy = find_program("pg_basebackup", self.binaries.major)
        subprocess.run([copy, "-d", source, "-D", str(self.data), "-R", "-c", "fast"], check=True, capture_output=True)
        if isinstance(self.account, ServerAccount):
            self.account.admit(self.home)
            for path in (self.data, *self.data.rglob("*")):
                self.account.own(path, 0o700 if path.is_dir() else 0o600)
        self._make_socket_folder()
        program = self._program()
        installation.supervisor.start(
            replace(program, name=database.REPLICA, command=(*program.command, "-c", "log_statement=all"))
        )
        installation.supervisor.wait_until(self._answers, seconds=120, needs=database.REPLICA)

    def ask(self, statement: str) -> None:
        """Run a statement as its superuser."""
        with psycopg.connect(self._url(), autocommit=True) as connection:
            connection.execute(statement)

    def count_asked(self, words: str) -> int:
        """How many statements with these words the product has asked of it."""
        return self.log.read_text(errors="replace").count(words)


@contextmanager
def open_pair() -> Iterator[tuple[Installation, Follower]]:
    """An installation with a replica, its web server and worker at work."""
    with ExitStack() as stack:
        installation = stack.enter_context(Installation())
        cluster = installation.cluster
        home = cluster.home.with_name("replica")
        names = {name: getattr(cluster, name) for name in ("binaries", "account", "is_throw_away")}
        follower = Follower(home=home, log=installation.state.logs / "replica.log", primary=cluster, **names)
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        follower.follow(installation)
        stack.callback(installation.supervisor.stop, database.REPLICA)
        installation.variables["REPLICA_URL"] = follower.url
        installation.start()
        yield installation, follower


def post(installation: Installation, text: str) -> None:
    body = json.dumps({"raw": text, "conversation": text.split()[0]}).encode()
    installation.door.post_log(body, content_type="application/x-ndjson", idempotency_key=text)
    installation.wait_until_idle(seconds=300)


def examine(installation: Installation) -> str:
    """What `manage.py doctor` says."""
    command, environment = [sys.executable, "-m", "django", "doctor"], installation.environment()
    return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False).stdout


def search(installation: Installation, words: str) -> list[str]:
    return [each["english"] for each in installation.door.get("/api/v1/messages", q=words)["results"]]


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.long(seconds=60, waits=True)
def test_a_real_replica_answers_and_the_primary_where_it_is_behind_or_away() -> None:
    with open_pair() as (installation, follower):
        someone = installation.visit()

        def count_left() -> int:
            return installation.read_log(WEB, 100_000).count("The replica is left alone")

        post(installation, "hello one")
        # Somebody who has just posted finds it, and it is the replica that says so.
        wait_until(lambda: bool(search(installation, "one")) and follower.count_asked('FROM "threads_message"') > 0)
        for page in PAGES:
            assert_asked(follower, lambda page=page: someone.open(page))
        for name in LISTS:
            assert_asked(follower, lambda name=name: installation.door.get(f"/api/v1/{name}"))
        conversation = installation.door.get("/api/v1/conversations")["results"][0]["id"]
        assert not [each for each in PRIMARYS if follower.count_asked(f'FROM "{each}')]
        for path in (f"/conversations/{conversation}/", "/reviews/", "/deliveries/", "/settings/", "/trail/"):
            before = follower.count_asked("statement:")
            someone.open(path)
            assert follower.count_asked("statement:") == before, path
        # It shows one workspace's rows alone there too.
        assert follower.count_asked(name_within(ROLE)) > 0
        assert count_left() == 0
        assert "REPLICA_URL" not in examine(installation)

        follower.ask("SELECT pg_wal_replay_pause()")
        post(installation, "hello two")
        assert len(search(installation, "two")) == 1
        assert "hello two" in search_page(someone, "two")
        # Each of the two web processes says it once, whatever it is asked.
        for _ in range(20):
            assert len(search(installation, "hello")) == 2
        assert 1 <= count_left() <= 2

        follower.ask("SELECT pg_wal_replay_resume()")
        before = follower.count_asked('FROM "threads_message"')
        wait_until(
            lambda: len(search(installation, "two")) == 1 and follower.count_asked('FROM "threads_message"') > before
        )

        left = count_left()
        installation.supervisor.stop(database.REPLICA)
        for _ in range(10):
            assert len(search(installation, "hello")) == 2
            assert {"hello one", "hello two"} <= {*search_page(someone, "hello")}
        assert left < count_left() <= left + 2
        assert "WRONG: REPLICA_URL names no replica that is read from" in examine(installation)


def search_page(someone: Visitor, words: str) -> list[str]:
    """The hits of a page of search, each without the marks in it."""
    page = someone.open(f"/search/?q={words}").decode()
    return re.findall(r"hello (?:one|two)", re.sub(r"</?mark[^>]*>", "", page))


def assert_asked(follower: Follower, ask: Callable[[], Any]) -> None:
    """The replica is asked something for it, at the latest when it has caught up again."""

    def is_asked() -> bool:
        before = follower.count_asked("statement:")
        ask()
        return follower.count_asked("statement:") > before + 1

    wait_until(is_asked)


def test_these_views_and_no_others_may_be_answered_by_a_replica() -> None:
    found = set()
    for path in INSPECTOR.rglob("*.py"):
        for owner in ast.walk(ast.parse(path.read_text())):
            for node in getattr(owner, "body", ()) if isinstance(owner, ast.Module | ast.ClassDef) else ():
                names = [ast.unparse(one) for one in getattr(node, "decorator_list", ())]
                if "on_replica" in names:
                    # Nobody is let in by a replica: of a page the door stands before, of the API `initial`.
                    assert isinstance(owner, ast.ClassDef) or names.index("on_replica") > 0
                    found.add(f"{path.stem}.{node.name}")
    assert found == {
        *(
            "search.search",
            "search.show_facets",
            "search.suggest_terms",
            "views.show_conversations",
            "traces.show_traces",
        ),
        *("agents.show_agents", "graph.show_graph", "findings.show_findings"),
        *("overview.show_overview", "overview.show_activity"),
        *("messages.list_messages", "conversations.list_conversations", "traces.list_traces", "agents.list_agents"),
        *("findings.list_findings", "workspaces.count_facets", "workspaces.get_totals"),
    }


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A replica that has everything, and the reasons for which it was left alone."""
    left: list[str] = []
    monkeypatch.setitem(connections.settings, database.REPLICA, {})
    monkeypatch.setattr(database._standing, "take", lambda: "795:799:797")
    monkeypatch.setattr(database._standing, "leave", lambda why: left.append(str(why)))
    return left


def test_within_such_a_view_messages_are_read_there_and_whoever_asks_is_not(taken: list[str]) -> None:
    router = database.ReplicaRouter()
    models = (Message, Session, ApiKey, get_user_model())
    read = database.on_replica(lambda: [router.db_for_read(model) for model in models])
    assert read() == [database.REPLICA, *[DEFAULT_DB_ALIAS] * 3]
    assert database.on_replica(database.find_snapshot)() == "795:799:797"
    assert database.on_replica(lambda: router.db_for_write(Message))() == DEFAULT_DB_ALIAS
    assert [router.db_for_read(Message), database.find_snapshot(), taken] == [DEFAULT_DB_ALIAS, "", []]


def test_what_a_replica_breaks_off_is_answered_by_the_primary(taken: list[str]) -> None:
    def view() -> str:
        if database.find_snapshot():
            raise OperationalError("canceling statement due to conflict with recovery")
        return "of the primary"

    assert database.on_replica(view)() == "of the primary"
    assert taken == ["canceling statement due to conflict with recovery"]


@pytest.mark.parametrize("error", [GoneError(), OperationalError("canceling statement due to statement timeout")])
def test_nobody_waits_twice_for_what_takes_too_long_and_nobody_who_has_gone(
    taken: list[str], error: OperationalError
) -> None:
    error.__cause__ = psycopg.errors.QueryCanceled()
    asked: list[str] = []

    def view() -> None:
        asked.append(database.find_snapshot())
        raise error

    with pytest.raises(OperationalError):
        database.on_replica(view)()
    assert asked == ["795:799:797"]
    assert not database.find_snapshot()
    assert not taken
