"""Addresses that answer with each of the pages of an error, for a browser to look at them; beside all real ones."""

from __future__ import annotations

from django.core.exceptions import BadRequest, PermissionDenied
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import include, path
from django.views.csrf import csrf_failure

handler500 = "inspector.pages.answers.answer_failure"

ERRORS = {400: BadRequest, 403: PermissionDenied, 404: Http404, 500: RuntimeError, 503: OperationalError}


def fail(request: HttpRequest, status: int) -> HttpResponse:
    """The page of this status, by the error that leads to it where there is one."""
    if status in ERRORS:
        raise ERRORS[status]
    return render(request, f"{status}.html", status=status)


def refuse_form(request: HttpRequest) -> HttpResponse:
    """The page of a form that was open too long."""
    return csrf_failure(request)


urlpatterns = [
    path("fault/<int:status>/", fail),
    path("fault/form/", refuse_form),
    path("", include("inspector.urls")),
]
