"""The app of the keys held in escrow."""

from django.apps import AppConfig


class KeyringConfig(AppConfig):
    """Keys that open sealed messages, sealed themselves, and the trace of what became of them."""

    name = "inspector.keyring"
    verbose_name = "Keyring"
    default_auto_field = "django.db.models.BigAutoField"
