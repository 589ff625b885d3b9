"""`manage.py verify_ledger`: compare each ledger with the rows it was made of, and with checkpoints kept elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from inspector.accounts.models import Workspace
from inspector.ledger.notes import NoteError
from inspector.ledger.verifying import MAX_FAULTS, verify_ledger


class Command(BaseCommand):
    """Verify the ledgers."""

    help = (
        "Make every leaf again from its row and every root from the leaves, and name the first entry that is not as it "
        "was entered. Ends with 1 where anything is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take which, and what was kept."""
        parser.add_argument("--workspace", metavar="SLUG", help="only this one; without it, all")
        parser.add_argument(
            "--checkpoint",
            type=Path,
            action="append",
            default=[],
            metavar="FILE",
            help="a checkpoint that was kept elsewhere (with --workspace); several may be named",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify, and say what was found."""
        if options["checkpoint"] and not options["workspace"]:
            raise CommandError("A checkpoint is of one ledger: name its --workspace.")
        workspaces = Workspace.objects.order_by("slug")
        if options["workspace"]:
            workspaces = workspaces.filter(slug=options["workspace"])
            if not workspaces:
                raise CommandError(f"There is no workspace “{options['workspace']}”.")
        try:
            exported = [path.read_text(encoding="utf-8") for path in options["checkpoint"]]
            broken = [workspace for workspace in workspaces if not self._verify(workspace, exported)]
        except (OSError, UnicodeDecodeError, NoteError) as error:
            raise CommandError(f"The checkpoint cannot be used: {error}.") from error
        if broken:
            raise CommandError("Something is not as it was entered: see above.")

    def _verify(self, workspace: Workspace, exported: list[str]) -> bool:
        found = verify_ledger(workspace.pk, exported=exported)
        waiting = f", {found.waiting:,} rows are not entered yet" if found.waiting else ""
        verdict = "all as entered and signed" if found.holds else "NOT as entered"
        self.stdout.write(
            f"{workspace.slug}: {found.size:,} entries, {found.checkpoints:,} checkpoints: {verdict}{waiting}."
        )
        for fault in found.faults:
            self.stdout.write(f"  {fault}")
        if len(found.faults) == MAX_FAULTS:
            self.stdout.write("  … there may be more.")
        return found.holds
