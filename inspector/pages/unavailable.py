"""What a page answers when something failed: 503 while the database is away or too slow, else 500."""

from __future__ import annotations

import sys
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from inspector.effort import SpentError
from inspector.intake.failures import is_cut_off, is_passing

RETRY_AFTER_SECONDS: Final = 5


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
