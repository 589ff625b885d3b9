"""The addresses: pages for people, the API for programs, and what a supervisor asks."""

from django.urls import include, path

from inspector.api import probes

urlpatterns = [
    path("healthz", probes.show_health, name="healthz"),
    path("readyz", probes.show_readiness, name="readyz"),
    path("metrics", probes.show_metrics, name="metrics"),
    path("api/", include("inspector.api.urls")),
    path("", include("inspector.pages.urls")),
]

handler500 = "inspector.pages.unavailable.answer_failure"
