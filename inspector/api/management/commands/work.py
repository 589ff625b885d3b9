"""The command that works off what is due without a broker: for the sweeper, and for whoever has no Celery at hand."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from inspector import pipeline


class Command(BaseCommand):
    """`manage.py work`."""

    help = "Work off the jobs that are due, for some seconds at most, or until none is left."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take how long."""
        parser.add_argument(
            "--seconds", type=float, default=pipeline.SLICE_SECONDS, help="begin no job after this long (20)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Work, and say how much it was."""
        count = pipeline.run_due(seconds=options["seconds"])
        self.stdout.write(f"{count:,} jobs worked on")
