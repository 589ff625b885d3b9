"""Imports: files of this machine, whole folders and archives, each taken in as a delivery of its own.

Running an import again is always safe: records that are there count as duplicates. Each delivery is guarded by a lock
that lives as long as its process, so that the next run knows which imports were killed and ends them.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings

from dialects import LogRecord, read_log
from inspector.accounts.models import Channel, Workspace
from inspector.trail.acting import OPERATOR
from inspector.trail.services import Thing, record_deed

from .containers import HEAD_BYTES, READ_BYTES, ZIP, Archive, Arrival, ContainerError, name_container, peek, unfold
from .framing import BATCH_RECORDS, close_abandoned, options_of, take_stream
from .identity import BY_ID, BY_TIME, Warned, add_warnings, count_equal, draft_record, list_warnings
from .liveness import alive
from .models import Delivery, Door, Record
from .services import describe_file, keep_arrival, name_member, open_delivery, read_until_broken, tell_nested

Watch = Callable[[Delivery, int], None]


class RefusedSourceError(Exception):
    """A file that is not taken in; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to be imported, and what it is to be called: in a folder, its path from the folder on."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Part:
    """One delivery to be: a file, or a file of an archive.

    Attributes:
        name: what the delivery is called.
        size_bytes: how much `read` gives.
        read: the bytes as they arrive; each call begins anew.
        share: how many bytes of the file on disk one of these stands for.
        container: `gzip` or `zstd`, where the bytes are to be unfolded.
        broken: why the bytes are not to be framed at all, or None.
        archive: name and size of the archive it is from.
    """

    name: str
    size_bytes: int
    read: Callable[[], Iterator[bytes]]
    share: float = 1.0
    container: str | None = None
    broken: str | None = None
    archive: dict[str, Any] | None = None


def find_sources(words: Sequence[str]) -> tuple[list[Source], list[str]]:
    """The files that paths, folders and patterns mean, each once, in the order of their names; and what is not there.

    A folder is searched to its depth; what is hidden in it is left out.
    """
    found: dict[Path, Source] = {}
    missing = []
    for word in words:
        path = Path(word)
        paths = [path] if path.exists() else [Path(name) for name in sorted(glob.glob(word, recursive=True))]  # noqa: PTH207 (a pattern may be absolute)
        sources = [source for one in paths for source in _list_files(one)]
        if not paths or (not sources and not path.is_dir()):
            missing.append(word)
        for source in sources:
            found.setdefault(source.path.resolve(), source)
    return list(found.values()), missing


def _list_files(path: Path) -> Iterator[Source]:
    if path.is_file():
        yield Source(path, path.name)
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            file = Path(folder) / name
            if file.is_file():
                yield Source(file, f"{path.resolve().name}/{file.relative_to(path).as_posix()}")


@contextmanager
def open_source(source: Source) -> Iterator[list[Part]]:
    """The deliveries that a file becomes, while it is open.

    Raises:
        RefusedSourceError: for a file that is larger than a delivery may be.
        RefusedArchiveError: for a zip that is not taken.
        OSError: where it cannot be opened.
    """
    most = settings.LIMITS["delivery_bytes"]
    with source.path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        kind = name_container(file.read(HEAD_BYTES))
        if size > most:
            raise RefusedSourceError(f"it has {size:,} bytes; a delivery has at most {most:,}: split it")
        if kind == ZIP:
            yield _list_parts(source, file, size)
        else:
            yield [Part(source.name, size, lambda: _read_file(file), container=kind)]


def _list_parts(source: Source, file: BinaryIO, size: int) -> list[Part]:
    try:
        archive = Archive(file, max_bytes=settings.LIMITS["delivery_bytes"])
    except ContainerError as error:
        return [Part(source.name, size, lambda: _read_file(file), broken=str(error))]
    whole = Arrival(_read_file(file))
    whole.drain()
    said = {"name": source.name, "size_bytes": size, "sha256": whole.sha256.hex()}
    share = size / max(1, sum(member.file_size for member in archive.members))
    parts = []
    for member in archive.members:
        read = partial(archive.read, member)
        try:
            nested = tell_nested(peek(read())[0])
        except ContainerError:
            nested = None  # It is damaged from its beginning on, which framing will say.
        name = name_member(source.name, member.filename)
        parts.append(Part(name, member.file_size, read, share=share, broken=nested, archive=said))
    return parts


def _read_file(file: BinaryIO) -> Iterator[bytes]:
    at = 0
    while True:
        file.seek(at)
        piece = file.read(READ_BYTES)
        if not piece:
            return
        at += len(piece)
        yield piece


def _open_stream(part: Part, arrival: Arrival) -> Iterator[bytes]:
    if part.broken:
        raise ContainerError(part.broken)
    if part.container:
        yield from unfold(part.container, arrival, max_bytes=settings.LIMITS["delivery_bytes"])
    else:
        yield from arrival


