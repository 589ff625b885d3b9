"""`manage.py rewrap_keyring`: seal every escrowed key with the key-encryption key that is in use now."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from inspector.keyring.encryption import KeyringError
from inspector.keyring.services import rewrap_keys
from inspector.ledger.sequencing import rewrap_signing_key


class Command(BaseCommand):
    """Seal the data keys anew; afterwards the earlier key-encryption keys are of no more use and can be destroyed."""

    help = (
        "Seal every key that is kept here with the key-encryption key in use. Name the earlier one in"
        " INSPECTOR_KEYRING_OLD_KEYS first."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Seal them, and say how many."""
        try:
            done, failed = rewrap_keys()
            done += rewrap_signing_key()
        except KeyringError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{done} sealed anew.")
        if failed:
            raise CommandError(
                f"{failed} could not be opened: the key-encryption key they were sealed with is not in"
                " INSPECTOR_KEYRING_OLD_KEYS."
            )
