"""`manage.py import_log PATH…`: take log files in through the third door, with the same framing and identity."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from inspector.accounts import selectors as accounts
from inspector.accounts.models import Channel, Workspace
from inspector.accounts.services import ensure_channel, ensure_first_workspace
from inspector.intake.models import Delivery, Door
from inspector.intake.services import open_delivery, take_stream

READ_BYTES = 1024 * 1024


class Command(BaseCommand):
    """Import log files. Running it again adds nothing: what is already there counts as duplicate."""

    help = "Import log files into a workspace. A file that was imported before adds only what is new in it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The files, the workspace and the channel."""
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument("--workspace", help="its slug; needed where there are several")
        parser.add_argument("--channel", default=Channel.DEFAULT)
        parser.add_argument("--no-prefixes", action="store_true", help="take times and speakers before a text as text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import each file and print its receipt."""
        workspace = choose_workspace(options["workspace"])
        missing = [str(path) for path in options["paths"] if not path.is_file()]
        if missing:
            raise CommandError(f"no such file: {', '.join(missing)}")
        channel = accounts.find_channel(workspace=workspace, name=options["channel"]) or ensure_channel(
            workspace=workspace, name=options["channel"]
        )
        for path in options["paths"]:
            delivery = open_delivery(
                workspace=workspace,
                channel=channel,
                door=Door.IMPORT,
                file_name=path.name,
                options={"prefixes": not options["no_prefixes"]},
            )
            take_stream(delivery=delivery, chunks=self._read(path, delivery))
            self.stdout.write(
                f"{path}: {delivery.received:,} received = {delivery.stored:,} stored"
                f" + {delivery.duplicate:,} duplicate + {delivery.quarantined:,} quarantined"
            )

    def _read(self, path: Path, delivery: Delivery) -> Iterator[bytes]:
        total = path.stat().st_size
        is_terminal = sys.stderr.isatty()
        with path.open("rb") as file:
            while piece := file.read(READ_BYTES):
                yield piece
                if is_terminal:
                    share = delivery.framed_bytes * 100 // max(total, 1)
                    self.stderr.write(f"\r{path.name}: {share}% {delivery.received:,} records", ending="")
        if is_terminal:
            self.stderr.write("")


def choose_workspace(slug: str | None) -> Workspace:
    """The workspace of that slug, or the only one there is.

    Raises:
        CommandError: for an unknown slug, or where a choice must be made.
    """
    if slug:
        workspace = Workspace.objects.filter(slug=slug).first()
        if workspace is None:
            raise CommandError(f"there is no workspace {slug!r}")
        return workspace
    if Workspace.objects.count() > 1:
        raise CommandError("there are several workspaces: name one with --workspace")
    return ensure_first_workspace()[0]
