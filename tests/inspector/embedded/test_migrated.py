"""The migrated cluster that tests begin with is made once, and anew where it would be another."""

from dataclasses import replace
from pathlib import Path

import pytest

from inspector.embedded.binaries import Binaries
from inspector.embedded.cluster import Cluster
from inspector.embedded.processes import Supervisor
from tests import migrated
from tests.migrated import KeptCluster, find_kept, list_migrations

CLUSTER = Cluster(home=Path("home"), binaries=Binaries(folder=Path("bin"), version=(18, 1)), log=Path("log"))


def test_what_is_kept_goes_by_the_migrations_and_by_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = find_kept(CLUSTER)
    assert find_kept(replace(CLUSTER, home=Path("elsewhere"))) == ours
    assert find_kept(replace(CLUSTER, binaries=replace(CLUSTER.binaries, version=(15, 9)))) != ours
    left = list(list_migrations())[:-1]
    assert len(left) > 15
    monkeypatch.setattr(migrated, "list_migrations", lambda: left)
    assert find_kept(CLUSTER) != ours


def test_it_is_made_once_and_then_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def start(cluster: Cluster, supervisor: Supervisor) -> None:
        (cluster.data / "base").mkdir(parents=True)
        (cluster.home / "superuser_password").write_text(f"of {cluster.home.name}")

    monkeypatch.setattr(Cluster, "start", start)
    monkeypatch.setattr(Cluster, "stop", lambda cluster, supervisor: None)
    monkeypatch.setattr(migrated, "_migrate", lambda cluster: made.append(cluster.home))
    kept = KeptCluster(folder=tmp_path / "kept" / "clusters", digest="new")
    (kept.folder.parent / "clusters" / "partial").mkdir(parents=True)  # What a kill leaves.
    homes = [tmp_path / name for name in ("first", "second")]
    for home in homes:
        home.mkdir()
        kept.give(replace(CLUSTER, home=home), Supervisor(say=print))
    assert made == homes[:1]
    for home in homes:
        assert (home / "data" / "base").is_dir()
        assert (home / "superuser_password").read_text() == "of first"
    assert [path.name for path in kept.folder.iterdir()] == ["new"]
    assert kept.home.stat().st_mode & 0o077 == 0
