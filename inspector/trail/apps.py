"""The app of the trail."""

from django.apps import AppConfig


class TrailConfig(AppConfig):
    """What people and programs did, in one table that is only added to."""

    name = "inspector.trail"
    verbose_name = "Trail"
    default_auto_field = "django.db.models.BigAutoField"
