"""`manage.py export_bundle`: write a proof bundle of a workspace or a conversation to a file."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from inspector.accounts.models import Workspace
from inspector.keyring.encryption import KeyringError, SealError
from inspector.ledger.bundles import NoCheckpointError, make_bundle, note_bundle, write_bundle
from inspector.ledger.proofs import get_key, get_verifier
from inspector.threads.selectors import find_conversation
from inspector.trail.acting import OPERATOR, act_as


@contextmanager
def _whole_or_gone(path: Path) -> Iterator[None]:
    """Leave no part of a file that came to no end."""
    try:
        yield
    except BaseException:
        path.unlink()
        raise


class Command(BaseCommand):
    """Write a proof bundle."""

    help = "Write what somebody needs to verify a workspace or a conversation without this server: see docs/proofs.md."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take of what, and where to."""
        parser.add_argument("workspace", metavar="SLUG")
        parser.add_argument("file", type=Path, help="a file that is not there yet")
        parser.add_argument("--conversation", type=uuid.UUID, metavar="ID", help="only this one")
        parser.add_argument("--exact", action="store_true", help="with exact bytes and English, which include secrets")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write it, and say how it is verified."""
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"There is no workspace “{options['workspace']}”.")
        conversation = None
        if options["conversation"]:
            conversation_id = uuid.UUID(str(options["conversation"]))
            conversation = find_conversation(workspace=workspace, conversation_id=conversation_id)
            if conversation is None:
                raise CommandError("The workspace has no such conversation.")
        try:
            bundle = make_bundle(workspace=workspace, conversation=conversation, is_exact=options["exact"])
            with options["file"].open("xb") as file, _whole_or_gone(options["file"]):
                with act_as(OPERATOR):
                    note_bundle(bundle)
                file.writelines(write_bundle(bundle))
        except (NoCheckpointError, KeyringError, SealError, DatabaseError, OSError) as error:
            raise CommandError(f"The bundle cannot be written: {error}") from error
        key = get_key()
        verifier = get_verifier(key, workspace.pk) if key else ""
        self.stdout.write(f"{bundle.checkpoint.size:,} entries are signed. To verify it, on any machine:")
        self.stdout.write(f"python verify_bundle.py {options['file'].name} --key '{verifier}'")
