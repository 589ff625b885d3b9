"""A worker that is killed with -9 in the middle of an export: the next one goes on, and every row is there once."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from django.utils import timezone

from inspector.exports.models import Export, Piece
from inspector.intake import jobs
from inspector.intake.models import Job
from tests.inspector.conftest import Cast, deliver, resolve_all
from tests.inspector.intake.processes import kill, process

from .conftest import ask, make, read

pytestmark = pytest.mark.django_db(transaction=True)

# A worker that takes a fifth of a second for each step of five records, and may die within one.
SLOW = """
import time, django
django.setup()
from inspector import pipeline
from inspector.exports import entries, making
entries.BLOCK_RECORDS = 5
add = making._add
def add_slowly(*words):
    add(*words)
    time.sleep(0.2)
making._add = add_slowly
pipeline.run_due(seconds=600, only=("export",))
"""


@pytest.mark.long(seconds=6, waits=True)
def test_every_row_is_there_once(cast: Cast, tmp_path: Path) -> None:
    deliver(cast, b"".join(b"line %d\n" % number for number in range(60)))
    resolve_all()
    export = ask(cast)
    for _ in range(3):
        before = Piece.objects.count()
        with process(tmp_path, "-c", SLOW) as child:
            deadline = time.monotonic() + 60
            while Piece.objects.count() < before + 2 and time.monotonic() < deadline:
                time.sleep(0.02)
            kill(child)
        export.refresh_from_db()
        assert export.state == Export.State.WRITING, (tmp_path / "process.log").read_text()[-2000:]
        assert Piece.objects.count() == export.pieces >= before + 2
        while not jobs.take_back() and time.monotonic() < deadline:
            time.sleep(0.02)
        # What has killed its worker twice waits for some seconds, which is not what is asked here.
        Job.objects.update(due_at=timezone.now())
    make(export)
    raws = [json.loads(line)["raw"] for line in read(export).splitlines()]
    assert raws == [f"line {number}" for number in range(60)]
