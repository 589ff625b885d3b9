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
from urllib.parse import parse_qsl, urlsplit

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


def spell_object_store(address: str, key_id: str, secret: str) -> tuple[dict[str, Any], bool, list[str]]:
    """The storage that OBJECT_STORE names, as Django's STORAGES spell it; whether anything new goes there; and the
    folders there of other databases, whose place this one has taken.

    Args:
        address: `s3://bucket/prefix`, the dotted name of any storage class, or ""; what follows `?` are its options.
        key_id: of an S3 store, with its `secret`; without them boto3 looks where it always does.
        secret: that belongs to it.

    Raises:
        RefusedStartError: for anything else.
    """
    if not address:
        return {}, False, []
    try:
        parts = urlsplit(address)
        options: dict[str, Any] = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        parts, options = urlsplit(""), {}
    takes_new = options.pop("only_read", "false") != "true"
    inherited = [folder for folder in options.pop("inherits", "").split(",") if folder]
    if not parts.scheme and not parts.netloc and "." in parts.path:
        return {"objects": {"BACKEND": parts.path, "OPTIONS": options}}, takes_new, inherited
    if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or bool(key_id) != bool(secret):
        raise RefusedStartError(
            "OBJECT_STORE is s3://bucket/prefix?endpoint_url=https://… or the dotted name of a storage class. No key "
            "stands in it: set OBJECT_STORE_KEY_ID and OBJECT_STORE_SECRET, both or none."
        )
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config

    options |= {"bucket_name": parts.netloc, "location": parts.path.strip("/"), "client_config": Config(
        # A store that does not answer is away: nobody waits for minutes.
        connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2, "mode": "standard"},
        s3={"addressing_style": options.pop("addressing_style", "auto")},
        # Not every store knows them, and each object has its SHA-256 in the database.
        request_checksum_calculation="when_required", response_checksum_validation="when_required",
    )}  # fmt: skip
    # A piece is one request: threads of its own would cost more than they save.
    options["transfer_config"] = TransferConfig(use_threads=False)
    if key_id:
        options |= {"access_key": key_id, "secret_key": secret}
    return {"objects": {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}}, takes_new, inherited


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
