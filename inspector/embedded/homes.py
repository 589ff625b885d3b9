"""Where a cluster lives: in the state folder, unless the account PostgreSQL runs as cannot reach it there."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from .account import ServerAccount, find_server_account
from .binaries import find_binaries, publish_binaries
from .cluster import Cluster
from .errors import ClusterFailedError
from .state import StateFolder

# For root's projects in places like /root, which no other account may enter, and which nobody wants opened.
ELSEWHERE = Path("/var/lib/agent-conversation-inspector")


def make_cluster(state: StateFolder, *, is_throw_away: bool = False) -> Cluster:
    """The cluster of a state folder, with the PostgreSQL that can open its data; nothing is started.

    Raises:
        EmbeddedError: where there is no PostgreSQL, no account to run it as, or no place that account can reach.
    """
    account = find_server_account()
    home = choose_home(list_candidates(state.root), account, state.root)
    binaries = find_binaries(major=read_major(home))
    if account:
        binaries = publish_binaries(binaries, account, home.parent / "binaries")
    return Cluster(
        home=home,
        binaries=binaries,
        log=state.logs / "postgresql.log",
        account=account,
        is_throw_away=is_throw_away,
    )


def list_candidates(root: Path) -> list[Path]:
    """The places for a state folder's cluster, the best first."""
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    return [root / "postgres", ELSEWHERE / digest / "postgres"]


def choose_home(candidates: Sequence[Path], account: ServerAccount | None, root: Path) -> Path:
    """The first candidate that the account can reach; the folders on the way that do not exist yet are made.

    `root` is the state folder, which is opened to the account's group if the cluster lives in it, and only then.

    Raises:
        ClusterFailedError: when the account can reach none.
    """
    if account is None:
        return candidates[0]
    for home in candidates:
        existing = next(folder for folder in home.parents if folder.exists())
        if existing == root:
            existing = root.parent
        if account.can_enter(existing):
            for folder in reversed(home.parents):
                if folder == root or not folder.exists():
                    folder.mkdir(mode=0o700, exist_ok=True)
                    account.admit(folder)
            return home
    raise ClusterFailedError(
        f"The account `{account.name}`, as which PostgreSQL runs, can reach none of "
        f"{', '.join(map(str, candidates))}: set INSPECTOR_STATE_DIR to a folder it can reach, or DATABASE_URL."
    )


def read_major(home: Path) -> int | None:
    """The major version that wrote the data in this home, or None where there is none yet."""
    written = home / "data" / "PG_VERSION"
    return int(written.read_text()) if written.exists() else None
