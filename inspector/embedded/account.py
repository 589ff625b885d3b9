"""The account PostgreSQL runs as: ours, or `nobody` when we are root, because PostgreSQL refuses to run as root."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import NoServerAccountError

UNPRIVILEGED = "nobody"


@dataclass(frozen=True, kw_only=True)
class ServerAccount:
    """An account that exists already: none is ever made."""

    name: str
    user_id: int
    group_id: int

    def launch_options(self) -> dict[str, Any]:
        """What `subprocess` needs to start a program as this account, without any group of ours."""
        return {"user": self.user_id, "group": self.group_id, "extra_groups": []}

    def own(self, path: Path, mode: int) -> None:
        """Give a file or folder that we made to this account."""
        os.chown(path, self.user_id, self.group_id)
        path.chmod(mode)

    def admit(self, folder: Path) -> None:
        """Let this account's group walk through a folder that we made; nobody may list it."""
        os.chown(folder, -1, self.group_id)
        folder.chmod(0o710)

    def can_enter(self, folder: Path) -> bool:
        """Whether the account can walk to the folder: tried, because modes alone do not tell (ACLs, mount options)."""
        tried = subprocess.run(
            ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            **self.launch_options(),
        )
        return tried.returncode == 0


def find_server_account() -> ServerAccount | None:
    """The account to run the server as, or None where it simply runs as we do.

    Raises:
        NoServerAccountError: when we are root and there is no unprivileged account.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError as absent:
        raise NoServerAccountError(
            f"PostgreSQL refuses to run as root and there is no account `{UNPRIVILEGED}` here: "
            "start as another user, or set DATABASE_URL."
        ) from absent
    return ServerAccount(name=entry.pw_name, user_id=entry.pw_uid, group_id=entry.pw_gid)
