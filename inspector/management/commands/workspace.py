"""`manage.py workspace list|create|rename|archive|restore`: the workspaces, for whoever holds the machine."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from inspector.accounts.models import User, Workspace
from inspector.accounts.workspaces import archive_workspace, make_workspace, rename_workspace, restore_workspace
from inspector.trail.acting import OPERATOR, act_as


class Command(BaseCommand):
    """List workspaces, make one, rename one, archive one or take it back out of the archive."""

    help = "List, create, rename, archive and restore workspaces. Nothing of an archived one is deleted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What is done, and to which workspace."""
        acts = parser.add_subparsers(dest="act", required=True)
        acts.add_parser("list", help="print the slug, the state and the name of each, with a tab between")
        create = acts.add_parser("create", help="make one, with its first owner")
        rename = acts.add_parser("rename", help="give one another name; its slug stays")
        archive = acts.add_parser("archive", help="take no more messages in, and refuse its API keys")
        restore = acts.add_parser("restore", help="take it back out of the archive")
        for each in (create, rename, archive, restore):
            each.add_argument("slug", help="its part of every address")
        for each in (create, rename):
            each.add_argument("name", help="as people read it")
        create.add_argument("--owner", required=True, help="the user name of its first owner")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, and say so."""
        try:
            with act_as(OPERATOR):
                self._do(options)
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error

    def _do(self, options: dict[str, Any]) -> None:
        act, slug = options["act"], options.get("slug", "")
        if act == "list":
            for each in Workspace.objects.order_by("slug"):
                self.stdout.write(f"{each.slug}\t{'archived' if each.archived_at else 'open'}\t{each.name}")
            return
        if act == "create":
            owner = User.objects.filter(username=options["owner"]).first()
            if owner is None:
                raise CommandError(f"there is nobody named {options['owner']!r}")
            make_workspace(slug=slug, name=options["name"], owner=owner, by=None)
            self.stdout.write(f"{slug} is made, and {owner} owns it")
            return
        workspace = Workspace.objects.filter(slug=slug).first()
        if workspace is None:
            raise CommandError(f"there is no workspace {slug!r}")
        if act == "rename":
            rename_workspace(workspace=workspace, name=options["name"], by=None)
            self.stdout.write(f"{slug} is called {workspace.name}")
        elif act == "archive":
            archive_workspace(workspace=workspace, by=None)
            self.stdout.write(f"{slug} is archived: it takes no messages, and its API keys are refused")
        else:
            restore_workspace(workspace=workspace, by=None)
            self.stdout.write(f"{slug} is restored")
