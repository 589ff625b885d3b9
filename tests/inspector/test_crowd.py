"""Writers in processes of their own, overlapping files: no lost link, no job left dead, the same picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long(seconds=40)
def test_four_writers_meet_and_nothing_is_lost() -> None:
    command = [sys.executable, "-m", "bench.crowd", "--shuffles", "2", "--writers", "4", "--records", "60"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'codecs'}:{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "4 writers, 2 shuffles of 60 records: 0 with faults, 0 with another picture" in done.stdout
