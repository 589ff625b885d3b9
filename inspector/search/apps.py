"""The app's registration with Django."""

from django.apps import AppConfig


class SearchConfig(AppConfig):
    """The query language and its SQL."""

    name = "inspector.search"

    def ready(self) -> None:
        """Register the conditions that are no exact terms."""
        from . import conditions  # noqa: F401 (their import registers them)
