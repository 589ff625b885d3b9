"""The app of backups."""

from django.apps import AppConfig


class BackupsConfig(AppConfig):
    """A copy of the database that proves its own completeness, and the way back from it."""

    name = "inspector.backups"
    verbose_name = "Backups"
