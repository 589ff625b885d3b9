"""Errors as problem documents (RFC 9457), each saying what happened and what to do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from inspector.bounds import GoneError, SpentError
from inspector.intake.concealment import NOTHING
from inspector.intake.failures import is_cut_off
from inspector.intake.object_store import StoreError
from inspector.keyring.encryption import KeyringError, SealError
from inspector.search.language import QueryError
from inspector.search.selectors import CursorError, SlowQueryError

logger = logging.getLogger(__name__)

CONTENT_TYPE: Final = "application/problem+json"

TITLES: Final = {
    400: "The request cannot be understood",
    401: "A key is needed",
    403: "The key may not do this",
    404: "There is nothing here",
    405: "This address does not take that method",
    406: "The answer has another type than asked for",
    408: "The body came too slowly",
    409: "This conflicts with an earlier request",
    410: "This is no longer here",
    412: "The bytes are others",
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


# What the framework says in words of its own is said in ours.
_SENTENCES: Final[dict[type[Exception], str]] = {
    exceptions.NotFound: "nothing of that id is in the key's workspace",
    exceptions.NotAuthenticated: "send a key as: Authorization: Bearer <key>",
    exceptions.PermissionDenied: "the key may not do this",
    exceptions.MethodNotAllowed: "{request.method} is not taken here: send {methods}",
    exceptions.NotAcceptable: "the answer is {types}: send that or */* under Accept, or no Accept at all",
}
AWAY: Final = {
    True: "this took too long: send it again, narrower if you can",
    False: "the database cannot be reached: send this again later",
}
# What errors of other rooms are refused with, the first that fits.
_REFUSALS: Final[tuple[tuple[Any, Callable[[Any], exceptions.APIException]], ...]] = (
    (Http404, lambda error: exceptions.NotFound()),
    (PermissionDenied, lambda error: exceptions.PermissionDenied()),
    (SuspiciousOperation, lambda error: ProblemError(400, f"the request cannot be taken: {error}")),
    (SealError, lambda error: ProblemError(410 if error.is_destroyed else 409, str(error))),
    (KeyringError, lambda error: ProblemError(503, str(error))),
    (QueryError, lambda error: ProblemError(400, str(error), parameter="q", start=error.start, end=error.end)),
    (CursorError, lambda error: ProblemError(400, str(error), parameter="cursor")),
    (BrokenBodyError, lambda error: ProblemError(error.status, str(error))),
    ((GoneError, SpentError, SlowQueryError, StoreError), lambda error: ProblemError(503, str(error), retry_after=5)),
    ((OperationalError, InterfaceError), lambda error: ProblemError(503, AWAY[is_cut_off(error)], retry_after=5)),
    (exceptions.APIException, lambda error: error),
)
FAILED: Final = "this should not have happened; it is logged, and your request may be sent again"


def answer_exception(error: Exception, context: dict[str, Any]) -> Response:
    """The response for an error raised in a view; what is no refusal is a bug, is logged, and is a problem too."""
    request, view = context["request"], context["view"]
    if isinstance(error, KeyringError) and not isinstance(error, SealError):
        logger.error("the keyring cannot be used", exc_info=error)
    elif isinstance(error, (OperationalError, InterfaceError)):
        logger.error("a statement ran too long" if is_cut_off(error) else "the database is away", exc_info=error)
    refuse = next((refuse for kinds, refuse in _REFUSALS if isinstance(error, kinds)), None)
    if refuse is None:
        logger.error("%s %s failed", request.method, request.path, exc_info=error)
        got_request_exception.send(sender=None, request=request._request)
    refusal = refuse(error) if refuse else ProblemError(500, FAILED)
    detail, kind = str(refusal.detail), type(refusal)
    if kind in _SENTENCES and (kind is exceptions.MethodNotAllowed or detail == str(refusal.default_detail)):
        types = getattr(view, "media_type", " or ".join(each.media_type for each in view.renderer_classes))
        detail = _SENTENCES[kind].format(request=request, types=types, methods=", ".join(view.allowed_methods))
    if not hasattr(view, "media_type"):  # The description of the API may be YAML, and a problem never.
        request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
    response = Response(
        make_problem(refusal.status_code, detail, **getattr(refusal, "extra", {})),
        status=refusal.status_code,
        content_type=CONTENT_TYPE,
    )
    if header := getattr(refusal, "auth_header", None):
        response["WWW-Authenticate"] = header
    if wait := getattr(refusal, "wait", None):
        response["Retry-After"] = str(int(wait))
    for name, value in getattr(refusal, "headers", {}).items():
        response[name] = value
    return response
