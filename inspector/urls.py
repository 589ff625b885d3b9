"""The addresses: pages for people, the API for programs, and what a supervisor asks."""

from django.conf import settings
from django.urls import include, path

from inspector.api import probes
from inspector.api.ingest import Exporters

urlpatterns = [
    path("healthz", probes.show_health, name="healthz"),
    path("readyz", probes.show_readiness, name="readyz"),
    path("metrics", probes.show_metrics, name="metrics"),
    # Where an exporter of OpenTelemetry sends to that is told the address of the server and no more.
    path("v1/traces", Exporters.as_view({"post": "export_spans"}, schema=None), name="spans"),
    path("v1/logs", Exporters.as_view({"post": "export_logs"}, schema=None), name="logs"),
    path("api/", include("inspector.api.urls")),
    path("", include("inspector.pages.urls")),
]

if settings.OPERATOR_ADMIN:
    from inspector.pages.operators import site

    urlpatterns.insert(0, path("operators/", site.urls))

handler400 = "inspector.pages.answers.answer_bad_request"
handler404 = "inspector.pages.answers.answer_missing"
handler500 = "inspector.pages.answers.answer_failure"
