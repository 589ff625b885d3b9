"""The app's registration with Django."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class TrailConfig(AppConfig):
    """Who acts, what was done, and what the database's roles may."""

    name = "inspector.trail"

    def ready(self) -> None:
        """Let a connection know what its session stands in."""
        from .row_security import begin_session

        connection_created.connect(begin_session)
