"""Who is acting, and from which address: known at the door, asked for where a deed is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

from django.http import HttpRequest, HttpResponseBase

from .addresses import find_client_address


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
