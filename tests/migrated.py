"""A migrated cluster, made once for these migrations and this PostgreSQL, and copied for whoever tests.

Applying every migration to an empty database takes some seconds of a processor, which each worker of each run would
spend. What is kept is the data folder of a stopped throw-away cluster, whose database `inspector` is migrated: Django
makes each database of the tests by that pattern (`TEST: TEMPLATE`), and applies what may be new to it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inspector.embedded import EmbeddedError
from inspector.embedded.cluster import DATABASE, Cluster
from inspector.embedded.processes import Supervisor
from inspector.embedded.state import PROJECT

# In how many partitions the large tables of the pattern are: none unless a run asks for it.
PARTITIONS = os.environ.get("INSPECTOR_TEST_PARTITIONS", "")
# It is private, and gone with `make clean`.
FOLDER = PROJECT / ".pytest_cache" / f"clusters{PARTITIONS}"
PATTERN = DATABASE
# Which others there are of Django and the apps that are installed, these tell.
LOCKED = (
    PROJECT / "requirements" / "base.txt",
    PROJECT / "inspector" / "embedded" / "cluster.py",
    PROJECT / "inspector" / "trail" / "powers.py",
    PROJECT / "inspector" / "trail" / "row_security.py",
    PROJECT / "inspector" / "trail" / "partitions.py",
)
# What a cluster's home holds that goes together: the data know the password.
PARTS = ("data", "superuser_password")


@dataclass(frozen=True, kw_only=True)
class KeptCluster:
    """Where the migrated cluster of one digest lies, or is to lie."""

    folder: Path = FOLDER
    digest: str

    @property
    def home(self) -> Path:
        """The folder of its parts, which is there when all of them are."""
        return self.folder / self.digest

    def give(self, cluster: Cluster, supervisor: Supervisor) -> None:
        """Let a cluster that was only prepared begin with a copy of what is kept, which is made where it is missing.

        Raises:
            EmbeddedError: where it cannot be made.
        """
        with self._alone():
            if self.home.is_dir():
                _copy(self.home, cluster.home, cluster)
                return
            shutil.rmtree(self.folder, ignore_errors=True)
            cluster.start(supervisor)
            try:
                _migrate(cluster)
            finally:
                cluster.stop(supervisor)
            partial = self.home.with_name("partial")
            partial.mkdir(mode=0o700, parents=True)
            _copy(cluster.home, partial, None)
            partial.rename(self.home)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Others that want the same wait until it is there; those that want another until it is copied."""
        self.folder.parent.mkdir(exist_ok=True)
        with self.folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def find_kept(cluster: Cluster) -> KeptCluster:
    """What is kept for the migrations that are here, and for the PostgreSQL of this cluster."""
    summed = hashlib.sha256(repr((cluster.binaries.package is None, cluster.binaries.version, os.geteuid())).encode())
    for path in (*list_migrations(), *LOCKED):
        summed.update(str(path.relative_to(PROJECT)).encode() + b"\0" + path.read_bytes())
    return KeptCluster(digest=summed.hexdigest()[:16])


def list_migrations() -> Iterable[Path]:
    """The files of all migrations, in an order of their own."""
    return sorted((PROJECT / "inspector").glob("*/migrations/*.py"))


def _migrate(cluster: Cluster) -> None:
    """In a process of its own: the one of the tests is to have no connection to the pattern."""
    commands = [["migrate", "--no-input", "--verbosity=0"]]
    commands += [["partition_tables", f"--partitions={PARTITIONS}"]] if PARTITIONS else []
    for command in commands:
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=PROJECT,
            env={**os.environ, "DATABASE_URL": cluster.url},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise EmbeddedError(f"manage.py {command[0]} failed:\n{done.stdout[-2000:]}")


def _copy(source: Path, target: Path, cluster: Cluster | None) -> None:
    """Copy the parts; where they are a cluster's, the data are its account's."""
    shutil.copyfile(source / PARTS[1], target / PARTS[1])
    (target / PARTS[1]).chmod(0o600)
    shutil.copytree(source / PARTS[0], target / PARTS[0], symlinks=True)
    if cluster is not None and cluster.account is not None:
        for path in (target / PARTS[0], *(target / PARTS[0]).rglob("*")):
            os.chown(path, cluster.account.user_id, cluster.account.group_id)
