"""`manage.py erase`: say what an erasure would remove, or have it done in the name of an owner."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inspector.accounts.models import Membership
from inspector.erasing import Target, ask_to_erase, preview


class Command(BaseCommand):
    """Erase a person, a delivery, a message or a period."""

    help = "Say what erasing would remove; with --yes, have a worker do it. It cannot be undone: see docs/retention.md."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take of what, by whom and why."""
        parser.add_argument("workspace", metavar="SLUG")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--person", metavar="NAME", help="all messages that this agent sent, as they spell its name")
        what.add_argument("--delivery", type=uuid.UUID, metavar="ID")
        what.add_argument("--period", metavar="MONTH", help="all records sealed in a month, as 2026-10, with their key")
        what.add_argument("--record", type=uuid.UUID, metavar="ID", help="one message, by the id of its record")
        parser.add_argument("--received", action="store_true", help="with --person: also what others sent to it")
        parser.add_argument("--as", dest="owner", required=True, metavar="USER", help="an owner of the workspace")
        parser.add_argument("--reason", default="", help="kept with the tombstones")
        parser.add_argument("--yes", action="store_true", help="erase")

    def handle(self, *args: Any, **options: Any) -> None:
        """Preview, and ask."""
        whose = Membership.objects.filter(workspace__slug=options["workspace"], user__username=options["owner"])
        membership = whose.select_related("workspace", "user").first()
        if membership is None:
            raise CommandError(f"There is no {options['owner']} in a workspace “{options['workspace']}”.")
        kind = next(each for each in ("person", "period", "delivery", "record") if options[each])
        target = (
            Target(kind=kind, name=options[kind], is_both=options["received"])
            if kind in ("person", "period")
            else Target(kind=kind, subject=options[kind])
        )
        try:
            seen = preview(workspace_id=membership.workspace_id, target=target)
            self.stdout.write(str(seen))
            if options["yes"]:
                erasure = ask_to_erase(membership=membership, target=target, reason=options["reason"])
                self.stdout.write(f"Erasure {erasure.pk} is asked for; a worker does it.")
            else:
                self.stdout.write("Nothing is done without --yes.")
        except PermissionDenied as error:
            raise CommandError(f"Nothing was erased: {error}.") from error
        except ValidationError as error:
            raise CommandError(f"Nothing was erased: {'; '.join(error.messages)}.") from error
