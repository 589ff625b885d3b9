"""The addresses: pages for people, the API for programs."""

from django.urls import include, path

urlpatterns = [
    path("api/", include("inspector.api.urls")),
    path("", include("inspector.pages.urls")),
]
