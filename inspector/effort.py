"""The processor time of an answer is bounded, and what is computed for somebody who has gone ends.

Whatever goes through many rows, messages or fields for an answer asks at each (`check_effort`) whether to go on. One
step is bounded by the bytes that it may read. Outside of a request, as in a worker, nothing is bounded here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Final

from django.http import HttpRequest, HttpResponseBase

from .leaving import READING, GoneError, has_gone

MAX_SECONDS: Final = 10.0

# The processor time of this thread at which the answer under way has had its share.
_end: ContextVar[float | None] = ContextVar("effort", default=None)


class SpentError(Exception):
    """The answer takes more of the processor than one answer may."""

    def __str__(self) -> str:
        return f"this takes more than {MAX_SECONDS:.0f} seconds of the processor: ask for less of it at once"


@contextmanager
def bound_effort() -> Iterator[None]:
    """Give what is computed within its share of the processor."""
    token = _end.set(time.thread_time() + MAX_SECONDS)
    try:
        yield
    finally:
        _end.reset(token)


class EffortMiddleware:
    """Bounds every request that only reads; what writes goes on to its end, and what is streamed is no part of it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        with bound_effort() if request.method in READING else nullcontext():
            return self.get_response(request)


def check_effort() -> None:
    """Go on with the answer under way, or end it.

    Raises:
        SpentError: where it has had its share of the processor.
        GoneError: where whoever asked has gone.
    """
    end = _end.get()
    if end is None:
        return
    if has_gone():
        raise GoneError
    if time.thread_time() > end:
        raise SpentError
