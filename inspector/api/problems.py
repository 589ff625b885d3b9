"""Errors as problem documents (RFC 9457), each saying what happened and what to do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from inspector.bounds import GoneError, SpentError
from inspector.intake.concealment import NOTHING
from inspector.intake.failures import is_cut_off
from inspector.intake.object_store import StoreError
from inspector.keyring.encryption import KeyringError, SealError
from inspector.search.language import QueryError
from inspector.search.selectors import CursorError, SlowQueryError

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"

TITLES = {
    400: "The request cannot be understood",
    401: "A key is needed",
    403: "The key may not do this",
    404: "There is nothing here",
    405: "This address does not take that method",
    406: "The answer has another type than asked for",
    408: "The body came too slowly",
    409: "This conflicts with an earlier request",
    410: "This is no longer here",
    413: "The body is too large",
    415: "This content type is not understood",
    416: "The range holds no byte",
    422: "The body is understood but cannot be taken",
    429: "Too much at once",
    500: "Something is wrong here",
    503: "Not now",
}


class BrokenBodyError(Exception):
    """The body ended before it was complete, or its compression is damaged; `status` is what to answer."""

    def __init__(self, reason: str, *, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


class ProblemSerializer(serializers.Serializer[Any]):
    """A refusal; further members, such as `parameter` and `allowed`, say more where there is more to say."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="what happened and what to do")


class ProblemError(exceptions.APIException):
    """A refusal with its status, a sentence and headers; `retry_after` in seconds where waiting helps."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(detail)
        self.status_code = status
        self.wait = retry_after
        self.headers = headers or {}
        self.extra = extra


def make_problem(status: int, detail: str, **extra: Any) -> dict[str, Any]:
    """The members of a problem document, without tokens that it may quote of the request."""
    quoted: dict[str, Any] = NOTHING.hide_all({"detail": detail, **extra})
    return {"type": "about:blank", "title": TITLES.get(status, "Refused"), "status": status, **quoted}


def _name_methods(context: dict[str, Any]) -> str:
    return ", ".join(context["view"].allowed_methods)


# What the framework says in words of its own is said in ours: the error, and the sentence.
_SENTENCES: dict[type[exceptions.APIException], Callable[[dict[str, Any]], str]] = {
    exceptions.NotFound: lambda context: "nothing of that id is in the key's workspace",
    exceptions.NotAuthenticated: lambda context: "send a key as: Authorization: Bearer <key>",
    exceptions.PermissionDenied: lambda context: "the key may not do this",
    exceptions.MethodNotAllowed: lambda context: (
        f"{context['request'].method} is not taken here: send {_name_methods(context)}"
    ),
    exceptions.NotAcceptable: lambda context: (
        f"the answer is {context['view'].media_type}: send that or */* under Accept, or no Accept at all"
    ),
}


def answer_exception(error: Exception, context: dict[str, Any]) -> Response:
    """The response for an error raised in a view; what is no refusal is a bug, is logged, and is a problem too."""
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    elif isinstance(error, SuspiciousOperation):
        error = ProblemError(400, f"the request cannot be taken: {error}")
    elif isinstance(error, SealError):
        error = ProblemError(410 if error.is_destroyed else 409, str(error))
    elif isinstance(error, StoreError):
        error = ProblemError(503, str(error), retry_after=5)
    elif isinstance(error, KeyringError):
        logger.error("the keyring cannot be used", exc_info=error)
        error = ProblemError(503, str(error))
    elif isinstance(error, QueryError):
        error = ProblemError(400, str(error), parameter="q", start=error.start, end=error.end)
    elif isinstance(error, CursorError):
        error = ProblemError(400, str(error), parameter="cursor")
    elif isinstance(error, BrokenBodyError):
        error = ProblemError(error.status, str(error))
    elif isinstance(error, (GoneError, SpentError, SlowQueryError)):
        error = ProblemError(503, str(error), retry_after=5)
    elif isinstance(error, (OperationalError, InterfaceError)):
        cut_off = is_cut_off(error)
        detail = (
            "this took too long: send it again, narrower if you can"
            if cut_off
            else "the database cannot be reached: send this again later"
        )
        logger.error("a statement ran too long" if cut_off else "the database is away", exc_info=error)
        error = ProblemError(503, detail, retry_after=5)
    elif not isinstance(error, exceptions.APIException):
        logger.error("%s %s failed", context["request"].method, context["request"].path, exc_info=error)
        got_request_exception.send(sender=None, request=context["request"]._request)
        error = ProblemError(500, "this should not have happened; it is logged, and your request may be sent again")
    response = Response(
        make_problem(error.status_code, _say(error, context), **getattr(error, "extra", {})),
        status=error.status_code,
        content_type=CONTENT_TYPE,
    )
    header = getattr(error, "auth_header", None)
    if header:
        response["WWW-Authenticate"] = header
    wait = getattr(error, "wait", None)
    if wait:
        response["Retry-After"] = str(int(wait))
    for name, value in getattr(error, "headers", {}).items():
        response[name] = value
    return response


def _say(error: exceptions.APIException, context: dict[str, Any]) -> str:
    say = _SENTENCES.get(type(error))
    is_own = str(error.detail) not in (str(error.default_detail), str(error.default_detail).format(method="X"))
    if say is None or (is_own and not isinstance(error, exceptions.MethodNotAllowed)):
        return error.detail if isinstance(error.detail, str) else str(error.detail)
    return say(context)
