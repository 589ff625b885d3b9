"""`manage.py stream_audit_log`: the entries of the audit log, oldest first, for a collector of logs.

As JSON lines in the form of `/api/v1/trail`, or as messages of syslog (RFC 5424). What was written is remembered in a
file, after it was written: an entry may come twice after a kill, and none is left out. What is missing in the list
because a review is blind is written once it may be told.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TextIO, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.db.models import Max

from inspector.accounts.models import Workspace
from inspector.api.evidence import show_deed
from inspector.audit.reviews.bindings import list_told_deeds
from inspector.database import IsAny
from inspector.trail.models import Deed
from inspector.trail.services import Wanted

BATCH: Final = 500
WAIT_SECONDS: Final = 5.0
# Facility 13, log audit, at severity 5, notice: RFC 5424, section 6.2.1.
_PRIORITY: Final = 13 * 8 + 5
# The number that is kept for examples (RFC 5612): the product has none of its own.
_STRUCTURE: Final = "audit@32473"
_MAX_NAME: Final = 32


class Command(BaseCommand):
    """Write what was added to the audit log."""

    help = "Write the entries of a workspace's audit log to stdout, oldest first, from where it stopped last time."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take whose log, in which form, and where to remember the place."""
        parser.add_argument("workspace", help="its slug")
        parser.add_argument("--form", choices=["jsonl", "syslog"], default="jsonl")
        parser.add_argument("--state", type=Path, help="a file that says how far it was written; without it, from 1")
        parser.add_argument("--follow", action="store_true", help="go on with what is added, until it is stopped")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write what is there, and with --follow what comes."""
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"There is no workspace “{options['workspace']}”.")
        write = _write_syslog if options["form"] == "syslog" else _write_json
        place = _Place(workspace.pk, options["state"])
        try:
            while True:
                for deed in place.list_new():
                    self.stdout.write(write(deed))
                cast("TextIO", self.stdout).flush()
                if place.keep():
                    continue
                if not options["follow"]:
                    return
                # A connection that idles is closed by proxies and held against the database's limit.
                connection.close()
                time.sleep(WAIT_SECONDS)
        except KeyboardInterrupt:
            return


class _Place:
    """How far a log was written: up to a number, but for some before it that could not be told yet."""

    def __init__(self, workspace_id: uuid.UUID, file: Path | None) -> None:
        self._workspace_id, self._file = workspace_id, file
        self._after, self._withheld, self._is_full = 0, set[int](), False
        if file is not None and file.exists():
            try:
                kept = json.loads(file.read_text())
                if kept["workspace"] != str(workspace_id):
                    raise CommandError(f"The state in {file} is of another workspace: name another file.")
                self._after, self._withheld = int(kept["after"]), set(map(int, kept["withheld"]))
            except (ValueError, KeyError, TypeError) as error:
                raise CommandError(f"The state in {file} cannot be read: remove it to begin at entry 1.") from error

    def list_new(self) -> Iterator[Deed]:
        """What may be told now and was not yet, a batch at a time."""
        latest = Deed.objects.filter(workspace=self._workspace_id).aggregate(latest=Max("sequence"))["latest"] or 0
        until = min(latest, self._after + BATCH)
        self._is_full = until < latest
        told = list_told_deeds(workspace_id=self._workspace_id, wanted=Wanted()).order_by("sequence")
        numbers = self._withheld | set(range(self._after + 1, until + 1))
        for deed in told.filter(IsAny("sequence", numbers)) if numbers else ():
            numbers.discard(deed.sequence)
            yield deed
        # The database numbers without a gap: what is not in the list is withheld.
        self._after, self._withheld = until, numbers

    def keep(self) -> bool:
        """Remember it; whether more is there already."""
        if self._file is not None:
            kept = {"workspace": str(self._workspace_id), "after": self._after, "withheld": sorted(self._withheld)}
            fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            fresh.write_text(json.dumps(kept))
            fresh.replace(self._file)
        return self._is_full


def _write_json(deed: Deed) -> str:
    return json.dumps(show_deed(deed), default=_write_value, sort_keys=True)


def _write_value(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _write_syslog(deed: Deed) -> str:
    said = {
        "number": str(deed.sequence),
        "actor": f"{deed.actor_kind}:{deed.actor_id}" if deed.actor_id else deed.actor_kind,
        "name": deed.actor_name,
        "address": deed.address,
        "object": f"{deed.object_kind}:{deed.object_id}" if deed.object_kind else "",
    }
    structure = "".join(f' {name}="{_quote(value)}"' for name, value in said.items() if value)
    head = f"<{_PRIORITY}>1 {deed.at:%Y-%m-%dT%H:%M:%S.%fZ} {_name_host()} inspector - {deed.code[:_MAX_NAME]}"
    return f"{head} [{_STRUCTURE}{structure}] \ufeff{_keep_on_line(deed.told)}"


def _quote(value: str) -> str:
    """As the value of a parameter (RFC 5424, section 6.3.3)."""
    return "".join(f"\\{sign}" if sign in '\\"]' else sign for sign in _keep_on_line(value))


def _keep_on_line(text: str) -> str:
    """Nothing that a name holds ends the line or turns its direction."""
    return "".join(sign if sign.isprintable() else f"U+{ord(sign):04X}" for sign in text)


def _name_host() -> str:
    name = "".join(sign for sign in socket.gethostname() if "!" <= sign <= "~")
    return name[:255] or "-"
