"""The app's registration with Django."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """The HTTP contract: endpoints and serialisers."""

    name = "inspector.api"
    default_auto_field = "django.db.models.BigAutoField"
