"""The workers of a host: of those that were forked from one process, one sweeps for all."""

from __future__ import annotations

import os

import pytest

from inspector import pipeline, worker


def test_what_one_has_swept_the_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    swept: list[str] = []
    monkeypatch.setattr(worker, "sweep", lambda: swept.append("sweep"))
    monkeypatch.setattr(worker, "tidy", lambda: swept.append("tidy"))
    monkeypatch.setattr(worker, "close_old_connections", lambda: None)
    one = worker.Worker()
    process = os.fork()
    if not process:
        one._look_around()
        os._exit(len(swept))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 2
    monkeypatch.setattr(pipeline, "LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(worker, "TIDY_SECONDS", 3600.0)
    one._look_around()
    assert swept == []
    # When it is time again, whoever looks first does it.
    monkeypatch.setattr(pipeline, "LOOK_SECONDS", 0.0)
    one._look_around()
    assert swept == ["sweep"]
