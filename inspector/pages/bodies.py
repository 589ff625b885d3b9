"""How long a body may be, by the address it is sent to: decided by its head, before anything of it is parsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve

from inspector.api.bodies import find_length
from inspector.api.problems import CONTENT_TYPE, make_problem

MOST_BYTES: Final = 1024 * 1024
# These ask for key or session first, and hold the body to a limit of their own.
OWN_LIMITS: Final = {"api:messages", "pages:upload"}


class BodyLimitMiddleware:
    """Refuses a body over 1 MiB with 413 and reads nothing of it, except where an address has a limit of its own.

    A body without a declared length passes: Django parses nothing of it, and `inspector.api.bodies` counts what it
    reads.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        if (find_length(request) or 0) > MOST_BYTES and not _has_own_limit(request):
            return refuse_body(request, MOST_BYTES)
        return self._get_response(request)


def refuse_body(request: HttpRequest, most_bytes: int) -> HttpResponse:
    """413 as a problem document for programs, as a page for people."""
    if request.path_info.startswith("/api/"):
        problem = make_problem(413, f"a body has at most {most_bytes} bytes here: send it in pieces")
        return JsonResponse(problem, status=413, content_type=CONTENT_TYPE)
    return render(request, "413.html", status=413)


def _has_own_limit(request: HttpRequest) -> bool:
    try:
        return request.method == "POST" and resolve(request.path_info).view_name in OWN_LIMITS
    except Resolver404:
        return False
