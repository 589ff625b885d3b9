"""`manage.py backup`: copy the database into a folder that proves its own completeness, while the product runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inspector.backups import BackupError, copy_secrets, get_server_version, make_backup
from inspector.embedded import EmbeddedError
from inspector.embedded.binaries import find_program


class Command(BaseCommand):
    """Make a backup."""

    help = "Copy the database into a new folder, with a manifest by which restoring proves that nothing is missing."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take where to."""
        parser.add_argument("folder", type=Path, help="a folder that is not there yet")
        parser.add_argument(
            "--secrets",
            type=Path,
            metavar="FILE",
            help="also copy the secrets of the state folder to this file; keep it apart from the folder",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make it, and say what is in it."""
        try:
            pg_dump = find_program("pg_dump", get_server_version()[0])
            manifest = make_backup(options["folder"].absolute(), pg_dump=pg_dump)
            names = copy_secrets(options["secrets"]) if options["secrets"] else []
        except (BackupError, EmbeddedError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{sum(manifest.rows.values()):,} rows of {len(manifest.rows)} tables, {manifest.dump_bytes:,} bytes, are "
            f"in {options['folder']}."
        )
        if manifest.outside:
            self.stdout.write(f"{manifest.outside}, and not in the backup: keep a copy of it too.")
        if names:
            self.stdout.write(f"{', '.join(names)}: in {options['secrets']}. Keep it apart from the backup.")
        elif options["secrets"]:
            self.stdout.write(
                f"No secrets are in {settings.STATE_DIR}, so nothing was written to {options['secrets']}: keep a copy "
                "of the ones that come from the environment, apart from the backup."
            )
        elif manifest.key_encryption_key:
            self.stdout.write(
                "The keyring's key is not among them: without it, and without the backup, nobody opens a sealed key."
            )
