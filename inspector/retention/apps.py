"""The app's registration with Django."""

from django.apps import AppConfig


class RetentionConfig(AppConfig):
    """How long messages are kept, what stops that, what was erased, and what is left of it."""

    name = "inspector.retention"
    default_auto_field = "django.db.models.BigAutoField"
