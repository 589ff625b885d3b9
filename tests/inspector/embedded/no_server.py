"""A pytest plugin for tests of our own: starting a server is an error."""

from typing import NoReturn

import pytest

from inspector.embedded.cluster import Cluster
from inspector.embedded.processes import Supervisor


def refuse(cluster: Cluster, supervisor: Supervisor) -> NoReturn:
    """What starting comes to under this plugin."""
    raise AssertionError("a server was started")


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Take the place of the start."""
    Cluster.start = refuse  # type: ignore[method-assign]
