"""`manage.py sign_in_link [NAME]`: a link that signs a person in once, for whoever holds the machine.

With `--break-glass` it signs in an owner who has lost the second factor, for an hour, and the audit log says so.
"""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.urls import reverse

from inspector.accounts.models import Membership, Role, User, Workspace
from inspector.accounts.services import add_member, create_sign_in_link, ensure_first_workspace, note_account
from inspector.embedded.state import find_served_url
from inspector.trail.acting import OPERATOR, act_as

# Where the pages are where nothing says otherwise.
USUAL: Final = "http://127.0.0.1:8000"


class Command(BaseCommand):
    """Print a sign-in link; with a role, make the person a member of the first workspace too."""

    help = "Print a link that signs a person in once. Older links of theirs stop working."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The person, the role to give them, and where the pages are."""
        parser.add_argument("name", nargs="?", help="the person's user name; the first workspace's owner if left out")
        parser.add_argument("--role", choices=Role.values, help="make the person a member, if need be a new one")
        parser.add_argument(
            "--url", help=f"the address that the pages are served at (default: that of `make run` here, else {USUAL})"
        )

        parser.add_argument(
            "--break-glass",
            action="store_true",
            help="for an owner by name: sign in without the second factor, within an hour; recorded in the audit log",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the link."""
        workspace, owner = ensure_first_workspace()
        name = options["name"]
        user = User.objects.filter(username=name).first() if name else owner
        with act_as(OPERATOR):
            self._print_link(user, workspace, options)

    def _print_link(self, user: User | None, workspace: Workspace, options: dict[str, Any]) -> None:
        name, role = options["name"], options["role"]
        if user is None and role:
            user = User.objects.create_user(username=name)
        if user is None:
            raise CommandError(f"there is nobody named {name!r}: give a role with --role to add them")
        if role:
            add_member(workspace=workspace, user=user, role=role)
        if not Membership.objects.filter(user=user).exists():
            raise CommandError(f"{user} is a member of no workspace: give a role with --role")
        token = self._make_token(user, options)
        url = options["url"]
        if url is None:
            url = find_served_url(settings.STATE_DIR) or USUAL
        self.stdout.write(f"{url.rstrip('/')}{reverse('pages:sign-in-link')}#{token}")

    @staticmethod
    @transaction.atomic
    def _make_token(user: User, options: dict[str, Any]) -> str:
        if not options["break_glass"]:
            token = create_sign_in_link(user=user)
            note_account(user=user, code="account.link-made", by=OPERATOR)
            return token
        if not options["name"]:
            raise CommandError("name the owner whom the link signs in without the second factor")
        try:
            token = create_sign_in_link(user=user, lasts=timedelta(hours=1), is_break_glass=True)
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        note_account(user=user, code="account.break-glass-made", by=OPERATOR)
        return token
