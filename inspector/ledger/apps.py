"""The app of the ledger."""

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """Everything that is evidence, in one Merkle tree a workspace, with signed checkpoints."""

    name = "inspector.ledger"
    verbose_name = "Ledger"
    default_auto_field = "django.db.models.BigAutoField"
