"""What is periodic happens once, however many beats and workers there are, on several hosts or on one."""

from __future__ import annotations

import os
import threading
import time

import pytest
from django.db import connections

from inspector import pipeline, worker


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("work", "part"), [("sweep", "note_all_due"), ("tidy", "record_reads")])
def test_of_several_at_once_one_does_it(work: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started = threading.Barrier(3)
    done: list[str] = []

    def take_long() -> None:
        done.append(threading.current_thread().name)
        time.sleep(1)

    def run() -> None:
        try:
            started.wait(20)
            getattr(worker, work)()
        finally:
            connections.close_all()

    monkeypatch.setattr(worker, part, take_long)
    beats = [threading.Thread(target=run) for _ in range(3)]
    for beat in beats:
        beat.start()
    for beat in beats:
        beat.join(120)
    assert len(done) == 1
    # The lock went with the work: the next round is done again.
    getattr(worker, work)()
    assert len(done) == 2


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
