"""What a page answers where sealed bytes cannot be had: that they were destroyed, or changed, or the key is missing."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from inspector.keyring.encryption import KeyringError, SealError

logger = logging.getLogger(__name__)


class UnreadableMiddleware:
    """Says so in words, with a status of its own, wherever a page needs the bytes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """410 of what was destroyed, 409 of what was changed, 503 without the key-encryption key; None of all else."""
        if not isinstance(error, KeyringError):
            return None
        status = 503
        if isinstance(error, SealError):
            status = 410 if error.is_destroyed else 409
        logger.warning("%s was answered with %d: %s", request.path, status, error)
        response = render(request, "unreadable.html", {"status": status, "sentence": str(error)}, status=status)
        response["Cache-Control"] = "no-store, private"
        return response
