"""A database that is away is not the reader's mistake, nor a bug: pages say so, with 503 and when to come back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from inspector import server
from inspector.api.problems import answer_exception
from tests.inspector.conftest import Cast

from .conftest import page_of, shows

ADDRESSES = ["/", "/w/acme/conversations/", "/w/acme/search/?q=x", "/w/acme/deliveries/", "/w/acme/dead-letters/"]


def reset_by_server() -> OperationalError:
    error = OperationalError("terminating connection due to administrator command")
    error.__cause__ = psycopg.errors.AdminShutdown("terminating connection due to administrator command")
    return error


FAILURES = {
    "refused": lambda: OperationalError("connection refused"),
    "closed": lambda: InterfaceError("connection already closed"),
    "shut down": reset_by_server,
}


@pytest.fixture
def away(request: pytest.FixtureRequest) -> Iterator[Callable[[Exception], None]]:
    """Lets every statement fail with this from now on."""
    wrappers = []

    def fail(error: Exception) -> None:
        def refuse(*words: object) -> None:
            raise error

        wrapper = connection.execute_wrapper(refuse)  # type: ignore[arg-type]
        wrapper.__enter__()
        wrappers.append(wrapper)

    yield fail
    for wrapper in wrappers:
        wrapper.__exit__(None, None, None)


@pytest.mark.django_db
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_page_says_503_while_the_database_is_away(
    cast: Cast, owner: Client, away: Callable[[Exception], None], address: str, failure: str
) -> None:
    owner.raise_request_exception = False
    away(FAILURES[failure]())
    response = owner.get(address)
    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert "no-store" in response["Cache-Control"]
    assert "default-src 'none'" in response["Content-Security-Policy"]
    page = response.content.decode()
    shows(page, "The database cannot be reached", never=["Traceback"])


@pytest.mark.django_db
def test_what_is_posted_meanwhile_is_told_that_it_was_not_kept(
    cast: Cast, owner: Client, away: Callable[[Exception], None]
) -> None:
    owner.raise_request_exception = False
    away(OperationalError("connection refused"))
    response = owner.post(page_of("upload"), {"channel": "main"})
    assert response.status_code == 503
    assert "send it again" in response.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("failure", FAILURES)
def test_a_session_that_cannot_be_written_down_has_not_ended(
    cast: Cast, owner: Client, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """The framework takes every failure of the database there for a session that was deleted, which is 400."""
    owner.raise_request_exception = False
    monkeypatch.setattr("inspector.accounts.sessions.WRITE_SECONDS", 0)

    def refuse(execute: Callable[..., object], statement: str, *rest: object) -> object:
        if statement.startswith('UPDATE "accounts_session"'):
            raise FAILURES[failure]()
        return execute(statement, *rest)

    with connection.execute_wrapper(refuse):  # type: ignore[arg-type]
        response = owner.get("/w/acme/conversations/")
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert owner.get("/w/acme/conversations/").status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("error", [RuntimeError("a bug"), ValueError("another")])
def test_a_bug_is_still_500(cast: Cast, owner: Client, away: Callable[..., None], error: Exception) -> None:
    owner.raise_request_exception = False
    away(error)
    response = owner.get("/w/acme/conversations/")
    assert response.status_code == 500
    assert "Retry-After" not in response
    assert "Something went wrong" in response.content.decode()


@pytest.mark.django_db(transaction=True)
def test_the_page_works_again_once_the_database_does(cast: Cast, owner: Client) -> None:
    owner.raise_request_exception = False
    assert owner.get("/w/acme/conversations/").status_code == 200
    with psycopg.connect(**_parameters(), autocommit=True) as other:
        # A server that restarts does this to every session.
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    # The test owner keeps the connection that a server would look at before each request.
    assert owner.get("/w/acme/conversations/").status_code in (200, 503)
    connection.close()
    assert owner.get("/w/acme/conversations/").status_code == 200


def _parameters() -> dict[str, str]:
    info = connection.get_connection_params()
    return {name: info[name] for name in ("dbname", "user", "password", "host", "port") if info.get(name)}


@pytest.mark.django_db
def test_a_statement_that_runs_too_long_is_said_so(
    cast: Cast, token: str, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database itself ends it, as it does in a web process."""

    def sleep(*words: object, **names: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 50")
            cursor.execute("SELECT pg_sleep(5)")

    monkeypatch.setattr("inspector.pages.translator.render_page", sleep)
    owner.raise_request_exception = False
    response = owner.get("/w/acme/glossary/nslip/")
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert "This took too long" in response.content.decode()
    problem = answer_exception(_ended(), {"request": SimpleNamespace(), "view": None})
    assert problem.status_code == 503
    assert "took too long" in problem.data["detail"]


def _ended() -> OperationalError:
    error = OperationalError("canceling statement due to statement timeout")
    error.__cause__ = psycopg.errors.QueryCanceled("canceling statement due to statement timeout")
    return error


def test_only_what_answers_requests_has_a_limit() -> None:
    show = "import django; django.setup(); from django.conf import settings; print(settings.DATABASES)"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "inspector.settings"}
    for given, is_limited in ((server.raw_env[0].partition("=")[2], True), ("", False)):
        said = subprocess.run(
            [sys.executable, "-c", show],
            env=environment | {"DATABASE_STATEMENT_SECONDS": given or "0"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ("statement_timeout=60s" in said.stdout) is is_limited
