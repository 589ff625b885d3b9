"""The app's registration with Django."""

from django.apps import AppConfig


class IntakeConfig(AppConfig):
    """Framing, identity, deliveries, records, sightings and jobs."""

    name = "inspector.intake"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Make this project's Celery application the one that a doorbell is rung on."""
        from inspector.celery import app

        app.set_default()
