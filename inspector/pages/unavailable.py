"""What a page answers when something failed: 503 while the database is away or too slow, else 500; and where bytes that
are sealed or in the object store cannot be had, that they were destroyed (410), or changed (409), or that the key is
missing or the store is away (503)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string

from inspector.effort import SpentError
from inspector.intake.failures import is_cut_off, is_passing
from inspector.intake.object_store import StoreError
from inspector.keyring.encryption import KeyringError, SealError

RETRY_AFTER_SECONDS: Final = 5
logger = logging.getLogger(__name__)


def answer_failure(request: HttpRequest) -> HttpResponse:
    """The answer to an error that no view dealt with; Django calls it while that error is being handled.

    Nothing here asks the database, which may be what failed: neither page knows who is signed in.
    """
    error = sys.exception()
    is_too_long = error is not None and (is_cut_off(error) or isinstance(error, SpentError))
    if error is None or not (is_passing(error) or is_too_long):
        return _inert(HttpResponse(render_to_string("500.html"), status=500))
    response = _inert(HttpResponse(render_to_string("503.html", {"is_too_long": is_too_long}), status=503))
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def _inert(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "no-store, private"
    return response


class UnreadableMiddleware:
    """Says so in words, with a status of its own, wherever a page needs the bytes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """410 of what was destroyed, 409 of what was changed, 503 without key or object store; None of all else."""
        if not isinstance(error, (KeyringError, StoreError)):
            return None
        status = 503
        if isinstance(error, SealError):
            status = 410 if error.is_destroyed else 409
        logger.warning("%s was answered with %d: %s", request.path, status, error)
        said = {"status": status, "sentence": str(error).rstrip("."), "is_away": isinstance(error, StoreError)}
        if "HX-Request" in request.headers:
            # A script shows the sentence, and no page.
            response = HttpResponse(f"{said['sentence']}.", status=status, content_type="text/plain; charset=utf-8")
        else:
            response = render(request, "unreadable.html", said, status=status)
        response["Cache-Control"] = "no-store, private"
        return response
