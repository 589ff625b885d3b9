"""The app of workspaces, people and keys."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Workspaces, members and roles, API keys."""

    name = "inspector.accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        """Listen for sign-ins, and for those that fail."""
        from . import sessions  # noqa: F401 (its import connects the receivers)
