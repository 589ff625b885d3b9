"""`manage.py check_trail`: say whom the trail is held against, as the database tells it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from inspector.trail.guard import ask_guard


class Command(BaseCommand):
    """Ask the database what holds the trail against the role that this process works as."""

    help = (
        "Says what holds the trail. Ends with 1 where its triggers do not stand, or with --held, where they alone do."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Whether triggers alone are enough."""
        parser.add_argument("--held", action="store_true", help="fail unless another role holds the trail")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask and tell."""
        try:
            guard = ask_guard()
        except LookupError as error:
            raise CommandError(str(error)) from error
        if guard.missing or (options["held"] and not guard.is_held):
            raise CommandError(guard.sentence)
        self.stdout.write(guard.sentence)
