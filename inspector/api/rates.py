"""How fast one key may ask."""

from __future__ import annotations

import time

from django.conf import settings
from rest_framework.request import Request

from inspector.accounts.models import ApiKey
from inspector.pace import Buckets

from .problems import ProblemError

_buckets = Buckets()


def refuse_haste(request: Request) -> None:
    """Count the request against its key.

    Raises:
        ProblemError: 429 with the time after which the next request passes.
    """
    most = settings.LIMITS["requests_per_minute"]
    key = request.auth
    if not most or not isinstance(key, ApiKey):
        return
    wait = _buckets.take(key.pk, most=most, now=time.monotonic())
    if wait:
        raise ProblemError(
            429,
            f"this key sends more than {most} requests a minute: send more records in each, or wait {wait} s",
            retry_after=wait,
        )
