"""What the tests of exports share: asking for one, having it made, and reading its file."""

from __future__ import annotations

import gzip
from typing import Any

from inspector import pipeline
from inspector.exports.making import read_file
from inspector.exports.models import Export
from inspector.exports.services import ask_for_export
from inspector.intake.models import Job
from tests.inspector.conftest import Cast


def ask(cast: Cast, **names: Any) -> Export:
    """An export for the auditor, exact and in JSON Lines unless said otherwise; of everything."""
    if not {"query", "conversation_id", "sample_id", "filters"} & set(names):
        names["query"] = ""
    given = {"membership": cast.auditor, "form": "jsonl", "is_masked": False} | names
    return ask_for_export(workspace=cast.workspace, **given)


def make(export: Export) -> Export:
    """The export at its end."""
    pipeline.run_due(seconds=60, only=(Job.Kind.EXPORT,))
    job = Job.objects.get(kind=Job.Kind.EXPORT, subject=export.pk)
    assert (job.state, job.failure) == (Job.State.DONE, "")
    export.refresh_from_db()
    return export


def read(export: Export) -> bytes:
    """The file, unpacked."""
    data = b"".join(read_file(export))
    assert len(data) == export.size_bytes
    unpacked = gzip.decompress(data) if export.is_packed else data
    assert len(unpacked) == export.unpacked_bytes
    return unpacked
