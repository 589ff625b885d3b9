"""The app's registration with Django."""

from django.apps import AppConfig


class ThreadsConfig(AppConfig):
    """Conversations and messages: placing, order, trees, telling."""

    name = "inspector.threads"
    default_auto_field = "django.db.models.BigAutoField"
