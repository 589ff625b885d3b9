"""`manage.py api_key list|create|revoke`: the API keys of a workspace, for whoever holds the machine."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from inspector.accounts.models import ApiKey, Workspace
from inspector.accounts.selectors import find_member, list_api_keys
from inspector.accounts.services import create_api_key, ensure_channel, revoke_api_key
from inspector.characters import spell_hidden
from inspector.trail.acting import OPERATOR, act_as

MAX_DAYS = 3650


class Command(BaseCommand):
    """List the keys of a workspace, make one, or let one be refused."""

    help = "List, create and revoke API keys. A new key is printed alone, this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What is done, in which workspace, and what the key may do."""
        acts = parser.add_subparsers(dest="act", required=True)
        rows = acts.add_parser("list", help="print the prefix, the state, the scopes and the name of each, by tabs")
        create = acts.add_parser("create", help="make one, and print it")
        revoke = acts.add_parser("revoke", help="refuse one from now on")
        for each in (rows, create, revoke):
            each.add_argument("workspace", help="the slug of the workspace")
        create.add_argument("name", help="the program that will use it")
        create.add_argument(
            "--scope", action="append", choices=ApiKey.Scope.values, help="may be given several times (default ingest)"
        )
        create.add_argument("--agent", action="append", default=[], help="a name under which the program speaks")
        create.add_argument("--channel", help="the only channel it sends to, made if need be")
        create.add_argument("--days", type=int, help=f"for how long it lasts, at most {MAX_DAYS} (default for ever)")
        create.add_argument("--member", help="the user name of the member who answers for it, and for whom it acts")
        revoke.add_argument("prefix", help="the first twelve digits of the key, as the list has them")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, and print what came of it."""
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"there is no workspace {options['workspace']!r}")
        try:
            with act_as(OPERATOR):
                getattr(self, f"_{options['act']}")(workspace, options)
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error

    def _list(self, workspace: Workspace, options: dict[str, Any]) -> None:
        for key in list_api_keys(workspace=workspace):
            state = "revoked" if key.revoked_at else "usable" if key.is_usable else "refused"
            name = spell_hidden(" ".join(key.name.split()))
            self.stdout.write(f"{key.prefix}\t{state}\t{','.join(key.scopes)}\t{name}")

    def _create(self, workspace: Workspace, options: dict[str, Any]) -> None:
        days, member, channel = options["days"], options["member"], options["channel"]
        if days is not None and not 0 < days <= MAX_DAYS:
            raise CommandError(f"a key lasts a day or more, and at most {MAX_DAYS}")
        person = find_member(workspace=workspace, name=member) if member else None
        if member and person is None:
            raise CommandError(f"{member!r} is no member of {workspace.slug}")
        _, token = create_api_key(
            workspace=workspace,
            name=options["name"],
            scopes=options["scope"] or [ApiKey.Scope.INGEST],
            agents=options["agent"],
            channel=ensure_channel(workspace=workspace, name=channel) if channel else None,
            expires_at=timezone.now() + timedelta(days=days) if days else None,
            created_by=person.user if person else None,
        )
        self.stdout.write(token)

    def _revoke(self, workspace: Workspace, options: dict[str, Any]) -> None:
        key = list_api_keys(workspace=workspace).filter(prefix=options["prefix"]).first()
        if key is None:
            raise CommandError(f"{workspace.slug} has no key {options['prefix']!r}")
        revoke_api_key(key=key)
        self.stdout.write(f"{key} is refused from now on")
