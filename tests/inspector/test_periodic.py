"""What is periodic happens once, however many beats and workers there are."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import connections

from inspector import worker


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
