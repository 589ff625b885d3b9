"""From which address a request came: the socket's, or the client's where proxies are trusted to write it down."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from django.conf import settings
from django.http import HttpRequest

# An address as proxies write it, some with a port behind it.
_WITH_PORT: Final = re.compile(r"(?:\[([^\]]+)\]|([^:]+))(?::\d{1,5})?\Z")


def find_client_address(request: HttpRequest) -> str | None:
    """The address that a request came from, or None where nothing tells it, as behind a Unix socket.

    Each proxy writes the address of whoever connected to it behind the last one in `X-Forwarded-For`. So with as many
    trusted proxies as `TRUSTED_PROXIES` says, the client is that many places from the end; what stands before it is
    what the client says of itself, and counts for nothing. Where there are fewer addresses than proxies, or where no
    address stands in that place, the request did not come that way, and is from whoever connected.
    """
    socket_address: str | None = request.META.get("REMOTE_ADDR") or None
    proxies = settings.TRUSTED_PROXIES
    if proxies < 1:
        return socket_address
    written = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    return (_read_address(written[-proxies]) if len(written) >= proxies else None) or socket_address


def _read_address(text: str) -> str | None:
    """The address in a place of the header, in its one spelling; None where there is none."""
    text = text.strip()
    matched = _WITH_PORT.match(text)
    for candidate in (text, (matched[1] or matched[2]) if matched else ""):
        try:
            address = ipaddress.ip_address(candidate)
        except ValueError:
            continue
        # The zone of an address is a word of the machine that wrote it, and may be any.
        return None if getattr(address, "scope_id", None) else str(address)
    return None
