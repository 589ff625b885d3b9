"""Who is acting, known at the door and asked for where a deed is recorded; and from which address: the socket's, or the
client's where proxies are trusted to write it down.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase


class Acting(Protocol):
    """What can be told to have done something: a membership, an API key, or an actor itself."""

    def as_actor(self) -> Actor:
        """Who that is, in words that stay when the row is gone."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something. `kind` is of `Deed.Actor`; `id` is empty for the product and its operator."""

    kind: str
    id: str
    name: str

    def as_actor(self) -> Actor:
        """Itself."""
        return self


PRODUCT: Final = Actor("product", "", "The product")
OPERATOR: Final = Actor("operator", "", "The operator")

_actor: ContextVar[Actor] = ContextVar("actor", default=PRODUCT)
_address: ContextVar[str] = ContextVar("address", default="")


def note_actor(acting: Acting) -> None:
    """From here on in this request, this is who acts."""
    _actor.set(acting.as_actor())


@contextmanager
def act_as(acting: Acting) -> Iterator[None]:
    """For as long as this lasts, this is who acts: a command of `manage.py` is its operator's."""
    before = _actor.set(acting.as_actor())
    try:
        yield
    finally:
        _actor.reset(before)


def find_actor() -> Actor:
    """Who acts: whom the door let in; outside of a request the product itself."""
    return _actor.get()


def find_address() -> str:
    """The address that the request came from; empty outside of one."""
    return _address.get()


class ActingMiddleware:
    """Begins each request with nobody acting, from the address it came from, and ends it so."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        actor, address = _actor.set(PRODUCT), _address.set(find_client_address(request) or "")
        try:
            answer = self._get_response(request)
            # For the access log: a member by their number, and a key by its own.
            request.META["inspector.actor"] = f"{find_actor().kind} {find_actor().id}".strip()
            return answer
        finally:
            _actor.reset(actor)
            _address.reset(address)


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
