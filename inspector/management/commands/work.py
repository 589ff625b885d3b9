"""The command that works off what is due without Celery: once, or for as long as it runs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import connection

from inspector import pipeline, steps
from inspector.schema import refuse_other_schema
from inspector.worker import Pool


class Command(BaseCommand):
    """`manage.py work`."""

    help = (
        "Work off the jobs that are due, for some seconds at most, or until none is left; with --wait N until stopped."
    )
    # Whoever starts the product has checked it; each worker that did would keep every page in its memory.
    requires_system_checks = []  # noqa: RUF012  # as Django declares it

    def add_arguments(self, parser: CommandParser) -> None:
        """Take how long."""
        parser.add_argument(
            "--seconds", type=float, default=steps.SLICE_SECONDS, help="begin no job after this long (5)"
        )
        parser.add_argument(
            "--wait",
            type=int,
            metavar="N",
            help="go on in N processes: wait for work, and look after what is periodic",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Work, and say how much it was."""
        refuse_other_schema()
        if options["wait"]:
            connection.close()  # No session is shared by processes.
            Pool(options["wait"]).run()
            return
        count = pipeline.run_due(seconds=options["seconds"])
        self.stdout.write(f"{count:,} jobs worked on")
