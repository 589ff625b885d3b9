"""Writing an export, step by step: each is one transaction of pieces, counts and the job's checkpoint.

A worker that is killed leaves whole steps behind it, and the next one goes on with the entry after the last that was
written: no row is missing and none is doubled. A file that is packed is a row of gzip members, some a step, which every
program that unpacks gzip reads as one file; so nothing of a compressor has to outlive a worker.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import Final

from django.conf import settings
from django.db import OperationalError, transaction
from django.utils import timezone

from inspector.accounts.models import Channel
from inspector.audit.models.reviews import AuditSample
from inspector.audit.samples import find_sample
from inspector.database import cut_windows
from inspector.intake import jobs
from inspector.intake.models import Job
from inspector.intake.object_store import load
from inspector.keyring.encryption import SealError
from inspector.search.language import QueryError
from inspector.threads.dependencies import DECODER_VERSION
from inspector.threads.models import Conversation
from inspector.threads.selectors import find_conversation

from .articles import load_lines, load_said, write_article
from .entries import (
    MAX_MESSAGES,
    Entry,
    Row,
    count_parts,
    find_beginning,
    fix_set,
    measure_records,
    read_entries,
    read_rows,
)
from .exporters import BROUGHT, Exporter
from .forms import COLUMNS, FINDING_COLUMNS, load_findings, mask_row, write_findings, write_head, write_line, write_rows
from .models import UNDER_WAY, Block, Export, Piece
from .reports import write_beginning, write_drawn, write_end, write_sample

logger = logging.getLogger(__name__)

PIECE_BYTES: Final = 1024 * 1024
MEMBER_BYTES: Final = 1024 * 1024
STEP_BYTES: Final = 8 * 1024 * 1024
# A report unfolds every record: what a step makes of these is many times their size.
REPORT_STEP_BYTES: Final = 256 * 1024
REPORT_STEP_RECORDS: Final = 200
# A smaller set is not packed.
MAX_PLAIN_MESSAGES: Final = 5000
_LEVEL: Final = 1
_CANCELLED: Final = "57014"


class RefusedError(Exception):
    """The export cannot be made, whoever tries it; the sentence says why, and what to do."""


def make_step(job: Job) -> bool:
    """Do the next step of the export that a leased job is about; whether another is to follow.

    Raises:
        LostLeaseError: if the lease has passed to another worker.
    """
    export = Export.objects.select_related("workspace").filter(pk=job.subject).first()
    step = _STEPS.get(Export.State(export.state)) if export else None
    if export is None or step is None:
        return False
    try:
        _check_form(export)
        step(job, export)
    except RefusedError as error:
        with jobs.together(job):
            jobs.checkpoint(job, {"refused": True})
            _refuse(export, str(error))
    return True


def _check_form(export: Export) -> None:
    if export.form not in (*Export.Form.values, *BROUGHT):
        raise RefusedError(f"The format {export.form} is not there: install the package again that brought it.")


def _refuse(export: Export, reason: str) -> None:
    drop_file(export)
    Export.objects.filter(pk=export.pk, state__in=UNDER_WAY).update(
        state=Export.State.REFUSED, failure=reason, finished_at=timezone.now(), pieces=0, size_bytes=0, unpacked_bytes=0
    )


def drop_file(export: Export) -> None:
    """Delete the set and the file of an export; call inside a transaction that holds its row."""
    Block.objects.filter(export=export).delete()
    Piece.objects.filter(export=export).delete()


def _list(job: Job, export: Export) -> None:
    """Fix the set, and write the head of the file."""
    try:
        with jobs.together(job):
            listed, fixed_at = fix_set(export, export.workspace)
            if listed > MAX_MESSAGES:
                raise RefusedError(f"More than {MAX_MESSAGES:,} messages are meant: narrow the search down.")
            held = _hold(job, export, {"block": 0, "entry": 0})
            if held is None:
                drop_file(export)
                return
            held.listed, held.fixed_at, held.state = listed, fixed_at, Export.State.WRITING
            held.is_packed = listed > MAX_PLAIN_MESSAGES and held.form != Export.Form.REPORT
            held.decoder = DECODER_VERSION
            _add(held, _write_head(held))
            held.save()
    except QueryError as error:
        raise RefusedError(f"The search cannot be understood any more: {error}.") from error
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != _CANCELLED:
            raise
        raise RefusedError("The search took longer than nine minutes: add a word, a name or a time to it.") from error


def _has_findings(export: Export) -> bool:
    """Whether its rows are findings, and not messages."""
    return export.subject == Export.Subject.FINDINGS


def _write_head(export: Export) -> bytes:
    if export.form == Export.Form.CSV:
        return write_head(FINDING_COLUMNS if _has_findings(export) else COLUMNS, has_mark=export.has_mark)
    if export.form != Export.Form.REPORT:
        return BROUGHT[export.form].head if export.form in BROUGHT else b""
    if export.subject == Export.Subject.SAMPLE:
        return write_sample(export, _find_sample(export))
    return write_beginning(export, _find_conversation(export))


def _find_sample(export: Export) -> AuditSample:
    pk = export.sample_id
    found = find_sample(workspace=export.workspace, sample_id=pk) if pk else None
    if found is None:
        raise RefusedError("The sample is not there any more.")
    return found


def _find_conversation(export: Export) -> Conversation:
    pk = export.conversation_id
    found = find_conversation(workspace=export.workspace, conversation_id=pk) if pk else None
    if found is None:
        raise RefusedError("The conversation is not there any more: its messages were read as others.")
    return found


def _hold(job: Job, export: Export, state: dict[str, int]) -> Export | None:
    """The export's row, locked behind the job's; None where it was cancelled meanwhile."""
    jobs.checkpoint(job, state)
    return Export.objects.select_for_update(no_key=True).filter(pk=export.pk, state=export.state).first()


def _write(job: Job, export: Export) -> None:
    """Write what one step takes of the next block."""
    block = Block.objects.filter(export=export, number__gte=export.block).order_by("number").first()
    if block is None:
        end = write_end(export, read_file(export)) if export.form == Export.Form.REPORT else b""
        end = BROUGHT[export.form].end if export.form in BROUGHT else end
        with jobs.together(job):
            held = _hold(job, export, {"block": export.block, "entry": -1})
            if held is not None:
                held.state = Export.State.SEALING
                _add(held, end)
                held.save()
        return
    entries = list(read_entries(bytes(block.entries)))
    start = export.entry if block.number == export.block else 0
    window = _cut_window(entries[start:], is_report=export.form == Export.Form.REPORT)
    rows, withdrawn = read_rows(window)
    data, counts = _write_rows(export, rows)
    place = None if start or export.form != Export.Form.REPORT else find_beginning(block)
    if place is not None:
        data = write_drawn(_find_sample(export), place) + data
    is_last = start + len(window) == len(entries)
    goes_on = (
        {"block": block.number + 1, "entry": 0} if is_last else {"block": block.number, "entry": start + len(window)}
    )
    with jobs.together(job):
        held = _hold(job, export, goes_on)
        if held is None:
            return
        held.block, held.entry = goes_on["block"], goes_on["entry"]
        held.messages += counts["messages"]
        held.rows += counts["rows"]
        held.masked += counts["masked"]
        held.changed += counts["changed"]
        held.withdrawn += withdrawn
        held.gone += count_parts(window) - withdrawn - counts["messages"]
        _add(held, data)
        if held.size_bytes > settings.LIMITS["export_bytes"]:
            most = settings.LIMITS["export_bytes"] // 2**20
            raise RefusedError(f"The file would be larger than {most:,} MiB: narrow the search down.")
        held.save()


def _cut_window(entries: Sequence[Entry], *, is_report: bool) -> list[Entry]:
    sizes = measure_records([record_id for record_id, _ in entries])
    measured = [(entry, sizes.get(entry[0], 0)) for entry in entries]
    max_items, max_bytes = (REPORT_STEP_RECORDS, REPORT_STEP_BYTES) if is_report else (len(measured), STEP_BYTES)
    windows = cut_windows(measured, size_of=itemgetter(1), max_items=max_items, max_bytes=max_bytes)
    return [entry for entry, _ in next(windows)]


def _write_rows(export: Export, rows: Sequence[Row]) -> tuple[bytes, dict[str, int]]:
    """The bytes of these rows, and how many messages and rows they are, and masked and changed ones."""
    channels = {
        str(pk): name for pk, name in Channel.objects.filter(workspace=export.workspace).values_list("pk", "name")
    }
    write: Callable[[object], bytes]
    is_csv = export.form == Export.Form.CSV
    findings = load_findings(export, rows) if _has_findings(export) else None
    if findings is not None:
        write = partial(write_findings, said=findings, channels=channels, is_csv=is_csv)
    elif export.form == Export.Form.REPORT:
        said = load_said(export, rows)
        lines = load_lines(export, rows)
        write = partial(write_article, said=said, channels=channels, is_masked=export.is_masked, lines=lines)
    elif export.form in BROUGHT:
        write = partial(_write_foreign, exporter=BROUGHT[export.form], channels=channels)
    else:
        write = partial(write_rows if is_csv else write_line, channels=channels)
    for row in rows if export.is_masked else ():
        mask_row(row)
    messages = sum(len(row.parts) for row in rows)
    counts = {
        "messages": messages,
        "rows": sum(len(findings.get((row.id, part.part), ())) for row in rows for part in row.parts)
        if findings is not None
        else messages
        if is_csv
        else len(rows),
        "masked": sum(len(row.parts) for row in rows if row.is_masked),
        "changed": sum(len(row.parts) for row in rows if row.changed is not None),
    }
    return b"".join(map(write, rows)), counts


def _write_foreign(row: Row, *, exporter: Exporter, channels: Mapping[str, str]) -> bytes:
    line = json.loads(write_line(row, channels))
    try:
        return bytes(memoryview(exporter.write(line)))
    except Exception as error:
        logger.exception("the exporter %s failed", exporter.slug)
        said = f"The format {exporter.title}, which another package brings, failed ({type(error).__name__})."
        raise RefusedError(said) from error


def _add(export: Export, data: bytes) -> None:
    """Append to the file; the row's numbers are changed in memory."""
    export.unpacked_bytes += len(data)
    packed = _pack(data) if export.is_packed else data
    pieces = [packed[start : start + PIECE_BYTES] for start in range(0, len(packed), PIECE_BYTES)]
    rows = [Piece(export=export, number=export.pieces + number) for number in range(len(pieces))]
    for row, piece in zip(rows, pieces, strict=True):
        row.keep(piece)
    Piece.objects.bulk_create(rows)
    export.pieces += len(pieces)
    export.size_bytes += len(packed)


