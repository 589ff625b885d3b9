"""Answers that are no view's own: rows as a file to download, CSV that no spreadsheet runs or JSON Lines with each
value as it is; the content security policy on every answer, from the setting SECURE_CSP; and what is said when
something failed: 503 while the database is away or too slow, else 500, and where bytes that are sealed or in the object
store cannot be had, that they were destroyed (410), or changed (409), or that the key is missing or the store is away
(503). Where programs ask, what no view answered is a problem document.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.defaults import bad_request, page_not_found

from inspector.api.problems import AWAY, CONTENT_TYPE, FAILED, make_problem
from inspector.bounds import SpentError
from inspector.exports.forms import make_safe, write_cells
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
    is_bug = error is None or not (is_passing(error) or is_too_long)
    if _is_for_programs(request):
        response = _inert(_answer_problem(500, FAILED) if is_bug else _answer_problem(503, AWAY[is_too_long]))
        if not is_bug:
            response["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return response
    if is_bug:
        return _inert(HttpResponse(render_to_string("500.html"), status=500))
    response = _inert(HttpResponse(render_to_string("503.html", {"is_too_long": is_too_long}), status=503))
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def answer_bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer to what Django refuses before any view does, such as a foreign host."""
    if _is_for_programs(request):
        return _answer_problem(
            400, "the request cannot be taken: its Host, its headers or its form are not allowed here"
        )
    return bad_request(request, exception)


def answer_missing(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer at an address that is none."""
    if _is_for_programs(request):
        return _answer_problem(404, "there is no such address; GET /api/schema/ lists all addresses")
    return page_not_found(request, exception)


def _is_for_programs(request: HttpRequest) -> bool:
    return request.path_info.startswith(("/api/", "/v1/"))


def _answer_problem(status: int, detail: str) -> HttpResponse:
    return HttpResponse(json.dumps(make_problem(status, detail)), status=status, content_type=CONTENT_TYPE)


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


class ContentSecurityPolicyMiddleware:
    """Adds the policy to each response that has none of its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._policy = "; ".join(f"{name} {' '.join(sources)}" for name, sources in settings.SECURE_CSP.items())

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request with the policy set."""
        response = self._get_response(request)
        response.headers.setdefault("Content-Security-Policy", self._policy)
        return response


_KINDS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}


def answer_rows(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, form: str, name: str
) -> StreamingHttpResponse:
    """The rows, each with all of the columns in their order, as a file of this name; `form` is `csv` or `jsonl`."""
    lines = _write_csv(rows, columns) if form == "csv" else (json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return StreamingHttpResponse(lines, content_type=_KINDS[form], headers=headers)


def _write_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[bytes]:
    yield write_cells([columns])
    for row in rows:
        yield write_cells([map(_make_cell, row.values())])


def _make_cell(value: Any) -> Any:
    if isinstance(value, list):
        value = " ".join(value)
    elif isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False)
    return make_safe(value) if isinstance(value, str) else value
