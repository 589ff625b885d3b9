"""The app's registration with Django, and with the search language below it."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Findings, reviews, comments and samples."""

    name = "inspector.audit"

    def ready(self) -> None:
        """Add this app's names to the search language."""
        from inspector.search.registry import register

        from .searchable import CONDITIONS

        for condition in CONDITIONS:
            register(condition)
