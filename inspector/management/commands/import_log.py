"""`manage.py import_log PATH…`: take log files in through the third door, with the same framing and identity; and say
how far it is: a line that is written over in a terminal, and now and then a plain line elsewhere.
"""

from __future__ import annotations

import shutil
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from inspector.accounts import selectors as accounts
from inspector.accounts.models import Channel, Workspace
from inspector.accounts.services import ensure_channel, ensure_first_workspace
from inspector.accounts.workspaces import check_open
from inspector.intake.containers import RefusedArchiveError
from inspector.intake.identity import Warned, list_warnings
from inspector.intake.imports import (
    Part,
    RefusedSourceError,
    Source,
    end_stopped,
    find_sources,
    forecast_part,
    import_part,
    open_source,
)
from inspector.intake.models import Delivery
from inspector.intake.object_store import StoreError
from inspector.trail.acting import OPERATOR, act_as

BAR_SECONDS = 0.1
LINE_SECONDS = 10.0
_BAR_WIDTH = 20


class Progress:
    """Bytes and records so far, records a second, and the time that is left.

    Args:
        stream: where it is written to, or a wrapper that a command has around it.
        total_bytes: what there is to be read in all.
        is_terminal: whether a line can be written over; the stream is asked when it is None.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        total_bytes: int,
        is_terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._total = total_bytes
        self._is_terminal = stream.isatty() if is_terminal is None else is_terminal
        self._clock = clock
        self._started = self._said = clock()
        self._width = 0
        self._done_bytes = 0.0
        self._done_records = 0

    def show(self, name: str, taken_bytes: float, records: int) -> None:
        """Say how far the file of this name is, unless that was said a moment ago."""
        now = self._clock()
        if now - self._said < (BAR_SECONDS if self._is_terminal else LINE_SECONDS):
            return
        self._said = now
        words = self._tell(name, self._done_bytes + taken_bytes, self._done_records + records, now - self._started)
        if self._is_terminal:
            columns = shutil.get_terminal_size().columns - 1
            line = words[:columns]
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(words + "\n")
        self._stream.flush()

    def end_file(self, taken_bytes: float, records: int) -> None:
        """A file has come to its end: what follows is counted on top, and nothing is left on the line."""
        self._done_bytes += taken_bytes
        self._done_records += records
        self.clear()

    def clear(self) -> None:
        """Take the line away, for another to be written in its place."""
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0

    def _tell(self, name: str, taken: float, records: int, seconds: float) -> str:
        share = min(1.0, taken / self._total) if self._total else 1.0
        full = int(share * _BAR_WIDTH)
        bar = f"[{'#' * full}{'.' * (_BAR_WIDTH - full)}] " if self._is_terminal else ""
        pace = f"{records / seconds:,.0f} records/s" if seconds > 0 else ""
        left = f"{tell_seconds(seconds * (1 - share) / share)} left" if share else "time left unknown"
        sizes = f"{tell_bytes(taken)} of {tell_bytes(self._total)}"
        return f"{bar}{share:.0%}  {sizes}  {records:,} records  {pace}  {left}  {name}"


def tell_bytes(size: float) -> str:
    """A size in the largest unit in which it is not below one."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def tell_seconds(seconds: float) -> str:
    """A time as minutes and seconds, or hours and minutes."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
_COUNTS = ("received", "stored", "duplicate", "quarantined")


class Command(BaseCommand):
    """Import log files. Running it again adds nothing: what is already there counts as duplicate."""

    help = (
        "Import log files into a workspace: files, folders to their depth, patterns; plain, or packed as gzip, zstd or "
        "zip. What was imported before is not stored again, so that a stopped import goes on when it is run again. "
        "Exit status 0: all was taken in; 1: a file could not be read to its end; 2: wrong usage."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The files, the workspace and the channel."""
        parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or a pattern as 'logs/**/*.gz'")
        parser.add_argument("--workspace", help="its slug; needed where there are several")
        parser.add_argument("--channel", default=Channel.DEFAULT, help="the namespace of ids; default main")
        parser.add_argument("--no-prefixes", action="store_true", help="take times and speakers before a text as text")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and store nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import each file and print its receipt."""
        sources, missing = find_sources(options["paths"])
        if missing:
            raise CommandError(f"no such file: {', '.join(missing)}", returncode=WRONG_USAGE)
        self._options = options
        self._totals: Counter[str] = Counter()
        self._failures = 0
        # Django's own wrapper ends every line, and a bar is written over.
        screen = options.get("stderr") or sys.stderr
        self._progress = Progress(screen, total_bytes=sum(source.path.stat().st_size for source in sources))
        try:
            self._choose(options["workspace"], options["channel"])
            for source in sources:
                self._take(source)
        except KeyboardInterrupt:
            self._progress.clear()
            again = "run the same command again: it adds only what is missing"
            raise CommandError(f"stopped; {again}", returncode=INTERRUPTED) from None
        except OperationalError as error:
            self._progress.clear()
            reason = " ".join(str(error).split())
            again = "what was told above is stored; run the same command again, and it adds what is missing"
            raise CommandError(f"the database cannot be used: {reason}; {again}", returncode=FAILED) from error
        if len(sources) > 1 and not options["dry_run"]:
            self._say(f"{len(sources):,} files: {tell_counts(self._totals)}")
        if self._failures:
            raise CommandError(f"not everything could be read: {self._failures:,} failed", returncode=FAILED)

    def _choose(self, slug: str | None, name: str) -> None:
        """The workspace and the channel; a dry run makes neither."""
        is_dry = self._options["dry_run"]
        self._workspace = choose_workspace(slug, is_dry=is_dry)
        self._channel = accounts.find_channel(workspace=self._workspace, name=name) if self._workspace else None
        if is_dry or self._workspace is None:
            return
        try:
            check_open(self._workspace)
            with act_as(OPERATOR):
                self._channel = self._channel or ensure_channel(workspace=self._workspace, name=name)
        except ValidationError as error:
            raise CommandError("; ".join(error.messages), returncode=WRONG_USAGE) from error
        for stopped in end_stopped(workspace=self._workspace):
            since = f"{stopped.received_at:%Y-%m-%d %H:%M}"
            self._say(
                f"{stopped.file_name}: the import of {since} was stopped after {stopped.received:,} records, "
                "which are there already"
            )

    def _take(self, source: Source) -> None:
        try:
            with open_source(source) as parts:
                for part in parts:
                    if self._options["dry_run"]:
                        self._forecast(part)
                    else:
                        self._import(part)
        except (RefusedArchiveError, RefusedSourceError, StoreError, OSError) as error:
            self._fail(source.name, str(error))

    def _import(self, part: Part) -> None:
        if self._workspace is None or self._channel is None:
            raise CommandError("there is no workspace to import into", returncode=WRONG_USAGE)

        def watch(delivery: Delivery, taken: int) -> None:
            self._progress.show(part.name, taken * part.share, delivery.received)

        delivery = import_part(
            part=part,
            workspace=self._workspace,
            channel=self._channel,
            has_prefixes=not self._options["no_prefixes"],
            watch=watch if self._options["verbosity"] else None,
        )
        self._progress.end_file(part.size_bytes * part.share, delivery.received)
        counts = {name: getattr(delivery, name) for name in _COUNTS}
        self._totals.update(counts)
        self._say(f"{part.name}: {tell_counts(counts)}")
        self._warn(list_warnings(delivery.warnings))
        if delivery.state == Delivery.State.BROKEN:
            self._fail(part.name, delivery.failure)

    def _forecast(self, part: Part) -> None:
        told = forecast_part(
            part=part,
            workspace=self._workspace,
            channel=self._channel,
            has_prefixes=not self._options["no_prefixes"],
        )
        self._say(
            f"{part.name}: would take in {told.received:,} records: {told.new:,} new, "
            f"{told.duplicate:,} there already, {told.quarantined:,} quarantined"
        )
        self._warn(told.warnings)
        if told.failures:
            self._fail(part.name, told.failures[0])

    def _warn(self, warned: Warned) -> None:
        """Each kind of warning once, with the line it was first seen on."""
        if warned.total:
            self._say(f"  {warned.total:,} {'warning' if warned.total == 1 else 'warnings'}, of these kinds:")
        for row in warned.kinds:
            self._say(f"  line {row.line:,}: {row.reason}; {row.hint}")

    def _say(self, words: str) -> None:
        if self._options["verbosity"]:
            self._progress.clear()
            self.stdout.write(words)

    def _fail(self, name: str, reason: str) -> None:
        self._failures += 1
        self._progress.clear()
        self.stderr.write(f"{name}: {reason}")


def tell_counts(counts: Mapping[str, int]) -> str:
    """The accounting identity of a receipt, in words."""
    received, stored, duplicate, quarantined = (f"{counts[name]:,}" for name in _COUNTS)
    return f"{received} received = {stored} stored + {duplicate} duplicate + {quarantined} quarantined"


def choose_workspace(slug: str | None, *, is_dry: bool = False) -> Workspace | None:
    """The workspace of that slug, or the only one that is not archived; where there is none, the first is made.

    Raises:
        CommandError: for an unknown slug, or where a choice must be made.
    """
    if slug:
        workspace = Workspace.objects.filter(slug=slug).first()
        if workspace is None:
            raise CommandError(f"there is no workspace {slug!r}", returncode=WRONG_USAGE)
        return workspace
    known = list(Workspace.objects.filter(archived_at=None).order_by("slug")[:10])
    if len(known) > 1:
        slugs = ", ".join(each.slug for each in known)
        raise CommandError(f"there are several workspaces: name one with --workspace ({slugs})", returncode=WRONG_USAGE)
    if known or is_dry:
        return known[0] if known else Workspace.objects.first()
    return ensure_first_workspace()[0]
