"""What every test shares: static files are listed once, tables are emptied, and who begins with what."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.base.creation import TEST_DATABASE_PREFIX
from django.test import override_settings
from pytest_django import DjangoDbBlocker
from whitenoise.middleware import WhiteNoiseMiddleware

from inspector import upkeep

from .emptying import empty_by_deleting, give_pages_back
from .spreading import order_places, spread

# Each has a server, an interpreter and, for a while, a browser of its own: about a gigabyte.
MAX_WORKERS = 4
# What takes a fifth of a second of the clock may have waited for other tests.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """With `-n auto`: a worker a core and one more where a lane is run, none for a few tests or on one core.

    Some of the time is spent waiting for processes that start, stop or are killed.
    """
    is_everything = config.args_source is config.ArgsSource.TESTPATHS
    if not is_everything or any(config.getoption(name, False) for name in ("keyword", "lf", "stepwise", "collectonly")):
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores + 1, MAX_WORKERS) if cores > 1 else 0


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Go through what was named in an order in which every test finds its fixtures."""
    session.config.args[:] = order_places(session.config.args, session.config.invocation_params.dir)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let workers begin with the long tests; without workers the order is pytest-django's."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        items[:] = spread(items, workers)


def pytest_collection_finish() -> None:
    """Go through what was collected no more: hundreds of thousands of objects, which stay to the end."""
    upkeep.collect_seldom()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    request: pytest.FixtureRequest, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """Make the database of the tests by a pattern that is migrated already, where the server is our own."""
    pattern = request.config.pluginmanager.get_plugin("inspector-test-server").begin_migrated()
    if pattern is not None:
        connection.settings_dict["TEST"]["TEMPLATE"] = pattern


@pytest.fixture(scope="module", autouse=True)
def pages_given_back(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Leave no pages of what was undone to the next module, once there is a database of the tests."""
    yield
    if connection.settings_dict["NAME"].startswith(TEST_DATABASE_PREFIX):
        with django_db_blocker.unblock():
            give_pages_back()


@pytest.fixture(scope="session", autouse=True)
def static_files() -> Iterator[None]:
    """List the static files once a run: each new test client starts the middleware anew, which would list them again.

    That listing took more time than everything else together that most tests of pages do.
    """
    listed: dict[Hashable, dict[str, Any]] = {}
    list_files = WhiteNoiseMiddleware.add_files_from_finders

    def list_once(middleware: WhiteNoiseMiddleware) -> None:
        key = (middleware.static_prefix, middleware.max_age, middleware.charset, *settings.STATICFILES_DIRS)
        if key not in listed:
            list_files(middleware)
            listed[key] = dict(middleware.files)
        middleware.files.update(listed[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", list_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Hash passwords quickly: how slowly the product does it is most of the work of a test that has one."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(scope="session", autouse=True)
def emptied_tables() -> Iterator[None]:
    """Let the tables be emptied quickly after each test that commits."""
    with empty_by_deleting():
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_gathered() -> Iterator[None]:
    """Let what is posted be due at once: a test asks for what it waits for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inspector.intake.jobs.GATHER_SECONDS", 0.0)
        yield
