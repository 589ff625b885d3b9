"""Refusing to start: settings that cannot be read, and those that a start beside a remote database may not make up. One
that may be made up is a secret in a file of its own, made on first use and readable by its owner alone.

Each refusal is one sentence on the error stream and exit status 1. It names the variable and never quotes a value: an
address of a database holds a password.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from environs import Env, EnvError

# As `Role` in inspector/accounts/models.py has them, which cannot be asked before there are settings.
RoleName = Literal["owner", "auditor", "viewer"]

MIN_SECRET_LENGTH: Final = 32

MIN_CHARACTERS: Final = 8


class RefusedStartError(SystemExit):
    """The start is refused; the text is the sentence that the process ends with."""


class Environment:
    """The environment's variables by type, as `environs.Env` reads them; one that cannot be read refuses the start."""

    def __init__(self) -> None:
        self._env = Env()

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        read = getattr(self._env, kind)

        def read_variable(name: str, default: Any) -> Any:
            try:
                return read(name, default)
            except EnvError:
                raise RefusedStartError(f"{name} is set to something that is no {_KINDS.get(kind, kind)}.") from None

        return read_variable


_KINDS: Final[Mapping[str, str]] = {
    "int": "whole number",
    "float": "number",
    "bool": "true or false",
    "json": "JSON",
    "log_level": "log level: use DEBUG, INFO, WARNING, ERROR or CRITICAL",
}


def check_secret(name: str, secret: str) -> None:
    """Refuse a secret from the environment that can be guessed.

    Raises:
        RefusedStartError: for one of fewer than 32 characters, or of fewer than 8 different ones.
    """
    if len(secret) < MIN_SECRET_LENGTH or len(set(secret)) < MIN_CHARACTERS:
        raise RefusedStartError(
            f"{name} can be guessed: set at least {MIN_SECRET_LENGTH} random characters, for example the output of "
            "`openssl rand -hex 32`."
        )


@contextmanager
def needing_state(folder: Path) -> Iterator[None]:
    """Refuse a start whose state folder cannot be used, or holds what nobody wrote.

    Raises:
        RefusedStartError: with what to do.
    """
    try:
        yield
    except UnicodeDecodeError:
        reason = "a file in it is garbled: put secret_key back from a backup, and remove database_url"
    except OSError as error:
        reason = f"{error.strerror}: let this user own it, or name another by INSPECTOR_STATE_DIR"
    else:
        return
    raise RefusedStartError(f"The state folder {folder} cannot be used, {reason}.")


def check_shared_settings(*, database_host: str, given: Mapping[str, str]) -> None:
    """Refuse a start beside a database on another machine without what all machines have to share.

    Each machine would silently make its own otherwise: sessions that end at the next request, keys in escrow that only
    one machine opens, and work that no worker hears of.

    Args:
        database_host: from the database's address; empty or a folder for a Unix socket.
        given: the secrets and the address of the broker that the environment gives, by the names of their variables;
            empty where it gives none.

    Raises:
        RefusedStartError: with the variables that are missing.
    """
    if is_local(database_host):
        return
    missing = [name for name, value in given.items() if not value]
    if missing:
        raise RefusedStartError(
            f"DATABASE_URL names a database on another machine: set {', '.join(missing)} too, the same everywhere."
        )


def check_single_sign_on(server_url: str, client_id: str, client_secret: str, roles: Any) -> None:
    """Refuse a provider that cannot be asked, and roles that are none.

    Args:
        server_url: of the provider, over HTTPS but on this machine.
        client_id: by which it knows the product, with `client_secret`.
        client_secret: that only both know.
        roles: by the slug of a workspace, and in that by role, a list of groups.

    Raises:
        RefusedStartError: with the variable to change.
    """
    parts = urlsplit(server_url)
    if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and is_local(parts.hostname))):
        raise RefusedStartError("OIDC_SERVER_URL is no address of a provider: it begins with https://.")
    missing = [name for name, value in (("ID", client_id), ("SECRET", client_secret)) if not value]
    if missing:
        names = " and ".join(f"OIDC_CLIENT_{name}" for name in missing)
        raise RefusedStartError(f"OIDC_SERVER_URL is set: set {names} too, as the provider gave them to you.")
    try:
        msgspec.convert(roles, dict[str, dict[RoleName, list[str]]])
    except msgspec.ValidationError:
        raise RefusedStartError(
            'OIDC_ROLES says which groups have which role, as in {"default": {"auditor": ["audit-team"]}}: '
            "workspaces by the name in their address, and the roles owner, auditor and viewer."
        ) from None


def is_local(host: str) -> bool:
    """Whether a database's host is this machine: a Unix socket, or an address of the loopback."""
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_or_make_secret(path: Path) -> str:
    """The secret in the file; 64 random URL-safe characters are written there when the file does not exist.

    Two processes that start together agree: the file is created exclusively, and the loser reads the winner's.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    if not path.exists():
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(48))
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass  # Another process was first; its secret is the one that holds.
        finally:
            fresh.unlink()
    return path.read_text().strip()
