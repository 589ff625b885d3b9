"""The app's registration with Django."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    """Result sets and conversations as files."""

    name = "inspector.exports"
    default_auto_field = "django.db.models.BigAutoField"
