"""The bound of a request's body: it holds before anything is parsed, so that nobody fills a disk by a form.

An address that takes more says so itself (`takes_large_bodies`): it asks who sends before it reads, and has limits of
its own. Everywhere else a body has one length, declared, of at most a mebibyte.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

MAX_BYTES: Final = 1024 * 1024
_MARK: Final = "takes_large_bodies"


def takes_large_bodies(view: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a view that reads its bodies itself, after it has asked who sends them."""
    vars(view)[_MARK] = True
    return view


class BodyBoundsMiddleware:
    """Refuses a body that is too long, or of unknown length, before any of it is read."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request. An address that does not exist takes no body at all."""
        return self._get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: object, names: object
    ) -> HttpResponseBase | None:
        """413 for what is longer than anybody needs, before the search for a CSRF token would read it."""
        if getattr(getattr(view, "cls", view), _MARK, False) or not _is_beyond(request):
            return None
        return refuse_length(request)


def refuse_length(request: HttpRequest) -> HttpResponse:
    """The page that says what is too long; the rest of the body is not waited for."""
    stop_reading(request)
    return render(request, "413.html", status=413)


def find_declared_length(request: HttpRequest) -> int:
    """The length that a request declares for its body, in bytes; 0 where it declares none."""
    declared = request.headers.get("Content-Length") or "0"
    return int(declared) if declared.isascii() and declared.isdigit() else 0


def stop_reading(request: HttpRequest) -> None:
    """Take nothing more from the sender: what is still under way is left on the line, and the line is closed."""
    line = request.META.get("gunicorn.socket")
    if line is not None:
        with suppress(OSError):  # The other side may have closed it.
            line.shutdown(socket.SHUT_RD)


def _is_beyond(request: HttpRequest) -> bool:
    is_chunked = "chunked" in request.headers.get("Transfer-Encoding", "").lower()
    return is_chunked or find_declared_length(request) > MAX_BYTES
