"""Errors as problem documents (RFC 9457), each saying what happened and what to do."""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"

_TITLES = {
    400: "The request cannot be understood",
    401: "A key is needed",
    403: "The key may not do this",
    404: "There is nothing here",
    405: "This address does not take that method",
    408: "The body came too slowly",
    409: "This conflicts with an earlier request",
    413: "The body is too large",
    415: "This content type is not understood",
    422: "The body is understood but cannot be taken",
    429: "Too much at once",
    503: "Not now",
}


class ProblemError(exceptions.APIException):
    """A refusal with its status and a sentence; `retry_after` in seconds where waiting helps."""

    def __init__(self, status: int, detail: str, *, retry_after: int | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.status_code = status
        self.wait = retry_after
        self.extra = extra


def make_problem(status: int, detail: str, **extra: Any) -> dict[str, Any]:
    """The members of a problem document."""
    return {"type": "about:blank", "title": _TITLES.get(status, "Refused"), "status": status, "detail": detail, **extra}


def answer_exception(error: Exception, context: dict[str, Any]) -> Response | None:
    """The response for an error raised in a view; None lets Django treat what is no refusal."""
    if isinstance(error, Http404):
        error = exceptions.NotFound("nothing of that id is in this workspace")
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    elif isinstance(error, OperationalError):
        logger.error("the database is away", exc_info=error)
        error = ProblemError(503, "the database cannot be reached: send this again later", retry_after=5)
    if not isinstance(error, exceptions.APIException):
        return None
    detail = error.detail if isinstance(error.detail, str) else str(error.detail)
    extra = getattr(error, "extra", {})
    response = Response(
        make_problem(error.status_code, detail, **extra), status=error.status_code, content_type=CONTENT_TYPE
    )
    header = getattr(error, "auth_header", None)
    if header:
        response["WWW-Authenticate"] = header
    wait = getattr(error, "wait", None)
    if wait:
        response["Retry-After"] = str(int(wait))
    return response
