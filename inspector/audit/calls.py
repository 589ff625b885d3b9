"""One request to an address that somebody typed in: looked up once, checked, bounded in time and size, no redirects."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

SILENCE_SECONDS: Final = 5.0
MAX_SECONDS: Final = 10.0
MAX_ANSWER_BYTES: Final = 2048
# Of a host that has more addresses no more are tried.
MAX_ADDRESSES: Final = 8
MAX_ADDRESS_LENGTH: Final = 2000
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
# Not for everybody, whatever this Python's tables say of them: protocol assignments, site-local addresses,
# documentation, and the addresses under which clouds tell a machine its credentials.
_SPECIAL: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "192.0.0.0/24",
        "fec0::/10",
        "3fff::/20",
        "64:ff9b:1::/48",
        "169.254.169.254/32",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
    )
)


class CallError(Exception):
    """No answer was had; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered: the status, and the beginning of the body as text."""

    status: int
    said: str


@dataclass(frozen=True, slots=True)
class Target:
    """An address in its parts. `path` has the query with it."""

    scheme: str
    host: str
    port: int
    path: str


def read_address(address: str) -> Target:
    """The parts of an address that an alert may go to.

    Raises:
        CallError: for one that is none, holds a password, or is not HTTPS where that is needed.
    """
    if not address.isascii() or not address.isprintable() or " " in address or len(address) > MAX_ADDRESS_LENGTH:
        raise CallError("an address has up to 2,000 printable ASCII characters and no space")
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise CallError("this is no address") from error
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise CallError("an address begins with https:// and a host name")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise CallError("an address holds no user, no password and no fragment: the signature proves who sends")
    if parts.scheme == "http" and not settings.ALERT_PRIVATE_ADDRESSES:
        raise CallError("an address begins with https://: without it everybody on the way reads what is sent")
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    return Target(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), path)


def read_host(address: str) -> str:
    """The host of an address, also of one that would not be taken any more; the path is often a secret of its own."""
    return urlsplit(address).hostname or ""


def resolve(target: Target) -> Sequence[str]:
    """The network addresses to connect to, in their order, looked up once: what was checked is what is used.

    Raises:
        CallError: where there is none, or one of them is of a private, loopback or special network.
    """
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise CallError(f"the host {target.host} cannot be found") from error
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if not settings.ALERT_PRIVATE_ADDRESSES and not all(is_public(each) for each in addresses):
        raise CallError(
            f"the host {target.host} leads into a private network: the operator can allow that by "
            "ALERT_PRIVATE_ADDRESSES"
        )
    return addresses[:MAX_ADDRESSES]


def is_public(address: str) -> bool:
    """Whether everybody can reach this address, also where it wraps another in it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(ip.packed[12:])
        if inner is not None:
            return is_public(str(inner))
    is_special = any(ip in network for network in _SPECIAL)
    return ip.is_global and not is_special and not ip.is_multicast and not ip.is_reserved


class _Pinned(http.client.HTTPConnection):
    """A connection to one of the network addresses that were looked up before; the host's name is for TLS and the
    header."""

    def __init__(self, target: Target, network_addresses: Sequence[str]) -> None:
        super().__init__(target.host, target.port, timeout=SILENCE_SECONDS)
        self._network_addresses, self._is_secure = network_addresses, target.scheme == "https"

    def connect(self) -> None:
        """Connect to the first of the addresses that answers; all of them were checked."""
        self.sock = self._reach()
        if self._is_secure:
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)

    def _reach(self) -> socket.socket:
        until = time.monotonic() + MAX_SECONDS
        refusals: list[OSError] = []
        for address in self._network_addresses:
            left = until - time.monotonic()
            if left <= 0:
                break
            try:
                return socket.create_connection((address, self.port), min(SILENCE_SECONDS, left))
            except OSError as error:
                refusals.append(error)
        # What the first said is what was wrong: the others were tried for want of it.
        raise refusals[0] if refusals else TimeoutError("no address of the host was reached in time")


def post(*, address: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    """Send a body and have the answer; a redirect is an answer like any other, and is not followed.

    Raises:
        CallError: where nothing was answered in time, or the address may not be used.
    """
    target = read_address(address)
    connection = _Pinned(target, resolve(target))
    # Each step has its own patience; together they have this, whatever drips in.
    watch = threading.Timer(MAX_SECONDS, _cut, [connection])
    watch.daemon = True
    watch.start()
    try:
        connection.request("POST", target.path, body, {"Host": _name_host(target), **headers})
        response = connection.getresponse()
        said = response.read(MAX_ANSWER_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise CallError(f"{type(error).__name__}: {error}"[:300]) from error
    finally:
        watch.cancel()
        connection.close()
    return Answer(response.status, said)


def _name_host(target: Target) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    usual = 443 if target.scheme == "https" else 80
    return host if target.port == usual else f"{host}:{target.port}"


def _cut(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        with suppress(OSError):  # It has ended by itself in this very moment.
            connection.sock.shutdown(socket.SHUT_RDWR)