def import_part(
    *, part: Part, workspace: Workspace, channel: Channel, has_prefixes: bool = True, watch: Watch | None = None
) -> Delivery:
    """Take a file in; of one that cannot be read to its end the delivery is broken, and the file is kept.

    Args:
        part: of an open source.
        workspace: where to.
        channel: the namespace of its ids.
        has_prefixes: whether times and speakers before a text are taken apart from it.
        watch: called with the delivery and the bytes taken, again and again.

    Raises:
        OSError: where reading fails; what was read until then is stored, and the delivery is broken.
    """
    options = {"prefixes": has_prefixes, "is_guarded": True} | ({"archive": part.archive} if part.archive else {})
    delivery = open_delivery(
        workspace=workspace, channel=channel, door=Door.IMPORT, file_name=part.name, options=options
    )
    with alive(delivery.pk):
        arrival = Arrival(part.read())
        stream = _open_stream(part, arrival)
        try:
            take_stream(delivery=delivery, chunks=_watched(stream, arrival, delivery, watch), arrival=arrival)
        except ContainerError:
            # Where the file is broken the delivery says already.
            keep_arrival(delivery=delivery, chunks=read_until_broken(part.read(), []))
        finally:
            record_deed(
                "delivery.imported",
                workspace_id=workspace.pk,
                on=Thing("delivery", delivery.pk, delivery.file_name),
                by=OPERATOR,
                details=describe_file(delivery),
            )
    return delivery


def _watched(stream: Iterable[bytes], arrival: Arrival, delivery: Delivery, watch: Watch | None) -> Iterator[bytes]:
    for piece in stream:
        yield piece
        if watch:
            watch(delivery, arrival.size_bytes)


def forecast_part(
    *, part: Part, workspace: Workspace | None, channel: Channel | None, has_prefixes: bool
) -> Forecaster:
    """What importing a file would do; nothing is stored."""
    delivery = Delivery(door=Door.IMPORT, file_name=part.name, options={"prefixes": has_prefixes})
    forecaster = Forecaster(workspace=workspace, channel=channel, received_at=delivery.received_at)
    stream = read_until_broken(_open_stream(part, Arrival(part.read())), forecaster.failures)
    items = (item for item in read_log(stream, options_of(delivery)) if isinstance(item, LogRecord))
    while batch := list(islice(items, BATCH_RECORDS)):
        forecaster.take(batch)
    return forecaster


def end_stopped(*, workspace: Workspace) -> list[Delivery]:
    """End the imports whose process is gone."""
    return close_abandoned(Delivery.objects.filter(workspace=workspace, door=Door.IMPORT, options__is_guarded=True))


class Forecaster:
    """Counts the records of one file as storing them would, against what the channel holds now.

    Without workspace or channel nothing can be there yet. A record that is twice within the file is a duplicate the
    second time: for that the identity of each record that bears an id is kept, 32 bytes. `failures` says why the file
    cannot be read to its end, if so.
    """

    def __init__(self, *, workspace: Workspace | None, channel: Channel | None, received_at: datetime) -> None:
        self._workspace = workspace
        self._channel = channel
        self._received_at = received_at
        self._equal: Counter[bytes] = Counter()
        # Others are never equal within a file: timed ones are numbered, and the rest go by their place in it.
        self._met: set[bytes] = set()
        self.new = self.duplicate = self.quarantined = 0
        self.failures: list[str] = []
        self._warnings: dict[str, Any] = {}

    @property
    def received(self) -> int:
        """How many records were counted."""
        return self.new + self.duplicate + self.quarantined

    @property
    def warnings(self) -> Warned:
        """What their sender should be told of them."""
        return list_warnings(self._warnings)

    def take(self, records: Iterable[LogRecord]) -> None:
        """Count the next records of the file."""
        identities: list[bytes] = []
        drafts, again = [], set()
        for framed in records:
            if framed.problem is not None:
                self.quarantined += 1
                continue
            draft = draft_record(framed, series=None, start=None, received_at=self._received_at)
            if draft.rule == BY_TIME and draft.likeness:
                draft.identity = count_equal(draft.likeness, self._equal[draft.likeness])
                self._equal[draft.likeness] += 1
            if draft.rule == BY_ID:
                if draft.identity in self._met:
                    again.add(len(identities))
                self._met.add(draft.identity)
            identities.append(draft.identity)
            drafts.append(draft)
        self._warnings = add_warnings(self._warnings, drafts)
        held = self._find(identities)
        duplicate = sum(at in again or identity in held for at, identity in enumerate(identities))
        self.duplicate += duplicate
        self.new += len(identities) - duplicate

    def _find(self, identities: list[bytes]) -> set[bytes]:
        if self._workspace is None or self._channel is None:
            return set()
        rows = Record.objects.filter(workspace=self._workspace, channel=self._channel, identity__in=identities)
        return {bytes(identity) for identity in rows.values_list("identity", flat=True)}
