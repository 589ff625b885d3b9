"""What a supervisor asks: is the process alive, can it work, and how does the work stand. None needs a key.

The numbers of `/metrics` are sums over all workspaces and name none of them. They are for the machine itself: without
`METRICS_TOKEN` only a request that comes straight from it is answered, and whatever came through a proxy is not.
"""

from __future__ import annotations

import hmac
import ipaddress
import threading
import time
from typing import Final

from django.conf import settings
from django.db import Error, connection
from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect, JsonResponse
from django.middleware.common import CommonMiddleware
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder

from inspector.intake.selectors import list_measures

PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics"})
PROXIED: Final = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via")
# Asked more often, the numbers are the same again: counting deliveries reads all of them.
FRESH_SECONDS: Final = 5.0


class HostMiddleware(CommonMiddleware):
    """Refuses requests for a foreign host, but those of a supervisor, which asks by whatever address it knows."""

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        """As Django's own does, which asks for the host first."""
        return None if request.path_info in PATHS else super().process_request(request)


@never_cache
@require_safe
def show_health(request: HttpRequest) -> HttpResponse:
    """GET /healthz: the process answers. It asks nothing else, so that a lost database restarts no web server."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def show_readiness(request: HttpRequest) -> HttpResponse:
    """GET /readyz: whether requests can be served: the database answers. 503 where it does not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        response = JsonResponse({"status": "the database cannot be reached"}, status=503)
        response["Retry-After"] = "5"
        return response
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:
    """GET /metrics: the numbers for Prometheus, as OpenMetrics where it asks for that; 404 for others."""
    if not may_measure(request):
        raise Http404
    try:
        write, content_type = choose_encoder(request.headers.get("Accept", ""))
    except TypeError:
        # A version that is no number: what asked for it reads the plainest of formats.
        write, content_type = choose_encoder("")
    try:
        text = write(_collector)
    except Error:
        return HttpResponse("the database cannot be reached\n", status=503, content_type="text/plain; charset=utf-8")
    return HttpResponse(text, content_type=content_type)


def may_measure(request: HttpRequest) -> bool:
    """Whether the request brings the token, or there is none and it comes straight from this machine."""
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "").encode()
        return hmac.compare_digest(given, f"Bearer {settings.METRICS_TOKEN}".encode())
    if settings.IS_BEHIND_HTTPS or any(name in request.headers for name in PROXIED):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR") or "").is_loopback
    except ValueError:
        return False


class FreshCollector:
    """The numbers for Prometheus' library, at most five seconds old; one thread counts, and the others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = 0.0
        self._measures: list[Metric] = []

    def collect(self) -> list[Metric]:
        """Every measure of the database, which is the same whichever process is asked."""
        with self._lock:
            if not self._measures or time.monotonic() - self._at > FRESH_SECONDS:
                self._measures = list(list_measures())
                self._at = time.monotonic()
            return self._measures


_collector = FreshCollector()