def _pack(data: bytes) -> bytes:
    """The data as gzip members, which are made side by side: compressing is half of the work."""
    members = [data[start : start + MEMBER_BYTES] for start in range(0, len(data), MEMBER_BYTES)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        return b"".join(pool.map(partial(gzip.compress, compresslevel=_LEVEL, mtime=0), members))


def _seal(job: Job, export: Export) -> None:
    """Hash the file, and let it be downloaded."""
    digest = hashlib.sha256()
    for piece in read_file(export):
        digest.update(piece)
    with jobs.together(job):
        held = _hold(job, export, {"block": export.block, "entry": -2})
        if held is None:
            return
        held.sha256, held.state, held.finished_at = digest.digest(), Export.State.DONE, timezone.now()
        held.expires_at = held.finished_at + timedelta(days=settings.EXPORT_DAYS)
        held.save()


def read_file(export: Export) -> Iterator[bytes]:
    """The file in pieces; memory does not grow with it. The first is read at once, before an answer has begun.

    Raises:
        SealError: where it was removed, or changed in the object store.
        StoreError: where the object store cannot be used.
    """
    pieces = _read_pieces(export)
    return chain(list(islice(pieces, 1)), pieces)


def _read_pieces(export: Export) -> Iterator[bytes]:
    for number in range(export.pieces):
        piece = Piece.objects.filter(export=export, number=number).first()
        if piece is None:
            # It was removed while it was read; a shorter file must not pass for the whole.
            raise SealError("the file was removed while it was being read", is_destroyed=True)
        yield load(piece) if piece.object_key else bytes(piece.data)


_STEPS: Final[dict[str, Callable[[Job, Export], None]]] = {
    Export.State.QUEUED: _list,
    Export.State.WRITING: _write,
    Export.State.SEALING: _seal,
}


@transaction.atomic
def drop_expired() -> int:
    """Delete the files whose time is over; how many there were. Their rows stay."""
    due = Export.objects.filter(state=Export.State.DONE, expires_at__lte=timezone.now())
    found = list(due.select_for_update(no_key=True, skip_locked=True).order_by("expires_at")[:10])
    for export in found:
        drop_file(export)
        Export.objects.filter(pk=export.pk).update(state=Export.State.EXPIRED)
    return len(found)
