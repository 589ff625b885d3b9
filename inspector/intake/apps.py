"""The app's registration with Django."""

from django.apps import AppConfig
from django.conf import settings
from django.db.backends.signals import connection_created

from inspector.database import read_timestamps_directly
from inspector.logs import send_traces


class IntakeConfig(AppConfig):
    """Framing, identity, deliveries, records, sightings and jobs."""

    name = "inspector.intake"

    def ready(self) -> None:
        """Make this project's Celery application the one that wakes workers, and timestamps quick to read; look at the
        object store that is named; and send traces, where somebody takes them."""
        from inspector.celery import app

        from .object_store import refuse_unusable

        app.set_default()
        refuse_unusable()
        connection_created.connect(read_timestamps_directly)
        if settings.TRACES_ENDPOINT:
            send_traces(settings.TRACES_ENDPOINT)
